"""Upper bounds of every arm's gain in one pass: single precision, ``WIDTH`` arms at a time.

Skipping arms by bounds of their gains is due to [Minoux1978]_; here the bounds are stored for vector instructions.
"""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import for_kernels, inlined
from superarm._lanes import WIDTH, weighted_sums
from superarm.arrays import Bools, Floats
from superarm.rewards import Reward, Terms
from superarm.rewards.base import RewardHooks, bound_argument, bound_slope

_UP = 1.0 + 1.2e-7
"""A number times this, rounded to single precision, is above the number, and above any rounding error of it."""

_LEAST = 1e-20
"""Slopes are taken to be at least this share of the largest, so that no product of single precision underflows."""


class Tiles(NamedTuple):
    """Bounds of all parameters, and of all gains.

    ``z`` (n_tiles * n_items * WIDTH,) bounds the bound argument of q, rounded up: tile after tile, in a tile item after
    item, in an item arm after arm. ``all_one`` (n_arms,) marks arms whose bounds are all 1. ``start`` (n_tiles *
    WIDTH,) is 0, or minus infinity for an arm that may not join. ``reach`` (same) are the sums of slope * z, ``top``
    (n_tiles,) the largest of each tile, and ``slope`` (n_items,) the current slope of each item.
    """

    z: Any
    all_one: Bools
    start: Any
    reach: Any
    top: Any
    slope: Any


@for_kernels
def new_tiles(n_arms: int, n_items: int) -> Tiles:
    """Empty bounds, with all arms allowed to join; ``write_bounds`` has to be called for every arm."""
    n = (n_arms + WIDTH - 1) // WIDTH
    start = np.full(n * WIDTH, np.float32(-np.inf))
    start[:n_arms] = np.float32(0.0)
    return Tiles(
        np.zeros(n * n_items * WIDTH, np.float32),
        np.zeros(n_arms, np.bool_),
        start,
        np.zeros(n * WIDTH, np.float32),
        np.zeros(n, np.float32),
        np.zeros(n_items, np.float32),
    )


@inlined
def write_bounds(screen: Tiles, reward: Reward, arm: int, q: Floats) -> None:
    """Write the bounds of one arm; nothing is written if all its bounds were and are 1."""
    n = len(screen.slope)
    first = np.uint64(arm * n)
    least = 1.0
    for i in range(np.uint64(n)):
        least = min(least, q[first + i])
    if least >= 1.0 and screen.all_one[arm]:
        return
    screen.all_one[arm] = least >= 1.0
    z, position = screen.z, np.uint64((arm // WIDTH) * n * WIDTH + arm % WIDTH)
    for i in range(np.uint64(n)):
        z[position + i * np.uint64(WIDTH)] = np.float32(bound_argument(reward, q[first + i]) * _UP)


@inlined
def bound_gains(screen: Tiles, reward: RewardHooks, terms: Terms, states: Floats) -> float:
    """Bound the gain of every arm that may join: ``bound_gains[j]`` times the number returned."""
    n = len(states)
    most = 0.0
    for i in range(n):
        most = max(most, bound_slope(reward, terms.weights[i], states[i]))
    slopes, top = screen.slope, screen.top
    for i in range(n):
        share = bound_slope(reward, terms.weights[i], states[i]) / most
        slopes[i] = np.float32(max(share, _LEAST) * _UP) if share > 0.0 else np.float32(0.0)
    for tile in range(len(top)):
        first = tile * n * WIDTH
        top[tile] = weighted_sums(screen.z, first, slopes, screen.start, tile * WIDTH, screen.reach)
    return most * (1.0 + (n + 16) * 1.2e-7)  # n additions, each off by at most 6e-8 of the sum
