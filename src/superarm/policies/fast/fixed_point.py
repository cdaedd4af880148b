"""Upper bounds of weighted sums over the items of every arm, from whole numbers of 16 or 8 bits.

Numbers and weights are rounded up to multiples of a unit, products and sums are exact, and 64 arms are summed at once.
A pass over all arms reads half of what it would in single precision, or a quarter where 8 bits will do. Bounds only
rule out arms, after [Minoux1978]_. Kernels compare numbers themselves, since numba would compile a function for every
use of ``min`` and ``max``.
"""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import for_kernels, inlined, lean
from superarm._lanes import WIDTH, fixed_sums
from superarm.arrays import Floats

_MAX_CODE = 8191
"""Numbers have 13 bits, so that 18 are left for the sum of the weights of a block of items."""

_MAX_BYTE = 255
"""The largest number of 8 bits."""

_MAX_WEIGHT = 32_767.0
_BLOCK_PAIRS = 64
"""How many pairs of items are summed in whole numbers: 128 weights, of 11 bits on average."""

_MAX_WEIGHTS = 2.0**31 / _MAX_CODE - 4.0 * _BLOCK_PAIRS
"""What the weights of a block may add up to before each is rounded up by at most 1."""

_PER_WEIGHT, _HEAVIEST = 1.0 / _MAX_WEIGHTS, _MAX_WEIGHTS / (_MAX_WEIGHT - 1.0)
"""The unit of a block per sum of its weights; where one has more than 1 / ``_HEAVIEST`` of the sum, its size counts."""

_UP = 1.0 + 1e-6
"""More than all rounding of a unit, and of a code, to single or double precision."""

_HEADROOM = 1.0 + 1.0 / 8.0
"""By how much a first unit is larger than needed, so that it can be kept for numbers that are a little larger."""

_LEAST_UNIT, _LEAST_WEIGHT = 1e-23, 1e-12
"""The least units, so that no product of single precision underflows."""

_TINY, _LIFT = 2.0**-900, 2.0**200
"""Weights below ``_TINY`` are multiplied by ``_LIFT`` first: the inverse of the least ones would be infinite."""

_1, _2, _3, _4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


class FixedPoint(NamedTuple):
    """Numbers of all entries, rounded up, and the weights of the last sums.

    ``codes`` (n_tiles * n_pairs * 2 * WIDTH,): tile after tile, in a tile pair of items after pair, in a pair arm after
    arm, the two items of the pair; times the ``unit`` (n_tiles,) of the tile they are at least the numbers. ``weights``
    (n_pairs,) has two weights of 16 bits in each number, and ``scale`` (n_blocks,) the unit of each block of items.
    No code exceeds ``largest``; ``row`` (n_items,) is a buffer for the codes of one arm.
    """

    codes: Any
    unit: Floats
    weights: Any
    scale: Floats
    largest: int
    row: Any


@for_kernels
def new_fixed_point(n_arms: int, n_items: int) -> FixedPoint:
    """The numbers of all entries, all 0, to be rounded to 13 bits."""
    return _new_table(np.zeros(_count_codes(n_arms, n_items), np.int16), n_arms, n_items, _MAX_CODE)


@for_kernels
def new_coarse_fixed_point(n_arms: int, n_items: int) -> FixedPoint:
    """The same, to be rounded to 8 bits: for numbers that matter less."""
    return _new_table(np.zeros(_count_codes(n_arms, n_items), np.uint8), n_arms, n_items, _MAX_BYTE)


@for_kernels
def _count_codes(n_arms: int, n_items: int) -> int:
    return (n_arms + WIDTH - 1) // WIDTH * 2 * WIDTH * ((n_items + 1) // 2)


@for_kernels
def _new_table(codes: Any, n_arms: int, n_items: int, largest: int) -> FixedPoint:
    tiles, pairs = (n_arms + WIDTH - 1) // WIDTH, (n_items + 1) // 2
    scale = np.zeros((pairs + _BLOCK_PAIRS - 1) // _BLOCK_PAIRS)
    return FixedPoint(codes, np.zeros(tiles), np.zeros(pairs, np.int32), scale, largest, np.zeros(2 * pairs, np.int16))


@lean
def write_numbers(table: FixedPoint, arm: int, numbers: Floats, first: int, n: int) -> None:
    """Write the ``n`` numbers of one arm, ``numbers[first:]``, not negative."""
    codes, unit, tile = table.codes, table.unit, arm // WIDTH
    at, limit, above = np.uint64(first), unit[tile] * table.largest, 0
    for i in range(np.uint64(n)):  # counted, since whole numbers are added up in vector registers
        above += numbers[at + i] > limit
    if above > 0:
        _widen(table, tile, _find_largest_and_sum(numbers, first, first + n)[0])
    inverse = _UP / unit[tile] if unit[tile] > 0.0 else 0.0
    position = np.uint64(2 * (tile * len(table.weights) * WIDTH + arm % WIDTH))
    rounded = table.row
    for i in range(np.uint64(n)):  # a loop of its own, so that it runs in vector registers
        rounded[i] = _round_up(numbers[at + i] * inverse, table.largest)
    for pair in range(np.uint64(n // 2)):
        codes[position], codes[position + _1] = rounded[_2 * pair], rounded[_2 * pair + _1]
        position += np.uint64(2 * WIDTH)
    if n % 2 == 1:
        codes[position] = rounded[n - 1]


@inlined
def _round_up(x: float, largest: int) -> Any:
    """A whole number above x, or 0 if x is 0."""
    code = np.floor(x) + 1.0 if x > 0.0 else 0.0
    return np.int16(code if code < largest else largest)


@lean
def _widen(table: FixedPoint, tile: int, largest: float) -> None:
    """Take a larger unit for a tile, in which ``largest`` can be written.

    It is twice the old one or more, so that codes, which are rounded up each time, are at most 2 too large.
    """
    codes, unit, size = table.codes, table.unit, 2 * WIDTH * len(table.weights)
    before = unit[tile]
    wide = largest * (_UP * _UP * (1.0 if before > 0.0 else _HEADROOM) / table.largest)
    wide = wide if wide > 2.0 * before else 2.0 * before
    unit[tile] = wide if wide > _LEAST_UNIT else _LEAST_UNIT
    ratio = before / unit[tile] * _UP
    for place in range(np.uint64(tile * size), np.uint64((tile + 1) * size)):
        codes[place] = _round_up(codes[place] * ratio, table.largest)


@lean
def fit_unit(table: FixedPoint, tile: int) -> None:
    """Take a smaller unit for a tile if all numbers are small; all of its arms have to be written then."""
    codes, unit, size = table.codes, table.unit, 2 * WIDTH * len(table.weights)
    largest = np.int64(0)
    for place in range(np.uint64(tile * size), np.uint64((tile + 1) * size)):
        largest = np.int64(codes[place]) if codes[place] > largest else largest
    if largest < table.largest // 2 - 1:
        unit[tile] *= 0.5


@lean
def sum_numbers(table: FixedPoint, weights: Floats, start: Any, sums: Any, top: Any) -> float:
    """Bound the sum of weight * number of every arm, for weights >= 0: ``sums[j]`` times the number returned.

    ``start`` (n_tiles * WIDTH,) is 0, or minus infinity for arms whose sums do not matter; ``top`` (n_tiles,) are the
    largest sums of each tile.
    """
    most = _round_weights(table, weights)
    for tile in range(len(top)):
        _sum_tile(table, tile, start, sums, top)
    return most * (1.0 + (len(table.scale) + 16) * 1.2e-7)  # each step of single precision is off by at most 6e-8


@lean
def refine_sums(table: FixedPoint, weights: Floats, start: Any, sums: Any, top: Any, enough: Any) -> int:
    """Do so in the tiles whose ``top`` reaches ``enough``, and return how many there are.

    For sums of another table, whose numbers were rounded more coarsely, with the same weights.
    """
    _round_weights(table, weights)
    count = 0
    for tile in range(len(top)):
        if top[tile] >= enough:
            _sum_tile(table, tile, start, sums, top)
            count += 1
    return count


@inlined
def _sum_tile(table: FixedPoint, tile: int, start: Any, sums: Any, top: Any) -> None:
    """Write the sums of one tile, and the largest of them, with the weights last rounded."""
    pairs, scale, unit = len(table.weights), table.scale, table.unit
    for block in range(len(scale)):
        at = block * _BLOCK_PAIRS
        first, n = 2 * WIDTH * (tile * pairs + at), _BLOCK_PAIRS if _BLOCK_PAIRS < pairs - at else pairs - at
        factor, before = np.float32(scale[block] * unit[tile]), start if block == 0 else sums
        top[tile] = fixed_sums(table.codes, first, table.weights, at, n, factor, before, tile * WIDTH, sums)


@inlined
def _round_weights(table: FixedPoint, weights: Floats) -> float:
    """Write ``weights``, divided by the largest, as multiples of the unit of their block of items; the largest."""
    halves, scale, n, most = table.weights.view(np.int16), table.scale, len(weights), 0.0
    for block in range(len(scale)):
        first, last = 2 * block * _BLOCK_PAIRS, 2 * (block + 1) * _BLOCK_PAIRS
        largest, total = _find_largest_and_sum(weights, first, last if last < n else n)
        scale[block] = largest * _HEAVIEST if largest * _HEAVIEST > total else total
        most = largest if largest > most else most
    lift = _LIFT if most < _TINY else 1.0
    share = 1.0 / (most * lift) if most > 0.0 else 0.0
    for block in range(len(scale)):
        first, last = 2 * block * _BLOCK_PAIRS, 2 * (block + 1) * _BLOCK_PAIRS
        unit = share * (scale[block] * lift) * _PER_WEIGHT
        scale[block] = unit if unit > _LEAST_WEIGHT else _LEAST_WEIGHT
        inverse = share * _UP / scale[block]
        for i in range(np.uint64(first), np.uint64(last if last < n else n)):
            weight = weights[i] * lift * inverse
            weight = np.floor(weight) + 1.0 if weight > 0.0 else 0.0
            halves[i] = np.int16(weight if weight < _MAX_WEIGHT else _MAX_WEIGHT)
    return most


@inlined
def _find_largest_and_sum(numbers: Floats, first: int, last: int) -> tuple[float, float]:
    """The largest of ``numbers[first:last]``, or 0, and their sum: four at a time, so that few steps wait."""
    a, b, c, d, i = 0.0, 0.0, 0.0, 0.0, np.uint64(first)
    e, f, g, h = 0.0, 0.0, 0.0, 0.0
    for _ in range((last - first) // 4):
        w, x, y, z = numbers[i], numbers[i + _1], numbers[i + _2], numbers[i + _3]
        a, b, c, d = w if w > a else a, x if x > b else b, y if y > c else c, z if z > d else d
        e, f, g, h = e + w, f + x, g + y, h + z
        i += _4
    while i < np.uint64(last):
        a, e = numbers[i] if numbers[i] > a else a, e + numbers[i]
        i += _1
    a, b = a if a > c else c, b if b > d else d
    return a if a > b else b, (e + g) + (f + h)


@lean
def bound_rounding(table: FixedPoint) -> float:
    """How many units of its tile the last ``sums`` of an arm exceed the true one by, at most, up to a relative 4e-6.

    Rounding a number up adds its weight times the unit or two, and rounding a weight up the number times that of the
    block.
    """
    weights, scale, excess = table.weights, table.scale, 0.0
    for pair in range(len(weights)):
        unit = scale[pair // _BLOCK_PAIRS]
        excess += 2.0 * unit * ((weights[pair] & 0xFFFF) + (weights[pair] >> 16) + table.largest)
    return excess
