r"""The variance and the largest value of a weighted sum of an arm's items, for any weights, from its moments.

The bounds hold for the sample itself, for all weights :math:`c \ge 0`, however these were chosen: they compare
the sums :math:`\sum_i c_i X_{ij}` and :math:`\sum_i u_i X_{ij}` pull by pull. What the variance is for, and the
proofs, are in ``docs/theory/directional.md``; covariances of items enter bounds as in [DegennePerchet2016]_.
"""

from typing import NamedTuple, Protocol

import numpy as np

from superarm._jit import component, kernel, lean, verb
from superarm.arrays import Floats, Ints
from superarm.moments import Sample
from superarm.support import Support, item, span


class Direction(NamedTuple):
    """Weights ``c`` (n_items,), their ratios to the reference weights, and all ratios in ascending order, 0 first.

    ``order`` (n_items,) are the items in that order.
    """

    c: Floats
    ratio: Floats
    breaks: Floats
    order: Ints


class SampleVariance(Protocol):
    """A bound of the empirical variance of a weighted sum of an arm's items."""

    @property
    def products(self) -> bool:
        """Whether the sums of products of any two items have to be recorded."""
        ...

    def variance(self, support: Support, sample: Sample, reference: Floats, direction: Direction, arm: int) -> float:
        """At least the empirical variance of the sum of c_i X_i over the pulls of ``arm`` in ``sample``."""
        ...


_ROUNDING = 1e-15
"""More than the rounding error of a sum of n numbers, in units of n times the sum of their absolute values."""


@component
class Triangle(NamedTuple):
    r"""The triangle inequality with the sum of :math:`u_i X_i`: memory and time grow with the number of items.

    .. math:: \sqrt v = \min_{a \ge 0}\ a\,S_j + \sum_i |c_i - a u_i|\,\sqrt{\hat V_{ij}}

    with :math:`S_j` the empirical standard deviation of :math:`\sum_i u_i X_{ij}`; u are the item weights at the time
    when the tally was made. Exact where c is a multiple of u, as for the first arm of a batch.
    """

    @property
    def products(self) -> bool:
        return False

    @lean
    def variance(self, support: Support, sample: Sample, reference: Floats, direction: Direction, arm: int) -> float:
        first, last = span(support, arm)
        low = -1
        if last - first == len(reference):
            low = _least_spread(direction, reference, sample.deviation, first, sample.spread[arm])
        if low < 0:
            low = _search_least_spread(support, sample, reference, direction, arm)
        a = direction.breaks[low]
        s = a * sample.spread[arm]
        for o in range(last - first):
            i = item(support, first, o)
            s += abs(direction.c[i] - a * reference[i]) * sample.deviation[first + o]
        return s * s  # type: ignore[no-any-return]


@lean
def _search_least_spread(support: Support, sample: Sample, reference: Floats, direction: Direction, arm: int) -> int:
    """The first break at which the sum of :class:`Triangle` does not fall any more, by bisection."""
    first, last = span(support, arm)
    low, high = 0, len(direction.breaks) - 1
    while low < high:
        middle = (low + high) // 2
        slope = sample.spread[arm]
        for o in range(last - first):
            i = item(support, first, o)
            s = reference[i] * sample.deviation[first + o]
            slope += s if direction.ratio[i] <= direction.breaks[middle] else -s
        if slope >= 0.0:
            high = middle
        else:
            low = middle + 1
    return low


@lean
def _least_spread(direction: Direction, reference: Floats, deviation: Floats, first: int, spread: float) -> int:
    """The same for an arm with an entry for every item, in one pass; -1 if rounding could have decided it."""
    order, total = direction.order, 0.0
    for i in range(len(order)):
        total += reference[i] * deviation[first + i]
    if total == 0.0:
        return 0
    slope, unsure = spread - total, (spread + total) * (len(order) + 8) * _ROUNDING
    for n in range(len(order)):
        if abs(slope) <= unsure:
            return -1
        if slope > 0.0:
            return n
        i = order[n]
        slope += 2.0 * (reference[i] * deviation[first + i])
    return len(order)


@component
class Covariance(NamedTuple):
    r"""The empirical covariance: exact for all weights, with memory and time that grow with the square of the items.

    .. math:: v = \sum_{i, l} c_i c_l\,\hat\Sigma_{il}
    """

    @property
    def products(self) -> bool:
        return True

    @lean
    def variance(self, support: Support, sample: Sample, reference: Floats, direction: Direction, arm: int) -> float:
        first, last = span(support, arm)
        place = arm * (sample.covariance.size // len(sample.pulls))
        v = 0.0
        for o in range(last - first):
            c = direction.c[item(support, first, o)]
            v += c * c * sample.deviation[first + o] * sample.deviation[first + o]
            row = 0.0
            for other in range(o):
                row += direction.c[item(support, first, other)] * sample.covariance[place]
                place += 1
            v += 2.0 * c * row
        return max(0.0, v)


variance = verb(SampleVariance.variance)


@kernel
def new_direction(n_items: int) -> Direction:
    """A direction with room for its weights."""
    return Direction(np.zeros(n_items), np.zeros(n_items), np.zeros(n_items + 1), np.arange(n_items))


@lean
def turn(direction: Direction, reference: Floats) -> None:
    """Bring ratios and breaks up to date with the weights ``c``; an item of reference weight 0 has the ratio 0."""
    n, ratio, breaks, order = len(reference), direction.ratio, direction.breaks, direction.order
    for i in range(n):
        ratio[i] = direction.c[i] / reference[i] if reference[i] > 0.0 else 0.0
    for place in range(n):  # in the order of the last direction, which is near
        breaks[place + 1] = ratio[order[place]]
    gap = n // 2  # Shell's sort: numba's own takes longer to compile than the rest of a choice
    while gap > 0:
        for i in range(gap + 1, n + 1):
            value, which, place = breaks[i], order[i - 1], i
            while place > gap and breaks[place - gap] > value:
                breaks[place], order[place - 1] = breaks[place - gap], order[place - gap - 1]
                place -= gap
            breaks[place], order[place - 1] = value, which
        gap = 1 if gap == 2 else int(gap / 2.2)


@lean
def largest(support: Support, sample: Sample, reference: Floats, direction: Direction, arm: int) -> float:
    r"""At least the largest value of :math:`\sum_i c_i X_{ij}` in ``sample``.

    .. math:: \min_{a \ge 0}\ a\,H_j + \sum_i (c_i - a u_i)^+ x_{ij}

    with :math:`H_j` the largest value of :math:`\sum_i u_i X_{ij}` and :math:`x_{ij}` that of :math:`X_{ij}`.
    """
    first, last = span(support, arm)
    low = -1
    if last - first == len(reference):
        low = _least_peak(direction, reference, sample.top, first, sample.peak[arm])
    if low < 0:
        low = _search_least_peak(support, sample, reference, direction, arm)
    a = direction.breaks[low]
    h = a * sample.peak[arm]
    for o in range(last - first):
        i = item(support, first, o)
        h += max(0.0, direction.c[i] - a * reference[i]) * sample.top[first + o]
    return h  # type: ignore[no-any-return]


@lean
def _search_least_peak(support: Support, sample: Sample, reference: Floats, direction: Direction, arm: int) -> int:
    """The first break at which the sum of :func:`largest` does not fall any more, by bisection."""
    first, last = span(support, arm)
    low, high = 0, len(direction.breaks) - 1
    while low < high:
        middle = (low + high) // 2
        slope = sample.peak[arm]
        for o in range(last - first):
            i = item(support, first, o)
            if direction.ratio[i] > direction.breaks[middle]:
                slope -= reference[i] * sample.top[first + o]
        if slope >= 0.0:
            high = middle
        else:
            low = middle + 1
    return low


@lean
def _least_peak(direction: Direction, reference: Floats, top: Floats, first: int, peak: float) -> int:
    """The same for an arm with an entry for every item, in one pass; -1 if rounding could have decided it."""
    order, slope, unsure = direction.order, peak, 4.0 * peak * (len(direction.order) + 8) * _ROUNDING
    for n in range(len(order), 0, -1):
        i = order[n - 1]
        slope -= reference[i] * top[first + i]
        if abs(slope) <= unsure and peak > 0.0:
            return -1
        if slope < 0.0:
            return n
    return 0


@lean
def peak_ratio(direction: Direction, reference: Floats, peak: float) -> float:
    """The a at which :func:`largest` is least for an arm of this peak and items that all reached 1."""
    n, above = len(reference), 0.0
    while n > 0 and above + reference[direction.order[n - 1]] <= peak:
        n -= 1
        above += reference[direction.order[n]]
    return direction.breaks[n]  # type: ignore[no-any-return]
