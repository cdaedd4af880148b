"""Arms within a budget, and several calls of one arm."""

from collections.abc import Mapping
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from superarm.actions.base import Actions, add_arms, count_subsets, new_batches, total_worth
from superarm.core.arrays import HUGE, Bools, Floats, Ints, best_arms, count, floats, require_scores, without_fraction
from superarm.core.errors import InvalidArgument
from superarm.core.tally import View

ROUNDING_ALLOWANCE = 1.0 + 1e-9
"""The budget is multiplied by this, so that costs whose exact sum is the budget fit in spite of rounding."""


class Priced(Actions):
    """Batches whose ``costs`` (n_arms,) add up to at most ``budget``, within a relative 1e-9 for rounding."""

    costs: ClassVar[Any]
    money: ClassVar[Any]
    """The budget with the allowance for rounding."""

    def require_affordable(self) -> None:
        """Refuse a budget that buys no arm."""
        if self.costs.min() > self.money:
            wrong = f"{self.money / ROUNDING_ALLOWANCE:g} buys no arm: the cheapest costs {self.costs.min():g}"
            raise InvalidArgument("budget", wrong, "raise it", type(self).__name__)

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
            raise InvalidArgument(
                "costs", f"{len(self.costs)} for {n_arms} arms", "give one per arm", type(self).__name__
            )

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


class Knapsack(Priced):
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

    costs: Any  # type: ignore[misc]
    budget: float
    budgeted = True

    def check(self) -> None:
        prices = floats(self.costs, "costs", low=0.0, high=np.finfo(float).max)
        if prices.ndim != 1 or not prices.size or not prices.all():
            wrong = f"shape {prices.shape}, or a cost is 0"
            raise InvalidArgument("costs", wrong, "give one cost > 0 per arm", "Knapsack")
        self.convert("costs", prices)
        self.convert("budget", float(floats(self.budget, "budget", low=0.0, high=np.finfo(float).max / 2.0)))
        self.require_affordable()

    money = property(lambda self: self.budget * ROUNDING_ALLOWANCE)


class Copies(Priced):
    """Several calls of one arm in a batch, as samples of one model: copies share all that is learnt about their arm.

    Copies are arms of their own, in the order of ``names``: ``Agent(problem, arms=copies.names)``. What one of them is
    told counts for all. What a batch claims assumes that its samples are independent.

    Parameters
    ----------
    copies
        How many copies there are of each arm, by name.
    budget
        What the copies of a batch may cost together: without ``prices``, how many there may be.
    prices
        What a copy of each arm costs, by name; by default each costs 1.

    Examples
    --------
    >>> calls = Copies({"small": 3, "large": 1}, budget=5, prices={"small": 1, "large": 3})
    >>> calls.names
    ('small#1', 'small#2', 'small#3', 'large')
    >>> [[calls.names[j] for j in batch] for batch in calls.batches(4)][-1]
    ['small#2', 'small#3', 'large']
    """

    copies: Any
    budget: float
    prices: Any = None
    budgeted = property(lambda self: self.prices is not None)
    matroid = property(lambda self: self.prices is None)
    money = property(lambda self: self.budget * (1.0 if self.prices is None else ROUNDING_ALLOWANCE))

    def check(self) -> None:
        if not isinstance(self.copies, Mapping) or not self.copies:
            remedy = 'give how many copies each arm has: {"small": 3, "large": 1}'
            raise InvalidArgument("copies", f"{self.copies!r}", remedy, "Copies")
        self.convert("copies", {str(name): count(n, "copies", 1, "Copies") for name, n in self.copies.items()})
        if self.prices is None:
            self.convert("budget", float(count(without_fraction(self.budget), "budget", 1, "Copies")))
        elif not isinstance(self.prices, Mapping) or set(self.prices) != set(self.copies):
            raise InvalidArgument("prices", f"{self.prices!r}", f"give one for each of {list(self.copies)}", "Copies")
        else:
            self.convert("prices", {str(name): float(price) for name, price in self.prices.items()})
        if not (self.costs > 0.0).all():
            raise InvalidArgument("prices", f"{self.prices!r}", "give prices > 0", "Copies")
        self.require_affordable()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all copies, in the order of their numbers; an arm with one copy keeps its name."""
        listed = [[f"{name}#{i + 1}" for i in range(n)] if n > 1 else [name] for name, n in self.copies.items()]
        return tuple(chain(*listed))

    @cached_property
    def costs(self) -> Floats:  # type: ignore[override]
        """The price of each copy."""
        each = [1.0 if self.prices is None else self.prices[name] for name in self.copies]
        return np.repeat(floats(each, "prices", low=0.0, high=HUGE), [*self.copies.values()])

    @cached_property
    def alike(self) -> Ints:
        """The copies of the arm of each copy, (n, most), itself included, padded with -1."""
        sizes = np.array([*self.copies.values()])
        first, places = np.cumsum(sizes) - sizes, np.arange(sizes.max())
        rows = np.where(places < sizes[:, None], first[:, None] + places, -1)
        return np.repeat(rows, sizes, axis=0)
