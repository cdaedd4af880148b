from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.actions import capacity, pins
from superarm.actions.traits import budgeted
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.oracles.base import Guarantee
from superarm.oracles.budgets import check_budget
from superarm.oracles.cost_benefit import add_by_density, find_best_arm, find_densest_arm, unavailable_arms
from superarm.oracles.gains import batch_states
from superarm.problem import Problem
from superarm.rewards import join_arm, value_of_states
from superarm.streams import Stream


@component
class GreedyMax(NamedTuple):
    r"""Arms by gain per cost; each stage is completed by the arm of the largest gain, and the best of these wins.

    For a monotone submodular reward under a budget :math:`\alpha = 1/2`, [YaroslavtsevZhouAvdiukhin2020]_
    (Greedy+Max). Arms that still fit are added at the end. Twice the work of plain greedy.

    >>> import superarm as sa
    >>> bag = sa.Knapsack([1.0, 4.0, 1.0], budget=4.0)
    >>> problem = sa.Problem(n_arms=3, n_items=1, reward=sa.Coverage(), actions=bag)
    >>> sa.solve(problem, [[0.3], [1.0], [0.2]], GreedyMax())
    array([1])
    """

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
        size = pins(problem.actions, candidates, chosen)
        if size < 0:
            return chosen[:0]
        states = batch_states(problem, q, chosen[:size])
        taken = unavailable_arms(candidates, chosen, size)
        stage, last, most = size, -1, -np.inf
        while size < len(chosen):
            arm, extra = find_best_arm(problem, q, states, candidates, chosen, size)
            if arm < 0:
                break
            if value_of_states(problem.reward, problem.terms, states) + extra > most:
                stage, last, most = size, arm, value_of_states(problem.reward, problem.terms, states) + extra
            j = find_densest_arm(problem, q, states, candidates, chosen, size, taken)
            join_arm(problem.reward, problem.terms, states, q, j)
            chosen[size] = j
            taken[j] = True
            size += 1
        if last >= 0:
            chosen[stage] = last
            stage += 1
        return chosen[: add_by_density(problem, q, candidates, chosen, stage)]

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(0.5 if problem.reward.submodular and budgeted(problem.actions) else 0.0, 1.0)

    @interpreted
    def fit(self, problem: Problem) -> "GreedyMax":
        check_budget(problem, "GreedyMax")
        return self
