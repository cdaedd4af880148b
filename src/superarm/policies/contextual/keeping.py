"""Keeping the observations of feedback, and dropping those that are taken back.

Kept are the observations of the first rounds that fit, so that what is kept does not depend on the order in which
feedback comes; they serve the estimate of [LeeYunJun2024]_. Room that is freed by taking feedback back is used for
further rounds only while nothing was dropped for want of it.
"""

import math

import numpy as np

from superarm._jit import kernel, lean
from superarm.arrays import Floats
from superarm.context.design import Design, feature_size
from superarm.context.observations import ContextFeedback
from superarm.policies.contextual.kept_observations import KeptObservations, Likelihood, count_row, is_due
from superarm.support import Support, span

_OUTCOME_GRID = 4096.0


@kernel
def keep_feedback(
    kept: KeptObservations,
    design: Design,
    support: Support,
    feedback: ContextFeedback,
    frame: int,
    likelihood: Likelihood,
    sign: float,
) -> None:
    """Keep the observations of feedback, given in ``frame``, or drop those that are taken back."""
    if len(kept.place) == 0 or feedback.shifts.size == 0:
        return
    phi = np.zeros(feature_size(design))
    at = 0
    for j in feedback.action:
        first, last = span(support, j)
        for o in range(last - first):
            if feedback.seen[at + o] and feedback.weights[at + o] > 0.0:
                _stage(kept, feedback, at + o, j, o, frame)
                if sign > 0.0:
                    _insert(kept, design, support, phi, likelihood)
                else:
                    _remove(kept, design, support, phi, likelihood)
        at += last - first


@lean
def _stage(kept: KeptObservations, feedback: ContextFeedback, at: int, arm: int, offset: int, frame: int) -> None:
    """Write an observation to the row after the last that can be kept."""
    row = len(kept.place) - 1
    kept.place[row, 0] = feedback.t
    kept.place[row, 1] = arm
    kept.place[row, 2] = offset
    kept.place[row, 3] = frame
    kept.value[row, 0] = math.floor(feedback.outcome[at] * _OUTCOME_GRID + 0.5) / _OUTCOME_GRID
    kept.value[row, 1] = feedback.weights[at]
    kept.value[row, 2] = feedback.shifts[at]
    for o in range(kept.x.shape[1]):
        kept.x[row, o] = feedback.context.x[o]
    n_pair = kept.pair.shape[1]
    for o in range(n_pair):
        kept.pair[row, o] = feedback.context.pairs[arm * n_pair + o]


@lean
def _insert(kept: KeptObservations, design: Design, support: Support, phi: Floats, likelihood: Likelihood) -> None:
    """Keep the staged row, unless it is too late for it; if there is no room, drop the rows of the last round first.

    So the rows that are kept are those of the first rounds that fit, in whatever order they come.
    """
    staged = len(kept.place) - 1
    if kept.place[staged, 0] < kept.size[1] and kept.size[0] == staged:
        _drop_last_round(kept, design, support, phi, likelihood.offset)
    if kept.place[staged, 0] >= kept.size[1]:
        return
    row = kept.size[0]
    _copy_row(kept, staged, row)
    kept.size[0] += 1
    group = count_row(kept, design, support, row, phi, likelihood.offset, 1.0)
    if is_due(kept, group, likelihood.ridge):
        kept.due[0] = True


@lean
def _drop_last_round(kept: KeptObservations, design: Design, support: Support, phi: Floats, offset: float) -> None:
    """Keep nothing from the last round on, that of the staged row included."""
    last = kept.place[len(kept.place) - 1, 0]
    for row in range(kept.size[0]):
        last = max(last, kept.place[row, 0])
    kept.size[1] = last
    row = 0
    while row < kept.size[0]:
        if kept.place[row, 0] == last:
            _drop_row(kept, design, support, row, phi, offset)
        else:
            row += 1


@lean
def _remove(kept: KeptObservations, design: Design, support: Support, phi: Floats, likelihood: Likelihood) -> None:
    """Drop a row that is equal to the staged one, if there is one."""
    staged = len(kept.place) - 1
    for row in range(kept.size[0]):
        if _is_same(kept, row, staged):
            _drop_row(kept, design, support, row, phi, likelihood.offset)
            return


@lean
def _drop_row(kept: KeptObservations, design: Design, support: Support, row: int, phi: Floats, offset: float) -> None:
    count_row(kept, design, support, row, phi, offset, -1.0)
    kept.size[0] -= 1
    _copy_row(kept, kept.size[0], row)


@lean
def _copy_row(kept: KeptObservations, source: int, target: int) -> None:
    for o in range(kept.place.shape[1]):
        kept.place[target, o] = kept.place[source, o]
    for o in range(kept.value.shape[1]):
        kept.value[target, o] = kept.value[source, o]
    for o in range(kept.x.shape[1]):
        kept.x[target, o] = kept.x[source, o]
    for o in range(kept.pair.shape[1]):
        kept.pair[target, o] = kept.pair[source, o]


@lean
def _is_same(kept: KeptObservations, one: int, other: int) -> bool:
    for o in range(kept.place.shape[1]):
        if kept.place[one, o] != kept.place[other, o]:
            return False
    for o in range(kept.value.shape[1]):
        if kept.value[one, o] != kept.value[other, o]:
            return False
    for o in range(kept.x.shape[1]):
        if kept.x[one, o] != kept.x[other, o]:
            return False
    for o in range(kept.pair.shape[1]):
        if kept.pair[one, o] != kept.pair[other, o]:
            return False
    return True
