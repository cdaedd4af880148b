r"""Lower bounds of the regret of any consistent policy on the paper's instance, ``superarm.instances.lower_bound``.

Arms 1 to K-1 cover nothing, every batch has them and one further arm, and the items of an arm are identical, so that
the instance is equivalent to a Bernoulli bandit with L-K+1 arms [MerlisMannor2019]_ (section Lower Bounds).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.problem import Problem
from superarm.simulation.instances import Instance
from superarm.theory.bound import rounds
from superarm.theory.gaps import Gaps, gaps
from superarm.theory.graves_lai import cheapest_sum, divergences


def divergence(p: float, q: float) -> float:
    r"""The Bernoulli divergence kl(p, q) = p log(p/q) + (1-p) log((1-p)/(1-q)).

    >>> round(divergence(0.25, 0.5), 12)
    0.130812035941
    """
    d = 0.0
    if p > 0.0:
        d += p * math.log(p / q) if q > 0.0 else math.inf
    if p < 1.0:
        d += (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if q < 1.0 else math.inf
    return max(0.0, d)


class Rate(NamedTuple):
    r"""An asymptotic lower bound, :math:`\liminf R(t)/\log t \ge rate`: growth, not a bound at any finite t.

    ``stated`` is the rate as the paper states it, ``exact`` the one of Lai and Robbins that it is derived from.
    """

    stated: float
    exact: float


def lower_bound(instance: Instance, known: Gaps | None = None) -> Rate:
    r"""Proposition 1, for the dimensions, the weights and the smallest gap of ``instance``.

    .. math:: \liminf_{t\to\infty}\frac{R(t)}{\log t} \ge
              \frac{(L - K)\Delta}{kl(1/2 - \Delta/\bar M,\ 1/2)} \ge \frac{\bar M^2(L - K)}{4\Delta}

    for every consistent policy on the paper's instance, ``instances.lower_bound``; on another instance it is the
    rate of a problem of the same size and gap; :func:`graves_lai` gives that of the instance. [MerlisMannor2019]_
    (Proposition 1, and its proof for the exact form). Differs: the stated form bounds kl by :math:`4\epsilon^2`, which
    is loose by a factor of almost 2 for small gaps. Needs :math:`\Delta \le \bar M/2` (a condition that the paper
    leaves out) and L > K.

    >>> from superarm.simulation import instances
    >>> rate = lower_bound(instances.lower_bound(12, 3, epsilon=0.1))
    >>> round(rate.stated, 3), round(rate.exact, 3)
    (22.5, 44.697)
    """
    problem = instance.problem
    g = gaps(instance, alpha=1.0) if known is None else known
    return rates(problem.n_arms, problem.k, g.smallest, float(problem.weights.sum()))


def check_gap(gap: float, weight: float) -> None:
    r"""Refuse a gap that no instance of Proposition 1 has: :math:`1/2 - \Delta/\bar M` must be a probability."""
    if not 0.0 < gap <= weight / 2.0:
        raise InvalidArgument("gap", f"{gap:g} with weights that add up to {weight:g}", "needs 0 < gap <= weight / 2")


def rates(n_arms: int, k: int, gap: float, weight: float = 1.0) -> Rate:
    r"""The stated and the exact rate of Proposition 1 for L, K, :math:`\Delta` and :math:`\bar M`.

    [MerlisMannor2019]_ (Proposition 1).

    >>> rates(11, 1, 0.5)[0]
    5.0
    """
    check_gap(gap, weight)
    exact = (n_arms - k) * gap / divergence(0.5 - gap / weight, 0.5)
    return Rate(weight**2 * (n_arms - k) / (4.0 * gap), exact)


def lower_bound_independent(instance: Instance, known: Gaps | None = None) -> Rate:
    r"""The same construction with independent items, for the dimensions, weights and smallest gap of ``instance``.

    .. math:: \liminf_{t\to\infty}\frac{R(t)}{\log t} \ge \frac{(L - K)\Delta}{I(\Delta)} \ge
              \frac{\bar M^2(L - K)}{4M\Delta}, \qquad
              I(\Delta) = \min\Bigl\{\sum_i kl\Bigl(\frac12 - \frac{\Delta}{\bar M},\ \lambda_i\Bigr) :
              \sum_i w_i\lambda_i \ge \frac{\bar M}{2}\Bigr\}

    for every policy that is consistent on coverage problems with independent items. A pull shows M independent
    outcomes, so that the rate is about M times smaller than that of :func:`lower_bound`; as :math:`\Delta \to 0` it
    is :math:`(L - K)\lVert w\rVert_2^2/(2\Delta)`. This closes the remark of [MerlisMannor2019]_ (after Proposition 1)
    from below; the proof is in ``docs/theory/lower-bounds.md``. Needs :math:`\Delta \le \bar M/2` and L > K.

    >>> from superarm.simulation import instances
    >>> rate = lower_bound_independent(instances.lower_bound(12, 3, n_items=4, epsilon=0.1))
    >>> round(rate.stated, 3), round(rate.exact, 3)
    (22.5, 44.697)
    """
    weights = instance.problem.weights
    g = gaps(instance, alpha=1.0) if known is None else known
    n_arms, k, total = instance.problem.n_arms, instance.problem.k, float(weights.sum())
    check_gap(g.smallest, total)
    exact = (n_arms - k) * g.smallest / least_information(weights, 0.5 - g.smallest / total, total / 2.0)
    return Rate(total**2 * (n_arms - k) / (4.0 * len(weights) * g.smallest), exact)


def least_information(weights: Floats, p: float, value: float) -> float:
    r"""The least divergence from p, p, … that gives the items' weighted sum ``value``.

    .. math:: \min\Bigl\{\sum_i kl(p, \lambda_i) : \sum_i w_i\lambda_i \ge value\Bigr\}, \qquad
              \frac{\lambda_i - p}{\lambda_i(1 - \lambda_i)} = \mu w_i \text{ at the minimum}

    with one multiplier :math:`\mu`. The information of one pull in [GravesLai1997]_ for one arm with
    independent items.

    >>> round(least_information(np.ones(3), 0.25, 1.5) / 3.0 - divergence(0.25, 0.5), 12)
    0.0
    """
    mean = np.full((1, 1, int((weights > 0.0).sum())), p)
    return float(divergences(mean, cheapest_sum(mean, np.ones((1, 1)), weights[weights > 0.0], value)).sum())


def kl_inf(values: Any, probabilities: Any, mean: float) -> float:
    r"""The least divergence from a discrete law on [0, 1] to any law on [0, 1] whose mean is at least ``mean``.

    .. math:: \mathcal K_{inf}(F, \mu) = \max_{0 \le \lambda \le 1/(1 - \mu)} E_F\log(1 - \lambda(Y - \mu))

    by the duality of [HondaTakemura2010]_. With one arm per batch and Y the weighted average of its items, a policy
    that is consistent however items depend on one another plays the arm at least
    :math:`(1 + o(1))\log t/\mathcal K_{inf}(F, \mu)` times, with :math:`\mu` the mean of the best arm
    (``docs/theory/lower-bounds.md``).

    Parameters
    ----------
    values, probabilities
        The values of the law, in [0, 1], and their probabilities.
    mean
        The mean to be reached, below 1.

    Examples
    --------
    >>> round(kl_inf([0.0, 1.0], [0.6, 0.4], 0.5) - divergence(0.4, 0.5), 12)
    0.0
    """
    y, p = np.asarray(values, float), np.asarray(probabilities, float)
    if not mean < 1.0:
        raise InvalidArgument("mean", f"{mean!r}", "give a number below 1")
    if float(p @ y) >= mean:
        return 0.0

    def slope(multiplier: float) -> float:
        return float(-(p * (y - mean) / (1.0 - multiplier * (y - mean))).sum())

    most = (1.0 - 1e-12) / (1.0 - mean)
    best = most if slope(most) >= 0.0 else brentq(slope, 0.0, most, xtol=1e-14, rtol=8.9e-16)
    return float(p @ np.log1p(-best * (y - mean)))


def lower_bound_gap_free(instance: Instance | Problem, horizon: Any) -> Floats:
    r"""Proposition 1 without gaps: for every policy and T there is an instance of this size with at least

    .. math:: R(T) \ge \frac{1}{20}\bar M\min\{\sqrt{(L - K + 1)T},\ T\} \quad\text{if } L > K.

    [MerlisMannor2019]_ (Proposition 1), after [AuerEtAl2002]_. Needs L > K, as the paper says; 0 otherwise, since with
    L = K all arms can be in one batch, and then there is nothing to learn.

    >>> from superarm.simulation import instances
    >>> lower_bound_gap_free(instances.lower_bound(12, 3), [1, 1000]).tolist()
    [0.05, 5.0]
    """
    problem = instance.problem if isinstance(instance, Instance) else instance
    t = rounds(horizon)
    if problem.n_arms <= problem.k:
        return np.zeros(t.shape)
    arms = problem.n_arms - problem.k + 1
    return np.asarray(float(problem.weights.sum()) * np.minimum(np.sqrt(arms * t), t) / 20.0)
