"""Bounds of the optimistic parameters of all entries of a linear model, from inverses in whole numbers of 16 bits.

A pass over the inverses of all entries is limited by reading them from memory: 16 bits take a quarter of the room of
double precision. With a unit per entry, the largest number of its inverse, rounding changes a squared width by less
than 0.002 % per coordinate of the features. The bounds rule out arms, after [Minoux1978]_.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from superarm._jit import kernel, lean
from superarm._lanes import WIDTH, weighted_sums
from superarm.arrays import Floats
from superarm.policies.contextual.ridge import Ridge

_LARGEST = 32767.0
"""The largest whole number of 16 bits."""

_ULP = 2.0**-24
"""The largest relative error of rounding to single precision."""


class EntryTiles(NamedTuple):
    """Rounded inverses and parameter vectors, ``WIDTH`` entries at a time.

    ``inverse`` holds the triangles of the inverses, each in multiples of its ``unit`` (n_tiles * WIDTH,), and ``theta``
    the parameter vectors: tile after tile, in a tile coordinate after coordinate, in a coordinate entry after entry.
    ``square_slack``, in the same units, and ``mean_slack`` (n_tiles * WIDTH,) are more than the errors of the sums
    ``square`` and ``mean``. ``products`` and ``user`` are the products of the user's features and the features.
    """

    inverse: Any
    theta: Any
    unit: Any
    square_slack: Any
    mean_slack: Any
    square: Any
    mean: Any
    products: Any
    user: Any


@kernel
def empty_tiles(n_entries: int, d: int) -> EntryTiles:
    """Tiles in which nothing is written yet."""
    size, room = d * (d + 1) // 2, (n_entries + WIDTH - 1) // WIDTH * WIDTH
    return EntryTiles(
        np.zeros(room * size, np.int16),
        np.zeros(room * d, np.float32),
        np.zeros(room, np.float32),
        np.zeros(room, np.float32),
        np.zeros(room, np.float32),
        np.zeros(room, np.float32),
        np.zeros(room, np.float32),
        np.zeros(size, np.float32),
        np.zeros(d, np.float32),
    )


@lean
def write_entry(tiles: EntryTiles, estimates: Ridge, entry: int) -> None:
    """Write one entry to its tile, and how far the sums of its tile may be off.

    No coordinate of an inverse is larger than the roots of its two diagonal ones multiplied. So with features in
    [-1, 1], the absolute values of the terms of a squared width add up to ``roots`` squared at most, and a sum of n of
    them in single precision has an error of at most (n + 4) ULP times that; rounding to whole numbers adds half a unit
    per product of features, of which there are d².
    """
    size, d = estimates.inverse.shape[1], estimates.theta.shape[1]
    tile, lane = entry // WIDTH, entry % WIDTH
    roots, total, largest, at = 0.0, 0.0, 0.0, 0
    first = tile * d * WIDTH + lane
    for r in range(d):
        tiles.theta[first + r * WIDTH] = np.float32(estimates.theta[entry, r])
        total += abs(estimates.theta[entry, r])
        diagonal = max(0.0, estimates.inverse[entry, at + r])
        roots += math.sqrt(diagonal)
        largest = max(largest, diagonal)
        at += r + 1
    tiles.unit[entry] = np.float32(max(largest, 1e-30) / _LARGEST * (1.0 + 1e-6))
    unit = float(tiles.unit[entry])
    first, scale = tile * size * WIDTH + lane, 1.0 / unit
    for at in range(size):
        tiles.inverse[first + at * WIDTH] = math.floor(estimates.inverse[entry, at] * scale + 0.5)
    terms = roots * roots / unit + d * d
    tiles.square_slack[entry] = np.float32(1.1 * ((size + 8) * _ULP * terms + 0.5 * d * d))
    tiles.mean_slack[entry] = np.float32(1.1 * (d + 8) * _ULP * total)


@lean
def bound_entries(tiles: EntryTiles, u: Floats, spread: float, q: Floats) -> None:
    """Write numbers to ``q`` that are at least the optimistic parameters of all entries, clipped to [0, 1]."""
    d, at = len(u), 0
    for r in range(d):
        tiles.user[r] = np.float32(u[r])
        for c in range(r):
            tiles.products[at + c] = np.float32(2.0 * u[r] * u[c])
        tiles.products[at + r] = np.float32(u[r] * u[r])
        at += r + 1
    for tile in range(len(tiles.square) // WIDTH):
        place = tile * WIDTH
        weighted_sums(tiles.inverse, place * at, tiles.products, tiles.square_slack, place, tiles.square)
        weighted_sums(tiles.theta, place * d, tiles.user, tiles.mean_slack, place, tiles.mean)
    for e in range(len(q)):
        bonus = spread * math.sqrt(max(0.0, float(tiles.unit[e]) * float(tiles.square[e])))
        q[e] = min(1.0, max(0.0, float(tiles.mean[e]) + bonus * (1.0 + 1e-9) + 1e-12))
