"""Weights of arms: sorting arms by them, and their sums."""

import numpy as np

from superarm._jit import kernel, shared
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates


@shared
def order_by_weight(weights: Floats, candidates: Candidates) -> Ints:
    """All arms, heaviest first; of equal weights, the arm with the fewest pulls first, then the lowest."""
    order, merged, width = np.empty(len(weights), np.int64), np.empty(len(weights), np.int64), 1
    for j in range(len(order)):
        order[j] = j
    while width < len(order):  # a merge sort: numba's own takes longer to compile than the rest of a choice
        for first in range(0, len(order), 2 * width):
            _merge(weights, candidates.counts, order, merged, first, width)
        order, merged, width = merged, order, 2 * width
    return order


@kernel
def _merge(weights: Floats, counts: Floats, order: Ints, merged: Ints, first: int, width: int) -> None:
    """Merge ``order[first:first + width]`` and the next ``width`` arms, each sorted, into ``merged``."""
    middle, end = min(first + width, len(order)), min(first + 2 * width, len(order))
    a, b = first, middle
    for place in range(first, end):
        i, j = order[min(a, middle - 1)], order[min(b, end - 1)]
        behind = weights[j] > weights[i] or (
            weights[j] == weights[i] and (counts[j] < counts[i] or (counts[j] == counts[i] and j < i))
        )
        if a == middle or (b < end and behind):
            merged[place] = j
            b += 1
        else:
            merged[place] = i
            a += 1


@kernel
def heaviest_arms(k: int, weights: Floats, candidates: Candidates) -> Ints:
    """The first ``k`` eligible arms in the order of ``order_by_weight``, by insertion: for small ``k``."""
    best, size = np.empty(k, np.int64), 0
    for j in range(len(weights)):
        if not candidates.eligible[j]:
            continue
        at = size
        while at > 0:
            ahead = best[at - 1]
            if weights[ahead] > weights[j] or (
                weights[ahead] == weights[j] and candidates.counts[ahead] <= candidates.counts[j]
            ):
                break
            if at < k:
                best[at] = ahead
            at -= 1
        if at < k:
            best[at] = j
            size = min(size + 1, k)
    return best[:size]


@kernel
def total_weight(weights: Floats, action: Ints) -> float:
    """The total weight of ``action``."""
    total = 0.0
    for j in action:
        total += weights[j]
    return total


@kernel
def exceed_total(weights: Floats) -> float:
    """A number above the sum of all ``weights``, which are not negative."""
    more = 1.0
    for w in weights:
        more += w
    return more
