"""The mean and the deviation of every arm's weighted sum in one pass each: single precision, ``WIDTH`` arms at a time.

Both are rounded up, as the bounds of ``tiles`` are: they only rule out arms, after [Minoux1978]_.
"""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import for_kernels, inlined, lean
from superarm._lanes import WIDTH, weighted_sums
from superarm.arrays import Floats
from superarm.moments import Sample

_UP = 1.0 + 1.2e-7
"""A number times this, rounded to single precision, is above the number, and above any rounding error of it."""

_LEAST = 1e-20
"""Weights are taken to be at least this share of the largest, so that no product of single precision underflows."""


class MomentTiles(NamedTuple):
    """The means and deviations of all entries, and of the sums of all arms.

    ``mean`` and ``deviation`` (n_tiles * n_items * WIDTH,) are rounded up: tile after tile, in a tile item after item,
    in an item arm after arm. ``total`` and ``rest`` (n_tiles * WIDTH,) are the sums of slope * mean and of slope *
    deviation for the last slopes, and ``zeros`` (same) what sums start from. ``slope`` (n_items,) is a buffer.
    """

    mean: Any
    deviation: Any
    total: Any
    rest: Any
    zeros: Any
    slope: Any


@for_kernels
def new_moment_tiles(n_arms: int, n_items: int) -> MomentTiles:
    """The tiles of arms of which nothing was seen."""
    room = (n_arms + WIDTH - 1) // WIDTH * WIDTH
    return MomentTiles(
        np.zeros(room * n_items, np.float32),
        np.zeros(room * n_items, np.float32),
        np.zeros(room, np.float32),
        np.zeros(room, np.float32),
        np.zeros(room, np.float32),
        np.zeros(n_items, np.float32),
    )


@lean
def write_moments(tiles: MomentTiles, sample: Sample, arm: int) -> None:
    """Bring the tiles up to date with the sample of one arm."""
    mean, deviation, n = tiles.mean, tiles.deviation, len(tiles.slope)
    first, place = np.uint64(arm * n), np.uint64((arm // WIDTH) * n * WIDTH + arm % WIDTH)
    for i in range(np.uint64(n)):
        mean[place + i * np.uint64(WIDTH)] = np.float32(sample.mean[first + i] * _UP)
        deviation[place + i * np.uint64(WIDTH)] = np.float32(sample.deviation[first + i] * _UP)


@lean
def write_all_moments(tiles: MomentTiles, sample: Sample) -> None:
    """Bring the tiles up to date with the samples of all arms."""
    for j in range(len(sample.pulls)):
        write_moments(tiles, sample, j)


@inlined
def sum_entries(entries: Any, weights: Floats, tiles: MomentTiles, sums: Any) -> float:
    """Bound the sum of weight * entry of every arm: ``sums[j]`` times the number returned, for weights >= 0."""
    n = len(weights)
    most = 0.0
    for i in range(n):
        most = max(most, weights[i])
    slope, scale = tiles.slope, (1.0 / most if most > 0.0 else 0.0)
    for i in range(n):
        slope[i] = np.float32(max(weights[i] * scale, _LEAST) * _UP) if weights[i] > 0.0 else np.float32(0.0)
    for tile in range(len(sums) // WIDTH):
        weighted_sums(entries, tile * n * WIDTH, slope, tiles.zeros, tile * WIDTH, sums)
    return most * (1.0 + (n + 16) * 1.2e-7)  # n additions, each off by at most 6e-8 of the sum
