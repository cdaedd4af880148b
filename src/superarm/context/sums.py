r"""The sums of regression models: additive and exact, as tallies are.

An observation with weight w, features :math:`\phi` and outcome X adds :math:`w\,\phi\phi^\top` and :math:`w\,\phi X`.
Weights are multiples of 1/4, features of :math:`2^{-10}` and outcomes of :math:`2^{-12}`, so the sums are multiples of
:math:`2^{-24}`: float64 sums of them are exact while the weights of a parameter vector's observations add up to less
than :math:`2^{29}` (130,000 observations of the largest weight, 4096; 130 million of the weight 4 that unweighted
regression uses). Logistic models have weights of at most 1/4 that are multiples of :math:`2^{-12}`, and add
:math:`\phi\,(X + shift)` in place of the response; their sums are exact up to 8 million observations of weight 1/4.

So the sums do not depend on the order of observations, are merged by addition and undone by subtraction.
"""

import math
from typing import NamedTuple

import numpy as np

from superarm._jit import inlined, kernel, lean
from superarm.arrays import Bools, Floats
from superarm.context.context import Context
from superarm.context.design import (
    Design,
    fill_own_features,
    group_count,
    group_of,
    make_design,
    own_size,
)
from superarm.context.observations import ContextFeedback, ContextTally
from superarm.support import Support, item, span
from superarm.tally import Tally, empty

UNWEIGHTED = 4.0
"""The weight of an observation of which only its range is known: 1 / (1/4), the largest variance in [0, 1]."""

MAX_WEIGHT = 4096.0
"""The largest weight of an observation: variances below 1/4096 count as that."""

_OUTCOME_GRID = 4096.0


@inlined
def round_weight(variance: float) -> float:
    """The weight of an observation with that variance: 1 / variance, rounded down to a multiple of 1/4."""
    return math.floor(4.0 * min(MAX_WEIGHT, 1.0 / max(variance, 1.0 / MAX_WEIGHT))) / 4.0


@inlined
def round_share(weight: float) -> float:
    """The nearest multiple of 1/4, at least 1/4."""
    return max(1.0, math.floor(4.0 * weight + 0.5)) / 4.0


@inlined
def triangle(d: int) -> int:
    """How many numbers the lower triangle of a d by d matrix has."""
    return d * (d + 1) // 2


def empty_context_tally(context: Context | None, support: Support) -> Tally | ContextTally:
    """An empty tally, for a problem with or without a context."""
    tally = empty(support)
    if context is None:
        return tally
    if context.dimension(support.n_items) == 0:
        return Tally(*(np.zeros(context.n_segments * len(values)) for values in tally))
    design = make_design(context, support.n_arms, support.n_items)
    groups, d = group_count(design, support), context.dimension(support.n_items)
    return ContextTally(*tally, np.zeros((groups, triangle(d))), np.zeros((groups, d)))


@kernel
def record_sums(tally: ContextTally, design: Design, support: Support, feedback: ContextFeedback, sign: float) -> None:
    """Add feedback to the sums of the regression in place (``sign=1.0``), or take it back (``sign=-1.0``)."""
    add_precision(tally.precision, design, support, feedback, sign)
    u = np.zeros(own_size(design))
    at = 0
    for j in feedback.action:
        fill_own_features(design, feedback.context, j, u)
        first, last = span(support, j)
        for o in range(last - first):
            weight = feedback.weights[at + o]
            if feedback.seen[at + o] and weight > 0.0:
                x = math.floor(feedback.outcome[at + o] * _OUTCOME_GRID + 0.5) / _OUTCOME_GRID
                share = sign * (x + feedback.shifts[at + o] if feedback.shifts.size > 0 else weight * x)
                group = group_of(design, j, first + o)
                for r in range(len(u)):
                    tally.response[group, r] += share * u[r]
                if design.n_item > 0:
                    tally.response[group, len(u) + item(support, first, o)] += share
        at += last - first


@kernel
def add_precision(precision: Floats, design: Design, support: Support, feedback: ContextFeedback, sign: float) -> None:
    r"""Add :math:`w\,\phi\phi^\top` of all entries that ``feedback.seen`` marks, whatever their outcome."""
    u = np.zeros(own_size(design))
    at = 0
    for j in feedback.action:
        fill_own_features(design, feedback.context, j, u)
        first, last = span(support, j)
        _add_arm(precision, design, support, Weighted(j, u, feedback.weights[at:], feedback.seen[at:]), sign)
        at += last - first


class Weighted(NamedTuple):
    """An observed arm: the part of its features that does not depend on the item, and its entries' weights."""

    arm: int
    u: Floats
    weights: Floats
    seen: Bools


@lean
def _add_arm(precision: Floats, design: Design, support: Support, observed: Weighted, sign: float) -> None:
    first, last = span(support, observed.arm)
    u, pooled = observed.u, 0.0
    for o in range(last - first):
        if not observed.seen[o]:
            continue
        share, group = sign * observed.weights[o], group_of(design, observed.arm, first + o)
        if design.n_item > 0:
            pooled += share
            r = len(u) + item(support, first, o)
            at = triangle(r)
            for c in range(len(u)):
                precision[group, at + c] += share * u[c]
            precision[group, at + r] += share
        else:
            _add_outer(precision, group, u, share)
    if design.n_item > 0:
        _add_outer(precision, group_of(design, observed.arm, first), u, pooled)


@lean
def _add_outer(precision: Floats, group: int, u: Floats, share: float) -> None:
    at = 0
    for r in range(len(u)):
        scaled = share * u[r]
        for c in range(r + 1):
            precision[group, at + c] += scaled * u[c]
        at += r + 1
