"""Arms that are alike side by side, so that one bound passes over a whole block of them.

Neighbours share the most popular items and promise about as much besides, so what the best of them can add to a batch
is known closely from a few numbers of their block: the largest share of each of those items, and the largest rest. The
blocks stand in a tournament by what they promise; among equals the one whose first arm stands first in line. Bounds
that let greedy picking pass over arms are [Minoux1978]_'s.
"""

from typing import NamedTuple

import numpy as np

from superarm._jit import inlined, kernel, lean
from superarm.arrays import Bools, Floats, Ints
from superarm.policies.fast.popular_items import SLACK, Popular, move
from superarm.policies.fast.tournament import Order, order, place, play_off

_SIZE = 64
"""Arms in a block."""

KEEN = 8
"""The most popular items, by which neighbours are chosen."""

_LEVELS = 256
"""How finely arms with the same of these items are told apart by the rest of what they promise."""


class Blocks(NamedTuple):
    """``arm`` (n_arms,) is who stands at each place, ``at`` (n_arms,) the place of each arm, ``bound`` and ``now``
    (n_arms,), by place, what that arm can add to the empty batch and to the one under construction, -1 if it may not
    join. ``share`` (KEEN, n_blocks) and ``rest`` (n_blocks,) limit the arms of a block. ``crest`` (n_blocks,) is its
    largest bound, ``lead`` (n_blocks,) the first place in line of its arms; ``podium`` has the blocks by the largest of
    ``now``. ``changed`` (n_blocks,) are the ``n_changed`` (1,) blocks that are not as at the beginning of a round,
    ``marked`` (n_blocks,) tells which; ``low`` (1,) whether limits were lowered.
    """

    arm: Ints
    at: Ints
    bound: Floats
    now: Floats
    share: Floats
    rest: Floats
    crest: Floats
    lead: Floats
    podium: Order
    changed: Ints
    marked: Bools
    n_changed: Ints
    low: Bools


@kernel
def blocks(n_arms: int) -> Blocks:
    """Arms in order of their numbers, of which nothing is known."""
    n = (n_arms + _SIZE - 1) // _SIZE
    return Blocks(
        np.arange(n_arms),
        np.arange(n_arms),
        np.full(n_arms, np.inf),
        np.full(n_arms, np.inf),
        np.zeros((KEEN, n)),
        np.zeros(n),
        np.full(n, np.inf),
        np.zeros(n),
        order(np.zeros(n), np.zeros(n)),
        np.zeros(n, np.int64),
        np.zeros(n, np.bool_),
        np.zeros(1, np.int64),
        np.zeros(1, np.bool_),
    )


@inlined
def places(rows: Blocks, block: int) -> tuple[int, int]:
    """The first place of a block and the one after its last."""
    return block * _SIZE, min((block + 1) * _SIZE, len(rows.arm))


@inlined
def position(pulls: Floats, arm: int) -> float:
    """Where ``arm`` stands in line: by pulls, which are whole numbers, and then by number."""
    return pulls[arm] * len(pulls) + arm  # type: ignore[no-any-return]


@inlined
def _besides(shared: Popular, place: int) -> float:
    """What the arm at ``place`` promises without the most popular items."""
    rest = shared.rest[place]
    for at in range(shared.first[place], shared.first[place + 1]):
        if shared.rank[at] >= KEEN:
            rest += shared.z[at] * shared.whole[shared.entry[at]]
    return rest  # type: ignore[no-any-return]


@inlined
def raise_limits(rows: Blocks, shared: Popular, place: int) -> None:
    """Let the limits of its block hold for the arm at ``place``, too."""
    share, block = rows.share, place // _SIZE
    for at in range(shared.first[place], shared.first[place + 1]):
        n = shared.rank[at]
        if n < KEEN:
            share[n, block] = max(share[n, block], shared.z[at])
    rows.rest[block] = max(rows.rest[block], _besides(shared, place))


@kernel
def arrange(rows: Blocks, shared: Popular) -> None:
    """Put arms that are alike side by side, with all that is known of them, and find the limits of the new blocks."""
    n_arms = len(rows.arm)
    rest = np.empty(n_arms)
    for p in range(n_arms):
        rest[p] = _besides(shared, p)
    least, scale = rest.min(), (_LEVELS - 1) / max(rest.max() - rest.min(), 1e-300)
    kind = np.empty(n_arms, np.int64)
    for p in range(n_arms):
        kind[p] = _LEVELS - 1 - int((rest[p] - least) * scale)
        for at in range(shared.first[p], shared.first[p + 1]):
            if shared.rank[at] < KEEN:
                kind[p] += _LEVELS << shared.rank[at]
    free = np.zeros((_LEVELS << KEEN) + 1, np.int64)  # a counting sort
    for p in range(n_arms):
        free[kind[p] + 1] += 1
    free = np.cumsum(free)
    came = np.empty(n_arms, np.int64)
    for j in range(n_arms):  # arms of a kind stay in the order of their numbers
        kind_of = kind[rows.at[j]]
        came[free[kind_of]] = rows.at[j]
        rows.at[j] = free[kind_of]
        free[kind_of] += 1
    move(shared, came)
    rows.bound[:] = rows.bound[came]
    rows.share[:] = 0.0
    rows.rest[:] = 0.0
    for j in range(n_arms):
        rows.arm[rows.at[j]] = j
    for p in range(n_arms):
        raise_limits(rows, shared, p)


@lean
def restore(rows: Blocks, block: int, eligible: Bools, pulls: Floats) -> None:
    """Let a block be as at the beginning of a round."""
    arm, bound, now = rows.arm, rows.bound, rows.now
    crest, lead = -1.0, np.inf
    first, last = places(rows, block)
    for p in range(first, last):
        here = eligible[arm[p]]
        now[p] = bound[p] if here else -1.0
        if here:
            crest, lead = max(crest, bound[p]), min(lead, position(pulls, arm[p]))
    rows.crest[block], rows.lead[block] = crest, lead
    place(rows.podium, block, -crest, lead)


@inlined
def mark(rows: Blocks, place: int) -> None:
    """Remember that the block of a place is to be restored."""
    marked, changed, count = rows.marked, rows.changed, rows.n_changed
    block = place // _SIZE
    if not marked[block]:
        marked[block] = True
        changed[count[0]] = block
        count[0] += 1


@lean
def restore_changed(rows: Blocks, eligible: Bools, pulls: Floats) -> None:
    """Let all blocks be as at the beginning of a round, where only those that were marked are not."""
    if rows.low[0]:
        rows.low[0] = False
        for block in range(len(rows.crest)):
            rows.podium.key[block], rows.podium.rank[block] = -rows.crest[block], rows.lead[block]
        play_off(rows.podium)
    for n in range(rows.n_changed[0]):
        restore(rows, rows.changed[n], eligible, pulls)
        rows.marked[rows.changed[n]] = False
    rows.n_changed[0] = 0


@lean
def restore_all(rows: Blocks, eligible: Bools, pulls: Floats) -> None:
    """The same, whatever has changed."""
    for block in range(len(rows.crest)):
        restore(rows, block, eligible, pulls)
        rows.marked[block] = False
    rows.n_changed[0] = 0
    rows.low[0] = False


@lean
def lower(rows: Blocks, shared: Popular) -> None:
    """Let no block promise more than what is left of the most popular items allows."""
    key, share, left = rows.podium.key, rows.share, shared.left
    for block in range(len(rows.rest)):
        most = rows.rest[block]
        for n in range(min(KEEN, len(left))):
            most += share[n, block] * left[n]
        key[block] = max(key[block], -most * SLACK)
    rows.low[0] = True
    play_off(rows.podium)
