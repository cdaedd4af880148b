from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.actions import capacity, pins
from superarm.actions.traits import budgeted
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.oracles.base import Guarantee
from superarm.oracles.budgets import needs_budget
from superarm.oracles.cost_benefit import best_fit, by_density, closed, densest
from superarm.oracles.gains import batch_states
from superarm.problem import Problem
from superarm.rewards import join_arm, value_of_states
from superarm.streams import Stream


@component
class GreedyMax(NamedTuple):
    r"""Arms by gain for money, every stage of it completed by the one arm that adds most; the best of these.

    For a monotone submodular reward under a budget :math:`\alpha = 1/2`, [YaroslavtsevZhouAvdiukhin2020]_
    (Greedy+Max). What else fits joins at the end. Twice the work of plain greedy.

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
        taken = closed(candidates, chosen, size)
        stage, last, most = size, -1, -np.inf
        while size < len(chosen):
            arm, extra = best_fit(problem, q, states, candidates, chosen, size)
            if arm < 0:
                break
            if value_of_states(problem.reward, problem.terms, states) + extra > most:
                stage, last, most = size, arm, value_of_states(problem.reward, problem.terms, states) + extra
            j = densest(problem, q, states, candidates, chosen, size, taken)
            join_arm(problem.reward, problem.terms, states, q, j)
            chosen[size] = j
            taken[j] = True
            size += 1
        if last >= 0:
            chosen[stage] = last
            stage += 1
        return chosen[: by_density(problem, q, candidates, chosen, stage)]

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(0.5 if problem.reward.submodular and budgeted(problem.actions) else 0.0, 1.0)

    @interpreted
    def fit(self, problem: Problem) -> "GreedyMax":
        needs_budget(problem, "GreedyMax")
        return self
