from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.actions.base import Ranks, playable
from superarm.arrays import Ints
from superarm.errors import InvalidArgument
from superarm.noise import Noise, integer


class _Table(NamedTuple):
    table: Ints
    sizes: Ints


@component
class Explicit(_Table):
    """The batches of a list, and no others.

    ``table`` is (n_actions, k), a batch a row, filled up with -1; ``sizes`` is (n_actions,).

    >>> Explicit([[0, 1], [2]]).table
    array([[ 0,  1],
           [ 2, -1]])
    """

    __slots__ = ()

    def __new__(cls, actions: Iterable[Iterable[int]]) -> "Explicit":
        try:
            batches = [np.asarray(list(action)) for action in actions]
        except TypeError:
            raise InvalidArgument("actions", "not a list of batches", "give a list of lists of arms") from None
        if not batches or any(len(batch) == 0 for batch in batches):
            raise InvalidArgument("actions", "empty, or holds an empty batch", "list at least one batch of arms")
        if any(batch.dtype.kind not in "iu" for batch in batches):
            raise InvalidArgument("actions", "holds something other than whole numbers", "arms are integers")
        for batch in batches:
            if batch.min() < 0 or np.unique(batch).size < batch.size:
                raise InvalidArgument("actions", f"batch {batch.tolist()}", "give each arm once, from 0 up")
        sizes = np.array([len(batch) for batch in batches], np.int64)
        table = np.full((len(batches), int(sizes.max())), -1, np.int64)
        for row, batch in zip(table, batches, strict=True):
            row[: len(batch)] = batch
        return super().__new__(cls, table, sizes)

    @property
    def matroid(self) -> bool:
        return False

    def capacity(self, n_arms: int) -> int:
        return self.table.shape[1]  # type: ignore[no-any-return]

    def admits(self, chosen: Ints, size: int, arm: int) -> bool:
        for row in range(len(self.sizes)):
            held = 0
            for place in range(self.sizes[row]):
                j = self.table[row, place]
                held += 1 if j == arm else 0
                for n in range(size):
                    held += 1 if j == chosen[n] else 0
            if held == size + 1:
                return True
        return False

    def cover(self, ranks: Ranks) -> Ints:
        best, most = -1, -1
        for row in range(len(self.sizes)):
            if playable(self.table[row, : self.sizes[row]], ranks):
                unsampled = 0
                for place in range(self.sizes[row]):
                    unsampled += 1 if ranks.pulls[self.table[row, place]] == 0.0 else 0
                if unsampled > most:
                    best, most = row, unsampled
        return self.table[best, : self.sizes[best]].copy() if best >= 0 else np.empty(0, np.int64)

    def sample(self, ranks: Ranks, noise: Noise) -> Ints:
        left = 0
        for row in range(len(self.sizes)):
            left += 1 if playable(self.table[row, : self.sizes[row]], ranks) else 0
        skip = integer(noise, left) if left > 0 else 0
        for row in range(len(self.sizes)):
            if playable(self.table[row, : self.sizes[row]], ranks):
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
