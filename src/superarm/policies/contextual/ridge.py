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
from superarm.policies.contextual.lane_algebra import LANES
from superarm.policies.contextual.linear_algebra import factorise
from superarm.policies.contextual.systems import (
    Correction,
    Systems,
    factorise_systems,
    invert_systems,
    load_systems,
    make_systems,
    read_system,
    solve_systems,
)
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
    """Estimate the parameter vectors of which something new was observed, several at a time, with the correction."""
    groups, d = memory.theta.shape
    work, waiting = make_systems(groups, d), 0
    for g in range(groups):
        if memory.stale[g]:
            memory.widened.outdated[g] = True
            work.group[waiting] = g
            waiting += 1
            if waiting == LANES:
                _estimate(memory, tally, more, ridge, work, waiting)
                waiting = 0
    _estimate(memory, tally, more, ridge, work, waiting)
    memory.stale[:] = False


@kernel
def _estimate(memory: Ridge, tally: ContextTally, more: Correction, ridge: float, work: Systems, waiting: int) -> None:
    """Estimate the first ``waiting`` of ``work.group``."""
    if waiting == 0:
        return
    d = memory.theta.shape[1]
    stride = load_systems(work, waiting, tally, more, tally.precision[:0], ridge)
    factorise_systems(work, d, stride)
    solve_systems(work, d, stride)
    invert_systems(work, d, stride)
    for n in range(waiting):
        read_system(work.vector, stride, n, memory.theta[work.group[n]])
        read_system(work.factor, stride, n, memory.inverse[work.group[n]])


@kernel
def widen(memory: Ridge, tally: ContextTally, more: Correction, pending: Floats, ridge: float) -> Floats:
    """The inverse of each G with the precision of pending decisions; that of the memory itself where there are none.

    Computed are those of which the estimate or the pending precision has changed since the last call.
    """
    if pending.size == 0:
        return memory.inverse
    wide = memory.widened
    work, waiting = make_systems(len(wide.inverse), memory.theta.shape[1]), 0
    for g in range(len(wide.inverse)):
        if wide.outdated[g] or not _is_same(pending[g], wide.pending[g]):
            wide.outdated[g] = False
            wide.pending[g] = pending[g]
            if not pending[g].any():
                wide.inverse[g] = memory.inverse[g]
                continue
            work.group[waiting] = g
            waiting += 1
            if waiting == LANES:
                _invert(wide, tally, more, ridge, work, waiting)
                waiting = 0
    _invert(wide, tally, more, ridge, work, waiting)
    return wide.inverse


@kernel
def _invert(wide: Widened, tally: ContextTally, more: Correction, ridge: float, work: Systems, waiting: int) -> None:
    """Compute the inverses of the first ``waiting`` of ``work.group``, with the pending precision."""
    if waiting == 0:
        return
    d = tally.response.shape[1]
    stride = load_systems(work, waiting, tally, more, wide.pending, ridge)
    factorise_systems(work, d, stride)
    invert_systems(work, d, stride)
    for n in range(waiting):
        read_system(work.factor, stride, n, wide.inverse[work.group[n]])


@lean
def _is_same(one: Floats, other: Floats) -> bool:
    """Whether two rows are equal; without a way out of the loop, so that it becomes vector instructions."""
    differ = 0
    for n in range(len(one)):
        differ += one[n] != other[n]
    return differ == 0


@kernel
def draw_parameters(theta: Floats, inverse: Floats, spread: float, stream: Stream) -> Floats:
    r"""One draw of every parameter vector from :math:`N(\hat\theta, spread^2\,G^{-1})`."""
    groups, d = theta.shape
    drawn, root = theta.copy(), np.zeros(inverse.shape[1])
    z = np.zeros(d)
    for g in range(groups):
        root[:] = inverse[g]
        factorise(root, d, z)
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
