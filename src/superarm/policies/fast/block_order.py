"""Blocks of arms by their largest bound, then by the smallest rank, then by number.

A tournament tree ([Knuth1998]_, section 5.2.3) is quicker to bring up to date when one key changes; here all change
after many picks. So groups of 64 blocks have the best key of each, and what changes is compared in vector registers.
"""

from typing import NamedTuple

import numpy as np

from superarm._jit import for_kernels, inlined
from superarm.arrays import Floats

GROUP = 64
"""Blocks per group: as many as there are groups of 4,096 blocks, of 260,000 arms."""

_1, _2, _3, _4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


class BlockOrder(NamedTuple):
    """Blocks with keys, of which the largest comes first, and ranks, of which the smallest does among equal keys.

    ``key`` and ``rank`` (n_groups * 64,) belong to the blocks; the key of a block that does not take part, and of those
    that only fill the last group, is minus infinity. ``top`` (n_groups,) is the largest key of each group, and
    ``first`` (same) the smallest rank of a block with it.
    """

    key: Floats
    rank: Floats
    top: Floats
    first: Floats


@for_kernels
def new_block_order(n_blocks: int) -> BlockOrder:
    """The order of blocks that do not take part yet."""
    groups = (n_blocks + GROUP - 1) // GROUP
    empty = np.full(groups * GROUP, -np.inf)
    return BlockOrder(empty, np.zeros(groups * GROUP), np.full(groups, -np.inf), np.zeros(groups))


@inlined
def compare_group(order: BlockOrder, group: int) -> None:
    """Find the best block of a group, after keys or ranks were written: four at a time, in vector registers."""
    key, rank, top, first = order
    begin, end = np.uint64(group * GROUP), np.uint64((group + 1) * GROUP)
    a = b = c = d = -np.inf
    i = begin
    while i < end:
        w, x, y, z = key[i], key[i + _1], key[i + _2], key[i + _3]
        a, b, c, d = w if w > a else a, x if x > b else b, y if y > c else c, z if z > d else d
        i += _4
    a, b = a if a > c else c, b if b > d else d
    best = a if a > b else b
    a = b = c = d = np.inf
    i = begin
    while i < end:
        w, x = rank[i] if key[i] == best else np.inf, rank[i + _1] if key[i + _1] == best else np.inf
        y, z = rank[i + _2] if key[i + _2] == best else np.inf, rank[i + _3] if key[i + _3] == best else np.inf
        a, b, c, d = w if w < a else a, x if x < b else b, y if y < c else c, z if z < d else d
        i += _4
    a, b = a if a < c else c, b if b < d else d
    top[group], first[group] = best, a if a < b else b


@inlined
def compare_groups(order: BlockOrder) -> None:
    """Find the best block of every group."""
    for group in range(len(order.top)):
        compare_group(order, group)


@inlined
def set_key(order: BlockOrder, block: int, key: float, rank: float) -> None:
    """Give a block this key and rank."""
    keys, ranks = order.key, order.rank
    keys[block], ranks[block] = key, rank
    compare_group(order, block // GROUP)


@inlined
def first_block(order: BlockOrder) -> int:
    """The block that comes first."""
    key, rank, top, first = order
    group = 0
    for n in range(1, len(top)):
        if top[n] > top[group] or (top[n] == top[group] and first[n] < first[group]):
            group = n
    block, last = group * GROUP, (group + 1) * GROUP - 1
    while block < last and (key[block] != top[group] or rank[block] != first[group]):
        block += 1
    return block
