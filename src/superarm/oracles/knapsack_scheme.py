from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.actions import budget, capacity, cost, fill, pins
from superarm.actions.traits import budgeted
from superarm.actions.weights import order_by_weight
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.oracles.base import Guarantee
from superarm.oracles.budgets import check_budget
from superarm.oracles.gains import gains
from superarm.problem import Problem
from superarm.rewards import initial_states
from superarm.streams import Stream


@component
class KnapsackScheme(NamedTuple):
    r"""Dynamic programming over rounded values: :math:`\alpha = 1 - \epsilon` for a modular reward under any budget.

    Values are rounded down to multiples of :math:`\epsilon\,low/k`, where ``low`` is the larger of the value of the
    batch found by value per cost and that of the best single arm, and k the most arms that the budget buys: together,
    k roundings lose at most :math:`\epsilon\,low`. At most :math:`2k/\epsilon` different values are left, as ``low`` is
    at least half of the optimum. Equal values go to the lower cost. Implements [IbarraKim1975]_ with the rounding of
    [Lawler1979]_.

    Parameters
    ----------
    epsilon
        The loss in alpha; time and memory grow with its inverse.

    Examples
    --------
    >>> import superarm as sa
    >>> bag = sa.Knapsack([1.01, 2.003, 3.0007], budget=4.1)
    >>> problem = sa.Problem(n_arms=3, n_items=1, reward=sa.Linear(), actions=bag)
    >>> sorted(sa.solve(problem, [[0.3], [0.4], [0.9]], KnapsackScheme(0.01)).tolist())
    [0, 2]
    """

    epsilon: float = 0.05

    def _check(self) -> None:
        if not 0.0 < self.epsilon < 1.0:
            raise InvalidArgument("epsilon", f"{self.epsilon}", "give a number in (0, 1)", "KnapsackScheme")

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        weights = gains(problem, initial_states(problem.reward, problem.terms), q, candidates)
        chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
        size = pins(problem.actions, candidates, chosen)
        if size < 0:
            return chosen[:0]
        costs, money = np.empty(problem.n_arms), budget(problem.actions)
        for j in range(problem.n_arms):
            costs[j] = cost(problem.actions, j)
        free = candidates.eligible.copy()
        for j in chosen[:size]:
            money -= costs[j]
            free[j] = False
        for j in range(problem.n_arms):
            free[j] = free[j] and weights[j] > 0.0 and costs[j] <= money
        left = Candidates(candidates.counts, free)
        low, high = _bracket_optimum(weights, costs, left, money)
        unit = self.epsilon * low / max(1, len(chosen) - size)
        if unit > 0.0:
            for j in _solve_rounded(weights, costs, left, money, unit, int(high / unit)):
                chosen[size] = j
                size += 1
        return chosen[: fill(problem.actions, candidates, chosen, size)]

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        fits = problem.reward.modular and budgeted(problem.actions)
        return Guarantee(1.0 - self.epsilon if fits else 0.0, 1.0)

    @interpreted
    def fit(self, problem: Problem) -> "KnapsackScheme":
        check_budget(problem, "KnapsackScheme")
        return self


@kernel
def _bracket_optimum(weights: Floats, costs: Floats, candidates: Candidates, money: float) -> tuple[float, float]:
    """A lower and an upper bound of the optimum.

    The lower one is the value of the arms by value per cost, or of the best single arm; the upper one allows the last
    arm to be bought in part.
    """
    low, high, single, left, whole = 0.0, 0.0, 0.0, money, True
    for j in order_by_weight(weights / costs, candidates):
        if not candidates.eligible[j]:
            continue
        single = max(single, weights[j])
        if whole:
            high += min(1.0, left / costs[j]) * weights[j]
        if costs[j] <= left:
            low += weights[j]
            left -= costs[j]
        else:
            whole = False
    return max(low, single), high


@kernel
def _solve_rounded(
    weights: Floats, costs: Floats, candidates: Candidates, money: float, unit: float, levels: int
) -> Ints:
    """The arms of the largest value within the budget, in whole multiples of ``unit``; of several, the cheapest."""
    cheapest = np.full(levels + 1, np.inf)
    cheapest[0] = 0.0
    taken = np.zeros((len(weights), levels + 1), np.uint8)
    for j in range(len(weights)):
        if candidates.eligible[j]:
            worth = int(weights[j] / unit)
            for level in range(levels, max(worth, 1) - 1, -1):
                price = cheapest[level - worth] + costs[j]
                if price < cheapest[level]:
                    cheapest[level] = price
                    taken[j, level] = 1
    level = levels
    while cheapest[level] > money:
        level -= 1
    found = np.empty(len(weights), np.int64)
    size = 0
    for j in range(len(weights) - 1, -1, -1):
        if taken[j, level]:
            found[size] = j
            size += 1
            level -= int(weights[j] / unit)
    return found[:size]
