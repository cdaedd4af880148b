"""The mean and the deviation of every arm's weighted sum in one pass each, ``WIDTH`` arms at a time.

Both are rounded up, as the bounds of ``tiles`` are: they only rule out arms, after [Minoux1978]_.
"""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import for_kernels, lean
from superarm._lanes import WIDTH
from superarm.arrays import Floats
from superarm.moments import Sample
from superarm.policies.fast.fixed_point import FixedPoint, new_coarse_fixed_point, new_fixed_point, write_numbers

_UP = 1.0 + 1e-6
"""More than rounding to single precision."""


class MomentTiles(NamedTuple):
    """The means and, more coarsely, the deviations of all entries, and of the sums of all arms.

    ``total`` and ``rest`` (n_tiles * WIDTH,) are the sums of slope * mean and of slope * deviation for the last slopes,
    ``zeros`` (same) what sums start from, ``spread`` and ``peak`` (same) those of the sample. ``apart`` (n_items,) is a
    buffer for slopes.
    """

    mean: FixedPoint
    deviation: FixedPoint
    total: Any
    rest: Any
    zeros: Any
    spread: Any
    peak: Any
    apart: Floats


@for_kernels
def new_moment_tiles(n_arms: int, n_items: int) -> MomentTiles:
    """The tiles of arms of which nothing was seen."""
    tiles = (n_arms + WIDTH - 1) // WIDTH
    return MomentTiles(
        new_fixed_point(n_arms, n_items),
        new_coarse_fixed_point(n_arms, n_items),
        np.zeros(tiles * WIDTH, np.float32),
        np.zeros(tiles * WIDTH, np.float32),
        np.zeros(tiles * WIDTH, np.float32),
        np.zeros(tiles * WIDTH, np.float32),
        np.zeros(tiles * WIDTH, np.float32),
        np.zeros(n_items),
    )


@lean
def write_moments(tiles: MomentTiles, sample: Sample, arm: int) -> None:
    """Bring the tiles up to date with the sample of one arm."""
    n, spread, peak = len(sample.mean) // len(sample.pulls), tiles.spread, tiles.peak
    spread[arm], peak[arm] = np.float32(sample.spread[arm] * _UP), np.float32(sample.peak[arm] * _UP)
    write_numbers(tiles.mean, arm, sample.mean, arm * n, n)
    write_numbers(tiles.deviation, arm, sample.deviation, arm * n, n)


@lean
def write_all_moments(tiles: MomentTiles, sample: Sample) -> None:
    """Bring the tiles up to date with the samples of all arms."""
    for j in range(len(sample.pulls)):
        write_moments(tiles, sample, j)
