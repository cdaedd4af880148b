"""Numbers that the bounds of directional policies do not exceed, of all arms at once, in single precision.

They only rule out arms, after [Minoux1978]_.
"""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import for_kernels, inlined, lean
from superarm._lanes import WIDTH
from superarm.arrays import Floats
from superarm.indices.two_moments import steepness
from superarm.policies.directional_bounds import SLACK
from superarm.policies.directions import Direction, peak_ratio
from superarm.policies.fast.fixed_point import bound_rounding, sum_numbers
from superarm.policies.fast.moment_tiles import MomentTiles

_0, _1, _2, _HALF, _QUARTER = (np.float32(x) for x in (0.0, 1.0, 2.0, 0.5, 0.25))
_SIXTH, _THIRD, _TWO_FIFTHS, _TWO_THIRDS = (np.float32(x * (1.0 + 1e-7)) for x in (1 / 6, 1 / 3, 2 / 5, 2 / 3))
"""The coefficients of ``two_moment_roof``, rounded up: with np.float64 in it, a loop would have half of the lanes."""

_UP = np.float32(1.0 + 1e-6)
"""More than the rounding of one operation or a few in single precision."""

_SLACK = SLACK * (1.0 + 1e-5)
"""More than the rounding of all of them."""

_LEAST_LEVEL = 1e-30
"""Added to all levels, so that none of their products is 0 in single precision; what it adds to a bound is not seen."""


_LEAST_INVERSE = np.float32(1e-9)
"""The least inverse of kappa, for samples whose mean is 1."""


class Roofs(NamedTuple):
    """What is known of each arm, (n_tiles * WIDTH,) each.

    ``level`` and ``steep`` are its level and the :func:`steepness` of that. ``fixed`` is 0, or infinite for an arm
    whose bound is computed in every step, or minus infinity for one that may not join. ``reach`` is the number that its
    bound does not exceed, ``bits`` are the bits of that, and ``top`` (n_tiles,) the largest of each tile.
    """

    level: Any
    steep: Any
    fixed: Any
    reach: Any
    bits: Any
    top: Any


@for_kernels
def new_roofs(n_arms: int) -> Roofs:
    """The numbers of arms that may not join."""
    n = (n_arms + WIDTH - 1) // WIDTH
    closed, reach = np.full(n * WIDTH, np.float32(-np.inf)), np.zeros(n * WIDTH, np.float32)
    return Roofs(
        np.zeros(n * WIDTH, np.float32),
        np.zeros(n * WIDTH, np.float32),
        closed,
        reach,
        reach.view(np.int32),
        np.zeros(n, np.float32),
    )


@inlined
def set_level(roofs: Roofs, arm: int, x: float) -> None:
    """Let an arm have the level ``x``."""
    level, steep = roofs.level, roofs.steep
    level[arm] = np.float32(x * (1.0 + 1e-6) + _LEAST_LEVEL)
    steep[arm] = np.float32(steepness(x + _LEAST_LEVEL))


@lean
def raise_roofs(roofs: Roofs, tiles: MomentTiles, direction: Direction, reference: Floats, typical_peak: float) -> None:
    """Write ``reach`` and ``top`` for the current direction.

    The mean, the deviation and the largest value of an arm's sum enter :func:`two_moment_roof`. One pass over the means
    of all entries gives the means of the sums, one over their deviations bounds the deviations, and the largest value
    follows from the arm's peak and from the weights alone.
    """
    a, peak = direction.breaks[len(direction.breaks) // 2], peak_ratio(direction, reference, typical_peak)
    c, apart, weight, most, differs = direction.c, tiles.apart, 0.0, 0.0, 0.0
    for i in range(len(reference)):
        weight += c[i]
        most += max(0.0, c[i] - peak * reference[i])
        apart[i] = abs(c[i] - a * reference[i])
        differs += apart[i]
    share = 1.0 / weight if weight > 0.0 else 0.0
    by_mean = share * sum_numbers(tiles.mean, c, tiles.zeros, tiles.total, roofs.top)
    by_rest = share * sum_numbers(tiles.deviation, apart, tiles.zeros, tiles.rest, roofs.top) if differs > 0.0 else 0.0
    rounding = by_mean * bound_rounding(tiles.mean)
    # ``down`` undoes the rounding up of means, so that a number does not exceed the mean.
    scales = (by_mean, 1.0 - (len(reference) + 16) * 4e-7, by_rest, a * share, peak * share, most * share)
    for tile in range(len(roofs.top)):
        _raise_tile(roofs, tiles, tile, scales, rounding * tiles.mean.unit[tile], weight * _SLACK)


@inlined
def _raise_tile(roofs: Roofs, tiles: MomentTiles, tile: int, scales: Any, rounded: float, weight: float) -> None:
    """Do so for one tile: ``two_moment_roof`` in single precision, whose docstring says why this is a bound."""
    level, steep, fixed, reach, bits, top = roofs
    total, rest, spread, peaks = tiles.total, tiles.rest, tiles.spread, tiles.peak
    by_mean, down, by_rest, a, peak, most = (
        np.float32(scales[0]), np.float32(scales[1]), np.float32(scales[2]), np.float32(scales[3]),
        np.float32(scales[4]), np.float32(scales[5]),
    )  # fmt: skip
    excess, factor, first = np.float32(rounded), np.float32(weight), np.uint64(tile * WIDTH)
    for o in range(np.uint64(WIDTH)):
        j = first + o
        mean, deviation = by_mean * total[j], a * spread[j] + by_rest * rest[j]
        below = max(_0, down * mean - excess)
        above = max(_0, min(_1, (peak * peaks[j] + most) * _UP) - below)
        inverse = max(deviation * steep[j] + _TWO_THIRDS * above, _1 - below, _2 * above, _LEAST_INVERSE) * _UP
        kappa = _1 / inverse
        r = kappa * above
        psi = _HALF + r * (_THIRD + r * (_QUARTER + _TWO_FIFTHS * r))
        width = level[j] * inverse + kappa * (deviation * deviation) * psi
        grown = kappa * width
        value = factor * min(_1, mean + width * (_1 - grown * (_HALF - grown * _SIXTH)))
        reach[j] = value if fixed[j] == _0 else fixed[j]
    largest = bits[first]
    for o in range(np.uint64(WIDTH)):  # numbers that are not negative, and minus infinity, have the order of their bits
        largest = max(largest, bits[first + o])
    top[tile] = np.int32(largest).view(np.float32)
