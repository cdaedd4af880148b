r"""Ridge estimates: :math:`\hat\theta = G^{-1}b` and :math:`G^{-1}` of every parameter vector, from a tally's sums.

They follow from the sums and their correction alone, so that an agent that was saved and restored has the same bits: an
inverse is computed anew after an observation, not updated. Ridge regression as in [LiuEtAl2023]_ (Algorithms 1 and 2).
"""

from typing import Any, NamedTuple

import numpy as np

from superarm.context.context import Contexts
from superarm.context.design import Design, arm_major, by_pair
from superarm.context.models import ALL, ENTRIES
from superarm.context.sums import RegressionSums, unpack
from superarm.core import streams
from superarm.core.arrays import Floats, Ints
from superarm.core.ops import op
from superarm.core.support import AnySupport, Dense


class Correction(NamedTuple):
    """What is added to the precision and the response of a tally, in their shapes."""

    precision: Floats
    response: Floats


class Ridge:
    """Ridge estimates: parameter vectors ``theta`` (R, n_groups, d) and the ``inverse`` (R, n_groups, d, d) of their G.

    ``stale`` (R, n_groups) marks those of which something was observed since. ``low`` and ``high`` are the bounds of
    the parameters of all entries in the last round, clipped to [0, 1].
    """

    def __init__(self, sums: RegressionSums) -> None:
        self.theta = np.zeros_like(sums.response)
        self.inverse = np.zeros((*self.theta.shape, self.theta.shape[2]))
        self.stale = np.ones(self.theta.shape[:2], bool)
        self.low: Floats = np.zeros(0)
        self.high: Floats = np.zeros(0)
        self._wide = self.inverse
        self._wide_for = np.full(sums.precision.shape, -1.0)  # the pending precision that it was computed with

    def mark(self, design: Design, support: AnySupport, action: Ints) -> None:
        """Note that entries of ``action`` (R, K) were observed, or that observations were taken back."""
        group = design.groups_of(support, action)
        r, k, place = np.nonzero(group >= 0)
        self.stale[r, group[r, k, place]] = True

    def refresh(self, sums: RegressionSums, ridge: float, more: Correction | None = None) -> None:
        """Estimate the parameter vectors of which something new was observed."""
        if self.stale.any():
            at = np.nonzero(self.stale)
            factor = _factors(sums, ridge, more, at, None)
            theta = sums.response[at] if more is None else sums.response[at] + more.response[at]
            op("solve_systems", factor.size)(factor, theta)
            self.theta[at], self.inverse[at] = theta, _inverses(factor)
            self._wide_for[at] = -1.0
            self.stale[...] = False

    def widen(self, sums: RegressionSums, ridge: float, pending: Any, more: Correction | None = None) -> Floats:
        """The inverse of each G with the precision of pending decisions, (R, n_groups, d, d)."""
        if pending is None:
            return self.inverse
        changed = (pending != self._wide_for).any(2)
        if changed.any():
            if self._wide is self.inverse:
                self._wide = self.inverse.copy()
            self._wide_for[changed] = pending[changed]
            waiting = pending.any(2)
            self._wide[changed & ~waiting] = self.inverse[changed & ~waiting]
            at = np.nonzero(changed & waiting)
            if len(at[0]):
                self._wide[at] = _inverses(_factors(sums, ridge, more, at, pending))
        return self._wide

    def draw(self, inverse: Floats, spread: float, keys: Any, t: int) -> Floats:
        r"""One draw of every parameter vector from :math:`N(\hat\theta, spread^2\,G^{-1})`."""
        groups, d = self.theta.shape[1:]
        z = streams.uniform(keys, t, np.zeros(1, np.int64), groups * d)
        z = streams.normal(z).reshape(len(keys), groups, d)
        root = inverse.reshape(-1, d, d).copy()
        op("factorise", root.size * d)(root)
        lower = np.tril(root).reshape(inverse.shape)
        return self.theta + spread * np.cumsum(lower * z[:, :, None, :], -1)[..., -1]


def _factors(sums: RegressionSums, ridge: float, more: Any, at: Any, pending: Any) -> Floats:
    """The Cholesky factors of G of the parameter vectors ``at``: (n, d, d)."""
    triangles = sums.precision[at] if more is None else sums.precision[at] + more.precision[at]
    if pending is not None:
        triangles = triangles + pending[at]
    d = sums.response.shape[2]
    factor = unpack(triangles, d)
    factor[:, np.arange(d), np.arange(d)] += ridge
    op("factorise", factor.size * d)(factor)
    return factor


def _inverses(factor: Floats) -> Floats:
    inverse = np.empty(factor.shape)
    op("invert_systems", factor.size * factor.shape[1])(factor, inverse)
    return inverse


class RidgeScores(NamedTuple):
    r"""Estimates :math:`\langle\phi, \hat\theta\rangle` and squared widths of all entries, in the shape of entries."""

    mean: Floats
    square: Floats

    def bonus(self, spread: float) -> Any:
        """``spread`` times the widths."""
        return spread * np.sqrt(np.maximum(0.0, self.square))


def score_entries(
    design: Design, support: AnySupport, given: Contexts, theta: Floats, inverse: Floats | None
) -> RidgeScores:
    """The estimates and widths of all entries in each of R contexts; parameters are of R replications, or of one.

    Without an ``inverse`` the widths are those of none: 0.
    """
    if design.sharing == ALL:
        return _score_shared(design, support, given, theta[:, 0], None if inverse is None else inverse[:, 0])
    nothing = np.zeros((*theta.shape, theta.shape[2]))
    return _score_own(design, support, given, theta, nothing if inverse is None else inverse)


def _score_shared(
    design: Design, support: AnySupport, given: Contexts, theta: Floats, inverse: Floats | None
) -> RidgeScores:
    """As a function of the numbers ``v`` of an arm: the shared parameters are reduced once per context."""
    own, v = design.own, design.arms.T[None]
    if design.n_pair:
        pairs = given.pairs.swapaxes(1, 2)
        v = np.concatenate([np.broadcast_to(v, (len(pairs), *v.shape[1:])), pairs], 1)
    mean = (_reduce(design, given.x, theta[..., None]) * v).sum(1)
    if inverse is None:
        means = support.by_arm(mean)
        return RidgeScores(means + support.by_item(theta[:, own:]) if design.n_item else means, np.zeros(1))
    reduced = _reduce(design, given.x, inverse)
    square = _reduce(design, given.x, reduced.swapaxes(1, 2))
    arm_square = np.zeros_like(mean)
    for h in range(v.shape[1]):
        arm_square += v[:, h] * (square[:, h, :, None] * v).sum(1)
    if not design.n_item:
        return RidgeScores(support.by_arm(mean), support.by_arm(arm_square))
    item_square = np.diagonal(inverse[:, own:, own:], axis1=1, axis2=2)
    width = support.by_arm(arm_square) + support.by_item(item_square)
    for k in range(v.shape[1]):
        width = width + support.by_item(2.0 * reduced[:, k, own:]) * support.by_arm(v[:, k])
    return RidgeScores(support.by_arm(mean) + support.by_item(theta[:, own:]), width)


def _reduce(design: Design, x: Floats, columns: Floats) -> Floats:
    """Bᵀ times ``columns`` (R, d, n), where ``u_j = B v_j``: (R, m, n)."""
    outer, n_user = design.own - design.n_pair, design.n_user
    if design.crossed:
        blocks = columns[:, :outer].reshape(len(columns), -1, n_user, columns.shape[2])
        parts = [(blocks * x[:, None, :, None]).sum(2)]
    else:
        first = (columns[:, :n_user] * x[:, :, None]).sum(1)[:, None]
        parts = [first, np.broadcast_to(columns[:, n_user:outer], (len(x), outer - n_user, columns.shape[2]))]
    if design.n_pair:
        parts.append(np.broadcast_to(columns[:, outer : design.own], (len(x), design.n_pair, columns.shape[2])))
    return np.concatenate(parts, 1)


def _score_own(design: Design, support: AnySupport, given: Contexts, theta: Floats, inverse: Floats) -> RidgeScores:
    """As ``_score_shared``, where every arm or every entry has its own parameter vector."""
    own = design.own
    arms = np.arange(support.n_arms if design.n_pair else 1)
    u = design.own_features(given.x[:, None], np.broadcast_to(arms, (len(given.x), len(arms))), given.pairs)
    if design.n_pair and design.sharing == ENTRIES:
        u = np.repeat(u, support.n_items, 1) if isinstance(support, Dense) else u[:, support.arm_of]
    mean = np.cumsum(theta[..., :own] * u, -1)[..., -1]
    square, block = np.empty(mean.shape), inverse[..., :own, :own]
    for r in range(len(square)):
        matrices = np.ascontiguousarray(block[r if len(block) > 1 else 0])
        op("quadratic_forms", matrices.size)(matrices, u[r], square[r])
    if design.sharing == ENTRIES:
        return RidgeScores(arm_major(support, mean), arm_major(support, square))
    if not design.n_item:
        return RidgeScores(support.by_arm(mean), support.by_arm(square))
    cross = np.cumsum(inverse[..., own:, :own] * u[..., None, :], -1)[..., -1]
    diagonal = np.diagonal(inverse[..., own:, own:], axis1=-2, axis2=-1)
    width = square[..., None] + diagonal + 2.0 * cross
    return RidgeScores(by_pair(support, mean[..., None] + theta[..., own:]), by_pair(support, width))
