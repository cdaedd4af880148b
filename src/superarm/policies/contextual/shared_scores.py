r"""Estimates and widths of all entries under a shared model, many arms at a time.

The features of an arm are a linear function of its own few numbers ``v`` (``Design``), so the shared parameters are
reduced once per context to functions of ``v``. A number is computed by the same operations in the same order, whether
its arm is one of many or alone. [LiuEtAl2023]_ (Algorithms 1 and 2).
"""

import math
from typing import NamedTuple

import numpy as np

from superarm._jit import inlined, kernel, lean
from superarm.arrays import Bools, Floats
from superarm.context.design import Design, arm_to_own, feature_size, own_size
from superarm.context.observations import ContextRound
from superarm.policies.contextual.linear_algebra import unpack
from superarm.policies.contextual.ridge import Ridge
from superarm.support import Support, item, span

ARMS_AT_ONCE = 256
"""How many arms are scored at once: loops over them become vector instructions, and their sums stay in the cache."""


class Reduced(NamedTuple):
    """Shared parameters for one context, as functions of the numbers of an arm: means, and the parts of the width."""

    mean: Floats  # (m,)
    square: Floats  # (m, m)
    item_mean: Floats  # (n_item,)
    cross: Floats  # (m, n_item)
    item_square: Floats  # (n_item,)


class ArmBlock(NamedTuple):
    """Buffers for neighbouring arms side by side, the first of them arm ``first``.

    ``v`` (m, ARMS_AT_ONCE) are their numbers. Of each arm, ``mean`` and ``own`` are what of its estimates and
    squared widths does not depend on the item, and ``total`` is a sum.
    """

    first: int
    v: Floats
    mean: Floats
    own: Floats
    total: Floats


@kernel
def score_shared(design: Design, support: Support, current: ContextRound, memory: Ridge, spread: float) -> None:
    """Write estimate + and - ``spread`` times width of every eligible arm's entries to ``q`` and ``low``."""
    reduced = reduce_parameters(design, current, memory.theta[0], memory.inverse[0])
    m, eligible = len(reduced.mean), current.candidates.eligible
    room = min(ARMS_AT_ONCE, len(eligible))
    v, mean, own, total = np.zeros((m, room)), np.zeros(room), np.zeros(room), np.zeros(room)
    for first in range(0, len(eligible), ARMS_AT_ONCE):
        n = min(ARMS_AT_ONCE, len(eligible) - first)
        block = ArmBlock(first, v, mean[:n], own[:n], total[:n])
        _fill_block(design, current, block)
        score_arms(reduced, block)
        if _have_same_items(support, first, n):
            start, end = span(support, first)
            for o in range(end - start):
                i = item(support, start, o)
                _score_item(design, reduced, i, block, spread)
                more = reduced.item_mean[i] if design.n_item > 0 else 0.0
                _write(support, eligible, o, more, block, memory)
        else:
            for arm in range(first, first + n):
                if eligible[arm]:
                    score_shared_arm(design, support, reduced, arm, block, memory, spread)


@kernel
def reduce_parameters(design: Design, current: ContextRound, theta: Floats, triangle: Floats) -> Reduced:
    """The shared parameters and the inverse of their G, for the user of the round."""
    d, own, n_item = feature_size(design), own_size(design), design.n_item
    full = unpack(triangle, d)
    matrix = arm_to_own(design, current.context)
    m = matrix.shape[1]
    mean, square, cross = np.zeros(m), np.zeros((m, m)), np.zeros((m, n_item))
    column = np.zeros(d)
    for k in range(m):
        for r in range(d):
            total = 0.0
            for c in range(own):
                total += full[r, c] * matrix[c, k]
            column[r] = total
        for h in range(m):
            for r in range(own):
                square[h, k] += matrix[r, h] * column[r]
        for r in range(own):
            mean[k] += matrix[r, k] * theta[r]
        for i in range(n_item):
            cross[k, i] = 2.0 * column[own + i]
    item_square = np.zeros(n_item)
    for i in range(n_item):
        item_square[i] = full[own + i, own + i]
    return Reduced(mean, square, theta[own:], cross, item_square)


@lean
def _fill_block(design: Design, current: ContextRound, block: ArmBlock) -> None:
    """Write the numbers of the arms of a block."""
    n_arm, first = design.arms.shape[1], block.first
    for k in range(len(block.v)):
        v = block.v[k]
        for n in range(len(block.mean)):
            arm = first + n
            v[n] = design.arms[arm, k] if k < n_arm else current.context.pairs[arm * design.n_pair + k - n_arm]


@inlined
def _have_same_items(support: Support, arm: int, n: int) -> bool:
    """Whether ``n`` arms from ``arm`` on have the same items in the same order; always so in a dense support."""
    first, last = span(support, arm)
    for other in range(arm + 1, arm + n):
        start, end = span(support, other)
        if end - start != last - first:
            return False
        for o in range(last - first):
            if item(support, start, o) != item(support, first, o):
                return False
    return True


@lean
def score_arms(reduced: Reduced, block: ArmBlock) -> None:
    """Compute ``mean`` and ``own`` of the arms of a block."""
    mean, own, total = block.mean, block.own, block.total
    for n in range(len(total)):
        mean[n], own[n] = 0.0, 0.0
    for h in range(len(block.v)):
        here, slope = block.v[h], reduced.mean[h]
        for n in range(len(total)):
            total[n] = 0.0
        for k in range(len(block.v)):
            other, scale = block.v[k], reduced.square[h, k]
            for n in range(len(total)):
                total[n] += scale * other[n]
        for n in range(len(total)):
            own[n] += here[n] * total[n]
            mean[n] += here[n] * slope


@lean
def _score_item(design: Design, reduced: Reduced, i: int, block: ArmBlock, spread: float) -> None:
    """Compute ``spread`` times the widths of an item's entries, in ``total``."""
    own, total = block.own, block.total
    for n in range(len(total)):
        total[n] = own[n]
    if design.n_item > 0:
        square = reduced.item_square[i]
        for n in range(len(total)):
            total[n] += square
        for k in range(len(block.v)):
            v, cross = block.v[k], reduced.cross[k, i]
            for n in range(len(total)):
                total[n] += cross * v[n]
    for n in range(len(total)):
        total[n] = spread * math.sqrt(max(0.0, total[n]))


@lean
def _write(support: Support, eligible: Bools, offset: int, more: float, block: ArmBlock, memory: Ridge) -> None:
    """Write the bounds of the entries of one item: those at ``offset`` from the first entries of eligible arms."""
    for n in range(len(block.mean)):
        if eligible[block.first + n]:
            e = span(support, block.first + n)[0] + offset
            estimate, bonus = block.mean[n] + more, block.total[n]
            memory.q[e] = estimate + bonus
            memory.low[e] = estimate - bonus


@lean
def score_shared_arm(
    design: Design, support: Support, reduced: Reduced, arm: int, block: ArmBlock, memory: Ridge, spread: float
) -> None:
    """Compute and write the bounds of the entries of one arm of a block."""
    n = arm - block.first
    first, last = span(support, arm)
    for o in range(last - first):
        estimate, total = block.mean[n], block.own[n]
        if design.n_item > 0:
            i = item(support, first, o)
            estimate += reduced.item_mean[i]
            total += reduced.item_square[i]
            for k in range(len(block.v)):
                total += reduced.cross[k, i] * block.v[k, n]
        bonus = spread * math.sqrt(max(0.0, total))
        memory.q[first + o] = estimate + bonus
        memory.low[first + o] = estimate - bonus
