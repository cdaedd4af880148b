"""The one loop: choose, draw, learn, reckon."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from superarm._jit import kernel
from superarm.actions import capacity
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.environments import (
    AnswerBuffer,
    Environment,
    FreeSamples,
    answer,
    draw,
    expected_reward,
    max_answer_entries,
    means,
    respond,
)
from superarm.intake import Exact
from superarm.policies import Policy, Round, choose, learn, prepare
from superarm.problem import Problem
from superarm.rewards import clear_batch, initial_states, join_batch, value_of_states
from superarm.streams import RunStreams, run_streams, seek
from superarm.tally import Feedback, Tally, allow_missing, empty, record

_BEYOND = 1 << 62
"""No run has so many rounds."""


class RunState(NamedTuple):
    """A run in progress: what the policy has learnt, its memory, chance, and the expected reward so far (1,).

    ``last`` (k,) is the batch of the last round that was marked, filled up with -1.
    """

    tally: Tally
    memory: Any
    streams: RunStreams
    earned: Floats
    last: Ints


class PlayedRound(NamedTuple):
    """One round of a run: the batch that was chosen and its feedback, which ``game`` has not learnt from yet."""

    t: int
    game: RunState
    action: Ints
    feedback: Feedback


def begin(problem: Problem, environment: Environment, policy: Policy, seed: np.random.SeedSequence) -> RunState:
    """A run before its first round."""
    tally = empty(problem.support)
    if getattr(environment, "partial", False):
        tally = allow_missing(tally)
    chance = run_streams(seed)
    if isinstance(environment, FreeSamples):
        _show(problem, environment, tally, chance)
    return RunState(tally, prepare(policy, problem, tally), chance, np.zeros(1), np.full(problem.k, -1))


def _show(problem: Problem, environment: FreeSamples, tally: Tally, chance: RunStreams) -> None:
    """Show every arm on its own, so that nothing hides it, in rounds before the first and beyond all others."""
    support = problem.support
    room = max_answer_entries(environment, support, problem.n_arms, 1)
    for n in range(environment.n):
        t = 0 if n == 0 else _BEYOND + n
        for j in range(problem.n_arms):
            arm, outcome, seen = np.array([j]), np.zeros(room), np.ones(room, np.bool_)
            draw(environment, support, arm, t, chance.environment, outcome, seen)
            record(tally, support, Feedback(t, arm, outcome, seen), Exact(), chance.rounding, 1.0)


@kernel
def advance(
    problem: Problem, environment: Environment, policy: Policy, game: RunState, rounds: Ints, earned: Floats
) -> None:
    """Play rounds ``rounds[0] + 1`` to ``rounds[-1]``; write the expected reward up to each of ``rounds[1:]``.

    ``earned`` has the length of ``rounds[1:]``.
    """
    eligible = np.ones(problem.n_arms, np.bool_)
    room = max_answer_entries(
        environment, problem.terms.support, problem.n_arms, capacity(problem.actions, problem.n_arms)
    )
    outcome, seen, observed = np.empty(room), np.ones(room, np.bool_), np.empty(problem.n_arms, np.int64)
    sheet = AnswerBuffer(outcome, seen, observed)
    states = initial_states(problem.reward, problem.terms)
    nothing = value_of_states(problem.reward, problem.terms, states)
    # Bound once: what is taken out of a tuple counts references, round by round.
    tally, memory, sofar, (environment_stream, policy_stream, rounding_stream) = (
        game.tally,
        game.memory,
        game.earned,
        game.streams,
    )
    terms, candidates = problem.terms, Candidates(tally.pulls, eligible)
    support = terms.support
    for mark in range(1, len(rounds)):
        for t in range(rounds[mark - 1] + 1, rounds[mark] + 1):
            seek(policy_stream, t, 0)
            action = choose(policy, problem, Round(t, tally, candidates), memory, policy_stream)
            seen[:] = True
            n = answer(environment, support, action, t, environment_stream, sheet)
            feedback = Feedback(t, action if n < 0 else observed[:n], outcome, seen)
            learn(policy, problem, tally, memory, feedback, rounding_stream, 1.0)
            told = nothing + join_batch(problem.reward, terms, states, means(environment, t).reshape(-1), action)
            sofar[0] += expected_reward(environment, terms.weights, support, action, t, told)
            clear_batch(problem.reward, terms, states, action)
        earned[mark - 1] = sofar[0]
        game.last[:] = -1
        game.last[: len(action)] = action


def rounds(
    problem: Problem, environment: Environment, policy: Policy, seed: np.random.SeedSequence, horizon: int
) -> Iterator[PlayedRound]:
    """Play as :func:`advance` does, and yield each round between its feedback and learning from it.

    Plain Python, for proofs and checks that look at every round; ``policy`` is fitted.
    """
    game = begin(problem, environment, policy, seed)
    eligible = np.ones(problem.n_arms, np.bool_)
    for t in range(1, horizon + 1):
        seek(game.streams.policy, t, 0)
        current = Round(t, game.tally, Candidates(game.tally.pulls, eligible))
        action = choose(policy, problem, current, game.memory, game.streams.policy)
        feedback = respond(environment, problem.support, action, t, game.streams.environment)
        yield PlayedRound(t, game, action, feedback)
        learn(policy, problem, game.tally, game.memory, feedback, game.streams.rounding, 1.0)
