r"""Estimates :math:`\langle\phi, \hat\theta\rangle` and widths :math:`\lVert\phi\rVert_{G^{-1}}` of all entries.

[LiuEtAl2023]_ (Algorithms 1 and 2).
"""

import math

import numpy as np

from superarm._jit import inlined, kernel, lean
from superarm.arrays import Bools, Floats
from superarm.context.design import PER_ENTRY, SHARED, Design, fill_own_features, own_size
from superarm.context.observations import ContextRound
from superarm.policies.contextual.lane_algebra import LANES, quadratic_lanes
from superarm.policies.contextual.linear_algebra import quadratic
from superarm.policies.contextual.ridge import Ridge
from superarm.policies.contextual.shared_scores import score_shared
from superarm.support import Support, item, span


@kernel
def score_entries(design: Design, support: Support, current: ContextRound, memory: Ridge, spread: float) -> None:
    """Write estimate + and - ``spread`` times width of every eligible arm's entries to ``q`` and ``low``."""
    if design.sharing == SHARED:
        score_shared(design, support, current, memory, spread)
    else:
        _score_own(design, support, current, memory, spread)


@kernel
def _score_own(design: Design, support: Support, current: ContextRound, memory: Ridge, spread: float) -> None:
    """As ``score_shared``, where every arm or every entry has its own parameter vector."""
    u, squares = np.zeros(own_size(design)), np.zeros(len(memory.theta))
    eligible, alike = current.candidates.eligible, design.n_pair == 0
    fill_own_features(design, current.context, 0, u)
    if alike:
        _fill_squares(design, support, eligible, memory.inverse, u, squares)
    for j in range(len(eligible)):
        if eligible[j]:
            first, last = _groups(design, support, j)
            if not alike:
                fill_own_features(design, current.context, j, u)
                for g in range(first, last):
                    squares[g] = quadratic(memory.inverse[g], u, len(u))
            if design.sharing == PER_ENTRY:
                for e in range(first, last):
                    _write_bounds(memory, e, u, squares[e], spread)
            else:
                _score_items(design, support, memory, j, u, squares[j], spread)


@inlined
def _groups(design: Design, support: Support, arm: int) -> tuple[int, int]:
    """The first of the parameter vectors of ``arm``, and one past the last."""
    if design.sharing == PER_ENTRY:
        return span(support, arm)
    return arm, arm + 1


@kernel
def _fill_squares(
    design: Design, support: Support, eligible: Bools, inverse: Floats, u: Floats, squares: Floats
) -> None:
    r"""Write :math:`u^\top G^{-1} u` of the parameter vectors of eligible arms, eight at a time."""
    group, found, waiting = np.zeros(LANES, np.int64), np.zeros(LANES), 0
    for j in range(len(eligible)):
        if eligible[j]:
            first, last = _groups(design, support, j)
            for g in range(first, last):
                group[waiting] = g
                waiting += 1
                if waiting == LANES:
                    quadratic_lanes(inverse, group, u, found)
                    for n in range(LANES):
                        squares[group[n]] = found[n]
                    waiting = 0
    for n in range(waiting):
        squares[group[n]] = quadratic(inverse[group[n]], u, len(u))


@lean
def score_entry(memory: Ridge, entry: int, u: Floats, spread: float) -> None:
    """The same for an entry with a parameter vector of its own, whose features are ``u``."""
    _write_bounds(memory, entry, u, quadratic(memory.inverse[entry], u, len(u)), spread)


@inlined
def _write_bounds(memory: Ridge, entry: int, u: Floats, square: float, spread: float) -> None:
    mean, theta = 0.0, memory.theta[entry]
    for r in range(len(u)):
        mean += u[r] * theta[r]
    bonus = spread * math.sqrt(max(0.0, square))
    memory.q[entry] = mean + bonus
    memory.low[entry] = mean - bonus


@lean
def _score_items(
    design: Design, support: Support, memory: Ridge, arm: int, u: Floats, square: float, spread: float
) -> None:
    """The entries of an arm that has one parameter vector for all of its items."""
    theta, inverse, d = memory.theta[arm], memory.inverse[arm], len(u)
    mean = 0.0
    for r in range(d):
        mean += u[r] * theta[r]
    first, last = span(support, arm)
    for o in range(last - first):
        estimate, width = mean, square
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
