"""Arms within a budget."""

from functools import cached_property
from typing import Any

import numpy as np

from superarm.actions.base import Actions, add_arms, count_subsets, new_batches, total_worth
from superarm.core.arrays import Bools, Floats, Ints, best_arms, floats, require_scores
from superarm.core.errors import InvalidArgument
from superarm.core.tally import View

ROUNDING_ALLOWANCE = 1.0 + 1e-9
"""The budget is multiplied by this, so that costs whose exact sum is the budget fit in spite of rounding."""


class Knapsack(Actions):
    """Arms whose ``costs`` add up to at most ``budget``, within a relative 1e-9 for rounding.

    Batches form an independence system for which greedy has no useful guarantee; ``GreedyMax``,
    ``PartialEnumeration``, ``KnapsackTable`` and ``KnapsackScheme`` are oracles for it.

    Parameters
    ----------
    costs
        The cost of each arm, positive, (n_arms,).
    budget
        What the arms of a batch may cost together. An arm that costs more is never played.

    Examples
    --------
    >>> list(Knapsack([1.0, 2.0, 3.0], budget=4.0).batches(3))
    [(0, 1), (0, 2)]
    """

    costs: Any
    budget: float
    budgeted = True

    def check(self) -> None:
        prices = floats(self.costs, "costs", low=0.0, high=np.finfo(float).max)
        if prices.ndim != 1 or not prices.size or not prices.all():
            wrong = f"shape {prices.shape}, or a cost is 0"
            raise InvalidArgument("costs", wrong, "give one cost > 0 per arm", "Knapsack")
        self.convert("costs", prices)
        self.convert("budget", float(floats(self.budget, "budget", low=0.0, high=np.finfo(float).max / 2.0)))
        if prices.min() > self.money:
            wrong = f"{self.budget:g} buys no arm: the cheapest costs {prices.min():g}"
            raise InvalidArgument("budget", wrong, "raise it", "Knapsack")

    @property
    def money(self) -> float:
        """The budget with the allowance for rounding."""
        return self.budget * ROUNDING_ALLOWANCE

    @cached_property
    def k(self) -> int:
        """How many of the cheapest arms the budget buys."""
        return int((np.cumsum(np.sort(self.costs)) <= self.money).sum())

    def capacity(self, n_arms: int) -> int:
        return self.k

    def start(self, eligible: Bools) -> Any:
        """The cost of the arms that have joined, (R,)."""
        return np.zeros(len(eligible))

    def joinable(self, state: Any, eligible: Bools) -> Bools:
        return eligible & (state[:, None] + self.costs <= self.money)

    def join(self, state: Any, arm: Ints) -> Any:
        return state + np.where(arm >= 0, self.costs[arm], 0.0)

    def n_batches(self, n_arms: int) -> float:
        return count_subsets(n_arms, self.k)

    def validate(self, n_arms: int) -> None:
        if len(self.costs) != n_arms:
            raise InvalidArgument("costs", f"{len(self.costs)} for {n_arms} arms", "give one per arm", "Knapsack")

    def heaviest(self, worth: Floats, view: View) -> Ints:
        """The heavier of two batches: arms by worth per cost, and the heaviest arm with whatever else fits.

        It has at least half of the largest worth.
        """
        require_scores(worth)
        density = worth / self.costs
        plain = add_arms(self, view, lambda: density, lambda arm: None)
        out, held = new_batches(self, view), view.pinned.shape[1]
        spent = total_worth(np.repeat(self.costs[None], len(view), 0), view.pinned)
        free = self.joinable(spent, view.eligible)
        np.put_along_axis(free, view.pinned, False, 1)
        if held < self.k:
            out[:, held] = best_arms(np.where(free, worth, -np.inf), np.zeros(worth.shape))
        single = add_arms(self, view, lambda: density, lambda arm: None, out)
        better = total_worth(worth, single) > total_worth(worth, plain)
        return np.where(better[:, None], single, plain)

    def ceiling(self, worth: Floats, view: View) -> Floats:
        """The largest worth within the budget if fractions of arms may be bought, [Dantzig1957]_."""
        costs = np.repeat(self.costs[None], len(view), 0)
        free = view.eligible.copy()
        np.put_along_axis(free, view.pinned, False, 1)
        order = np.argsort(np.where(free, -worth / self.costs, np.inf), axis=1, kind="stable")
        costs, spent = np.take_along_axis(costs, order, 1), total_worth(costs, view.pinned)
        before = spent[:, None] + np.cumsum(costs, 1) - costs
        part = np.clip((self.money - before) / costs, 0.0, 1.0)
        rest = part * np.take_along_axis(np.where(free, worth, 0.0), order, 1)
        return total_worth(worth, view.pinned) + rest.sum(1)
