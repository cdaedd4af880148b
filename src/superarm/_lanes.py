"""Sums of several numbers at once, in vector registers that numba would not use by itself.

``weighted_sums`` adds up over the items for many arms at once, in single precision. In a loop over arms that numba
vectorises, the sums are in memory; here they stay in registers. They only rule out arms that cannot win, so their
rounding may differ between machines; decisions are computed in double precision elsewhere. ``add_lanes`` adds eight
numbers to eight sums in double precision, with the same result on every machine. Where numba's private interfaces are
not as expected, they are ordinary loops. ``fixed_sums`` is like ``weighted_sums``, on whole numbers of 16 bits, of
which a register holds more. ``python -m benchmarks.lanes`` measures all three.
"""

from typing import Any

import numba
import numpy as np

from superarm import _numba_lanes, _numba_private
from superarm._jit import kernel

WIDTH = 64
"""How many arms are summed at once: eight registers of eight numbers."""


def _weighted_sums_by_numpy(z: Any, first: int, slope: Any, start: Any, at: int, sums: Any) -> Any:
    """``sums[at + a] = start[at + a] + sum_i slope[i] * z[first + WIDTH * i + a]`` for all a < WIDTH; the largest."""
    block = z[first : first + WIDTH * len(slope)].reshape(len(slope), WIDTH)
    sums[at : at + WIDTH] = start[at : at + WIDTH] + slope @ block
    return sums[at : at + WIDTH].max()


def _weighted_sums_by_loops(z: Any, first: int, slope: Any, start: Any, at: int, sums: Any) -> Any:
    """The same, for numba to compile."""
    sums[at : at + WIDTH] = start[at : at + WIDTH]
    for i in range(len(slope)):
        for a in range(WIDTH):
            sums[at + a] += slope[i] * z[first + WIDTH * i + a]
    largest = np.float32(-np.inf)
    for a in range(WIDTH):
        largest = max(largest, sums[at + a])
    return largest


def _fixed_sums_by_numpy(
    z: Any, first: int, slope: Any, at: int, pairs: int, unit: Any, start: Any, place: int, sums: Any
) -> Any:
    """``sums[place + a] = start[place + a] + unit * sum_i s_i * z_i(a)`` for all a < WIDTH; the largest.

    ``z`` and the weights s are whole numbers of 16 bits whose sum of products has at most 31. Items are in pairs: the
    numbers of pair n are ``z[first + 2 * WIDTH * n + 2 * a]`` and the one after it, its weights the lower and the upper
    half of ``slope[at + n]``.
    """
    block = z[first : first + 2 * WIDTH * pairs].reshape(pairs, WIDTH, 2).astype(np.int64)
    weights = slope[at : at + pairs].view(np.int16).reshape(pairs, 2).astype(np.int64)
    total = np.einsum("naw,nw->a", block, weights).astype(np.float32)
    sums[place : place + WIDTH] = start[place : place + WIDTH] + np.float32(unit) * total
    return sums[place : place + WIDTH].max()


def _fixed_sums_by_loops(
    z: Any, first: int, slope: Any, at: int, pairs: int, unit: Any, start: Any, place: int, sums: Any
) -> Any:
    """The same, for numba to compile."""
    largest = np.float32(-np.inf)
    for a in range(WIDTH):
        total = 0
        for n in range(pairs):
            here = first + 2 * WIDTH * n + 2 * a
            total += (slope[at + n] & 0xFFFF) * z[here] + (slope[at + n] >> 16) * z[here + 1]
        sums[place + a] = start[place + a] + unit * np.float32(total)
        largest = max(largest, sums[place + a])
    return largest


def _add(sums: Any, a: float, b: float, c: float, d: float, e: float, f: float, g: float, h: float) -> Any:
    """The eight ``sums``, each plus one of the eight terms."""
    first = (sums[0] + a, sums[1] + b, sums[2] + c, sums[3] + d)
    return first + (sums[4] + e, sums[5] + f, sums[6] + g, sums[7] + h)  # noqa: RUF005 - numba knows no *first


weighted_sums: Any
fixed_sums: Any
add_lanes: Any
if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    weighted_sums, fixed_sums, add_lanes = _weighted_sums_by_numpy, _fixed_sums_by_numpy, _add
elif _numba_private.HAS_LANES:
    weighted_sums, add_lanes = _numba_lanes.weighted_sums(WIDTH), _numba_lanes.add_lanes()
    fixed_sums = _numba_lanes.fixed_sums(WIDTH, WIDTH // 8)
else:
    weighted_sums, add_lanes = kernel(_weighted_sums_by_loops), kernel(_add)
    fixed_sums = kernel(_fixed_sums_by_loops)
