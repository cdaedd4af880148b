r"""Estimates :math:`\langle\phi, \hat\theta\rangle` and widths :math:`\lVert\phi\rVert_{G^{-1}}` of all entries.

[LiuEtAl2023]_ (Algorithms 1 and 2).
"""

import math
from typing import NamedTuple

import numpy as np

from superarm._jit import kernel, lean
from superarm.arrays import Floats
from superarm.context.design import (
    PER_ENTRY,
    SHARED,
    Design,
    arm_to_own,
    feature_size,
    fill_arm_numbers,
    fill_own_features,
    own_size,
)
from superarm.context.observations import ContextRound
from superarm.policies.contextual.linear_algebra import quadratic, unpack
from superarm.policies.contextual.ridge import Ridge
from superarm.support import Support, item, span


@kernel
def score_entries(design: Design, support: Support, current: ContextRound, memory: Ridge, spread: float) -> None:
    """Write estimate + and - ``spread`` times width of every eligible arm's entries to ``q`` and ``low``."""
    if design.sharing == SHARED:
        _score_shared(design, support, current, memory, spread)
    else:
        _score_own(design, support, current, memory, spread)


class _Reduced(NamedTuple):
    """Shared parameters for one context, as functions of the numbers of an arm: means, and the parts of the width."""

    mean: Floats  # (m,)
    square: Floats  # (m, m)
    item_mean: Floats  # (n_item,)
    cross: Floats  # (m, n_item)
    item_square: Floats  # (n_item,)


@kernel
def _reduce(design: Design, current: ContextRound, theta: Floats, triangle: Floats) -> _Reduced:
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
    return _Reduced(mean, square, theta[own:], cross, item_square)


@kernel
def _score_shared(design: Design, support: Support, current: ContextRound, memory: Ridge, spread: float) -> None:
    reduced = _reduce(design, current, memory.theta[0], memory.inverse[0])
    v = np.zeros(len(reduced.mean))
    for j in range(support.n_arms):
        if current.candidates.eligible[j]:
            fill_arm_numbers(design, current.context, j, v)
            _score_arm(design, support, reduced, j, v, memory, spread)


@lean
def _score_arm(
    design: Design, support: Support, reduced: _Reduced, arm: int, v: Floats, memory: Ridge, spread: float
) -> None:
    mean, own = 0.0, 0.0
    for h in range(len(v)):
        row = 0.0
        for k in range(len(v)):
            row += reduced.square[h, k] * v[k]
        own += v[h] * row
        mean += v[h] * reduced.mean[h]
    first, last = span(support, arm)
    q, width = memory.q[first:last], memory.low[first:last]
    for o in range(len(width)):
        q[o], width[o] = mean, own
    if design.n_item > 0:
        for o in range(len(width)):
            i = item(support, first, o)
            q[o] += reduced.item_mean[i]
            width[o] += reduced.item_square[i]
        for k in range(
            len(v)
        ):  # entry by entry the same sums, but the inner loop is over items, side by side in memory
            cross, scale = reduced.cross[k], v[k]
            for o in range(len(width)):
                width[o] += cross[item(support, first, o)] * scale
    for o in range(len(width)):
        bonus, estimate = spread * math.sqrt(max(0.0, width[o])), q[o]
        q[o] = estimate + bonus
        width[o] = estimate - bonus


@kernel
def _score_own(design: Design, support: Support, current: ContextRound, memory: Ridge, spread: float) -> None:
    """As ``_score_shared``, where every arm or every entry has its own parameter vector."""
    own = own_size(design)
    u = np.zeros(own)
    for j in range(support.n_arms):
        if current.candidates.eligible[j]:
            fill_own_features(design, current.context, j, u)
            first, last = span(support, j)
            if design.sharing == PER_ENTRY:
                for e in range(first, last):
                    score_entry(memory, e, u, spread)
            else:
                _score_items(design, support, memory, j, u, spread)


@lean
def score_entry(memory: Ridge, entry: int, u: Floats, spread: float) -> None:
    """The same for an entry with a parameter vector of its own, whose features are ``u``."""
    mean = 0.0
    for r in range(len(u)):
        mean += u[r] * memory.theta[entry, r]
    bonus = spread * math.sqrt(max(0.0, quadratic(memory.inverse[entry], u, len(u))))
    memory.q[entry] = mean + bonus
    memory.low[entry] = mean - bonus


@kernel
def _score_items(design: Design, support: Support, memory: Ridge, arm: int, u: Floats, spread: float) -> None:
    """The entries of an arm that has one parameter vector for all of its items."""
    theta, inverse, d = memory.theta[arm], memory.inverse[arm], len(u)
    mean, own = 0.0, quadratic(inverse, u, d)
    for r in range(d):
        mean += u[r] * theta[r]
    first, last = span(support, arm)
    for o in range(last - first):
        estimate, width = mean, own
        if design.n_item > 0:
            r = d + item(support, first, o)
            at = r * (r + 1) // 2
            estimate += theta[r]
            width += inverse[at + r]
            for c in range(d):
                width += 2.0 * inverse[at + c] * u[c]
        bonus = spread * math.sqrt(max(0.0, width))
        memory.q[first + o] = estimate + bonus
        memory.low[first + o] = estimate - bonus
