"""Every largest batch, by trying: for small action sets."""

import math
from collections.abc import Iterable, Iterator

import numpy as np

from superarm.actions.base import Actions, admits


def maximal(actions: Actions, n_arms: int) -> Iterator[tuple[int, ...]]:
    """Every batch that no arm may join, in lexical order; takes time in the number of all batches.

    >>> from superarm.actions import PartitionMatroid
    >>> list(maximal(PartitionMatroid([0, 0, 1], [1, 1]), 3))
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


def tally_up(counts: Iterable[int]) -> float:
    """The sum of ``counts``, or infinity as soon as nobody would enumerate that many.

    >>> tally_up(2**n for n in range(1000))
    inf
    """
    total = 0
    for count in counts:
        total += count
        if total > _BEYOND:
            return math.inf
    return float(total)


_BEYOND = 10**15


def up_to(n_arms: int, k: int) -> float:
    """How many sets of at most ``k`` of ``n_arms`` arms there are: a bound where nothing better is known."""
    return tally_up(math.comb(n_arms, n) for n in range(k + 1))
