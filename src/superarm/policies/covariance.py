"""The covariance-aware policies of the literature, for rewards that add up: ESCB-C and OLS-UCB-C.

The policies of the literature choose sets of base arms whose outcomes add up. Here a base arm is an entry; playing an
arm plays all its entries. Within an arm all pairs of entries are observed together, so the covariance of an arm's
items is estimated from the arm's own pulls.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.component import Component, named
from superarm.core.errors import InvalidArgument
from superarm.core.moments import Moments
from superarm.core.numeric import log
from superarm.core.support import Dense
from superarm.core.tally import View
from superarm.oracles.base import Guarantee
from superarm.policies.base import Policy, try_every_arm
from superarm.policies.batch import (
    TableMemory,
    arm_worths,
    most_missed,
    refuse_oracle,
    search_batches,
    search_guarantee,
)
from superarm.policies.memory import MomentMemory
from superarm.problem import Problem


def covariance_slack(t: int, n_entries: float, pulls: Any) -> Any:
    r"""How far an estimated covariance of two outcomes in [0, 1] may be from the true one.

    .. math:: \tfrac14\Bigl(\frac{5h}{\sqrt n} + \frac{h^2}{n} + \frac{1}{n^2}\Bigr), \qquad
              h = \sqrt{\log t + \log n\_entries}

    The form of [ZhouEtAl2024]_ (Proposition 5), as [KimVojnovicOh2025]_ state it. Differs: they give the order of h
    alone; this is the least of that order.
    """
    h = math.sqrt(log(float(t)) + log(float(n_entries)))
    return 0.25 * (5.0 * h / np.sqrt(pulls) + h * h / pulls + 1.0 / (pulls * pulls))


class CovarianceSums(NamedTuple):
    r"""Sums of :math:`w_i w_l\bar\Sigma_{il}` over the entries of each arm, (R, n_arms).

    ``every`` is over all pairs, ``positive`` over those that are positive, ``diagonal`` over i = l.
    """

    every: Floats
    positive: Floats
    diagonal: Floats


def weighted_covariance(moments: Moments, weights: Floats, slack: Floats) -> CovarianceSums:
    """The sums for the estimated covariances of every arm plus ``slack`` (R, n_arms)."""
    support = moments.support
    w = support.by_item(weights[None])
    diagonal = support.sum_items(w * w * (moments.deviation * moments.deviation + support.by_arm(slack)))
    if isinstance(support, Dense):
        rows = np.broadcast_to(weights, (support.n_arms, support.n_items))
    else:
        rows = np.where(support.row_entries >= 0, weights[support.items[support.row_entries]], 0.0)
    values = rows[:, moments.first] * rows[:, moments.second] * (moments.covariance + slack[:, :, None])
    start = np.zeros((*slack.shape, 1))
    above = np.cumsum(np.concatenate([start, values], 2), 2)[:, :, -1]
    positive = np.cumsum(np.concatenate([start, np.maximum(0.0, values)], 2), 2)[:, :, -1]
    return CovarianceSums(diagonal + 2.0 * above, diagonal + 2.0 * positive, diagonal)


class Region(Component):
    """A confidence region for the means of an arm's entries."""

    def width(self, problem: Problem, moments: Moments, t: int, pulls: Floats) -> Any:
        """How far above its estimate the region lets the weighted sum of each arm's means be, (R, n_arms)."""
        raise NotImplementedError

    def sums(self, problem: Problem, moments: Moments, t: int, caution: float) -> CovarianceSums:
        """The sums of estimated covariances plus ``caution`` times their slack."""
        slack = caution * covariance_slack(t, problem.n_entries, np.maximum(1.0, moments.pulls))
        return weighted_covariance(moments, problem.weights, slack)

    def check(self) -> None:
        for name in self.parameters():
            self.require(name, 0.0 <= getattr(self, name) < math.inf, "give a finite number >= 0")


class CovarianceBox(Region):
    r"""The region of ESCB-C: every mean has an error of its own, and errors share one budget.

    .. math:: \sum_i \frac{N\xi_i^2}{m|\xi_i| + \sum_l (\bar\Sigma_{il})^+} \le f(t), \qquad
              f(t) = \rho(\log t + \log\log t) + c\,m

    with :math:`\xi` the errors of outcomes :math:`w_i X_i/\max w`, m the number of entries in a batch, and
    :math:`\bar\Sigma` the estimated covariance plus ``caution`` times :func:`covariance_slack`. Implements the region
    of [PerraultPerchetValko2020]_, who have :math:`\rho = 8`, :math:`c = 4e`. Within one arm all N are equal, and the
    largest sum of errors is (:math:`\nu = f/N`, S the sum of all :math:`(\bar\Sigma_{il})^+`)

    .. math:: \tfrac12\bigl(m\nu + \sqrt{m^2\nu^2 + 4\nu S}\bigr)

    since at the maximum all :math:`\xi_i` are the same multiple of :math:`\sum_l(\bar\Sigma_{il})^+`. Differs: the
    slack of the covariances is that of [ZhouEtAl2024]_.
    """

    rho: float = 8.0
    c: float = 4.0 * math.e
    caution: float = 1.0

    def width(self, problem: Problem, moments: Moments, t: int, pulls: Floats) -> Any:
        positive = self.sums(problem, moments, t, self.caution).positive
        counted = int((problem.weights > 0.0).sum())
        m = float(min(counted * problem.k, problem.n_entries))
        log_t = log(float(t))
        f = self.rho * (log_t + log(max(1.0, log_t))) + self.c * m
        reach = problem.weights.max() * m * f / pulls
        return 0.5 * (reach + np.sqrt(reach * reach + 4.0 * positive * f / pulls))


class CovarianceEllipsoid(Region):
    r"""The region of OLS-UCB-C: an ellipsoid shaped by the estimated covariance.

    .. math:: f(t)\,\lVert D_N^{-1}w\rVert_G, \qquad G = \sum_s D_{A_s}\bar\Sigma D_{A_s} + D_{\bar\Sigma}D_N + I,
              \qquad f(t) = \rho\log t + c\,n\_entries\log\log t

    with :math:`\bar\Sigma` the estimated covariance plus ``caution`` times :func:`covariance_slack`. Within one arm,
    pulled N times, this is

    .. math:: f(t)\sqrt{\frac{w^\top\bar\Sigma w + \sum_i w_i^2\bar\Sigma_{ii}}{N} + \frac{\sum_i w_i^2}{N^2}}

    Implements the index of [ZhouEtAl2024]_, in the form that [KimVojnovicOh2025]_ (equation 3) give. Differs: they
    give the order of f alone, :math:`\log t + n\_entries\log\log t`, so the constants are the caller's.
    """

    rho: float = 1.0
    c: float = 0.0
    caution: float = 1.0

    def width(self, problem: Problem, moments: Moments, t: int, pulls: Floats) -> Any:
        sums, support = self.sums(problem, moments, t, self.caution), problem.support
        squares = support.by_item((problem.weights**2)[None])
        square = np.cumsum(squares, 1)[:, -1] if isinstance(support, Dense) else support.sum_items(squares)
        log_t = log(float(t))
        f = self.rho * log_t + self.c * problem.n_entries * log(max(1.0, log_t))
        return f * np.sqrt(np.maximum(0.0, sums.every + sums.diagonal) / pulls + square / (pulls * pulls))


class CovarianceMemory(TableMemory, MomentMemory):
    """The sums with moments, and the table of all batches."""


class CovariancePolicy(Policy[CovarianceMemory]):
    r"""One bonus per batch that uses the estimated covariance of each arm's items: for rewards that add up.

    .. math:: A_t \in \arg\max_A \sum_{j \in A} \hat r_j + \sqrt{\sum_{j \in A} b_j^2}

    where :math:`\hat r_j` is what arm j is worth at its empirical means, and :math:`b_j` how much more the confidence
    region of ``region`` lets it be worth. After [PerraultPerchetValko2020]_ and [ZhouEtAl2024]_, whose base arms are
    the entries. For batches of one arm this is their index. Differs: for larger batches arms are taken as
    independent of one another, since covariances of entries of two arms are not recorded. Then the joint bonus of
    :class:`CovarianceEllipsoid` is the root above, and that of :class:`CovarianceBox` is at most the root.

    It needs a reward that is linear in the parameters of a batch: ``Linear``, or ``Coverage`` with one arm per batch.
    The search is that of :class:`SetBonus`. An arm that was never seen whole, or an entry never seen, counts as worth
    all it can be.
    """

    region: Region
    remembers = CovarianceMemory
    whole_batches = True

    def check(self) -> None:
        self.require_family("region", Region, "CovarianceBox()")

    def validate(self, problem: Problem) -> None:
        if not (problem.reward.modular or (problem.k == 1 and problem.reward.linear_gain)):
            raise InvalidArgument(
                "policy",
                "escb_c and ols_ucb_c need a reward that is linear in the parameters of a batch",
                "take directional_kl_moss(), the reward Linear(), or batches of one arm",
            )

    def moments(self, problem: Problem, rows: int) -> Moments:
        """Moments of no observations."""
        return Moments(problem.support, problem.weights, rows, products=True)

    def choose(self, problem: Problem, view: View, memory: CovarianceMemory) -> Ints:
        return try_every_arm(problem, view, lambda: self._search(problem, view, memory))

    def _search(self, problem: Problem, view: View, memory: CovarianceMemory) -> Ints:
        tally, missed = memory.tally, most_missed(memory.tally)
        most, worth = (arm_worths(problem, q) for q in (np.ones_like(tally.mean), tally.mean))
        unknown = (tally.moments.pulls <= 0.0) | (tally.pulls <= missed)
        bonus = self.region.width(problem, tally.moments, view.t, np.maximum(1.0, view.counts - missed))
        worth = np.broadcast_to(np.where(unknown, most, worth), bonus.shape)
        return search_batches(problem, worth, bonus * bonus, view, memory.table)

    def guarantee(self, problem: Problem) -> Guarantee:
        return search_guarantee(problem)


@named
def escb_c(rho: float = 8.0, c: float = 4.0 * math.e, caution: float = 1.0, oracle: None = None) -> CovariancePolicy:
    r"""ESCB-C: one bonus per batch from a region that knows the covariance of an arm's items; linear rewards.

    After [PerraultPerchetValko2020]_, with their level :math:`8(\log t + \log\log t) + 4em` by default, where m is the
    number of entries in a batch. No regret bound is known for smaller constants.

    Parameters
    ----------
    rho, c
        The constants of the level :math:`\rho(\log t + \log\log t) + c\,m`.
    caution
        Scales the bound of the error of an estimated covariance; 0 takes the estimate for the truth.
    oracle
        None: the bonus of a batch is no sum over its arms, so the policy searches by itself.

    Examples
    --------
    >>> escb_c(rho=1.0, c=0.0).region
    CovarianceBox(rho=1, c=0, caution=1)
    """
    refuse_oracle(oracle, "escb_c")
    return CovariancePolicy(CovarianceBox(rho, c, caution))


@named
def ols_ucb_c(rho: float = 1.0, c: float = 0.0, caution: float = 1.0, oracle: None = None) -> CovariancePolicy:
    r"""OLS-UCB-C: one bonus per batch from an ellipsoid shaped by the covariance of an arm's items; linear rewards.

    After [ZhouEtAl2024]_. Their theorem has a level of the order :math:`\log t + d\log\log t`, with d the number of
    entries.

    Parameters
    ----------
    rho, c
        The constants of the level :math:`\rho\log t + c\,d\log\log t`.
    caution, oracle
        As those of :func:`escb_c`.

    Examples
    --------
    >>> ols_ucb_c().region
    CovarianceEllipsoid(rho=1, c=0, caution=1)
    """
    refuse_oracle(oracle, "ols_ucb_c")
    return CovariancePolicy(CovarianceEllipsoid(rho, c, caution))
