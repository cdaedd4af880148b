"""The simulation loop: choose a batch, draw its outcome, learn from it, and add up the expected reward."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from superarm._jit import allocating, kernel, lean
from superarm.actions import capacity
from superarm.arrays import Bools, Floats, Ints
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
from superarm.oracles.base import BatchBuffer
from superarm.policies import Policy, Round, choose, learn, prepare
from superarm.policies.base import choose_into
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


class RoundBuffers(NamedTuple):
    """What rounds are played in: the ``batch``, the ``answer`` of the environment, which arms are ``eligible`` (all),
    and the ``states`` of all items without any arm, (n_items,).
    """

    batch: BatchBuffer
    answer: AnswerBuffer
    eligible: Bools
    states: Floats


@kernel
def advance(
    problem: Problem, environment: Environment, policy: Policy, run: RunState, rounds: Ints, earned: Floats
) -> None:
    """Play rounds ``rounds[0] + 1`` to ``rounds[-1]``; write the expected reward up to each of ``rounds[1:]``.

    ``earned`` has the length of ``rounds[1:]``.
    """
    k = capacity(problem.actions, problem.n_arms)
    room = max_answer_entries(environment, problem.terms.support, problem.n_arms, k)
    states, chosen = initial_states(problem.reward, problem.terms), np.empty(k, np.int64)
    buffers = RoundBuffers(
        BatchBuffer(chosen, np.empty(problem.n_items), np.empty(problem.n_arms, np.bool_)),
        AnswerBuffer(np.empty(room), np.ones(room, np.bool_), np.empty(problem.n_arms, np.int64)),
        np.ones(problem.n_arms, np.bool_),
        states,
    )
    for checkpoint in range(1, len(rounds)):
        size = _play_rounds(problem, environment, policy, run, buffers, (rounds[checkpoint - 1], rounds[checkpoint]))
        earned[checkpoint - 1] = run.earned[0]
        for place in range(len(run.last)):
            run.last[place] = chosen[place] if place < size else -1


@lean
def _play_rounds(
    problem: Problem,
    environment: Environment,
    policy: Policy,
    run: RunState,
    buffers: RoundBuffers,
    ends: tuple[int, int],
) -> int:
    """Play the rounds after ``ends[0]`` up to ``ends[1]``; return the size of the last batch."""
    tally, memory, earned, streams = run.tally, run.memory, run.earned, run.streams
    terms, candidates, states = problem.terms, Candidates(tally.pulls, buffers.eligible), buffers.states
    outcome, seen, observed = buffers.answer
    support, nothing, size = terms.support, value_of_states(problem.reward, terms, states), 0
    for t in range(ends[0] + 1, ends[1] + 1):
        seek(streams.policy, t, 0)
        size = choose_into(policy, problem, Round(t, tally, candidates), memory, streams.policy, buffers.batch)
        action = buffers.batch.chosen[:size]
        seen[:] = True
        shown = answer(environment, support, action, t, streams.environment, buffers.answer)
        feedback = Feedback(t, action if shown < 0 else observed[:shown], outcome, seen)
        learn(policy, problem, tally, memory, feedback, streams.rounding, 1.0)
        default = nothing + _join_at_means(environment, problem, states, action, t)
        earned[0] += expected_reward(environment, terms.weights, support, action, t, default)
        clear_batch(problem.reward, terms, states, action)
    return size


@allocating
def _join_at_means(environment: Environment, problem: Problem, states: Floats, action: Ints, t: int) -> float:
    """The reward of ``action`` at the true means beyond that of no arm; updates the states of its items."""
    return join_batch(problem.reward, problem.terms, states, means(environment, t).reshape(-1), action)


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
