r"""Moments: how the items of an arm vary together, and the largest value of their weighted average.

For each arm, over the pulls of which every entry was seen: their number, the sums of the reference average
:math:`\bar Y_j = \sum_i u_i X_{ij} / \sum_i u_i` and of its square, how often it fell into each of a fixed set of
intervals, and the sums of every entry and of its square; and, if they are wanted, the sums of the products of any two
entries. All of them are sums of multiples of :math:`2^{-24}`, so they are added, merged and taken back exactly. The
largest value seen is read off the intervals: taking back the largest outcome makes it smaller again.
"""

import math
from typing import NamedTuple

import numpy as np

from superarm._jit import for_kernels, inlined, lean
from superarm.arrays import Floats
from superarm.errors import InvalidArgument
from superarm.support import Support, item, span

GRID = 16777216.0
"""Outcomes are recorded as multiples of 1 / GRID = 2**-24."""

INTERVALS = 64
"""The reference average is counted in the intervals ((n - 1)^2, n^2] / INTERVALS^2: narrow where it is small."""

_COUNT, _SUM, _SQUARE, _FIRST_INTERVAL = 0, 1, 2, 3
_FIRST_ENTRY = _FIRST_INTERVAL + INTERVALS + 1


class Moments(NamedTuple):
    """The moments of all arms, empty if they are not recorded.

    ``reference`` (n_items,) are the weights u of the reference average; ``values`` and ``products`` have a block of the
    same length for each arm, as long as the arm with most entries needs. ``products`` is empty if they are not wanted.
    """

    reference: Floats
    values: Floats
    products: Floats


def no_moments() -> Moments:
    """Moments that are not recorded."""
    return Moments(np.zeros(0), np.zeros(0), np.zeros(0))


def empty_moments(support: Support, reference: Floats, products: bool) -> Moments:
    """The moments of no pulls.

    >>> from superarm.support import Dense
    >>> [part.size for part in empty_moments(Dense(2, 3), np.ones(3), True)]
    [3, 148, 6]
    """
    widest = max((last - first for first, last in (span(support, j) for j in range(support.n_arms))), default=0)
    pairs = widest * (widest - 1) // 2 if products else 0
    length = _FIRST_ENTRY + 2 * widest
    return Moments(reference.copy(), np.zeros(support.n_arms * length), np.zeros(support.n_arms * pairs))


def fit_moments(moments: Moments, support: Support, reference: Floats, products: bool) -> Moments:
    """The moments as they are if they have the size that is asked for, and otherwise those of no pulls."""
    fresh = empty_moments(support, reference, products)
    fits = all(part.size == new.size for part, new in zip(moments, fresh, strict=True))
    return moments if fits else fresh


def merge_moments(a: Moments, b: Moments) -> Moments:
    """The sum of both; where one was not recorded, the other. Both have the same reference weights."""
    if not a.values.size or not b.values.size:
        return a if a.values.size else b
    if not np.array_equal(a.reference, b.reference) or a.products.size != b.products.size:
        raise InvalidArgument("tally", "its moments were recorded for other weights", "merge tallies of one agent")
    return Moments(a.reference, a.values + b.values, a.products + b.products)


def moments_with_arms(moments: Moments, after: Support, n_before: int) -> Moments:
    """The moments of a support with more arms, where the first ``n_before`` are those of ``moments``."""
    if not moments.values.size:
        return moments
    fresh = empty_moments(after, moments.reference, moments.products.size > 0)
    old, new = moments.values.reshape(n_before, -1), fresh.values.reshape(after.n_arms, -1)
    widest, wider = ((blocks.shape[1] - _FIRST_ENTRY) // 2 for blocks in (old, new))
    new[:n_before, : _FIRST_ENTRY + widest] = old[:, : _FIRST_ENTRY + widest]
    new[:n_before, _FIRST_ENTRY + wider :][:, :widest] = old[:, _FIRST_ENTRY + widest :]
    if moments.products.size:
        pairs = moments.products.reshape(n_before, -1)
        fresh.products.reshape(after.n_arms, -1)[:n_before, : pairs.shape[1]] = pairs
    return fresh


@inlined
def round_to_grid(x: float) -> float:
    """The nearest multiple of 1 / GRID."""
    return np.floor(x * GRID + 0.5) / GRID  # type: ignore[no-any-return] # math.floor returns an int: no vectors


@lean
def reference_weight(moments: Moments, support: Support, arm: int) -> float:
    """The sum of the reference weights of an arm's entries."""
    first, last = span(support, arm)
    total = 0.0
    for o in range(last - first):
        total += moments.reference[item(support, first, o)]
    return total


@lean
def record_moments(
    moments: Moments, n_arms: int, support: Support, arm: int, outcome: Floats, at: int, sign: float
) -> None:
    """Add one pull of which every entry was seen, ``outcome[at:]``, or take it back (``sign=-1.0``)."""
    reference, values, products = moments
    first, last = span(support, arm)
    n = last - first
    length = values.size // n_arms
    block, widest = arm * length, (length - _FIRST_ENTRY) // 2
    total, weight = 0.0, 0.0
    for o in range(n):
        u = reference[item(support, first, o)]
        total += u * round_to_grid(outcome[at + o])
        weight += u
    # A loop of its own, and unsigned offsets, so that it runs in vector registers.
    sums, squares, place = np.uint64(block + _FIRST_ENTRY), np.uint64(block + _FIRST_ENTRY + widest), np.uint64(at)
    for o in range(np.uint64(n)):
        x = round_to_grid(outcome[place + o])
        values[sums + o] += sign * x
        values[squares + o] += sign * round_to_grid(x * x)
    average = round_to_grid(min(1.0, total / weight)) if weight > 0.0 else 0.0
    values[block + _COUNT] += sign
    values[block + _SUM] += sign * average
    values[block + _SQUARE] += sign * round_to_grid(average * average)
    values[block + _FIRST_INTERVAL + math.ceil(INTERVALS * math.sqrt(average))] += sign
    if products.size > 0:
        pair = arm * (products.size // n_arms)
        for o in range(1, n):
            x = round_to_grid(outcome[at + o])
            for other in range(o):
                products[pair] += sign * round_to_grid(x * round_to_grid(outcome[at + other]))
                pair += 1


class Sample(NamedTuple):
    """What follows from the moments of each arm.

    ``pulls`` (n_arms,) are the pulls seen whole. Over these, ``mean``, ``deviation`` and ``top`` (n_entries,) are the
    mean, the standard deviation and a bound of the largest value of each entry, ``spread`` and ``peak`` (n_arms,) the
    standard deviation and a bound of the largest value of the sum of u_i X_i. ``covariance`` is in the layout of
    ``Moments.products``.
    """

    pulls: Floats
    mean: Floats
    deviation: Floats
    top: Floats
    spread: Floats
    peak: Floats
    covariance: Floats


@for_kernels
def new_sample(n_arms: int, n_entries: int, n_products: int) -> Sample:
    """The sample of arms of which nothing was seen."""
    return Sample(
        np.zeros(n_arms),
        np.zeros(n_entries),
        np.zeros(n_entries),
        np.zeros(n_entries),
        np.zeros(n_arms),
        np.zeros(n_arms),
        np.zeros(n_products),
    )


@lean
def update_sample(moments: Moments, support: Support, arm: int, sample: Sample) -> None:
    """Bring ``sample`` up to date with the moments of ``arm``."""
    _, values, products = moments
    pulls, mean, deviation, top, spread, peak, covariance = sample
    first, last = span(support, arm)
    n_arms = len(pulls)
    length = values.size // n_arms
    block, widest = arm * length, (length - _FIRST_ENTRY) // 2
    pulls[arm] = values[block + _COUNT]
    n = max(pulls[arm], 1.0)
    entry, sums, squares = np.uint64(first), np.uint64(block + _FIRST_ENTRY), np.uint64(block + _FIRST_ENTRY + widest)
    for o in range(np.uint64(last - first)):
        total, square = values[sums + o], values[squares + o]
        m = total / n
        mean[entry + o] = m
        deviation[entry + o] = math.sqrt(max(0.0, square / n - m * m))
        # No value exceeds their sum, nor the root of the sum of squares, each of which was rounded by half a unit.
        top[entry + o] = min(1.0, max(0.0, total), math.sqrt(max(0.0, square + 0.5 * n / GRID)))
    weight = reference_weight(moments, support, arm)
    m = values[block + _SUM] / n
    spread[arm] = weight * math.sqrt(max(0.0, values[block + _SQUARE] / n - m * m))
    largest = INTERVALS
    while largest > 0 and values[block + _FIRST_INTERVAL + largest] <= 0.0:
        largest -= 1
    peak[arm] = weight * (largest / INTERVALS) * (largest / INTERVALS)
    if products.size > 0:
        place = arm * (products.size // n_arms)
        for o in range(1, last - first):
            for other in range(o):
                covariance[place] = products[place] / n - mean[first + o] * mean[first + other]
                place += 1


@lean
def update_samples(moments: Moments, support: Support, sample: Sample) -> None:
    """Bring ``sample`` up to date with the moments of every arm."""
    for j in range(len(sample.pulls)):
        update_sample(moments, support, j, sample)
