r"""Estimates and widths of all entries under a shared model, eight arms at a time.

The features of an arm are a linear function of its own few numbers ``v`` (``Design``), so the shared parameters are
reduced once per context to functions of ``v``. A number is computed by the same operations in the same order, whether
its arm is one of eight or alone. [LiuEtAl2023]_ (Algorithms 1 and 2).
"""

import math
from typing import NamedTuple

import numpy as np

from superarm._jit import inlined, kernel, lean
from superarm.arrays import Bools, Floats
from superarm.context.design import Design, arm_to_own, feature_size, fill_arm_numbers, own_size
from superarm.context.observations import ContextRound
from superarm.policies.contextual.lane_algebra import LANES
from superarm.policies.contextual.linear_algebra import unpack
from superarm.policies.contextual.ridge import Ridge
from superarm.support import Support, item, span


class Reduced(NamedTuple):
    """Shared parameters for one context, as functions of the numbers of an arm: means, and the parts of the width."""

    mean: Floats  # (m,)
    square: Floats  # (m, m)
    item_mean: Floats  # (n_item,)
    cross: Floats  # (m, n_item)
    item_square: Floats  # (n_item,)


class ArmLanes(NamedTuple):
    """Buffers for eight arms side by side.

    ``v`` (m, LANES) are their numbers, ``mean`` and ``own`` (LANES,) what of estimates and squared widths does not
    depend on the item, ``total`` (LANES,) a sum, and ``high`` and ``low`` (n_items, LANES) the bounds.
    """

    v: Floats
    mean: Floats
    own: Floats
    total: Floats
    high: Floats
    low: Floats


@kernel
def score_shared(design: Design, support: Support, current: ContextRound, memory: Ridge, spread: float) -> None:
    """Write estimate + and - ``spread`` times width of every eligible arm's entries to ``q`` and ``low``."""
    reduced = _reduce(design, current, memory.theta[0], memory.inverse[0])
    m, n_arms, n_items = len(reduced.mean), support.n_arms, support.n_items
    work = ArmLanes(
        np.zeros((m, LANES)), np.zeros(LANES), np.zeros(LANES), np.zeros(LANES),
        np.zeros((n_items, LANES)), np.zeros((n_items, LANES)),
    )  # fmt: skip
    v = np.zeros(m)
    for first in range(0, n_arms, LANES):
        count = min(LANES, n_arms - first)
        for n in range(count):
            fill_arm_numbers(design, current.context, first + n, v)
            for k in range(m):
                work.v[k, n] = v[k]
        _score_arms(reduced, work)
        if count == LANES and _have_same_items(support, first):
            _score_items(design, support, reduced, first, work, spread)
            _write(support, current.candidates.eligible, first, work, memory)
        else:
            for n in range(count):
                if current.candidates.eligible[first + n]:
                    _score_arm(design, support, reduced, first + n, work, memory, spread)


@kernel
def _reduce(design: Design, current: ContextRound, theta: Floats, triangle: Floats) -> Reduced:
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


@inlined
def _have_same_items(support: Support, arm: int) -> bool:
    """Whether eight arms from ``arm`` on have the same items in the same order; always so in a dense support."""
    first, last = span(support, arm)
    for n in range(1, LANES):
        other, end = span(support, arm + n)
        if end - other != last - first:
            return False
        for o in range(last - first):
            if item(support, other, o) != item(support, first, o):
                return False
    return True


@lean
def _score_arms(reduced: Reduced, work: ArmLanes) -> None:
    """Compute ``mean`` and ``own`` of eight arms."""
    mean, own, total = work.mean, work.own, work.total
    for n in range(LANES):
        mean[n], own[n] = 0.0, 0.0
    for h in range(len(work.v)):
        here, slope = work.v[h], reduced.mean[h]
        for n in range(LANES):
            total[n] = 0.0
        for k in range(len(work.v)):
            other, scale = work.v[k], reduced.square[h, k]
            for n in range(LANES):
                total[n] += scale * other[n]
        for n in range(LANES):
            own[n] += here[n] * total[n]
            mean[n] += here[n] * slope


@lean
def _score_items(design: Design, support: Support, reduced: Reduced, arm: int, work: ArmLanes, spread: float) -> None:
    """Compute the bounds of the entries of eight arms that have the same items, the first of them ``arm``."""
    total, (first, last) = work.total, span(support, arm)
    for o in range(last - first):
        high, low, estimate = work.high[o], work.low[o], 0.0
        for n in range(LANES):
            total[n] = work.own[n]
        if design.n_item > 0:
            i = item(support, first, o)
            estimate = reduced.item_mean[i]
            for n in range(LANES):
                total[n] += reduced.item_square[i]
            for k in range(len(work.v)):
                numbers, cross = work.v[k], reduced.cross[k, i]
                for n in range(LANES):
                    total[n] += cross * numbers[n]
        for n in range(LANES):
            bonus = spread * math.sqrt(max(0.0, total[n]))
            high[n] = (work.mean[n] + estimate) + bonus
            low[n] = (work.mean[n] + estimate) - bonus


@lean
def _write(support: Support, eligible: Bools, arm: int, work: ArmLanes, memory: Ridge) -> None:
    """Write the bounds of the eligible ones of eight arms, the first of them ``arm``."""
    for n in range(LANES):
        if eligible[arm + n]:
            first, last = span(support, arm + n)
            q, low = memory.q[first:last], memory.low[first:last]
            for o in range(len(q)):
                q[o] = work.high[o, n]
                low[o] = work.low[o, n]


@lean
def _score_arm(
    design: Design, support: Support, reduced: Reduced, arm: int, work: ArmLanes, memory: Ridge, spread: float
) -> None:
    """Compute and write the bounds of the entries of one arm out of eight."""
    n = arm % LANES
    first, last = span(support, arm)
    for o in range(last - first):
        estimate, total = work.mean[n], work.own[n]
        if design.n_item > 0:
            i = item(support, first, o)
            estimate += reduced.item_mean[i]
            total += reduced.item_square[i]
            for k in range(len(work.v)):
                total += reduced.cross[k, i] * work.v[k, n]
        bonus = spread * math.sqrt(max(0.0, total))
        memory.q[first + o] = estimate + bonus
        memory.low[first + o] = estimate - bonus
