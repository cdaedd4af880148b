"""The simulation loop: choose a batch, draw its outcome, learn from it, and add up the expected reward."""

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
    answer,
    draw,
    expected_reward,
    max_answer_entries,
    means,
    respond,
)
from superarm.environments.traits import free_samples, partial
from superarm.intake import Exact
from superarm.policies import Policy, Round, choose, learn, prepare
from superarm.policies.traits import empty_tally
from superarm.problem import Problem
from superarm.rewards import clear_batch, initial_states, join_batch, value_of_states
from superarm.streams import RunStreams, run_streams, seek
from superarm.tally import Feedback, Tally, allow_missing, record

_AFTER_ALL_ROUNDS = 1 << 62
"""A round number that no run reaches."""


class RunState(NamedTuple):
    """A run in progress: the tally, the policy's memory, the random streams, and the expected reward so far (1,).

    ``last`` (k,) is the batch of the last checkpoint, padded with -1.
    """

    tally: Tally
    memory: Any
    streams: RunStreams
    earned: Floats
    last: Ints


class PlayedRound(NamedTuple):
    """One round of a run: the chosen batch and its feedback; the tally of ``run`` does not hold that feedback yet."""

    t: int
    run: RunState
    action: Ints
    feedback: Feedback


def begin(problem: Problem, environment: Environment, policy: Policy, seed: np.random.SeedSequence) -> RunState:
    """The state of a run before its first round."""
    tally = empty_tally(policy, problem)
    if partial(environment):
        tally = allow_missing(tally)
    chance = run_streams(seed)
    if free_samples(environment) > 0:
        _give_free_samples(problem, environment, tally, chance)
    return RunState(tally, prepare(policy, problem, tally), chance, np.zeros(1), np.full(problem.k, -1))


def _give_free_samples(problem: Problem, environment: Environment, tally: Tally, chance: RunStreams) -> None:
    """Observe every arm alone, so that no other arm hides it, in round 0 and in rounds that no run reaches."""
    support = problem.support
    room = max_answer_entries(environment, support, problem.n_arms, 1)
    for n in range(free_samples(environment)):
        t = 0 if n == 0 else _AFTER_ALL_ROUNDS + n
        for j in range(problem.n_arms):
            arm, outcome, seen = np.array([j]), np.zeros(room), np.ones(room, np.bool_)
            draw(environment, support, arm, t, chance.environment, outcome, seen)
            record(tally, support, Feedback(t, arm, outcome, seen), Exact(), chance.rounding, 1.0)


@kernel
def advance(
    problem: Problem, environment: Environment, policy: Policy, run: RunState, rounds: Ints, earned: Floats
) -> None:
    """Play rounds ``rounds[0] + 1`` to ``rounds[-1]``; write the expected reward up to each of ``rounds[1:]``.

    ``earned`` has the length of ``rounds[1:]``.
    """
    eligible = np.ones(problem.n_arms, np.bool_)
    room = max_answer_entries(
        environment, problem.terms.support, problem.n_arms, capacity(problem.actions, problem.n_arms)
    )
    outcome, seen, observed = np.empty(room), np.ones(room, np.bool_), np.empty(problem.n_arms, np.int64)
    buffer = AnswerBuffer(outcome, seen, observed)
    states = initial_states(problem.reward, problem.terms)
    nothing = value_of_states(problem.reward, problem.terms, states)
    # Bound to locals once: reading a field of a tuple counts references in every round.
    tally, memory, earned_so_far, (environment_stream, policy_stream, rounding_stream) = (
        run.tally,
        run.memory,
        run.earned,
        run.streams,
    )
    terms, candidates = problem.terms, Candidates(tally.pulls, eligible)
    support = terms.support
    for checkpoint in range(1, len(rounds)):
        for t in range(rounds[checkpoint - 1] + 1, rounds[checkpoint] + 1):
            seek(policy_stream, t, 0)
            action = choose(policy, problem, Round(t, tally, candidates), memory, policy_stream)
            seen[:] = True
            n = answer(environment, support, action, t, environment_stream, buffer)
            feedback = Feedback(t, action if n < 0 else observed[:n], outcome, seen)
            learn(policy, problem, tally, memory, feedback, rounding_stream, 1.0)
            default = nothing + join_batch(problem.reward, terms, states, means(environment, t).reshape(-1), action)
            earned_so_far[0] += expected_reward(environment, terms.weights, support, action, t, default)
            clear_batch(problem.reward, terms, states, action)
        earned[checkpoint - 1] = earned_so_far[0]
        for place in range(len(run.last)):
            run.last[place] = action[place] if place < len(action) else -1


def rounds(
    problem: Problem, environment: Environment, policy: Policy, seed: np.random.SeedSequence, horizon: int
) -> Iterator[PlayedRound]:
    """Play as :func:`advance` does, and yield each round after its feedback and before the policy learns from it.

    This is plain Python, for checks that inspect every round; ``policy`` must be fitted.
    """
    run = begin(problem, environment, policy, seed)
    eligible = np.ones(problem.n_arms, np.bool_)
    for t in range(1, horizon + 1):
        seek(run.streams.policy, t, 0)
        current = Round(t, run.tally, Candidates(run.tally.pulls, eligible))
        action = choose(policy, problem, current, run.memory, run.streams.policy)
        feedback = respond(environment, problem.support, action, t, run.streams.environment)
        yield PlayedRound(t, run, action, feedback)
        learn(policy, problem, run.tally, run.memory, feedback, run.streams.rounding, 1.0)
