from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.actions import Ranks, Subsets, admits, capacity
from superarm.arrays import Floats, Ints
from superarm.noise import Noise
from superarm.oracles.base import GREEDY, Guarantee
from superarm.problem import Problem
from superarm.rewards import absorb, fresh, gain


@component
class Greedy(NamedTuple):
    r"""Add the arm with the largest marginal gain until no arm may join.

    .. math:: j_n \in \arg\max_{j \notin A_{n-1}} r(A_{n-1} \cup \{j\}; q)

    For a monotone submodular reward: :math:`\alpha = 1 - 1/e` on ``Subsets``, 1/2 on a matroid; exact for modular
    rewards on a matroid, and for a single item on ``Subsets``. Implements [MerlisMannor2019]_ (section Algorithm)
    after [NemhauserWolseyFisher1978]_. Equal gains go to the arm with the fewest pulls, then the lowest.
    """

    def maximize(self, problem: Problem, q: Floats, ranks: Ranks, noise: Noise) -> Ints:
        chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
        taken = ~ranks.eligible
        memo = fresh(problem.reward, problem.terms)
        size = 0
        while size < len(chosen):
            best, most = -1, -np.inf
            for j in range(problem.n_arms):
                if taken[j] or not admits(problem.actions, chosen, size, j):
                    continue
                g = gain(problem.reward, problem.terms, memo, q, j)
                if g > most or (g == most and ranks.pulls[j] < ranks.pulls[best]):
                    best, most = j, g
            if best < 0:
                break
            absorb(problem.reward, problem.terms, memo, q, best)
            chosen[size] = best
            taken[best] = True
            size += 1
        return chosen[:size]

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return greedy_guarantee(problem)

    @interpreted
    def fit(self, problem: Problem) -> "Greedy":
        return self


def greedy_guarantee(problem: Problem) -> Guarantee:
    """What greedy picking promises, by the theorem that applies; alpha = 0 where none does."""
    uniform = isinstance(problem.actions, Subsets)
    if (problem.reward.modular and problem.actions.matroid) or (uniform and problem.n_items == 1):
        return Guarantee(1.0, 1.0)
    if not (problem.reward.submodular and problem.actions.matroid):
        return Guarantee(0.0, 1.0)
    return Guarantee(GREEDY if uniform else 0.5, 1.0)
