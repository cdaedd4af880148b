r"""Ridge estimates: :math:`\hat\theta = G^{-1}b` and :math:`G^{-1}` of every parameter vector, from a tally's sums.

They follow from the tally and its correction alone, so that an agent that was saved and restored has the same bits: an
inverse is computed anew after an observation, not updated. Ridge regression as in [LiuEtAl2023]_ (Algorithms 1 and 2).
"""

from typing import NamedTuple

import numpy as np

from superarm._jit import kernel, lean
from superarm.arrays import Bools, Floats, Ints
from superarm.context.design import Design, group_of
from superarm.context.observations import ContextFeedback, ContextTally
from superarm.context.sums import record_sums
from superarm.intake import Exact
from superarm.policies.contextual.lane_algebra import LANES, factorise_lanes, invert_lanes, solve_lanes, square_lanes
from superarm.policies.contextual.linear_algebra import factorise, invert_factor, solve_factor, square_factor
from superarm.streams import Stream, normal
from superarm.support import Support, span
from superarm.tally import Feedback, Tally, record


class Widened(NamedTuple):
    """The inverses of G with the precision of pending decisions, ``pending``, as they were last computed.

    ``outdated`` marks the groups that were estimated anew since.
    """

    inverse: Floats
    pending: Floats
    outdated: Bools


class Ridge(NamedTuple):
    """Ridge estimates: parameter vectors (n_groups, d) and the lower triangles of the inverses of their G.

    ``stale`` marks the groups of which something was observed since. ``q`` and ``low`` (n_entries,) are buffers for the
    upper and lower bounds of the parameters of a round.
    """

    theta: Floats
    inverse: Floats
    stale: Bools
    q: Floats
    low: Floats
    widened: Widened


class Correction(NamedTuple):
    """What is added to the precision and the response of a tally, in their shapes; no rows if nothing is."""

    precision: Floats
    response: Floats


@kernel
def empty_ridge(tally: ContextTally) -> Ridge:
    """A memory in which every parameter vector is still to be estimated."""
    groups, d = tally.response.shape
    return Ridge(
        np.zeros((groups, d)),
        np.zeros(tally.precision.shape),
        np.ones(groups, np.bool_),
        np.zeros(len(tally.total)),
        np.zeros(len(tally.total)),
        Widened(np.zeros(tally.precision.shape), np.zeros(tally.precision.shape), np.ones(groups, np.bool_)),
    )


@kernel
def no_correction(tally: ContextTally) -> Correction:
    """A correction that adds nothing."""
    return Correction(tally.precision[:0], tally.response[:0])


@kernel
def learn_regression(
    design: Design,
    tally: ContextTally,
    stale: Bools,
    support: Support,
    feedback: ContextFeedback,
    stream: Stream,
    sign: float,
) -> None:
    """Record feedback in the tally, and mark the parameter vectors that are to be estimated again."""
    record_counts(tally, support, feedback, stream, sign)
    record_sums(tally, design, support, feedback, sign)
    mark_stale(stale, design, support, feedback.action)


@kernel
def record_counts(
    tally: ContextTally, support: Support, feedback: ContextFeedback, stream: Stream, sign: float
) -> None:
    """Record feedback in the counts of the tally, which do not depend on the context."""
    plain = Feedback(feedback.t, feedback.action, feedback.outcome, feedback.seen)
    counts = Tally(
        tally.pulls,
        tally.total,
        tally.square,
        tally.missed,
        tally.joint,
        tally.reference,
        tally.moments,
        tally.products,
    )
    record(counts, support, plain, Exact(), stream, sign)


@lean
def mark_stale(stale: Bools, design: Design, support: Support, action: Ints) -> None:
    """Mark the parameter vectors of the entries of ``action``."""
    for j in action:
        first, last = span(support, j)
        for e in range(first, last):
            stale[group_of(design, j, e)] = True


@kernel
def refresh(memory: Ridge, tally: ContextTally, more: Correction, ridge: float) -> None:
    """Estimate the parameter vectors of which something new was observed, eight at a time, with the correction."""
    groups, size = memory.inverse.shape
    lanes = min(groups, LANES)
    work = _Lanes(
        np.zeros(lanes, np.int64),
        np.zeros(lanes * size),
        np.zeros(lanes * size),
        np.zeros(lanes * memory.theta.shape[1]),
        np.zeros(LANES),
    )
    waiting = 0
    for g in range(groups):
        if memory.stale[g]:
            memory.widened.outdated[g] = True
            work.group[waiting] = g
            waiting += 1
            if waiting == LANES:
                _refresh_lanes(memory, tally, more, ridge, work)
                waiting = 0
    for n in range(waiting):
        _refresh_one(memory, tally, more, ridge, work, n)
    memory.stale[:] = False


class _Lanes(NamedTuple):
    """Buffers of ``refresh``: the numbers of the groups, two triangles and a vector of lanes, and one number each."""

    group: Ints
    factor: Floats
    inverse: Floats
    vector: Floats
    total: Floats


@kernel
def _refresh_one(memory: Ridge, tally: ContextTally, more: Correction, ridge: float, work: _Lanes, lane: int) -> None:
    d, size, g = memory.theta.shape[1], memory.inverse.shape[1], work.group[lane]
    factor = work.factor[:size]
    factor[:] = tally.precision[g]
    memory.theta[g] = tally.response[g]
    if len(more.precision) > 0:
        factor += more.precision[g]
        memory.theta[g] += more.response[g]
    _add_ridge(factor, d, ridge)
    factorise(factor, d)
    solve_factor(factor, d, memory.theta[g])
    invert_factor(factor, d, work.inverse)
    square_factor(work.inverse, d, memory.inverse[g])


@lean
def _refresh_lanes(memory: Ridge, tally: ContextTally, more: Correction, ridge: float, work: _Lanes) -> None:
    d, size = memory.theta.shape[1], memory.inverse.shape[1]
    for n in range(LANES):
        g = work.group[n]
        at = 0
        for r in range(d):
            work.vector[r * LANES + n] = tally.response[g, r]
            for c in range(r + 1):
                work.factor[(at + c) * LANES + n] = tally.precision[g, at + c]
            if len(more.precision) > 0:
                work.vector[r * LANES + n] += more.response[g, r]
                for c in range(r + 1):
                    work.factor[(at + c) * LANES + n] += more.precision[g, at + c]
            work.factor[(at + r) * LANES + n] += ridge
            at += r + 1
    factorise_lanes(work.factor, d, work.total)
    solve_lanes(work.factor, d, work.vector, work.total)
    invert_lanes(work.factor, d, work.inverse, work.total)
    square_lanes(work.inverse, d, work.factor)
    for n in range(LANES):
        g = work.group[n]
        for r in range(d):
            memory.theta[g, r] = work.vector[r * LANES + n]
        for at in range(size):
            memory.inverse[g, at] = work.factor[at * LANES + n]


@kernel
def widen(memory: Ridge, tally: ContextTally, more: Correction, pending: Floats, ridge: float) -> Floats:
    """The inverse of each G with the precision of pending decisions; that of the memory itself where there are none.

    Computed are those of which the estimate or the pending precision has changed since the last call.
    """
    if pending.size == 0:
        return memory.inverse
    wide, d = memory.widened, memory.theta.shape[1]
    factor, inverse_factor = np.zeros(pending.shape[1]), np.zeros(pending.shape[1])
    for g in range(len(wide.inverse)):
        if wide.outdated[g] or not _is_same(pending[g], wide.pending[g]):
            wide.outdated[g] = False
            wide.pending[g] = pending[g]
            if not pending[g].any():
                wide.inverse[g] = memory.inverse[g]
                continue
            factor[:] = tally.precision[g]
            if len(more.precision) > 0:
                factor += more.precision[g]
            factor += pending[g]
            _add_ridge(factor, d, ridge)
            factorise(factor, d)
            invert_factor(factor, d, inverse_factor)
            square_factor(inverse_factor, d, wide.inverse[g])
    return wide.inverse


@lean
def _is_same(one: Floats, other: Floats) -> bool:
    """Whether two rows are equal; without a way out of the loop, so that it becomes vector instructions."""
    differ = 0
    for n in range(len(one)):
        differ += one[n] != other[n]
    return differ == 0


@lean
def _add_ridge(triangle: Floats, d: int, ridge: float) -> None:
    at = 0
    for r in range(d):
        triangle[at + r] += ridge
        at += r + 1


@kernel
def draw_parameters(theta: Floats, inverse: Floats, spread: float, stream: Stream) -> Floats:
    r"""One draw of every parameter vector from :math:`N(\hat\theta, spread^2\,G^{-1})`."""
    groups, d = theta.shape
    drawn, root = theta.copy(), np.zeros(inverse.shape[1])
    z = np.zeros(d)
    for g in range(groups):
        root[:] = inverse[g]
        factorise(root, d)
        for r in range(d):
            z[r] = normal(stream)
        at = 0
        for r in range(d):
            shift = 0.0
            for c in range(r + 1):
                shift += root[at + c] * z[c]
            drawn[g, r] += spread * shift
            at += r + 1
    return drawn
