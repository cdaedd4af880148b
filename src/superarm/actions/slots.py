import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.actions.base import heaviest
from superarm.actions.enumeration import enumerate_maximal, sum_counts
from superarm.actions.weights import total_weight
from superarm.arrays import Bools, Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument


class _Allowed(NamedTuple):
    allowed: Bools
    k: int


@component
class Slots(_Allowed):
    """Batches whose arms fit into distinct slots, where every slot allows certain arms only.

    A batch may be played if each of its arms can be given a slot of its own: a transversal matroid,
    [EdmondsFulkerson1965]_. ``assignment`` gives the slot of each arm of a batch.

    Parameters
    ----------
    allowed
        Which arms each slot allows: (n_slots, n_arms), boolean, or a list with the arms of each slot.

    Examples
    --------
    >>> page = Slots([[0, 1], [1, 2]])
    >>> list(page.batches(3))
    [(0, 1), (0, 2), (1, 2)]
    >>> page.assignment([1, 0])
    array([1, 0])
    """

    __slots__ = ()

    matroid = True

    def __new__(cls, allowed: Any) -> "Slots":
        table = _parse_allowed(allowed)
        for slot in np.flatnonzero(~table.any(axis=1)):
            raise InvalidArgument("allowed", f"slot {slot} allows no arm", "drop it, or allow an arm", "Slots")
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_bipartite_matching

        k = int((maximum_bipartite_matching(csr_array(table.astype(np.int8))) >= 0).sum())
        return super().__new__(cls, table, k)

    def capacity(self, n_arms: int) -> int:
        return self.k

    def admits(self, chosen: Ints, size: int, arm: int) -> bool:
        holder = np.full(self.allowed.shape[0], -1)
        for n in range(size):
            _assign_slot(self.allowed, holder, chosen[n])
        return _assign_slot(self.allowed, holder, arm)

    def ceiling(self, weights: Floats, candidates: Candidates) -> float:
        return total_weight(weights, heaviest(self, weights, candidates))

    @interpreted
    def assignment(self, action: Any) -> Ints:
        """The slot of each arm of ``action``; arms that come first in ``action`` get the first slots possible."""
        holder = np.full(self.allowed.shape[0], -1)
        for j in action:
            if not _assign_slot(self.allowed, holder, int(j)):
                raise InvalidArgument("action", f"no slot is left for arm {j}", "give a batch that may be played")
        slots = {int(j): slot for slot, j in enumerate(holder)}
        return np.array([slots[int(j)] for j in action], np.int64)

    @interpreted
    def includes(self, action: Ints) -> bool:
        holder = np.full(self.allowed.shape[0], -1)
        return len(action) > 0 and all(_assign_slot(self.allowed, holder, int(j)) for j in action)

    @interpreted
    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        return enumerate_maximal(self, n_arms)

    @interpreted
    def n_batches(self, n_arms: int) -> float:
        return sum_counts([math.prod(1 + int(n) for n in self.allowed.sum(axis=1))])

    @interpreted
    def validate(self, n_arms: int) -> None:
        if self.allowed.shape[1] > n_arms:
            raise InvalidArgument(
                "allowed", f"arm {self.allowed.shape[1] - 1} of {n_arms}", f"arms are 0 to {n_arms - 1}", "Slots"
            )
        idle = np.flatnonzero(~self.allowed.any(axis=0))
        if idle.size or self.allowed.shape[1] < n_arms:
            arm = idle[0] if idle.size else self.allowed.shape[1]
            raise InvalidArgument("allowed", f"no slot allows arm {arm}", "allow every arm in some slot", "Slots")


def _parse_allowed(allowed: Any) -> Bools:
    if isinstance(allowed, np.ndarray) and allowed.dtype == np.bool_ and allowed.ndim == 2:
        return allowed.copy()
    rows = [sorted({int(j) for j in row}) for row in allowed]
    if not rows or not any(rows) or min(min(row, default=0) for row in rows) < 0:
        raise InvalidArgument("allowed", "empty, or names an arm below 0", "list the arms of every slot", "Slots")
    table = np.zeros((len(rows), 1 + max(max(row, default=0) for row in rows)), np.bool_)
    for slot, row in enumerate(rows):
        table[slot, row] = True
    return table


@kernel
def _assign_slot(allowed: Bools, holder: Ints, arm: int) -> bool:
    """Give ``arm`` a slot, moving other arms if necessary: breadth-first augmentation, [EdmondsFulkerson1965]_.

    ``holder`` (n_slots,) is the arm in each slot, or -1; it is unchanged if ``arm`` cannot get one.
    """
    n_slots = len(holder)
    queue = np.empty(n_slots + 1, np.int64)  # arms that need a slot, in the order of the search
    source = np.full(n_slots, -1)  # by which of them each slot was reached first
    slot_of = np.full(n_slots + 1, -1)  # the slot that each of them has now
    queue[0] = arm
    queued = 1
    at = 0
    while at < queued:
        for slot in range(n_slots):
            if source[slot] >= 0 or not allowed[slot, queue[at]]:
                continue
            source[slot] = at
            if holder[slot] < 0:
                free = slot
                while free >= 0:
                    n = source[free]
                    holder[free] = queue[n]
                    free = slot_of[n]
                return True
            queue[queued], slot_of[queued] = holder[slot], slot
            queued += 1
        at += 1
    return False
