r"""Lower bounds: at every T, for every policy; for rewards of any shape; and rates on the paper's instance.

On the paper's instance, ``superarm.instances.lower_bound``, arms 1 to K-1 cover nothing, every batch has them and one
further arm, and the items of an arm are identical, so that it is equivalent to a Bernoulli bandit with L-K+1 arms
[MerlisMannor2019]_ (section Lower Bounds).
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.problem import Problem
from superarm.rewards import Coverage, Linear, Reward
from superarm.simulation.instances import Instance
from superarm.theory.bound import Bound, rounds
from superarm.theory.gaps import Gaps, gaps
from superarm.theory.graves_lai import cheapest_sum, divergences, graves_lai

N_MARGINS = 5
"""How many margins of near instances are tried; each is a program of Graves and Lai."""

MEANS: Floats = np.linspace(0.05, 0.95, 19)
"""Means of the best batch's arms that are tried in instances of the size of a problem."""


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
    check_reward(problem)
    g = gaps(instance, alpha=1.0) if known is None else known
    return rates(problem.n_arms, problem.k, g.smallest, float(problem.weights.sum()))


def check_reward(problem: Problem) -> None:
    """Refuse rewards that do not make a Bernoulli bandit of the paper's instance."""
    if not isinstance(problem.reward, Coverage | Linear):
        raise InvalidArgument("reward", "the paper's instance is one of Coverage()", "lower_bound_smooth has others")


def check_size(problem: Problem) -> None:
    """Refuse problems in which every arm fits into one batch."""
    if problem.n_arms <= problem.k:
        raise InvalidArgument("problem", "all arms fit into one batch", "give more arms than places")


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
    check_reward(instance.problem)
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
    check_reward(problem)
    if problem.n_arms <= problem.k:
        return np.zeros(t.shape)
    arms = problem.n_arms - problem.k + 1
    return np.asarray(float(problem.weights.sum()) * np.minimum(np.sqrt(arms * t), t) / 20.0)


def lower_bound_near(
    instance: Instance, horizon: Any, known: Gaps | None = None, elsewhere: float | None = None, margins: Any = None
) -> Bound:
    r"""The regret that no policy can avoid at T rounds, on this instance and on those near it at once.

    .. math:: \max\{R, R'\} \ge \rho, \qquad
              \rho = C_\delta\,kl\Bigl(1 - \frac{\rho}{\Delta T},\ \frac{\rho}{\delta T}\Bigr), \qquad
              0 < \rho \le \frac{T}{1/\Delta + 1/\delta}

    for **every** policy, consistent or not. R is its regret on the instance, R' the largest on the *near* instances:
    those in which arms that are in no optimal batch are so much better that one batch is worth
    :math:`r_{\max} + \delta`. :math:`\Delta` is the smallest gap and :math:`C_\delta` the constant of
    :func:`graves_lai` with ``margin`` :math:`\delta`; every :math:`\delta` gives a bound, and the largest is taken.
    Derived from the transportation inequality of [GarivierEtAl2019]_ in
    ``docs/theory/lower-bounds.md``. Regret is against :math:`r_{\max}`.

    Parameters
    ----------
    instance, horizon, known
        The instance, with few batches as for :func:`graves_lai`; horizons T; its gaps for ``alpha=1``, if known.
    elsewhere
        What R' is at most, for the policies that the bound is about. Then it bounds R, on this instance alone.
    margins
        The :math:`\delta` to try; by default five, from a quarter of the smallest gap to the largest.

    Examples
    --------
    >>> from superarm.simulation import instances
    >>> lower_bound_near(instances.lower_bound(12, 3, epsilon=0.1), [100, 10_000]).value.round(1).tolist()
    [3.2, 44.3]
    """
    g = gaps(instance, alpha=1.0) if known is None else known
    if not g.exact or not g.suboptimal.any():
        wrong = "every batch is optimal" if g.exact else "its smallest gap is not known exactly"
        raise InvalidArgument("instance", wrong, "give a small instance with a gap")
    tried = np.geomspace(g.smallest / 4.0, g.largest, N_MARGINS) if margins is None else np.atleast_1d(margins)
    graves_lai(instance, rounds=0)  # refuses what it does not cover

    @functools.cache  # the programs are solved when the value is asked for
    def costs() -> list[tuple[float, float]]:
        return [(float(d), graves_lai(instance, precision=0.01, margin=float(d)).low) for d in tried]

    def least(t: float) -> float:
        return max(_least_regret(cost, g.smallest * t, margin * t, elsewhere) for margin, cost in costs())

    terms = 0.0, 0.0, np.vectorize(least, otypes=[float])
    return Bound("lower_bound_near", rounds(horizon), terms, g.largest, kind="near")


def _least_regret(cost: float, here: float, there: float, elsewhere: float | None) -> float:
    """The root of regret = cost kl(1 - regret / here, share), the share of the optimal batches at most R' / there."""
    if cost == 0.0 or (elsewhere is not None and elsewhere >= there):
        return 0.0
    fixed = None if elsewhere is None else elsewhere / there
    top = 1.0 / (1.0 / here + 1.0 / there) if fixed is None else here * (1.0 - fixed)

    def surplus(regret: float) -> float:
        return cost * divergence(1.0 - regret / here, regret / there if fixed is None else fixed) - regret

    top, precise = min(top, 1400.0 * cost), 1e-13 * min(top, cost)  # no divergence of floats is above 1400
    return float(brentq(surplus, 1e-280 * top, top, xtol=precise)) * (1.0 - 1e-9)


def item_worth(reward: Reward, k: int, n: int, x: Any, common: float) -> Floats:
    """One item's reward of batches with ``n`` arms of means ``x`` and k - n of mean ``common``, element by element."""
    x = np.asarray(x, float)
    state = reward.start(np.ones(x.shape))
    for place in range(k):
        state = reward.join(state, x if place < n else np.full(x.shape, common))
    return np.asarray(reward.worth(np.ones(x.shape), state), float)


def _disjoint_sizes(problem: Problem) -> list[tuple[int, int, float]]:
    """(n, S, c): S batches of n arms of their own and k - n common ones of mean c, as many as there are arms for."""
    check_size(problem)
    own = np.unique(np.geomspace(1, problem.k, 12).astype(int)).tolist()
    sizes = [(n, (problem.n_arms - problem.k + n) // n) for n in own]
    return [(n, s, c) for n, s in sizes if s > 1 for c in ((0.0, 0.25, 0.5, 0.75, 1.0) if n < problem.k else (0.0,))]


def lower_bound_smooth(instance: Instance, known: Gaps | None = None) -> float:
    r"""The rate of an instance with this number of arms, k, weights, reward and smallest gap, for any smooth reward.

    .. math:: \liminf_{t\to\infty}\frac{R(t)}{\log t} \ge \max\frac{(S - 1)\Delta}{kl(q, p)}, \qquad
              \Delta = \bar M\bigl(f(p) - f(q)\bigr)

    for every consistent policy. S batches have n arms each of their own, with identical outcomes of mean p in one of
    them and q in the others, and k - n common arms; f is the reward of one item. The maximum is over n, p and the mean
    of the common arms, on a grid. Implements [MerlisMannor2020]_ (Theorem 1) for equal means. Differs: its last steps,
    which lose a factor of 16 for small gaps, are not taken.

    >>> from superarm.simulation import instances
    >>> round(lower_bound_smooth(instances.lower_bound(12, 3, epsilon=0.1)), 2)
    44.85
    """
    problem, g = instance.problem, gaps(instance, alpha=1.0) if known is None else known
    gap, best = g.smallest / float(problem.weights.sum()), 0.0
    if not 0.0 < gap < np.inf:
        raise InvalidArgument("instance", "its smallest gap is not known", "give a small instance with a gap")
    for n, batches, c in _disjoint_sizes(problem):
        f = [item_worth(problem.reward, problem.k, n, x, c) for x in (MEANS, MEANS + 1e-6, 0.0 * MEANS)]
        p = MEANS[(f[0] - f[2] >= gap) & (f[1] > f[0])]  # better batches than the best must be possible
        low, high = 0.0 * p, p.copy()
        for _ in range(60):
            q = 0.5 * (low + high)
            far = item_worth(problem.reward, problem.k, n, p, c) - item_worth(problem.reward, problem.k, n, q, c) >= gap
            low, high = np.where(far, q, low), np.where(far, high, q)
        best = max(best, float(((batches - 1) * g.smallest / divergences(low, p)).max(initial=0.0)))
    if best == 0.0:
        raise InvalidArgument("instance", "no such instance has this smallest gap", "give a smaller one")
    return best


def lower_bound_smooth_gap_free(instance: Instance | Problem, horizon: Any) -> Floats:
    r"""What every policy has on some instance with this number of arms, k, weights and reward, at every T.

    .. math:: R(T) \ge \max T\bar M\bigl(f(p) - f(q)\bigr)(1 - z), \qquad
              kl(1/S, z) = \frac TS kl(q, p), \quad z \ge 1/S

    with S batches as in :func:`lower_bound_smooth`; the maximum is over n, p, q and the mean of the common arms, on a
    grid. Implements [MerlisMannor2020]_ (Lemma 11, the step before Theorem 2). Differs: kl in place of Pinsker's
    inequality, and the maximum at this T in place of the limit, so that it holds from T = 1 on.

    >>> from superarm.simulation import instances
    >>> lower_bound_smooth_gap_free(instances.lower_bound(12, 3), [1, 1000]).round(2).tolist()
    [0.54, 21.45]
    """
    problem = instance.problem if isinstance(instance, Instance) else instance
    known = [(s, *_pairs(problem, n, c)) for n, s, c in _disjoint_sizes(problem)]
    total = float(problem.weights.sum())

    def worst(t: float) -> float:
        return max(float((t * total * gap * (1.0 - _inverse(1.0 / s, t / s * kl))).max()) for s, kl, gap in known)

    return np.asarray(np.vectorize(worst, otypes=[float])(rounds(horizon)))


def _pairs(problem: Problem, n: int, common: float) -> tuple[Floats, Floats]:
    """Divergences kl(q, p) and differences f(p) - f(q) of many pairs, without those that others are worse than."""
    p = np.append(MEANS, 1.0 - 1e-9)[:, None]
    q = p * (1.0 - np.geomspace(1e-6, 1.0, 100))
    worth = item_worth(problem.reward, problem.k, n, np.concatenate([p, q], axis=1), common)
    gap, kl = (worth[:, :1] - worth[:, 1:]).ravel(), divergences(q, p + 0.0 * q).ravel()
    order = np.argsort(kl)
    most = np.maximum.accumulate(gap[order])
    kept = np.append(True, most[1:] > most[:-1])
    return kl[order][kept], most[kept]


def _inverse(share: float, information: Floats) -> Floats:
    """The largest z with kl(share, z) <= information, rounded up."""
    low, high = np.full(information.shape, share), np.ones(information.shape)
    for _ in range(50):
        z = 0.5 * (low + high)
        inside = divergences(np.full(z.shape, share), np.minimum(z, 1.0 - 1e-15)) <= information
        low, high = np.where(inside, z, low), np.where(inside, high, z)
    return high
