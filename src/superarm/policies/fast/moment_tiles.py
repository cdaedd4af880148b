"""The mean and the deviation of every arm's weighted sum in one pass each, ``WIDTH`` arms at a time.

Both are rounded up, as the bounds of ``tiles`` are: they only rule out arms, after [Minoux1978]_.
"""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import for_kernels, lean
from superarm._lanes import WIDTH
from superarm.moments import Sample
from superarm.policies.fast.fixed_point import FixedPoint, new_fixed_point, write_numbers


class MomentTiles(NamedTuple):
    """The means and deviations of all entries, and of the sums of all arms.

    ``total`` and ``rest`` (n_tiles * WIDTH,) are the sums of slope * mean and of slope * deviation for the last slopes,
    ``zeros`` (same) what sums start from, and ``top`` (n_tiles,) the largest sums of each tile.
    """

    mean: FixedPoint
    deviation: FixedPoint
    total: Any
    rest: Any
    zeros: Any
    top: Any


@for_kernels
def new_moment_tiles(n_arms: int, n_items: int) -> MomentTiles:
    """The tiles of arms of which nothing was seen."""
    tiles = (n_arms + WIDTH - 1) // WIDTH
    return MomentTiles(
        new_fixed_point(n_arms, n_items),
        new_fixed_point(n_arms, n_items),
        np.zeros(tiles * WIDTH, np.float32),
        np.zeros(tiles * WIDTH, np.float32),
        np.zeros(tiles * WIDTH, np.float32),
        np.zeros(tiles, np.float32),
    )


@lean
def write_moments(tiles: MomentTiles, sample: Sample, arm: int) -> None:
    """Bring the tiles up to date with the sample of one arm."""
    n = len(sample.mean) // len(sample.pulls)
    write_numbers(tiles.mean, arm, sample.mean, arm * n, n)
    write_numbers(tiles.deviation, arm, sample.deviation, arm * n, n)


@lean
def write_all_moments(tiles: MomentTiles, sample: Sample) -> None:
    """Bring the tiles up to date with the samples of all arms."""
    for j in range(len(sample.pulls)):
        write_moments(tiles, sample, j)
