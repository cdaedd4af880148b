from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from superarm._jit import component, interpreted, kernel
from superarm.actions.base import Actions, all_eligible, heaviest, keep_if_eligible
from superarm.actions.listed import Batches, best_batch, tabulate
from superarm.actions.weights import total_weight
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.streams import Stream, integer


class _Table(NamedTuple):
    table: Ints
    sizes: Ints


@component
class SumOfWeights(NamedTuple):
    """The value of a batch as the sum of the ``weights`` (n_arms,) of its arms."""

    weights: Floats

    def value_of(self, action: Ints) -> float:
        return total_weight(self.weights, action)


@component
class Explicit(_Table):
    """The batches of a list, and no others.

    The same arms in another order are the same batch, since rewards do not depend on the order; the first is kept.
    The field ``table`` is (n_actions, k), one batch per row, padded with -1; ``sizes`` is (n_actions,).

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

    __slots__ = ()

    matroid = False
    tractable = True

    def __new__(cls, actions: Iterable[Iterable[int]]) -> "Explicit":
        try:
            batches: list[NDArray[Any]] = [np.asarray(list(action)) for action in actions]
        except TypeError:
            raise InvalidArgument("actions", "not a list of batches", "give a list of lists of arms") from None
        if not batches or any(len(batch) == 0 for batch in batches):
            raise InvalidArgument("actions", "empty, or contains an empty batch", "list at least one batch of arms")
        if any(batch.dtype.kind not in "iu" for batch in batches):
            raise InvalidArgument("actions", "contains something other than whole numbers", "arms are integers")
        for batch in batches:
            if batch.min() < 0 or np.unique(batch).size < batch.size:
                raise InvalidArgument("actions", f"batch {batch.tolist()}", "give each arm once, from 0 up")
        distinct: dict[frozenset[int], Ints] = {}
        for batch in batches:
            distinct.setdefault(frozenset(batch.tolist()), batch)
        return super().__new__(cls, *tabulate(distinct.values()))

    def capacity(self, n_arms: int) -> int:
        return self.table.shape[1]  # type: ignore[no-any-return]

    def admits(self, chosen: Ints, size: int, arm: int) -> bool:
        for row in range(len(self.sizes)):
            if _contains(self.table[row, : self.sizes[row]], chosen, size, arm):
                return True
        return False

    def joins(self, candidates: Candidates, chosen: Ints, size: int, arm: int) -> bool:
        for row in range(len(self.sizes)):
            batch = self.table[row, : self.sizes[row]]
            if all_eligible(batch, candidates) and _contains(batch, chosen, size, arm):
                return True
        return False

    def remnant(self, batch: Ints, candidates: Candidates) -> Ints:
        return keep_if_eligible(batch, candidates)

    def heaviest(self, weights: Floats, candidates: Candidates) -> Ints:
        return best_batch(SumOfWeights(weights), self, Batches(self.table, self.sizes), candidates)

    def ceiling(self, weights: Floats, candidates: Candidates) -> float:
        return total_weight(weights, heaviest(self, weights, candidates))

    def sample(self, candidates: Candidates, stream: Stream) -> Ints:
        left = 0
        for row in range(len(self.sizes)):
            left += 1 if all_eligible(self.table[row, : self.sizes[row]], candidates) else 0
        skip = integer(stream, left) if left > 0 else 0
        for row in range(len(self.sizes)):
            if all_eligible(self.table[row, : self.sizes[row]], candidates):
                if skip == 0:
                    return self.table[row, : self.sizes[row]].copy()
                skip -= 1
        return np.empty(0, np.int64)

    @interpreted
    def includes(self, action: Ints) -> bool:
        wanted = sorted(int(j) for j in action)
        return any(sorted(batch) == wanted for batch in self.batches(0))

    @interpreted
    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        return (tuple(row[:size].tolist()) for row, size in zip(self.table, self.sizes, strict=True))

    @interpreted
    def n_batches(self, n_arms: int) -> float:
        return float(len(self.sizes))

    @interpreted
    def validate(self, n_arms: int) -> None:
        if self.table.max() >= n_arms:
            raise InvalidArgument("actions", f"arm {self.table.max()} of {n_arms}", f"arms are 0 to {n_arms - 1}")
        missing = np.setdiff1d(np.arange(n_arms), self.table)
        if missing.size:
            raise InvalidArgument("actions", f"arm {missing[0]} is in no batch", "every arm must be playable")


@kernel
def _contains(batch: Ints, chosen: Ints, size: int, arm: int) -> bool:
    """Whether ``batch`` contains the first ``size`` arms of ``chosen`` and ``arm``."""
    held = 0
    for j in batch:
        held += 1 if j == arm else 0
        for n in range(size):
            held += 1 if j == chosen[n] else 0
    return held == size + 1


def list_batches(actions: Actions, n_arms: int) -> Batches:
    """Every batch of ``actions`` that no other batch contains, one row per batch; the listed ones of ``Explicit``.

    >>> from superarm.actions import Subsets
    >>> list_batches(Subsets(2), 3).table.tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    if isinstance(actions, Explicit):
        return Batches(actions.table, actions.sizes)
    return tabulate(actions.batches(n_arms))
