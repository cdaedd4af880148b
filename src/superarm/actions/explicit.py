"""Listed batches, batches that several rules allow, and batches that contain given arms."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from superarm.actions.base import Actions, count_subsets, joinable_after, put_pins_first
from superarm.core.arrays import Bools, Floats, Ints, arms, best_arms, require_scores
from superarm.core.errors import InvalidArgument
from superarm.core.tally import View


class Explicit(Actions):
    """The batches of a list, and no others.

    The same arms in another order are the same batch, since rewards do not depend on the order; the first is kept.

    Parameters
    ----------
    actions
        The batches, each a list of distinct arms.

    Examples
    --------
    >>> Explicit([[0, 1], [2]]).table
    array([[ 0,  1],
           [ 2, -1]])
    """

    actions: Any
    tractable = True
    any_worth = True
    whole = True

    def check(self) -> None:
        try:
            batches: list[Any] = [np.asarray(list(action)) for action in self.actions]
        except TypeError:
            raise InvalidArgument("actions", "not a list of batches", "give a list of lists of arms") from None
        if not batches or any(len(batch) == 0 for batch in batches):
            raise InvalidArgument("actions", "empty, or contains an empty batch", "list at least one batch of arms")
        if any(batch.dtype.kind not in "iu" for batch in batches):
            raise InvalidArgument("actions", "contains something other than whole numbers", "arms are integers")
        distinct: dict[frozenset[int], tuple[int, ...]] = {}
        for batch in map(tuple, (batch.tolist() for batch in batches)):
            if min(batch) < 0 or len(set(batch)) < len(batch):
                raise InvalidArgument("actions", f"batch {list(batch)}", "give each arm once, from 0 up")
            distinct.setdefault(frozenset(batch), batch)
        self.convert("actions", tuple(distinct.values()))

    @cached_property
    def table(self) -> Ints:
        """The batches, one per row, padded with -1: (n_batches, k)."""
        return tabulate(self.actions)

    @property
    def sizes(self) -> Ints:
        """How many arms each batch has."""
        return (self.table >= 0).sum(1)

    def capacity(self, n_arms: int) -> int:
        return self.table.shape[1]

    def start(self, eligible: Bools) -> Any:
        """Which batches are still possible, (R, n_batches): all of whose arms are eligible."""
        padded = np.concatenate([eligible, np.ones((len(eligible), 1), bool)], axis=1)
        return padded[:, self.table].all(2)

    def joinable(self, state: Any, eligible: Bools) -> Bools:
        r, batch = np.nonzero(state)
        mask = np.zeros((len(eligible), eligible.shape[1] + 1), bool)
        mask[r[:, None], self.table[batch]] = True
        return mask[:, :-1]

    def join(self, state: Any, arm: Ints) -> Any:
        return state & (self.table == arm[:, None, None]).any(2)

    def includes(self, action: Ints, n_arms: int) -> bool:
        return frozenset(action.tolist()) in self._known

    @cached_property
    def _known(self) -> set[frozenset[int]]:
        return {frozenset(batch) for batch in self.actions}

    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        return iter(self.actions)

    def n_batches(self, n_arms: int) -> float:
        return float(len(self.actions))

    def validate(self, n_arms: int) -> None:
        if self.table.max() >= n_arms:
            raise InvalidArgument("actions", f"arm {self.table.max()} of {n_arms}", f"arms are 0 to {n_arms - 1}")
        missing = np.setdiff1d(np.arange(n_arms), self.table)
        if missing.size:
            raise InvalidArgument("actions", f"arm {missing[0]} is in no batch", "every arm must be playable")

    def heaviest(self, worth: Floats, view: View) -> Ints:
        require_scores(worth)
        padded = np.concatenate([worth, np.zeros((len(worth), 1))], axis=1)
        total = np.zeros((len(worth), len(self.table)))
        for arm in self.table.T:
            total += padded[:, arm]
        return best_batches(self.table, np.where(self.start(view.eligible), total, -np.inf), view)

    def sample(self, view: View, numbers: Floats) -> Ints:
        """One of the possible batches, each with the same probability, by the first of ``numbers``."""
        possible = self.start(view.eligible)
        for arm in view.pinned.T:
            possible = self.join(possible, arm)
        wanted = np.floor(numbers[:, :1] * possible.sum(1, keepdims=True)) + 1.0
        return best_batches(self.table, np.where(possible & (np.cumsum(possible, 1) == wanted), 1.0, -np.inf), view)


def tabulate(batches: Iterable[Any]) -> Ints:
    """Write batches, of which there is at least one, into a table, padded with -1.

    >>> tabulate([[0, 1], [2]]).tolist()
    [[0, 1], [2, -1]]
    """
    rows = list(batches)
    table = np.full((len(rows), max(map(len, rows))), -1)
    for row, batch in zip(table, rows, strict=True):
        row[: len(batch)] = batch
    return table


def best_batches(table: Ints, values: Floats, view: View) -> Ints:
    """The batch of ``table`` (B, K) of the largest of ``values`` (R, B) that has the pinned arms.

    Where there is none or all values are -inf, the batch is -1. Equal values go to the batch whose least-pulled arm has
    the fewest pulls, then to the first.
    """
    padded = np.concatenate([view.counts, np.full((len(view), 1), np.inf)], axis=1)
    fewest = np.full(values.shape, np.inf)
    for arm in table.T:
        fewest = np.minimum(fewest, padded[:, arm])
    for arm in view.pinned.T:
        values = np.where((table == arm[:, None, None]).any(2), values, -np.inf)
    row = best_arms(values, fewest)
    return put_pins_first(np.where(row[:, None] >= 0, table[row], -1), view.pinned)


class Intersection(Actions):
    """Batches that several rules allow at once: at most two per brand, one per category, six in all.

    The rules are matroids. Greedy has alpha = 1/p for modular and 1/(p + 1) for monotone submodular rewards, where p is
    the number of rules that are not ``Subsets``, [FisherNemhauserWolsey1978]_. A bound of the best batch is the
    smallest of the bounds by one rule alone; certificates use it. A minimum of one rule keeps its places, which another
    rule may leave empty.

    Parameters
    ----------
    rules
        Two or more matroids on the same arms, as ``PartitionMatroid``, ``Laminar``, ``Slots`` and ``Subsets``.

    Examples
    --------
    >>> from superarm.actions import PartitionMatroid, Subsets
    >>> brand, category = PartitionMatroid("aabb", {"a": 1, "b": 1}), PartitionMatroid("xyxy", {"x": 1, "y": 1})
    >>> list(Intersection([brand, category]).batches(4))
    [(0, 3), (1, 2)]
    >>> Intersection([brand, Subsets(1)]).exchange
    1.0
    """

    rules: Any

    def check(self) -> None:
        self.convert("rules", tuple(self.rules))
        for rule in self.rules:
            if not isinstance(rule, Actions) or not rule.matroid or rule.whole or rule.pins:
                wrong, remedy = f"{rule!r} is not a matroid of parts", "give e.g. PartitionMatroid(…) and Subsets(k)"
                raise InvalidArgument("rules", wrong, remedy, "Intersection")
        if len(self.rules) < 2:
            raise InvalidArgument("rules", f"{len(self.rules)} given", "give two or more", "Intersection")

    matroid = property(lambda self: self.exchange == 1.0)

    @property
    def exchange(self) -> float:
        """How many rules are not ``Subsets``; a matroid with a limit of the size is one still."""
        return float(max(1, sum(not rule.uniform for rule in self.rules)))

    def capacity(self, n_arms: int) -> int:
        """The size of the largest batch by each rule alone: an upper bound."""
        return min(rule.capacity(n_arms) for rule in self.rules)

    def start(self, eligible: Bools) -> Any:
        return [rule.start(eligible) for rule in self.rules]

    def joinable(self, state: Any, eligible: Bools) -> Bools:
        return np.logical_and.reduce([r.joinable(one, eligible) for r, one in zip(self.rules, state, strict=True)])

    def join(self, state: Any, arm: Ints) -> Any:
        return [rule.join(one, arm) for rule, one in zip(self.rules, state, strict=True)]

    def ceiling(self, worth: Floats, view: View) -> Floats:
        return np.minimum.reduce([super().ceiling(worth, view), *(r.ceiling(worth, view) for r in self.rules)])

    def n_batches(self, n_arms: int) -> float:
        return count_subsets(n_arms, self.capacity(n_arms))

    def validate(self, n_arms: int) -> None:
        for rule in self.rules:
            rule.validate(n_arms)


class Pinned(Actions):
    """The batches of ``actions`` that contain all ``arms``: some arms were fixed by hand, the rest is chosen.

    Contracting a matroid gives a matroid, so guarantees carry over: oracles add the pinned arms first. Arms that fit
    into no batch with the pinned ones are never played. The capacity is that of ``actions``; if that is not a matroid,
    it may be more than the size of the largest batch. The pinned arms reach oracles as ``View.pinned``; those of one
    round alone need no ``Pinned``.

    Parameters
    ----------
    actions
        The action set to restrict; it is not ``Pinned`` itself.
    arms
        The arms that every batch contains, at least one.

    Examples
    --------
    >>> from superarm.actions import Subsets
    >>> list(Pinned(Subsets(2), [1]).batches(3))
    [(0, 1), (1, 2)]
    """

    actions: Actions
    arms: Any

    def check(self) -> None:
        self.require_family("actions", Actions, "Subsets(k)")
        if isinstance(self.actions, Pinned):
            raise InvalidArgument("actions", "they are pinned already", "pin all arms at once", "Pinned")
        listed = tuple(arms(list(self.arms), "arms", 2**31).tolist())
        if not listed:
            raise InvalidArgument("arms", "empty", "pin at least one arm, or use the action set itself", "Pinned")
        self.convert("arms", listed)

    pins = property(lambda self: self.arms)
    matroid = property(lambda self: self.actions.matroid)
    uniform = property(lambda self: self.actions.uniform)
    budgeted = property(lambda self: self.actions.budgeted)
    whole = property(lambda self: self.actions.whole)
    tractable = property(lambda self: self.actions.tractable)
    any_worth = property(lambda self: self.actions.any_worth)
    exchange = property(lambda self: self.actions.exchange)
    costs = property(lambda self: self.actions.costs)
    money = property(lambda self: self.actions.money)
    alike = property(lambda self: self.actions.alike)

    def capacity(self, n_arms: int) -> int:
        return self.actions.capacity(n_arms)

    def start(self, eligible: Bools) -> Any:
        return self.actions.start(eligible)

    def joinable(self, state: Any, eligible: Bools) -> Bools:
        return self.actions.joinable(state, eligible)

    def join(self, state: Any, arm: Ints) -> Any:
        return self.actions.join(state, arm)

    def heaviest(self, worth: Floats, view: View) -> Ints:
        return self.actions.heaviest(worth, view)

    def ceiling(self, worth: Floats, view: View) -> Floats:
        return self.actions.ceiling(worth, view)

    def sample(self, view: View, numbers: Floats) -> Ints:
        return self.actions.sample(view, numbers)

    def includes(self, action: Ints, n_arms: int) -> bool:
        return set(self.arms) <= set(action.tolist()) and self.actions.includes(action, n_arms)

    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        return (batch for batch in self.actions.batches(n_arms) if set(self.arms) <= set(batch))

    def n_batches(self, n_arms: int) -> float:
        return self.actions.n_batches(n_arms)

    def validate(self, n_arms: int) -> None:
        self.actions.validate(n_arms)
        pinned = arms(self.arms, "arms", n_arms)
        for n, j in enumerate(self.arms):
            if not joinable_after(self.actions, pinned[None, :n], np.ones((1, n_arms), bool))[0, j]:
                remedy, before = "pin arms of one batch", list(self.arms[:n])
                raise InvalidArgument("arms", f"no batch contains arm {j} and {before}", remedy, "Pinned")
