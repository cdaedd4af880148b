from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.actions import capacity, contains, joins, pins
from superarm.actions.traits import budgeted
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.oracles.base import GREEDY, Guarantee
from superarm.oracles.budgets import check_budget
from superarm.oracles.cost_benefit import add_by_density
from superarm.problem import Problem
from superarm.rewards import value
from superarm.streams import Stream


@component
class PartialEnumeration(NamedTuple):
    r"""The best of all pairs of arms, each completed by gain per cost: :math:`\alpha = 1 - 1/e` under a budget.

    For a monotone submodular reward. [Sviridenko2004]_ proves it for triples; [KulikSchwartzShachnai2021]_
    show that pairs suffice. Takes n_arms² / 2 runs of the greedy algorithm: suitable for a few dozen arms.

    >>> import superarm as sa
    >>> bag = sa.Knapsack([1.0, 2.0, 3.0], budget=4.0)
    >>> problem = sa.Problem(n_arms=3, n_items=2, reward=sa.Coverage(), actions=bag)
    >>> round(PartialEnumeration().guarantee(problem).alpha, 4)
    0.6321
    """

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
        n_pinned = pins(problem.actions, candidates, chosen)
        if n_pinned < 0:
            return chosen[:0]
        best, most = chosen[: add_by_density(problem, q, candidates, chosen, n_pinned)].copy(), -np.inf
        for a in range(problem.n_arms):
            for b in range(a, problem.n_arms):  # a == b starts from a single arm
                size = n_pinned
                for j in (a, b):
                    fits = size < len(chosen) and candidates.eligible[j] and not contains(chosen, size, j)
                    if fits and joins(problem.actions, candidates, chosen, size, j):
                        chosen[size] = j
                        size += 1
                if size == n_pinned + (1 if a == b else 2):
                    size = add_by_density(problem, q, candidates, chosen, size)
                    r = value(problem.reward, problem.terms, q, chosen[:size])
                    if r > most:
                        best, most = chosen[:size].copy(), r
        return best

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(GREEDY if problem.reward.submodular and budgeted(problem.actions) else 0.0, 1.0)

    @interpreted
    def fit(self, problem: Problem) -> "PartialEnumeration":
        check_budget(problem, "PartialEnumeration")
        return self
