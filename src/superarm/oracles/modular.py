from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.actions import Ranks, admits, capacity
from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.noise import Noise
from superarm.oracles.base import Guarantee
from superarm.problem import Problem
from superarm.rewards import fresh, gain


@component
class Modular(NamedTuple):
    """Sort the arms by what each adds, and let them join in that order: exact for modular rewards on a matroid.

    Implements the matroid greedy algorithm of [Edmonds1971]_. Each arm is evaluated once.
    """

    def maximize(self, problem: Problem, q: Floats, ranks: Ranks, noise: Noise) -> Ints:
        memo = fresh(problem.reward, problem.terms)
        gains = np.full(problem.n_arms, -np.inf)
        for j in range(problem.n_arms):
            if ranks.eligible[j]:
                gains[j] = gain(problem.reward, problem.terms, memo, q, j)
        chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
        size = 0
        while size < len(chosen):
            best = -1
            for j in range(problem.n_arms):
                if gains[j] == -np.inf:
                    continue
                better = best < 0 or gains[j] > gains[best]
                tied = best >= 0 and gains[j] == gains[best] and ranks.pulls[j] < ranks.pulls[best]
                if (better or tied) and admits(problem.actions, chosen, size, j):
                    best = j
            if best < 0:
                break
            chosen[size] = best
            gains[best] = -np.inf
            size += 1
        return chosen[:size]

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(1.0, 1.0)

    @interpreted
    def fit(self, problem: Problem) -> "Modular":
        if not (problem.reward.modular and problem.actions.matroid):
            raise InvalidArgument(
                "oracle", "Modular needs a modular reward on a matroid", "take Greedy() or Exhaustive()"
            )
        return self
