from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.actions.base import order_by_weight, total_weight
from superarm.actions.enumeration import maximal, up_to
from superarm.arrays import Floats, Ints, floats
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument

SLACK = 1.0 + 1e-9
"""Costs that add up to the budget but for rounding are within it."""


class _Costs(NamedTuple):
    costs: Floats
    money: float
    k: int


@component
class Knapsack(_Costs):
    """Arms whose ``costs`` add up to at most ``budget``, within a relative 1e-9 for rounding.

    ``money`` is the budget with that allowance, ``k`` how many of the cheapest arms it buys. An independence system
    without an exchange constant that would help: oracles of its own serve it.

    >>> list(Knapsack([1.0, 2.0, 3.0], budget=4.0).batches(3))
    [(0, 1), (0, 2)]
    """

    __slots__ = ()

    def __new__(cls, costs: Any, budget: float) -> "Knapsack":
        prices = floats(costs, "costs", low=0.0, high=np.finfo(float).max)
        if prices.ndim != 1 or not prices.size or not prices.all():
            raise InvalidArgument("costs", f"shape {prices.shape}, or a zero", "give each arm a cost > 0", "Knapsack")
        money = float(floats(budget, "budget", low=0.0, high=np.finfo(float).max / 2.0)) * SLACK
        dear = np.flatnonzero(prices > money)
        if dear.size:
            raise InvalidArgument(
                "budget", f"{budget} does not buy arm {dear[0]}", "raise it, or drop the arm", "Knapsack"
            )
        return super().__new__(cls, prices, money, int((np.cumsum(np.sort(prices)) <= money).sum()))

    @property
    def matroid(self) -> bool:
        return False

    @property
    def budgeted(self) -> bool:
        return True

    def capacity(self, n_arms: int) -> int:
        return self.k

    def cost(self, arm: int) -> float:
        return self.costs[arm]  # type: ignore[no-any-return]

    def budget(self) -> float:
        return self.money

    def admits(self, chosen: Ints, size: int, arm: int) -> bool:
        return total_weight(self.costs, chosen[:size]) + self.costs[arm] <= self.money  # type: ignore[no-any-return]

    def heaviest(self, weights: Floats, candidates: Candidates) -> Ints:
        # by weight for money, or the heaviest arm and what else fits, if that is more: at least half the optimum
        chosen = np.empty(self.k, np.int64)
        best, most = chosen[:0], -np.inf
        for first in (-1, _peak(weights, candidates)):
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
        """What the money buys if arms can be cut, [Dantzig1957]_."""
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
        return maximal(self, n_arms)

    @interpreted
    def n_batches(self, n_arms: int) -> float:
        return up_to(n_arms, self.k)

    @interpreted
    def validate(self, n_arms: int) -> None:
        if len(self.costs) != n_arms:
            raise InvalidArgument("costs", f"{len(self.costs)} for {n_arms} arms", "give each arm one", "Knapsack")


@kernel
def _peak(weights: Floats, candidates: Candidates) -> int:
    """The heaviest eligible arm, or -1."""
    best = -1
    for j in range(len(weights)):
        if candidates.eligible[j] and (best < 0 or weights[j] > weights[best]):
            best = j
    return best
