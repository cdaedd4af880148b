"""Similar arms in blocks, so that one bound can skip a whole block.

The arms of a block have the same of the most popular items and about the same bound on the gain from all others. So a
few numbers per block bound closely what its best arm can add to a batch: the largest share of each of those items, and
the largest remaining gain. A tournament orders the blocks by their bounds; ties go to the block whose first arm comes
first in the tie-break order. Skipping arms by bounds of their gains is due to [Minoux1978]_.
"""

from typing import NamedTuple

import numpy as np

from superarm._jit import for_kernels, inlined, kernel, lean
from superarm.arrays import Bools, Floats, Ints
from superarm.policies.fast.popular_items import SLACK, PopularItems, permute_arms
from superarm.policies.fast.tournament import Tournament, new_tournament, rebuild, update_key

_ARMS_PER_BLOCK = 64
"""Arms per block."""

LEADING_ITEMS = 8
"""How many of the most popular items decide which arms share a block."""

_LEVELS = 256
"""Into how many levels arms with the same leading items are sorted by their remaining gain."""


class ArmBlocks(NamedTuple):
    """Arms in blocks, with bounds of what they can add.

    ``arm`` (n_arms,) is the arm at each position and ``at`` (n_arms,) the position of each arm. ``bound`` and ``now``
    (n_arms,), by position, bound what an arm can add to the empty batch and to the current one; -1 if it may not join.
    ``share`` (LEADING_ITEMS, n_blocks) and ``rest`` (n_blocks,) bound the arms of a block. ``block_bound`` (n_blocks,)
    is its largest bound and ``first_rank`` (n_blocks,) the smallest tie-break rank of its arms; ``block_tournament``
    orders the blocks by the largest of ``now``. ``changed`` (n_blocks,) lists the ``n_changed`` (1,) blocks that differ
    from the beginning of the round, ``marked`` (n_blocks,) flags them, and ``low`` (1,) says that bounds were lowered.
    """

    arm: Ints
    at: Ints
    bound: Floats
    now: Floats
    share: Floats
    rest: Floats
    block_bound: Floats
    first_rank: Floats
    block_tournament: Tournament
    changed: Ints
    marked: Bools
    n_changed: Ints
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
        np.zeros((LEADING_ITEMS, n)),
        np.zeros(n),
        np.full(n, np.inf),
        np.zeros(n),
        new_tournament(np.zeros(n), np.zeros(n)),
        np.zeros(n, np.int64),
        np.zeros(n, np.bool_),
        np.zeros(1, np.int64),
        np.zeros(1, np.bool_),
    )


@inlined
def block_span(rows: ArmBlocks, block: int) -> tuple[int, int]:
    """The first position of a block and the one after its last."""
    return block * _ARMS_PER_BLOCK, min((block + 1) * _ARMS_PER_BLOCK, len(rows.arm))


@inlined
def tie_rank(pulls: Floats, arm: int) -> float:
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
        n = shared.rank[at]
        if n < LEADING_ITEMS:
            share[n, block] = max(share[n, block], shared.z[at])
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
                kind[p] += _LEVELS << shared.rank[at]
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


@lean
def restore(rows: ArmBlocks, block: int, eligible: Bools, pulls: Floats) -> None:
    """Reset a block to its state at the beginning of a round."""
    arm, bound, now = rows.arm, rows.bound, rows.now
    block_bound, first_rank = -1.0, np.inf
    first, last = block_span(rows, block)
    for p in range(first, last):
        here = eligible[arm[p]]
        now[p] = bound[p] if here else -1.0
        if here:
            block_bound, first_rank = max(block_bound, bound[p]), min(first_rank, tie_rank(pulls, arm[p]))
    rows.block_bound[block], rows.first_rank[block] = block_bound, first_rank
    update_key(rows.block_tournament, block, -block_bound, first_rank)


@inlined
def mark_changed(rows: ArmBlocks, position: int) -> None:
    """Note that the block of a position has to be reset."""
    marked, changed, count = rows.marked, rows.changed, rows.n_changed
    block = position // _ARMS_PER_BLOCK
    if not marked[block]:
        marked[block] = True
        changed[count[0]] = block
        count[0] += 1


@lean
def restore_changed(rows: ArmBlocks, eligible: Bools, pulls: Floats) -> None:
    """Reset the blocks that were marked as changed to their state at the beginning of a round."""
    if rows.low[0]:
        rows.low[0] = False
        for block in range(len(rows.block_bound)):
            rows.block_tournament.key[block], rows.block_tournament.rank[block] = (
                -rows.block_bound[block],
                rows.first_rank[block],
            )
        rebuild(rows.block_tournament)
    for n in range(rows.n_changed[0]):
        restore(rows, rows.changed[n], eligible, pulls)
        rows.marked[rows.changed[n]] = False
    rows.n_changed[0] = 0


@lean
def restore_all(rows: ArmBlocks, eligible: Bools, pulls: Floats) -> None:
    """Reset all blocks to their state at the beginning of a round."""
    for block in range(len(rows.block_bound)):
        restore(rows, block, eligible, pulls)
        rows.marked[block] = False
    rows.n_changed[0] = 0
    rows.low[0] = False


@lean
def tighten_bounds(rows: ArmBlocks, shared: PopularItems) -> None:
    """Lower the bounds of the blocks to what the current slopes of the leading items allow."""
    key, share, left = rows.block_tournament.key, rows.share, shared.left
    for block in range(len(rows.rest)):
        most = rows.rest[block]
        for n in range(min(LEADING_ITEMS, len(left))):
            most += share[n, block] * left[n]
        key[block] = max(key[block], -most * SLACK)
    rows.low[0] = True
    rebuild(rows.block_tournament)


@inlined
def wins(pulls: Floats, arm: int, g: float, best: int, most: float) -> bool:
    """Whether ``arm`` with a gain of ``g`` is chosen rather than ``best`` with ``most``."""
    if g != most:
        return g > most
    return best >= 0 and tie_rank(pulls, arm) < tie_rank(pulls, best)
