"""How a sparse sieve finds the arm with the largest gain, from bounds of blocks and of their arms: [Minoux1978]_.

``policy`` is the sieve, and ``memory`` its memory.
"""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import inlined, lean
from superarm.arrays import Floats
from superarm.indices import Index
from superarm.policies.base import Round
from superarm.policies.fast.arm_blocks import ArmBlocks, block_span, mark_lowered
from superarm.policies.fast.block_order import GROUP, compare_group, first_block, set_key
from superarm.policies.fast.popular_items import bound_gain
from superarm.policies.fast.sieving import score_once
from superarm.problem import Problem
from superarm.rewards import gain
from superarm.streams import Stream

_1, _2, _3, _4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
_5, _6, _7 = np.uint64(5), np.uint64(6), np.uint64(7)


class Leader(NamedTuple):
    """The best arm so far, or -1, its gain and its tie-break rank."""

    arm: int
    gain: float
    rank: float


@lean
def pick_sparse_arm(policy: Any, problem: Problem, current: Round, memory: Any, stream: Stream) -> int:
    """The arm with the largest gain among those that may join, ties by the tournament; -1 if all gains are 0."""
    order, peak, first_rank = memory.rows.order, memory.peak, memory.rows.first_rank
    key, rank, top, first = order
    block = first_block(order)
    if key[block] <= 0.0:
        return -1
    leader = _visit(policy, problem, current, memory, stream, block, Leader(-1, 0.0, -np.inf))
    set_key(order, block, peak[block], _first_rank(memory.rows, block, peak[block]))
    for group in range(len(top)):  # many blocks could have a better arm, but few have
        if _beats(top[group], first[group], leader):
            for block in range(group * GROUP, (group + 1) * GROUP):
                if _beats(key[block], rank[block], leader):
                    leader = _visit(policy, problem, current, memory, stream, block, leader)
                    key[block], rank[block] = peak[block], first_rank[block]
            compare_group(order, group)
    return leader.arm


@inlined
def _beats(gain: float, rank: float, leader: Leader) -> bool:
    """Whether an arm with this gain and rank is chosen rather than the leader."""
    return gain > leader.gain or (gain == leader.gain and rank < leader.rank)


@inlined
def _first_rank(rows: ArmBlocks, block: int, peak: float) -> float:
    """The smallest rank of an arm of the block whose bound is ``peak``, the largest one."""
    first, last = block_span(rows, block)
    least = np.inf
    for p in range(first, last):
        least = rows.rank[p] if rows.now[p] == peak and rows.rank[p] < least else least
    return least


@inlined
def _visit(
    policy: Any, problem: Problem, current: Round, memory: Any, stream: Stream, block: int, leader: Leader
) -> Leader:
    """The better of the arms of a block and the ``leader`` before it; writes the largest bound left to ``memory``."""
    arm, now, rank = memory.rows.arm, memory.rows.now, memory.rows.rank
    first, last = block_span(memory.rows, block)
    key, block_rank = memory.rows.order.key[block], memory.rows.order.rank[block]
    peak, p = -1.0, first
    while p < last:
        if p % 8 == 0 and p + 8 <= last:
            largest = _largest_of_8(now, np.uint64(p))
            if not _beats(largest, block_rank if largest >= key else memory.rows.first_rank[block], leader):
                peak = largest if largest > peak else peak
                p += 8
                continue
        if _beats(now[p], rank[p], leader):
            now[p] = min(now[p], bound_gain(memory.shared, p))
            if _beats(now[p], rank[p], leader):
                g = _gain(policy.confidence, problem, current, memory, arm[p], stream)
                now[p] = g * policy.slack
                if _beats(g, rank[p], leader):
                    leader = Leader(arm[p], g, rank[p])
        peak = max(peak, now[p])
        p += 1
    memory.peak[block] = peak
    mark_lowered(memory.rows, block)
    return leader


@inlined
def _largest_of_8(numbers: Floats, at: Any) -> float:
    """The largest of eight numbers."""
    a, b, c, d = numbers[at], numbers[at + _1], numbers[at + _2], numbers[at + _3]
    e, f, g, h = numbers[at + _4], numbers[at + _5], numbers[at + _6], numbers[at + _7]
    a, b, c, d = a if a > e else e, b if b > f else f, c if c > g else g, d if d > h else h
    a, b = a if a > c else c, b if b > d else d
    return a if a > b else b  # type: ignore[no-any-return]


@inlined
def _gain(confidence: Index, problem: Problem, current: Round, memory: Any, arm: int, stream: Stream) -> float:
    """The exact gain, from exact scores that are computed once per call."""
    closely = memory.closely
    if score_once(confidence, problem, current, memory, arm, stream):
        closely[0] += 1
    return gain(problem.reward, problem.terms, memory.states, memory.estimates.q, arm)
