"""Enumeration and counting of batches, for small action sets."""

import math
from collections.abc import Iterable, Iterator

import numpy as np

from superarm.actions.base import Actions, admits


def enumerate_maximal(actions: Actions, n_arms: int) -> Iterator[tuple[int, ...]]:
    """Yield every maximal batch (one that no further arm may join), in lexicographic order.

    The time grows with the number of all batches, including those that are not maximal.

    >>> from superarm.actions import PartitionMatroid
    >>> list(enumerate_maximal(PartitionMatroid([0, 0, 1], [1, 1]), 3))
    [(0, 2), (1, 2)]
    """
    chosen = np.empty(n_arms, np.int64)

    def extend(arm: int, size: int) -> Iterator[tuple[int, ...]]:
        if arm == n_arms:
            held = set(chosen[:size].tolist())
            if size and not any(admits(actions, chosen, size, j) for j in range(n_arms) if j not in held):
                yield tuple(sorted(held))
            return
        if admits(actions, chosen, size, arm):
            chosen[size] = arm
            yield from extend(arm + 1, size + 1)
        yield from extend(arm + 1, size)

    return extend(0, 0)


def sum_counts(counts: Iterable[int]) -> float:
    """Sum ``counts``; infinity as soon as the sum exceeds ``MAX_COUNT``.

    >>> sum_counts(2**n for n in range(1000))
    inf
    """
    total = 0
    for count in counts:
        total += count
        if total > MAX_COUNT:
            return math.inf
    return float(total)


MAX_COUNT = 10**15
"""Larger counts are reported as infinite: no computer enumerates that many batches."""


def count_subsets(n_arms: int, k: int) -> float:
    """Count the sets of at most ``k`` of ``n_arms`` arms: a bound where nothing better is known."""
    return sum_counts(math.comb(n_arms, n) for n in range(k + 1))
