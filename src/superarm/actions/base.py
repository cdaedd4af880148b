"""The base of action sets: which arms may still join the batches under construction, for all replications at once.

An action set keeps a *state* of each batch under construction, a row per replication. ``joinable`` says for every arm
whether some batch that may be played contains it and the arms chosen so far. So adding arms until none may join gives a
batch, and an arm that may not join now may not join later either. Batches are ``(R, K)``, padded with -1.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from superarm.core.arrays import Bools, Floats, Ints, best_arms, require_scores
from superarm.core.component import Component
from superarm.core.tally import View

MAX_COUNTED_BATCHES = 20_000
"""So many batches of an action set are counted, where it has no formula for their number."""


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

    matroid: ClassVar[Any] = False
    """Whether batches are the independent sets of a matroid, so that greedy is exact for modular rewards."""
    uniform: ClassVar[Any] = False
    """Whether any k arms may be played."""
    budgeted: ClassVar[Any] = False
    """Whether batches are limited by a budget: the set has ``costs`` (n_arms,) and ``money``."""
    whole: ClassVar[Any] = False
    """Whether a batch can be played whole only; if not, its eligible arms can be played without the others."""
    alike: ClassVar[Any] = None
    """For each arm all that share what is learnt with it, and itself: (n_arms, n), padded with -1; None: no other."""
    pins: ClassVar[Any] = ()
    """Arms that every batch contains; views have them as ``pinned``."""

    @property
    def tractable(self) -> bool:
        """Whether ``heaviest`` finds the heaviest batch exactly."""
        return self.matroid

    @property
    def any_worth(self) -> bool:
        """Whether ``heaviest`` finds the heaviest batch also if arms are worth less than 0."""
        return self.matroid

    @property
    def exchange(self) -> float:
        """The p of a p-system: within any set of arms, no maximal batch is more than p times as large as another one.

        Greedy has alpha = 1/p for modular and 1/(p + 1) for monotone submodular rewards, [FisherNemhauserWolsey1978]_.
        p is 1 for a matroid, and infinite where nothing is known.
        """
        return 1.0 if self.matroid else math.inf

    def capacity(self, n_arms: int) -> int:
        """The size of the largest batch, or an upper bound of it where that is hard to know."""
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
        """Whether ``action`` may be played: by default if its arms may join one after the other."""
        eligible = np.ones((1, n_arms), bool)
        state, free = self.start(eligible), eligible.copy()
        for arm in action.tolist():
            if not (free & self.joinable(state, eligible))[0, arm]:
                return False
            free[0, arm] = False
            state = self.join(state, np.array([arm]))
        complete = not (self.whole and (free & self.joinable(state, eligible)).any())
        return complete and 0 < len(action) <= self.capacity(n_arms)

    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        """Every batch that no other batch contains, arms increasing; by default found by search, in order."""
        return iter(sorted(_search(self, n_arms, math.inf) or ()))

    def n_batches(self, n_arms: int) -> float:
        """How many batches ``batches`` yields, or an upper bound of it; infinite if it is not known.

        By default they are counted by the search of ``batches``, which gives up beyond ``MAX_COUNTED_BATCHES``.
        """
        found = _search(self, n_arms, MAX_COUNTED_BATCHES)
        return math.inf if found is None else len(found)

    def heaviest(self, worth: Floats, view: View) -> Ints:
        """A batch of large total ``worth`` (R, n_arms) >= 0, ties by fewest pulls; the heaviest if ``tractable``.

        By default arms are added, the heaviest first, until none may join: exact on a matroid, [Edmonds1971]_.
        """
        require_scores(worth)
        return add_arms(self, view, lambda: worth, lambda arm: None)

    def ceiling(self, worth: Floats, view: View) -> Floats:
        """An upper bound (R,) of the total worth of any batch of eligible arms that contains the pinned ones.

        By default the total of the heaviest batch if that is exact, otherwise of the K largest.
        """
        if self.tractable:
            return total_worth(worth, self.heaviest(worth, view))
        held = view.pinned.shape[1]
        rest = np.where(view.eligible, worth, 0.0)
        np.put_along_axis(rest, view.pinned, 0.0, 1)
        largest = np.sort(rest, axis=1)[:, ::-1][:, : self.capacity(worth.shape[1]) - held]
        return total_worth(worth, view.pinned) + largest.sum(1)

    def sample(self, view: View, numbers: Floats) -> Ints:
        """A random batch from ``numbers`` (R, n_arms), uniform in [0, 1): arms in random order, until none may join."""
        return add_arms(self, view, lambda: -numbers, lambda arm: None)

    def complete(self, view: View, out: Ints) -> Ints:
        """The batches ``out`` with arms added, those with fewest pulls first, until none may join."""
        if not view.pinned.size and (out >= 0).all():
            return out
        return add_arms(self, view, lambda: np.zeros(view.counts.shape), lambda arm: None, out)


def _search(actions: Actions, n_arms: int, most: float) -> list[tuple[int, ...]] | None:
    """Every batch that no other batch contains, found arm by arm; None if that takes more than ``most`` at once."""
    found: list[tuple[int, ...]] = []
    level = np.empty((1, 0), np.int64)
    while len(level):
        if max(len(found), len(level)) > most:
            return None
        free = joinable_after(actions, level, np.ones((len(level), n_arms), bool))
        done = ~free.any(1)
        found += map(tuple, level[done].tolist())
        last = level[:, -1:] if level.shape[1] else np.full((1, 1), -1)
        rows, new = np.nonzero(free & (np.arange(n_arms) > last))
        level = np.concatenate([level[rows], new[:, None]], axis=1)
    return found


def new_batches(actions: Actions, view: View) -> Ints:
    """Empty batches (R, K), all -1, with the pinned arms first."""
    out = np.full((len(view), actions.capacity(view.counts.shape[1])), -1)
    out[:, : view.pinned.shape[1]] = view.pinned
    return out


def add_arms(actions: Actions, view: View, gains: Any, joined: Any, out: Ints | None = None) -> Ints:
    """Add the arm of the largest ``gains()`` (R, n_arms) that may join, until none may: greedy, for any action set.

    ``joined(arm)`` is told each arm (R,) that joins. Arms that ``out`` holds already, and pinned ones, come first.
    Where the pinned arms may not be played, the batch is empty.
    """

    def pick(allowed: Bools) -> Ints:
        return best_arms(np.where(allowed, gains(), -np.inf), view.counts)

    return pick_arms(actions, view, pick, joined, out)


def pick_arms(actions: Actions, view: View, pick: Any, joined: Any, out: Ints | None = None) -> Ints:
    """As ``add_arms``, where ``pick(allowed)`` (R,) chooses among the arms that may join, (R, n_arms); -1 is none."""
    out = new_batches(actions, view) if out is None else out.copy()
    state, free, rows = actions.start(view.eligible), view.eligible.copy(), np.arange(len(view))
    impossible = np.zeros(len(view), bool)
    for place in range(out.shape[1]):
        waiting = out[:, place] < 0
        if place < view.pinned.shape[1]:
            impossible |= waiting | ~(free & actions.joinable(state, view.eligible))[rows, out[:, place]]
        elif waiting.any():
            allowed = free & actions.joinable(state, view.eligible)
            out[:, place] = np.where(waiting, pick(allowed), out[:, place])
        arm = out[:, place]
        if (arm < 0).all():
            break
        there = arm >= 0
        free[rows[there], arm[there]] = False
        joined(arm)
        state = actions.join(state, arm)
    out[impossible] = -1
    return out


def pins_are_eligible(view: View) -> bool:
    """Whether all pinned arms are eligible, as they are if nothing is pinned."""
    return not view.pinned.size or bool(np.take_along_axis(view.eligible, view.pinned, 1).all())


def joinable_after(actions: Actions, action: Ints, eligible: Bools) -> Bools:
    """Which other arms may join the batches ``action`` (R, n), padded with -1: (R, n_arms)."""
    state, rows, sizes = actions.start(eligible), np.arange(len(action)), (action >= 0).sum(1)
    free = np.zeros(eligible.shape, bool)
    for size in range(action.shape[1] + 1):
        ending = sizes == size
        if ending.any() and size < actions.capacity(eligible.shape[1]):
            free[ending] = (eligible & actions.joinable(state, eligible))[ending]
        if size < action.shape[1]:
            state = actions.join(state, action[:, size])
    for arm in action.T:
        free[rows[arm >= 0], arm[arm >= 0]] = False
    return free


def total_worth(worth: Floats, action: Ints) -> Floats:
    """The total worth (R,) of the arms of ``action`` (R, K); ``worth`` is (R, n_arms)."""
    padded = np.concatenate([worth, np.zeros((len(worth), 1))], axis=1)
    values = np.take_along_axis(padded, np.where(action < 0, worth.shape[1], action), 1)
    return np.cumsum(values, 1)[:, -1] if values.shape[1] else np.zeros(len(worth))


def pack(action: Ints) -> Ints:
    """The batches with padding at the end; arms keep their order."""
    return np.take_along_axis(action, np.argsort(action < 0, axis=1, kind="stable"), 1)


def put_pins_first(action: Ints, pinned: Ints) -> Ints:
    """The batches ``action``, which contain the pinned arms or are empty, with the pinned arms first."""
    if not pinned.shape[1]:
        return action
    rest = np.where((action[:, :, None] == pinned[:, None, :]).any(2), -1, action)
    first = np.where((action >= 0).any(1, keepdims=True), pinned, -1)
    return pack(np.concatenate([first, rest], axis=1))[:, : action.shape[1]]


def take_rows(view: View, rows: Any) -> View:
    """The view of the replications ``rows``, of which one may occur several times; the tally stays as it is."""
    return replace(
        view, keys=view.keys[rows], counts=view.counts[rows], eligible=view.eligible[rows], pinned=view.pinned[rows]
    )


MAX_COUNT = 10**15
"""Larger counts are reported as infinite: no computer enumerates that many batches."""


def limit_count(n: int) -> float:
    """``n`` as a number of batches; infinite above ``MAX_COUNT``."""
    return float(n) if n <= MAX_COUNT else math.inf


def count_subsets(n_arms: int, k: int) -> float:
    """Count the sets of at most ``k`` of ``n_arms`` arms: a bound where nothing better is known.

    >>> count_subsets(4, 2), count_subsets(1000, 500)
    (11.0, inf)
    """
    # Of more than 60 arms, the sets of at most 60 are too many already.
    return limit_count(sum(math.comb(n_arms, size) for size in range(min(k, 60) + 1)))
