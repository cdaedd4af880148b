r"""The variance and the largest value of a weighted sum of an arm's items, for any weights, from its moments.

The bounds hold for the sample itself, for all weights :math:`c \ge 0`, however these were chosen: they compare
the sums :math:`\sum_i c_i X_{ij}` and :math:`\sum_i u_i X_{ij}` pull by pull. What the variance is for, and the
proofs, are in ``docs/theory/directional.md``; covariances of items enter bounds as in [DegennePerchet2016]_.
"""

from typing import NamedTuple, Protocol

import numpy as np

from superarm._jit import component, kernel, lean, verb
from superarm.arrays import Floats
from superarm.moments import Sample
from superarm.support import Support, item, span


class Direction(NamedTuple):
    """Weights ``c`` (n_items,), their ratios to the reference weights, and all ratios in ascending order, 0 first."""

    c: Floats
    ratio: Floats
    breaks: Floats


class SampleVariance(Protocol):
    """A bound of the empirical variance of a weighted sum of an arm's items."""

    @property
    def products(self) -> bool:
        """Whether the sums of products of any two items have to be recorded."""
        ...

    def variance(self, support: Support, sample: Sample, reference: Floats, direction: Direction, arm: int) -> float:
        """At least the empirical variance of the sum of c_i X_i over the pulls of ``arm`` in ``sample``."""
        ...


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
        low, high = 0, len(direction.breaks) - 1
        while low < high:  # the first break at which the sum does not fall any more
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
        a = direction.breaks[low]
        s = a * sample.spread[arm]
        for o in range(last - first):
            i = item(support, first, o)
            s += abs(direction.c[i] - a * reference[i]) * sample.deviation[first + o]
        return s * s  # type: ignore[no-any-return]


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
    return Direction(np.zeros(n_items), np.zeros(n_items), np.zeros(n_items + 1))


@lean
def turn(direction: Direction, reference: Floats) -> None:
    """Bring ratios and breaks up to date with the weights ``c``; an item of reference weight 0 has the ratio 0."""
    n = len(reference)
    for i in range(n):
        direction.ratio[i] = direction.c[i] / reference[i] if reference[i] > 0.0 else 0.0
        direction.breaks[i + 1] = direction.ratio[i]
    gap = n // 2  # Shell's sort: numba's own takes longer to compile than the rest of a choice
    while gap > 0:
        for i in range(gap + 1, n + 1):
            value, place = direction.breaks[i], i
            while place > gap and direction.breaks[place - gap] > value:
                direction.breaks[place] = direction.breaks[place - gap]
                place -= gap
            direction.breaks[place] = value
        gap = 1 if gap == 2 else int(gap / 2.2)


@lean
def largest(support: Support, sample: Sample, reference: Floats, direction: Direction, arm: int) -> float:
    r"""At least the largest value of :math:`\sum_i c_i X_{ij}` in ``sample``.

    .. math:: \min_{a \ge 0}\ a\,H_j + \sum_i (c_i - a u_i)^+ x_{ij}

    with :math:`H_j` the largest value of :math:`\sum_i u_i X_{ij}` and :math:`x_{ij}` that of :math:`X_{ij}`.
    """
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
    a = direction.breaks[low]
    h = a * sample.peak[arm]
    for o in range(last - first):
        i = item(support, first, o)
        h += max(0.0, direction.c[i] - a * reference[i]) * sample.top[first + o]
    return h  # type: ignore[no-any-return]


@lean
def peak_ratio(direction: Direction, reference: Floats, peak: float) -> float:
    """The a at which :func:`largest` is least for an arm of this peak and items that all reached 1."""
    low, high = 0, len(direction.breaks) - 1
    while low < high:
        middle = (low + high) // 2
        above = 0.0
        for i in range(len(reference)):
            above += reference[i] if direction.ratio[i] > direction.breaks[middle] else 0.0
        if peak >= above:
            high = middle
        else:
            low = middle + 1
    return direction.breaks[low]  # type: ignore[no-any-return]
