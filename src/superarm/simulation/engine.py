"""The one loop: choose, draw, learn, reckon."""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import kernel
from superarm.actions import Ranks, capacity
from superarm.arrays import Floats, Ints
from superarm.environments import Environment, draw, means
from superarm.noise import Streams, seek, streams
from superarm.policies import Moment, Policy, choose, learn, prepare
from superarm.problem import Problem
from superarm.rewards import accrue, forget, fresh, total
from superarm.support import span
from superarm.tally import Feedback, Tally, allow_missing, empty


class Game(NamedTuple):
    """A run in progress: what the policy has learnt, its memory, chance, and the expected reward so far (1,)."""

    tally: Tally
    memory: Any
    streams: Streams
    earned: Floats


def begin(problem: Problem, environment: Environment, policy: Policy, seed: np.random.SeedSequence) -> Game:
    """A run before its first round."""
    tally = empty(problem.support)
    if getattr(environment, "partial", False):
        tally = allow_missing(tally)
    return Game(tally, prepare(policy, problem, tally), streams(seed), np.zeros(1))


@kernel
def advance(
    problem: Problem, environment: Environment, policy: Policy, game: Game, rounds: Ints, earned: Floats
) -> None:
    """Play rounds ``rounds[0] + 1`` to ``rounds[-1]``; write the expected reward up to each of ``rounds[1:]``.

    ``earned`` has the length of ``rounds[1:]``.
    """
    eligible = np.ones(problem.n_arms, np.bool_)
    room = _room(problem)
    outcome, seen = np.empty(room), np.ones(room, np.bool_)
    memo = fresh(problem.reward, problem.terms)
    nothing = total(problem.reward, problem.terms, memo)
    for mark in range(1, len(rounds)):
        for t in range(rounds[mark - 1] + 1, rounds[mark] + 1):
            seek(game.streams.mind, t, 0)
            moment = Moment(t, game.tally, Ranks(game.tally.pulls, eligible))
            action = choose(policy, problem, moment, game.memory, game.streams.mind)
            seen[:] = True
            draw(environment, problem.terms.support, action, t, game.streams.world, outcome, seen)
            feedback = Feedback(t, action, outcome, seen)
            learn(policy, problem, game.tally, game.memory, feedback, game.streams.coin, 1.0)
            p = means(environment, t).reshape(-1)
            game.earned[0] += nothing + accrue(problem.reward, problem.terms, memo, p, action)
            forget(problem.reward, problem.terms, memo, action)
        earned[mark - 1] = game.earned[0]


@kernel
def _room(problem: Problem) -> int:
    """The most entries that a batch can have."""
    widest = 0
    for j in range(problem.n_arms):
        first, last = span(problem.terms.support, j)
        widest = max(widest, last - first)
    return widest * capacity(problem.actions, problem.n_arms)
