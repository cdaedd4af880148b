"""Confidence regions for the means of an arm's items that use their estimated covariance, and the bonus each gives.

The policies of the literature choose sets of base arms whose outcomes add up. Here a base arm is an entry; playing an
arm plays all its entries. Within an arm all pairs of entries are observed together, so the covariance of an arm's
items is estimated from the arm's own pulls, as :class:`superarm.policies.Covariance` does.
"""

import math
from typing import Any, NamedTuple, Protocol

from superarm._jit import component, interpreted, lean, verb
from superarm.actions import capacity
from superarm.arrays import Floats
from superarm.moments import Sample
from superarm.parameters import nonnegative
from superarm.problem import Problem
from superarm.support import Support, item, span


class Region(Protocol):
    """A confidence region for the means of an arm's entries."""

    def width(self, support: Support, weights: Floats, sample: Sample, arm: int, t: int, pulls: float) -> float:
        """How far above its estimate the region lets the weighted sum of the arm's means be."""
        ...

    def fit(self, problem: Problem) -> Any:
        """The region made ready for this problem."""
        ...


width = verb(Region.width)


@lean
def covariance_slack(t: int, n_entries: float, pulls: float) -> float:
    r"""How far an estimated covariance of two outcomes in [0, 1] may be from the true one.

    .. math:: \tfrac14\Bigl(\frac{5h}{\sqrt n} + \frac{h^2}{n} + \frac{1}{n^2}\Bigr), \qquad
              h = \sqrt{\log t + \log n\_entries}

    The form of [ZhouEtAl2024]_ (Proposition 5), as [KimVojnovicOh2025]_ state it. Differs: they give the order of h
    alone; this is the least of that order.
    """
    h = math.sqrt(math.log(t) + math.log(n_entries))
    return 0.25 * (5.0 * h / math.sqrt(pulls) + h * h / pulls + 1.0 / (pulls * pulls))


class CovarianceSums(NamedTuple):
    r"""Sums of :math:`w_i w_l\bar\Sigma_{il}` over the entries of an arm.

    ``every`` is over all pairs, ``positive`` over those that are positive, ``diagonal`` over i = l.
    """

    every: float
    positive: float
    diagonal: float


@lean
def weighted_covariance(support: Support, sample: Sample, weights: Floats, arm: int, slack: float) -> CovarianceSums:
    """The sums for the estimated covariances of ``arm`` plus ``slack``."""
    first, last = span(support, arm)
    place = arm * (sample.covariance.size // len(sample.pulls))
    diagonal, above, positive = 0.0, 0.0, 0.0
    for o in range(last - first):
        w = weights[item(support, first, o)]
        diagonal += w * w * (sample.deviation[first + o] * sample.deviation[first + o] + slack)
        for other in range(o):
            value = w * weights[item(support, first, other)] * (sample.covariance[place] + slack)
            above += value
            positive += max(0.0, value)
            place += 1
    return CovarianceSums(diagonal + 2.0 * above, diagonal + 2.0 * positive, diagonal)


@component
class CovarianceBox(NamedTuple):
    r"""The region of ESCB-C: every mean has an error of its own, and errors share one budget.

    .. math:: \sum_i \frac{N\xi_i^2}{m|\xi_i| + \sum_l (\bar\Sigma_{il})^+} \le f(t), \qquad
              f(t) = \rho(\log t + \log\log t) + c\,m

    with :math:`\xi` the errors of outcomes :math:`w_i X_i/\max w`, m the number of entries in a batch, and
    :math:`\bar\Sigma` the estimated covariance plus ``caution`` times :func:`covariance_slack`. Implements the region
    of [PerraultPerchetValko2020]_, who have :math:`\rho = 8`, :math:`c = 4e`. Within one arm all N are equal, and the
    largest sum of errors is (:math:`\nu = f/N`, S the sum of all :math:`(\bar\Sigma_{il})^+`)

    .. math:: \tfrac12\bigl(m\nu + \sqrt{m^2\nu^2 + 4\nu S}\bigr)

    since at the maximum all :math:`\xi_i` are the same multiple of :math:`\sum_l(\bar\Sigma_{il})^+`. Differs: the
    slack of the covariances is that of [ZhouEtAl2024]_. ``fit`` sets ``n_entries`` and ``batch_entries`` (m).
    """

    rho: float = 8.0
    c: float = 4.0 * math.e
    caution: float = 1.0
    n_entries: float = 1.0
    batch_entries: float = 1.0

    def _check(self) -> None:
        nonnegative(self, "rho", "c", "caution")

    @lean
    def width(self, support: Support, weights: Floats, sample: Sample, arm: int, t: int, pulls: float) -> float:
        slack = self.caution * covariance_slack(t, self.n_entries, max(1.0, sample.pulls[arm]))
        sums = weighted_covariance(support, sample, weights, arm, slack)
        top = 0.0
        for i in range(len(weights)):
            top = max(top, weights[i])
        f = self.rho * (math.log(t) + math.log(max(1.0, math.log(t)))) + self.c * self.batch_entries
        reach = top * self.batch_entries * f / pulls
        return 0.5 * (reach + math.sqrt(reach * reach + 4.0 * sums.positive * f / pulls))

    @interpreted
    def fit(self, problem: Problem) -> "CovarianceBox":
        counted = sum(float(w > 0.0) for w in problem.weights)
        entries = min(counted * capacity(problem.actions, problem.n_arms), float(problem.n_entries))
        return self._replace(n_entries=float(problem.n_entries), batch_entries=entries)


@component
class CovarianceEllipsoid(NamedTuple):
    r"""The region of OLS-UCB-C: an ellipsoid shaped by the estimated covariance.

    .. math:: f(t)\,\lVert D_N^{-1}w\rVert_G, \qquad G = \sum_s D_{A_s}\bar\Sigma D_{A_s} + D_{\bar\Sigma}D_N + I,
              \qquad f(t) = \rho\log t + c\,n\_entries\log\log t

    with :math:`\bar\Sigma` the estimated covariance plus ``caution`` times :func:`covariance_slack`. Within one arm,
    pulled N times, this is

    .. math:: f(t)\sqrt{\frac{w^\top\bar\Sigma w + \sum_i w_i^2\bar\Sigma_{ii}}{N} + \frac{\sum_i w_i^2}{N^2}}

    Implements the index of [ZhouEtAl2024]_, in the form that [KimVojnovicOh2025]_ (equation 3) give. Differs: they
    give the order of f alone, :math:`\log t + n\_entries\log\log t`, so the constants are the caller's. ``fit`` sets
    ``n_entries``.
    """

    rho: float = 1.0
    c: float = 0.0
    caution: float = 1.0
    n_entries: float = 1.0

    def _check(self) -> None:
        nonnegative(self, "rho", "c", "caution")

    @lean
    def width(self, support: Support, weights: Floats, sample: Sample, arm: int, t: int, pulls: float) -> float:
        slack = self.caution * covariance_slack(t, self.n_entries, max(1.0, sample.pulls[arm]))
        sums = weighted_covariance(support, sample, weights, arm, slack)
        first, last = span(support, arm)
        square = 0.0
        for o in range(last - first):
            w = weights[item(support, first, o)]
            square += w * w
        f = self.rho * math.log(t) + self.c * self.n_entries * math.log(max(1.0, math.log(t)))
        return f * math.sqrt(max(0.0, sums.every + sums.diagonal) / pulls + square / (pulls * pulls))

    @interpreted
    def fit(self, problem: Problem) -> "CovarianceEllipsoid":
        return self._replace(n_entries=float(problem.n_entries))
