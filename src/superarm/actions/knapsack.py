from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.actions.enumeration import count_subsets, enumerate_maximal
from superarm.actions.weights import order_by_weight, total_weight
from superarm.arrays import Floats, Ints, floats
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument

ROUNDING_ALLOWANCE = 1.0 + 1e-9
"""The budget is multiplied by this, so that costs whose exact sum is the budget fit in spite of rounding."""


class _Costs(NamedTuple):
    costs: Floats
    money: float
    k: int


@component
class Knapsack(_Costs):
    """Arms whose ``costs`` add up to at most ``budget``, within a relative 1e-9 for rounding.

    The field ``money`` is the budget with that allowance, ``k`` how many of the cheapest arms it buys. Batches form an
    independence system for which greedy has no useful guarantee; ``CostBenefit``, ``GreedyMax``,
    ``PartialEnumeration``, ``KnapsackTable`` and ``KnapsackScheme`` are oracles for it.

    Parameters
    ----------
    costs
        The cost of each arm, positive, (n_arms,).
    budget
        What the arms of a batch may cost together; at least the cost of the most expensive arm.

    Examples
    --------
    >>> list(Knapsack([1.0, 2.0, 3.0], budget=4.0).batches(3))
    [(0, 1), (0, 2)]
    """

    __slots__ = ()

    matroid = False
    budgeted = True

    def __new__(cls, costs: Any, budget: float) -> "Knapsack":
        prices = floats(costs, "costs", low=0.0, high=np.finfo(float).max)
        if prices.ndim != 1 or not prices.size or not prices.all():
            raise InvalidArgument(
                "costs", f"shape {prices.shape}, or a cost is 0", "give one cost > 0 per arm", "Knapsack"
            )
        money = float(floats(budget, "budget", low=0.0, high=np.finfo(float).max / 2.0)) * ROUNDING_ALLOWANCE
        unaffordable = np.flatnonzero(prices > money)
        if unaffordable.size:
            raise InvalidArgument(
                "budget", f"{budget} does not buy arm {unaffordable[0]}", "raise it, or drop the arm", "Knapsack"
            )
        return super().__new__(cls, prices, money, int((np.cumsum(np.sort(prices)) <= money).sum()))

    def capacity(self, n_arms: int) -> int:
        return self.k

    def cost(self, arm: int) -> float:
        return self.costs[arm]  # type: ignore[no-any-return]

    def budget(self) -> float:
        return self.money

    def admits(self, chosen: Ints, size: int, arm: int) -> bool:
        return total_weight(self.costs, chosen[:size]) + self.costs[arm] <= self.money  # type: ignore[no-any-return]

    def heaviest(self, weights: Floats, candidates: Candidates) -> Ints:
        # The heavier of two batches: arms in the order of weight per cost, and the heaviest arm with whatever else
        # fits. It has at least half of the largest weight.
        chosen = np.empty(self.k, np.int64)
        best, most = chosen[:0], -np.inf
        for first in (-1, _heaviest_arm(weights, candidates)):
            size = 0
            if first >= 0:
                chosen[0] = first
                size = 1
            for j in order_by_weight(weights / self.costs, candidates):
                fits = size < self.k and candidates.eligible[j] and j != first
                if fits and total_weight(self.costs, chosen[:size]) + self.costs[j] <= self.money:
                    chosen[size] = j
                    size += 1
            if total_weight(weights, chosen[:size]) > most:
                best, most = chosen[:size].copy(), total_weight(weights, chosen[:size])
        return best

    def ceiling(self, weights: Floats, candidates: Candidates) -> float:
        """The largest weight within the budget if fractions of arms may be bought, [Dantzig1957]_."""
        total, left = 0.0, self.money
        for j in order_by_weight(weights / self.costs, candidates):
            if candidates.eligible[j]:
                part = min(1.0, left / self.costs[j])
                total += part * weights[j]
                left -= part * self.costs[j]
        return total

    @interpreted
    def includes(self, action: Ints) -> bool:
        return len(action) > 0 and bool(self.costs[np.asarray(action, np.int64)].sum() <= self.money)

    @interpreted
    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        return enumerate_maximal(self, n_arms)

    @interpreted
    def n_batches(self, n_arms: int) -> float:
        return count_subsets(n_arms, self.k)

    @interpreted
    def validate(self, n_arms: int) -> None:
        if len(self.costs) != n_arms:
            raise InvalidArgument("costs", f"{len(self.costs)} for {n_arms} arms", "give one per arm", "Knapsack")


@kernel
def _heaviest_arm(weights: Floats, candidates: Candidates) -> int:
    """The heaviest eligible arm, or -1."""
    best = -1
    for j in range(len(weights)):
        if candidates.eligible[j] and (best < 0 or weights[j] > weights[best]):
            best = j
    return best
