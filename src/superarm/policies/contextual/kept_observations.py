r"""Observations that logistic policies keep, so that their quadratic approximations can be made anew.

An observation enters the sums of a tally by the quadratic approximation of its log-likelihood at the estimate of its
decision. The *point* of a parameter vector is its estimate of maximum likelihood at the last refit
(``maximum_likelihood``); the *correction* is by how much the sums would differ if kept observations up to the round of
that refit were approximated at the point instead. Every term of it is a multiple of :math:`2^{-36}`, so that sums over
up to :math:`2^{16}` observations are exact: they do not depend on the order of observations, and are undone exactly.

[LeeYunJun2024]_ has the maximum-likelihood estimate that this serves.
"""

import math
from typing import NamedTuple

import numpy as np

from superarm._jit import inlined, kernel, lean
from superarm.arrays import Bools, Floats, Ints
from superarm.context.design import Design, feature_size, fill_outer_features, group_count, group_of, own_size
from superarm.context.frames import LAST_FRAME
from superarm.context.sums import triangle
from superarm.policies.contextual.systems import Correction
from superarm.policies.policy_state import KeptRows
from superarm.support import Support, item, span

TERM_GRID = 2.0**36
"""Terms of corrections are multiples of 1 / TERM_GRID."""

_NO_LIMIT = 2**62


class Likelihood(NamedTuple):
    """The offset of the log-odds, and the penalty of the parameters."""

    offset: float
    ridge: float


class KeptObservations(NamedTuple):
    """The first observations by round, in rows; the last refit; and the correction that follows from both.

    ``place`` (n, 4) has the round, the arm, the place of the entry among those of the arm, and the frame of each row,
    ``value`` (n, 3) its outcome, and its weight and shift in the tally. ``x`` and ``pair`` are the features of user and
    pair. ``size`` (2,) says how many rows are in use, and from which round on none is kept. ``maps``
    (n_frames, n_user, 2) takes the user's vector from each earlier frame to the one that is ``present`` (1,): every
    coordinate is the first one, which is the intercept, times one number, plus its old value times another one.

    ``point`` (n_groups, d) holds the points, ``until`` (n_groups,) the rounds of their refits, and ``information``
    (n_groups, 2) the traces of the kept observations' information, now and at the refit. ``due`` (1,) says that one of
    them has doubled.
    """

    place: Ints
    value: Floats
    x: Floats
    pair: Floats
    size: Ints
    maps: Floats
    present: Ints
    point: Floats
    until: Ints
    information: Floats
    due: Bools
    precision: Floats
    response: Floats


@kernel
def keep_nothing_yet(capacity: int, design: Design, support: Support) -> KeptObservations:
    """Room for so many observations; for none, there is no room for points and corrections either.

    There is one row more than can be kept, for the observation that is being looked at.
    """
    d = feature_size(design)
    groups = group_count(design, support) if capacity > 0 else 0
    rows = capacity + 1 if capacity > 0 else 0
    size, maps = np.zeros(2, np.int64), np.zeros((LAST_FRAME + 1, design.n_user, 2))
    size[1] = _NO_LIMIT
    maps[:, :, 1] = 1.0
    return KeptObservations(
        np.zeros((rows, 4), np.int64),
        np.zeros((rows, 3)),
        np.zeros((rows, design.n_user)),
        np.zeros((rows, design.n_pair)),
        size,
        maps,
        np.zeros(1, np.int64),
        np.zeros((groups, d)),
        np.zeros(groups, np.int64),
        np.zeros((groups, 2)),
        np.zeros(1, np.bool_),
        np.zeros((groups, triangle(d))),
        np.zeros((groups, d)),
    )


@kernel
def correction(kept: KeptObservations) -> Correction:
    """What is added to the sums of the tally."""
    return Correction(kept.precision, kept.response)


def save_kept(kept: KeptObservations) -> KeptRows:
    """The rows in an order of their own, and the refits."""
    n = int(kept.size[0])
    rows = np.concatenate([kept.place[:n].astype(float), kept.value[:n], kept.x[:n], kept.pair[:n]], axis=1)
    bounds = np.array([kept.size[1], kept.present[0]], float)
    marks = np.stack([kept.until.astype(float), kept.information[:, 1]], axis=1)
    return KeptRows(rows[np.lexsort(rows.T[::-1])], bounds, kept.maps.copy(), kept.point.copy(), marks)


def restore_kept(kept: KeptObservations, held: KeptRows) -> None:
    """Put rows and refits into a memory just prepared; the corrections are still to be computed."""
    n = len(held.rows)
    place, value, x, pair = np.split(held.rows, np.cumsum([4, 3, kept.x.shape[1]]), axis=1)
    kept.place[:n], kept.value[:n], kept.x[:n], kept.pair[:n] = place, value, x, pair
    kept.size[:] = n, int(held.bounds[0])
    kept.present[0] = int(held.bounds[1])
    kept.maps[:], kept.point[:] = held.maps, held.point
    kept.until[:], kept.information[:, 1] = held.marks[:, 0], held.marks[:, 1]


@inlined
def sigmoid(x: float) -> float:
    """The logistic function; exact to rounding for large negative numbers."""
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    e = math.exp(x)
    return e / (1.0 + e)


@inlined
def round_term(term: float) -> float:
    """The nearest multiple of 1 / TERM_GRID."""
    return math.floor(term * TERM_GRID + 0.5) / TERM_GRID


@lean
def fill_row(kept: KeptObservations, design: Design, support: Support, row: int, phi: Floats) -> None:
    """Write the features of a kept observation in the present frame."""
    arm, own = kept.place[row, 1], own_size(design)
    at = fill_outer_features(design, kept.x[row], arm, phi)
    for o in range(design.n_pair):
        phi[at + o] = kept.pair[row, o]
    frame = kept.place[row, 3]
    if frame != kept.present[0]:
        _map_frame(kept.maps[frame], design, phi)
    for o in range(design.n_item):
        phi[own + o] = 0.0
    if design.n_item > 0:
        first, _ = span(support, arm)
        phi[own + item(support, first, kept.place[row, 2])] = 1.0


@lean
def _map_frame(factors: Floats, design: Design, phi: Floats) -> None:
    """Take each block of ``phi`` that holds features of the user to another frame."""
    n_user = design.n_user
    blocks = design.arms.shape[1] if design.crossed else 1
    for block in range(blocks):
        first = block * n_user
        for o in range(1, n_user):
            phi[first + o] = factors[o, 0] * phi[first] + factors[o, 1] * phi[first + o]


@lean
def row_group(kept: KeptObservations, design: Design, support: Support, row: int) -> int:
    """The parameter vector of a kept observation."""
    first, _ = span(support, kept.place[row, 1])
    return group_of(design, kept.place[row, 1], first + kept.place[row, 2])


@lean
def correct_row(kept: KeptObservations, group: int, row: int, phi: Floats, offset: float, sign: float) -> None:
    """Add the correction of one row with features ``phi``, or take it back."""
    eta = 0.0
    for r in range(len(phi)):
        eta += phi[r] * kept.point[group, r]
    mean = sigmoid(offset + eta)
    weight = mean * (1.0 - mean)
    shift = weight * eta - mean - kept.value[row, 2]
    weight -= kept.value[row, 1]
    at = 0
    for r in range(len(phi)):
        kept.response[group, r] += sign * round_term(shift * phi[r])
        scaled = weight * phi[r]
        for c in range(r + 1):
            kept.precision[group, at + c] += sign * round_term(scaled * phi[c])
        at += r + 1


@lean
def count_row(
    kept: KeptObservations, design: Design, support: Support, row: int, phi: Floats, offset: float, sign: float
) -> int:
    """Count a row in the information and the correction of its parameter vector, or take it back; which one it is."""
    group = row_group(kept, design, support, row)
    fill_row(kept, design, support, row, phi)
    trace = 0.0
    for r in range(len(phi)):
        trace += phi[r] * phi[r]
    kept.information[group, 0] += sign * round_term(kept.value[row, 1] * trace)
    if kept.place[row, 0] <= kept.until[group]:
        correct_row(kept, group, row, phi, offset, sign)
    return group


@lean
def is_due(kept: KeptObservations, group: int, ridge: float) -> bool:
    """Whether the trace of the information, ridge included, has doubled since the last refit."""
    prior = ridge * kept.point.shape[1]
    return bool(kept.information[group, 0] - kept.information[group, 1] >= prior + kept.information[group, 1])
