"""The base of action sets: which arms may still join the batches under construction, for all replications at once.

An action set keeps a *state* of each batch under construction, a row per replication. ``joinable`` says for every arm
whether some batch that may be played contains it and the arms chosen so far. So adding arms until none may join gives a
batch, and an arm that may not join now may not join later either. Batches are ``(R, K)``, padded with -1.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from superarm.arrays import Bools, Floats, Ints
from superarm.next.core.component import Component

if TYPE_CHECKING:
    from superarm.next.core.tally import View


class Actions(Component):
    """An action set. Subclass it and define ``capacity``, ``start``, ``joinable`` and ``join`` on arrays.

    >>> class NoNeighbours(Actions):
    ...     k: int
    ...     def capacity(self, n_arms): return self.k
    ...     def start(self, eligible): return eligible.copy()
    ...     def joinable(self, free, eligible): return free
    ...     def join(self, free, arm): return free & (np.abs(np.arange(free.shape[1]) - arm[:, None]) > 1)
    >>> NoNeighbours(2)
    NoNeighbours(k=2)

    (``join`` here gets -1 for a replication whose batch is complete; what it returns for that one does not matter.)
    """

    matroid: ClassVar[bool] = False
    """Whether batches are the independent sets of a matroid, so that greedy is exact for modular rewards."""
    uniform: ClassVar[bool] = False
    """Whether any k arms may be played."""
    budgeted: ClassVar[bool] = False
    """Whether batches are limited by a budget, with ``cost`` (n_arms,) and ``budget``."""

    @property
    def tractable(self) -> bool:
        """Whether ``heaviest`` finds the heaviest batch exactly."""
        return self.matroid

    @property
    def exchange(self) -> float:
        """The p of a p-system: 1 for a matroid, infinite if it is not known."""
        return 1.0 if self.matroid else math.inf

    def capacity(self, n_arms: int) -> int:
        """The size of the largest batch."""
        raise NotImplementedError

    def start(self, eligible: Bools) -> Any:
        """The state of empty batches, of which only ``eligible`` (R, n_arms) arms may become part."""
        raise NotImplementedError

    def joinable(self, state: Any, eligible: Bools) -> Bools:
        """Which arms may join, (R, n_arms); what it says of arms that are in the batch already does not matter."""
        raise NotImplementedError

    def join(self, state: Any, arm: Ints) -> Any:
        """The state after ``arm`` (R,) has joined; it may change ``state`` in place. -1 is no arm."""
        raise NotImplementedError

    def validate(self, n_arms: int) -> None:
        """Raise ``InvalidArgument`` if the set does not fit ``n_arms`` arms, or if some arm is in no batch."""

    def includes(self, action: Ints, n_arms: int) -> bool:
        """Whether ``action`` may be played; by default, whether its arms may join one after the other."""
        eligible = np.ones((1, n_arms), bool)
        state = self.start(eligible)
        for arm in action.tolist():
            if not self.joinable(state, eligible)[0, arm]:
                return False
            state = self.join(state, np.array([arm]))
        return len(action) > 0

    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        """Every batch that no other batch contains, arms increasing; by default found by search."""
        eligible = np.ones((1, n_arms), bool)

        def grow(batch: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            state = self.start(eligible)
            for arm in batch:
                state = self.join(state, np.array([arm]))
            free = self.joinable(state, eligible)[0].copy()
            free[list(batch)] = False
            if not free.any() or len(batch) == self.capacity(n_arms):
                yield batch
                return
            for new in np.flatnonzero(free).tolist():
                if not batch or new > batch[-1]:
                    yield from grow((*batch, new))

        return grow(())

    def n_batches(self, n_arms: int) -> float:
        """How many batches ``batches`` yields, or an upper bound of it; infinite if it is not known."""
        return math.inf

    def heaviest(self, worth: Floats, view: "View") -> Ints:
        """A batch of large total ``worth`` (R, n_arms) >= 0, ties by fewest pulls; the heaviest if ``tractable``.

        By default arms are added, the heaviest first, until none may join: exact on a matroid, [Edmonds1971]_.
        """
        return add_arms(self, view, lambda: worth, lambda arm: None)

    def random(self, view: "View", numbers: Floats) -> Ints:
        """A random batch from independent uniform ``numbers`` (R, n_arms): by default arms join in their order."""
        return add_arms(self, view, lambda: numbers, lambda arm: None)

    def ceiling(self, worth: Floats, view: "View") -> Floats:
        """An upper bound (R,) of the total worth of any batch of eligible arms: by default of the K largest."""
        k = self.capacity(worth.shape[1])
        return np.sort(np.where(view.eligible, worth, 0.0), axis=1)[:, ::-1][:, :k].sum(1)

    def complete(self, view: "View", out: Ints) -> Ints:
        """The batches ``out`` with arms added, those with fewest pulls first, until none may join."""
        return add_arms(self, view, lambda: np.zeros(view.counts.shape), lambda arm: None, out)


def new_batches(actions: Actions, view: "View") -> Ints:
    """Empty batches (R, K), all -1, with the pinned arms first."""
    out = np.full((len(view), actions.capacity(view.counts.shape[1])), -1)
    out[:, : view.pinned.shape[1]] = view.pinned
    return out


def best_arms(gains: Floats, counts: Floats) -> Ints:
    """(R,): the arm of the largest gain, ties by fewest pulls, then the lowest number; -1 where all are -inf."""
    most = gains.max(1)
    arm = np.where(gains == most[:, None], counts, np.inf).argmin(1)
    return np.where(most == -np.inf, -1, arm)


def add_arms(actions: Actions, view: "View", gains: Any, joined: Any, out: Ints | None = None) -> Ints:
    """Add the arm of the largest ``gains()`` (R, n_arms) that may join, until none may: greedy, for any action set.

    ``joined(arm)`` is told each arm (R,) that joins. Arms that ``out`` holds already, and pinned ones, come first.
    """

    def pick(allowed: Bools) -> Ints:
        return best_arms(np.where(allowed, gains(), -np.inf), view.counts)

    return pick_arms(actions, view, pick, joined, out)


def pick_arms(actions: Actions, view: "View", pick: Any, joined: Any, out: Ints | None = None) -> Ints:
    """As ``add_arms``, where ``pick(allowed)`` (R,) chooses among the arms that may join, (R, n_arms); -1 is none."""
    out = new_batches(actions, view) if out is None else out.copy()
    state, free, rows = actions.start(view.eligible), view.eligible.copy(), np.arange(len(view))
    for place in range(out.shape[1]):
        waiting = out[:, place] < 0
        if waiting.any():
            allowed = free & actions.joinable(state, view.eligible)
            out[:, place] = np.where(waiting, pick(allowed), out[:, place])
        arm = out[:, place]
        if (arm < 0).all():
            break
        there = arm >= 0
        free[rows[there], arm[there]] = False
        joined(arm)
        state = actions.join(state, arm)
    return out
