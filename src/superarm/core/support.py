"""Supports: which items each arm can touch, and how arrays of entries are laid out.

Entries of a dense problem are ``(R, n_items, n_arms)``: loops over arms run in vector registers, and sums over items in
natural order. Entries of a sparse problem are ``(R, n_entries)``, arm after arm. Code that works on entries element by
element does not know which of the two it gets; the methods here are the only places that do.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.component import Component
from superarm.core.errors import InvalidArgument


class Support(Component):
    """Which entries each arm has."""

    n_items: int
    n_arms: int

    @property
    def size(self) -> int:
        """How many entries there are."""
        return self.n_items * self.n_arms

    @property
    def widest(self) -> int:
        """The most entries of an arm: the length of a row of outcomes."""
        return self.n_items


class Dense(Support):
    """Every arm has an entry for every item.

    >>> Dense(3, 4).shape(2)
    (2, 3, 4)
    """

    n_items: int
    n_arms: int

    def shape(self, replications: int) -> tuple[int, ...]:
        """The shape of entries."""
        return (replications, self.n_items, self.n_arms)

    def by_arm(self, x: Any) -> Any:
        """Numbers of arms (R, n_arms), so that they broadcast against entries."""
        return x[:, None, :]

    def by_item(self, x: Any) -> Any:
        """Numbers of items (R, n_items), so that they broadcast against entries."""
        return x[:, :, None]

    def sum_items(self, entries: Any) -> Floats:
        """The sum over the items of each arm, in natural order: (R, n_arms)."""
        # NumPy adds rows one by one where a row has more than one element, and in pairs otherwise.
        return entries.sum(1) if self.n_arms > 1 else np.cumsum(entries, 1)[:, -1]

    def sum_arms(self, entries: Any) -> Floats:
        """The sum over the arms of each item: (R, n_items)."""
        return np.cumsum(entries, 2)[:, :, -1]

    def join(self, states: Floats, q: Floats, arm: Ints, join: Callable[[Any, Any], Any]) -> None:
        """Set ``states`` (R, n_items) to ``join(states, q of the arm)`` where an arm (R,) joins; -1 is none."""
        rows = np.flatnonzero(arm >= 0)
        at = rows if len(q) > 1 else np.zeros_like(rows)
        states[rows] = join(states[rows], q[at, :, arm[rows]])

    def rows(self, entries: Floats, action: Ints) -> Floats:
        """The entries of ``action`` (R, K) as rows (R, K, n_items); those of -1 are of the last arm."""
        at = np.arange(len(action)) if len(entries) > 1 else np.zeros(len(action), int)
        return entries[at[:, None], :, action]

    def rows_to_items(self, rows: Any, action: Ints, fill: float = 0.0) -> Any:
        """Rows of ``action`` as numbers of items, (R, K, n_items); ``fill`` where an arm has no entry."""
        return rows

    def items_to_rows(self, numbers: Any, action: Ints) -> Any:
        """Numbers of items (R, K, n_items) as rows of ``action``."""
        return numbers

    def to_entries(self, values: Any) -> Floats:
        """Parameters as users write them, (n_arms, n_items), as entries (1, n_items, n_arms)."""
        return np.ascontiguousarray(np.reshape(values, (self.n_arms, self.n_items)).T)[None]

    def to_user(self, entries: Floats) -> Floats:
        """One replication of entries, (n_items, n_arms), as users read it."""
        return np.ascontiguousarray(entries.T)

    def grown(self, n_new: int) -> "Dense":
        """The support with ``n_new`` more arms."""
        return Dense(self.n_items, self.n_arms + n_new)


class Sparse(Support):
    """Arm ``j`` has the entries ``start[j]:start[j + 1]``, which belong to ``items[start[j]:start[j + 1]]``."""

    n_items: int
    n_arms: int
    start: Any
    items: Any

    @classmethod
    def of(cls, matrix: Any) -> "Sparse":
        """The support of a SciPy sparse matrix (n_arms, n_items): its stored entries.

        >>> from scipy.sparse import csr_array
        >>> Sparse.of(csr_array([[1, 0, 1], [0, 1, 0]])).items.tolist()
        [0, 2, 1]
        """
        if not hasattr(matrix, "tocsr"):
            raise InvalidArgument("support", f"{type(matrix).__name__} is not sparse", "give a SciPy sparse matrix")
        csr = matrix.tocsr()
        csr.sum_duplicates()
        csr.sort_indices()
        n_arms, n_items = csr.shape
        return cls(int(n_items), int(n_arms), csr.indptr.astype(np.int64), csr.indices.astype(np.int64))

    @property
    def size(self) -> int:
        return len(self.items)

    @cached_property
    def widths(self) -> Ints:
        """How many entries each arm has."""
        return np.diff(self.start)

    @property
    def widest(self) -> int:
        return int(self.widths.max(initial=0))

    @cached_property
    def arm_of(self) -> Ints:
        """The arm of each entry."""
        return np.repeat(np.arange(self.n_arms), self.widths)

    @cached_property
    def row_entries(self) -> Ints:
        """The entries of each arm as rows (n_arms, widest), padded with -1."""
        places = np.arange(self.widest)
        inside = places < self.widths[:, None]
        return np.where(inside, self.start[:-1, None] + places, -1)

    def shape(self, replications: int) -> tuple[int, ...]:
        return (replications, len(self.items))

    def by_arm(self, x: Any) -> Any:
        return np.repeat(x, self.widths, axis=1)

    def by_item(self, x: Any) -> Any:
        return x[:, self.items]

    def sum_items(self, entries: Any) -> Floats:
        return np.array([np.bincount(self.arm_of, row, self.n_arms) for row in entries])

    def sum_arms(self, entries: Any) -> Floats:
        return np.array([np.bincount(self.items, row, self.n_items) for row in entries])

    def join(self, states: Floats, q: Floats, arm: Ints, join: Callable[[Any, Any], Any]) -> None:
        for r in np.flatnonzero(arm >= 0):
            entries = slice(self.start[arm[r]], self.start[arm[r] + 1])
            items = self.items[entries]
            states[r, items] = join(states[r, items], q[r if len(q) > 1 else 0, entries])

    def rows(self, entries: Floats, action: Ints) -> Floats:
        at = np.arange(len(action)) if len(entries) > 1 else np.zeros(len(action), int)
        places = self.row_entries[action]
        return np.where(places >= 0, entries[at[:, None, None], np.maximum(places, 0)], 0.0)

    def rows_to_items(self, rows: Any, action: Ints, fill: float = 0.0) -> Any:
        full = np.full((*action.shape, self.n_items), fill)
        r, k, w = np.nonzero((self.row_entries[action] >= 0) & (action >= 0)[:, :, None])
        full[r, k, self.items[self.row_entries[action[r, k], w]]] = rows[r, k, w]
        return full

    def items_to_rows(self, numbers: Any, action: Ints) -> Any:
        items = self.items[np.maximum(self.row_entries[action], 0)]
        return np.take_along_axis(numbers, items, axis=2)

    def to_entries(self, values: Any) -> Floats:
        return np.array(values, float).reshape(1, -1)

    def to_user(self, entries: Floats) -> Floats:
        return entries.copy()

    def grown(self, n_new: int) -> "Sparse":
        raise InvalidArgument("support", "new arms of a sparse problem need their entries", "give the whole support")


AnySupport = Dense | Sparse
