"""Similar arms in blocks, so that one bound can skip a whole block.

The arms of a block have the same of the most popular items and about the same bound on the gain from all others. So a
few numbers per block bound closely what its best arm can add to a batch: the largest share of each of those items, and
the largest remaining gain. Blocks are in the order of their bounds; ties go to the block whose first arm comes
first in the tie-break order. Skipping arms by bounds of their gains is due to [Minoux1978]_.
"""

from typing import NamedTuple

import numpy as np

from superarm._jit import for_kernels, inlined, kernel, lean
from superarm.arrays import Bools, Floats, Ints
from superarm.policies.fast.block_order import GROUP, BlockOrder, compare_group, compare_groups, new_block_order
from superarm.policies.fast.popular_items import SLACK, PopularItems, permute_arms

_ARMS_PER_BLOCK = 64
"""Arms per block."""

LEADING_ITEMS = 8
"""How many of the most popular items decide which arms share a block."""

_2, _3, _4, _5, _6, _7 = np.uint64(2), np.uint64(3), np.uint64(4), np.uint64(5), np.uint64(6), np.uint64(7)

_LEVELS = 256
"""Into how many levels arms with the same leading items are sorted by their remaining gain."""


class ArmBlocks(NamedTuple):
    """Arms in blocks, with bounds of what they can add.

    ``arm`` (n_arms,) is the arm at each position and ``at`` (n_arms,) the position of each arm. ``bound`` and ``now``
    (n_arms,), by position, bound what an arm can add to the empty batch and to the current one; -1 if it may not join.
    ``rank`` (n_arms,), by position, is the arm's tie-break rank.
    ``share`` (LEADING_ITEMS * n_blocks,), item after item, and ``rest`` (n_blocks,) bound the arms of a block.
    ``block_bound`` (n_blocks,) is its largest bound and ``first_rank`` (n_blocks,) the smallest tie-break rank of its
    arms; ``order`` has the blocks by the largest of ``now``. ``lowered`` (n_blocks,) lists the ``n_lowered`` (1,)
    blocks that differ from the beginning of the round, ``marked`` (n_blocks,) flags them, and ``played`` (n_blocks,)
    those of them with an arm that was played since; ``low`` (1,) says that bounds of blocks were lowered.
    """

    arm: Ints
    at: Ints
    bound: Floats
    now: Floats
    rank: Floats
    share: Floats
    rest: Floats
    block_bound: Floats
    first_rank: Floats
    order: BlockOrder
    lowered: Ints
    marked: Bools
    played: Bools
    n_lowered: Ints
    low: Bools


@for_kernels
def new_blocks(n_arms: int) -> ArmBlocks:
    """Blocks of arms in the order of their numbers, with no bounds yet."""
    n = (n_arms + _ARMS_PER_BLOCK - 1) // _ARMS_PER_BLOCK
    return ArmBlocks(
        np.arange(n_arms),
        np.arange(n_arms),
        np.full(n_arms, np.inf),
        np.full(n_arms, np.inf),
        np.zeros(n_arms),
        np.zeros(LEADING_ITEMS * n),
        np.zeros(n),
        np.full(n, np.inf),
        np.zeros(n),
        new_block_order(n),
        np.zeros(n, np.int64),
        np.zeros(n, np.bool_),
        np.zeros(n, np.bool_),
        np.zeros(1, np.int64),
        np.zeros(1, np.bool_),
    )


@inlined
def block_span(rows: ArmBlocks, block: int) -> tuple[int, int]:
    """The first position of a block and the one after its last."""
    return block * _ARMS_PER_BLOCK, min((block + 1) * _ARMS_PER_BLOCK, len(rows.arm))


@inlined
def _tie_rank(pulls: Floats, arm: int) -> float:
    """The tie-break rank of ``arm``: by pulls, which are whole numbers, and then by number."""
    return pulls[arm] * len(pulls) + arm  # type: ignore[no-any-return]


@inlined
def _other_gain(shared: PopularItems, position: int) -> float:
    """A bound on the gain of the arm at ``position`` from all but the leading items."""
    rest = shared.rest[position]
    for at in range(shared.first[position], shared.first[position + 1]):
        if shared.rank[at] >= LEADING_ITEMS:
            rest += shared.z[at] * shared.whole[shared.entry[at]]
    return rest  # type: ignore[no-any-return]


@inlined
def raise_limits(rows: ArmBlocks, shared: PopularItems, position: int) -> None:
    """Raise the bounds of the block so that they hold for the arm at ``position``, too."""
    share, block = rows.share, position // _ARMS_PER_BLOCK
    for at in range(shared.first[position], shared.first[position + 1]):
        n = int(shared.rank[at])
        if n < LEADING_ITEMS:
            at_block = n * len(rows.rest) + block
            share[at_block] = max(share[at_block], shared.z[at])
    rows.rest[block] = max(rows.rest[block], _other_gain(shared, position))


@kernel
def sort_into_blocks(rows: ArmBlocks, shared: PopularItems) -> None:
    """Sort similar arms into the same blocks, with their bounds, and compute the bounds of the blocks."""
    n_arms = len(rows.arm)
    rest = np.empty(n_arms)
    for p in range(n_arms):
        rest[p] = _other_gain(shared, p)
    least, scale = rest.min(), (_LEVELS - 1) / max(rest.max() - rest.min(), 1e-300)
    kind = np.empty(n_arms, np.int64)
    for p in range(n_arms):
        kind[p] = _LEVELS - 1 - int((rest[p] - least) * scale)
        for at in range(shared.first[p], shared.first[p + 1]):
            if shared.rank[at] < LEADING_ITEMS:
                kind[p] += _LEVELS << int(shared.rank[at])
    free = np.zeros((_LEVELS << LEADING_ITEMS) + 1, np.int64)  # a counting sort
    for p in range(n_arms):
        free[kind[p] + 1] += 1
    free = np.cumsum(free)
    came = np.empty(n_arms, np.int64)
    for j in range(n_arms):  # arms of one kind keep the order of their numbers
        kind_of = kind[rows.at[j]]
        came[free[kind_of]] = rows.at[j]
        rows.at[j] = free[kind_of]
        free[kind_of] += 1
    permute_arms(shared, came)
    rows.bound[:] = rows.bound[came]
    rows.share[:] = 0.0
    rows.rest[:] = 0.0
    for j in range(n_arms):
        rows.arm[rows.at[j]] = j
    for p in range(n_arms):
        raise_limits(rows, shared, p)


@inlined
def _restore(rows: ArmBlocks, block: int, eligible: Bools, pulls: Floats) -> None:
    """Reset a block to its state at the beginning of a round, without comparing it with others."""
    arm, bound, now, ranks = rows.arm, rows.bound, rows.now, rows.rank
    key, rank, block_bounds, first_ranks = rows.order.key, rows.order.rank, rows.block_bound, rows.first_rank
    block_bound, first_rank = -1.0, np.inf
    first, last = block_span(rows, block)
    for p in range(first, last):
        here = eligible[arm[p]]
        now[p], ranks[p] = bound[p] if here else -1.0, _tie_rank(pulls, arm[p])
        if here:
            block_bound, first_rank = max(block_bound, bound[p]), min(first_rank, ranks[p])
    block_bounds[block], first_ranks[block] = block_bound, first_rank
    key[block], rank[block] = block_bound, first_rank


@inlined
def mark_lowered(rows: ArmBlocks, block: int) -> None:
    """Note that arms of a block have lower bounds than at the beginning of the round."""
    marked, lowered, count = rows.marked, rows.lowered, rows.n_lowered
    if not marked[block]:
        marked[block] = True
        lowered[count[0]] = block
        count[0] += 1


@inlined
def mark_played(rows: ArmBlocks, position: int) -> None:
    """Note that the arm at ``position`` was played, so that its rank and bound may differ in the next round."""
    played = rows.played
    mark_lowered(rows, position // _ARMS_PER_BLOCK)
    played[position // _ARMS_PER_BLOCK] = True


@lean
def restore_changed(rows: ArmBlocks, eligible: Bools, pulls: Floats) -> None:
    """Reset the blocks that were marked to their state at the beginning of a round, if all arms are eligible.

    Where no arm was played, ranks and bounds are those of the round before.
    """
    lowered, marked, played, bound, now = rows.lowered, rows.marked, rows.played, rows.bound, rows.now
    key, rank, block_bound, first_rank = rows.order.key, rows.order.rank, rows.block_bound, rows.first_rank
    for n in range(rows.n_lowered[0]):
        block = lowered[n]
        if played[block]:
            _restore(rows, block, eligible, pulls)
        else:
            first, last = block_span(rows, block)
            for p in range(np.uint64(first), np.uint64(last)):
                now[p] = bound[p]
            key[block], rank[block] = block_bound[block], first_rank[block]
        marked[block] = played[block] = False
        if not rows.low[0]:
            compare_group(rows.order, block // GROUP)
    if rows.low[0]:
        for block in range(np.uint64(len(block_bound))):
            key[block], rank[block] = block_bound[block], first_rank[block]
        compare_groups(rows.order)
    rows.low[0] = False
    rows.n_lowered[0] = 0


@lean
def restore_all(rows: ArmBlocks, eligible: Bools, pulls: Floats) -> None:
    """Reset all blocks to their state at the beginning of a round."""
    marked, played = rows.marked, rows.played
    for block in range(len(rows.block_bound)):
        _restore(rows, block, eligible, pulls)
        marked[block] = played[block] = False
    compare_groups(rows.order)
    rows.n_lowered[0] = 0
    rows.low[0] = False


@lean
def tighten_bounds(rows: ArmBlocks, shared: PopularItems) -> None:
    """Lower the bounds of the blocks to what the current slopes of the leading items allow."""
    key, rank, share, rest, left = rows.order.key, rows.order.rank, rows.share, rows.rest, shared.left
    first_rank = rows.first_rank
    a, b, c, d = _slope(left, 0), _slope(left, 1), _slope(left, 2), _slope(left, 3)
    e, f, g, h = _slope(left, 4), _slope(left, 5), _slope(left, 6), _slope(left, 7)
    n = np.uint64(len(rest))
    for block in range(n):  # as one sum, and with unsigned offsets, so that it runs in vector registers
        most = rest[block] + share[block] * a + share[n + block] * b + share[_2 * n + block] * c
        most = most + share[_3 * n + block] * d + share[_4 * n + block] * e + share[_5 * n + block] * f
        most = (most + share[_6 * n + block] * g + share[_7 * n + block] * h) * SLACK
        key[block] = most if most < key[block] else key[block]
        rank[block] = first_rank[block]
    rows.low[0] = True
    compare_groups(rows.order)


@inlined
def _slope(left: Floats, n: int) -> float:
    """The current slope of a leading item, or 0 if there are fewer items."""
    return left[n] if n < len(left) else 0.0
