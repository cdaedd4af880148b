"""Supports: which items each arm can touch, and where its parameters are in memory.

Every array of parameters or statistics is flat: the *entries* of arm 0, then those of arm 1, and so on.
In a ``Dense`` support an arm has an entry for every item; in a ``Sparse`` one it has only those listed, and all other
parameters are zero and take no memory. Kernels use ``span`` and ``item``, and work with either support.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from superarm._jit import component, for_kernels, verb
from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument


class Support(Protocol):
    """Which entries each arm has, and which item each of them belongs to."""

    @property
    def n_arms(self) -> int: ...

    @property
    def n_items(self) -> int: ...

    def span(self, arm: int) -> tuple[int, int]:
        """The first entry of ``arm``, and one past its last."""
        ...

    def item(self, first: int, offset: int) -> int:
        """The item of entry ``first + offset``, where ``first`` is the first entry of an arm."""
        ...

    def size(self) -> int:
        """How many entries there are."""
        ...


@component
class Dense(NamedTuple):
    """A support in which every arm has an entry for every item: entry ``arm * n_items + item``.

    >>> Dense(3, 4).span(1)
    (4, 8)
    """

    n_arms: int
    n_items: int

    @for_kernels
    def span(self, arm: int) -> tuple[int, int]:
        return arm * self.n_items, (arm + 1) * self.n_items

    @for_kernels
    def item(self, first: int, offset: int) -> int:
        return offset

    @for_kernels
    def size(self) -> int:
        return self.n_arms * self.n_items


class _Rows(NamedTuple):
    start: Ints
    items: Ints
    n_items: int


@component
class Sparse(_Rows):
    """A support given by a sparse matrix.

    Arm ``j`` has the entries ``start[j]:start[j + 1]``, which belong to ``items[start[j]:start[j + 1]]``.

    Parameters
    ----------
    matrix
        A SciPy sparse matrix or array of shape ``(n_arms, n_items)``: its stored entries are the support.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> first, last = Sparse(csr_array([[1, 0, 1], [0, 1, 0]])).span(0)
    >>> int(first), int(last)
    (0, 2)
    """

    __slots__ = ()

    def __new__(cls, matrix: Any) -> "Sparse":
        if not hasattr(matrix, "tocsr"):
            raise InvalidArgument("support", f"{type(matrix).__name__} is not sparse", "give a SciPy sparse matrix")
        csr = matrix.tocsr()
        csr.sum_duplicates()
        csr.sort_indices()
        return super().__new__(cls, csr.indptr.astype(np.int64), csr.indices.astype(np.int64), int(csr.shape[1]))

    @property
    def n_arms(self) -> int:
        return len(self.start) - 1

    def span(self, arm: int) -> tuple[int, int]:
        return self.start[arm], self.start[arm + 1]

    def item(self, first: int, offset: int) -> int:
        return self.items[np.uint64(first) + np.uint64(offset)]  # type: ignore[no-any-return]

    def size(self) -> int:
        return len(self.items)


span = verb(Support.span)
item = verb(Support.item)
size = verb(Support.size)


def length(support: Support, action: Ints) -> int:
    """How many entries the arms of ``action`` have together: the length of a flat outcome."""
    if isinstance(support, Dense):
        return len(action) * support.n_items
    return sum(last - first for first, last in (span(support, int(j)) for j in action))


def rows(support: Support, values: Floats, action: Ints) -> Floats:
    """The values of the entries of ``action``'s arms, flat, in the order of ``action``.

    >>> rows(Dense(3, 2), np.arange(6.0), np.array([2, 0]))
    array([4., 5., 0., 1.])
    """
    return np.concatenate([values[slice(*span(support, int(j)))] for j in action])


def fit_rows(support: Support, values: Floats, action: Ints, observed: Ints, otherwise: float) -> Floats:
    """Values of the entries of ``action``, as values of those of ``observed``; empty if there are none."""
    if not values.size:
        return values
    same = action is observed or action.tobytes() == observed.tobytes()  # of a few arms: quicker than array_equal
    if same and len(values) == length(support, observed):
        return values
    dense = isinstance(support, Dense)
    sizes = [len(values) // len(action) if dense else length(support, np.array([j])) for j in action]
    own = dict(zip(np.asarray(action).tolist(), np.split(values, np.cumsum(sizes)[:-1]), strict=True))
    parts = [np.zeros(0)]
    for j in np.asarray(observed).tolist():
        row = np.full(length(support, np.array([j])), otherwise)
        if j in own:
            row[: len(own[j])] = own[j]
        parts.append(row)
    return np.concatenate(parts)
