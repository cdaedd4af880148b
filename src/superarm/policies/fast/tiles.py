"""Upper bounds of every arm's gain in one pass, ``WIDTH`` arms at a time.

Skipping arms by bounds of their gains is due to [Minoux1978]_; here the bounds are stored for vector instructions.
"""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import for_kernels, inlined
from superarm._lanes import WIDTH
from superarm.arrays import Bools, Floats, Ints
from superarm.policies.fast.fixed_point import (
    FixedPoint,
    fit_unit,
    new_coarse_fixed_point,
    new_fixed_point,
    refine_sums,
    sum_numbers,
    write_numbers,
)
from superarm.rewards import Reward, Terms
from superarm.rewards.base import RewardHooks, bound_argument, bound_slope

_GROUP = 8
"""How many bounds are compared at once: a register of single precision."""

_COARSE_FROM_ENTRIES = 2_000_000
"""From this many entries on, numbers of 8 bits are summed first: those of 16 take 4 MB, more than the cache of a core.

With fewer, reading half as much saves less time than evaluating more arms takes.
"""


class Tiles(NamedTuple):
    """Bounds of all parameters, and of all gains.

    ``z`` bounds the bound arguments of all q. ``coarse`` does so with 8 bits, and is empty for problems that are not
    large; ``rough`` (1,) says that the last gains were bounded with it, and ``refined`` (1,) in how many tiles such
    bounds had to be refined, an eighth less after each pass without it. ``all_one`` (n_arms,) marks arms whose bounds
    are all 1. ``start`` (n_tiles * WIDTH,) is 0, or minus infinity for an arm that may not join. ``reach`` (same) are
    the sums of slope * z, ``top`` (n_tiles,) the largest of each tile, ``slope`` (n_items,) the current slope of each
    item, and ``row`` (same) is a buffer.
    """

    z: FixedPoint
    coarse: FixedPoint
    rough: Bools
    refined: Ints
    all_one: Bools
    start: Any
    reach: Any
    top: Any
    slope: Floats
    row: Floats


@for_kernels
def new_tiles(n_arms: int, n_items: int) -> Tiles:
    """Empty bounds, with all arms allowed to join; ``write_bounds`` has to be called for every arm."""
    n = (n_arms + WIDTH - 1) // WIDTH
    start = np.full(n * WIDTH, np.float32(-np.inf))
    start[:n_arms] = np.float32(0.0)
    return Tiles(
        new_fixed_point(n_arms, n_items),
        new_coarse_fixed_point(n_arms if n_arms * n_items >= _COARSE_FROM_ENTRIES else 0, n_items),
        np.zeros(1, np.bool_),
        np.zeros(1, np.int64),
        np.zeros(n_arms, np.bool_),
        start,
        np.zeros(n * WIDTH, np.float32),
        np.zeros(n, np.float32),
        np.zeros(n_items),
        np.zeros(n_items),
    )


@inlined
def write_bounds(screen: Tiles, reward: Reward, arm: int, q: Floats) -> None:
    """Write the bounds of one arm; nothing is written if all its bounds were and are 1."""
    row = screen.row
    n = len(row)
    first = np.uint64(arm * n)
    below = 0  # counted, since whole numbers are added up in vector registers and a minimum is not found there
    for i in range(np.uint64(n)):
        below += q[first + i] < 1.0
    if below == 0 and screen.all_one[arm]:
        return
    screen.all_one[arm] = below == 0
    for i in range(np.uint64(n)):
        row[i] = bound_argument(reward, q[first + i])
    write_numbers(screen.z, arm, row, 0, n)
    if len(screen.coarse.unit) > 0:
        write_numbers(screen.coarse, arm, row, 0, n)


@inlined
def bound_gains(screen: Tiles, reward: RewardHooks, terms: Terms, states: Floats) -> float:
    """Bound the gain of every arm that may join: ``reach[j]`` times the number returned.

    In a large problem bounds are coarse, unless those of more than half of the tiles had to be refined lately.
    """
    slopes, rough, refined = screen.slope, screen.rough, screen.refined
    for i in range(np.uint64(len(states))):
        slopes[i] = bound_slope(reward, terms.weights[i], states[i])
    rough[0] = len(screen.coarse.unit) > 0 and 2 * refined[0] <= len(screen.top)
    if rough[0]:
        return sum_numbers(screen.coarse, slopes, screen.start, screen.reach, screen.top)
    refined[0] = refined[0] * 7 // 8
    return sum_numbers(screen.z, slopes, screen.start, screen.reach, screen.top)


@inlined
def refine_bounds(screen: Tiles, enough: Any) -> None:
    """Bound gains anew, with 16 bits, in the tiles in which an arm's coarse bound reaches ``enough``."""
    refined = screen.refined
    refined[0] = refine_sums(screen.z, screen.slope, screen.start, screen.reach, screen.top, enough)


@inlined
def begin_renewal(screen: Tiles, tile: int) -> None:
    """To be called before all bounds of a tile are written, but those of arms whose bounds are all 1."""
    n, last = len(screen.all_one), (tile + 1) * WIDTH
    for j in range(tile * WIDTH, last if last < n else n):
        if screen.all_one[j]:
            return
    fit_unit(screen.z, tile)
    if len(screen.coarse.unit) > 0:
        fit_unit(screen.coarse, tile)


@inlined
def next_reaching(reach: Any, top: Any, first: int, enough: Any) -> int:
    """The first arm from ``first`` on whose bound reaches ``enough``, or -1: eight arms at a time, where it can."""
    j = first
    while j < len(reach):
        if j % WIDTH == 0 and top[j // WIDTH] < enough:
            j += WIDTH
            continue
        if j % _GROUP == 0:
            reaching = 0
            for a in range(np.uint64(j), np.uint64(j + _GROUP)):
                reaching += reach[a] >= enough
            if reaching == 0:
                j += _GROUP
                continue
        if reach[j] >= enough:
            return j
        j += 1
    return -1


@inlined
def largest_reach(reach: Any, top: Any) -> int:
    """The first arm with the largest bound in the first tile that has it."""
    tile = 0
    for n in range(1, len(top)):
        if top[n] > top[tile]:
            tile = n
    j, last = tile * WIDTH, (tile + 1) * WIDTH - 1
    while j < last and reach[j] != top[tile]:
        j += 1
    return j
