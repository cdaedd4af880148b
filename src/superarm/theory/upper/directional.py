r"""The directional policy where its direction is known, and with coverage, where it is estimated.

The proofs are in ``docs/theory/directional.md``. At the level :math:`\ell_t = \rho\log t + c\log^+\log t` a batch with
gap :math:`\Delta` is played only if :math:`\Delta \le 2\sqrt2\,\Gamma\sqrt S + \tfrac73 b S`,
:math:`S = \sum_{j \in A} \ell_t/N_j`, where the direction is known, and
:math:`\Delta \le 3\bar M\sqrt S + 11.5\bar M S` for coverage; but for rounds in which a bound fails.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import gammaln

from superarm.actions import Subsets
from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.environments import Bernoulli
from superarm.indices import KL
from superarm.rewards import Coverage
from superarm.simulation.instances import Instance
from superarm.theory.bound import Bound, grow, setting
from superarm.theory.gaps import Gaps, gaps
from superarm.theory.upper.bc_ucb import amortise

ONE_BY_ONE, BLOCK = 1000, 1.01
"""Failure probabilities of so many rounds are added one by one, those of later rounds in blocks of 1 %."""


def upper_bound_directional(
    instance: Instance, horizon: Any, known: Gaps | None = None, index: KL | None = None, deviations: Any = None
) -> Bound:
    r"""``directional_kl_ucb(rho, c)`` with batches of one arm, or with ``Linear`` rewards on a matroid.

    .. math:: R(T) \le \sum_j\Bigl[\frac{8\Gamma_j^2}{\Delta_{j,\min}}\Bigl(E + E'\Bigl(1 -
              \frac{\Delta_{j,\min}}{\Delta_{j,\max}}\Bigr)\Bigr) + \tfrac{14}3b\Bigl(E + E'
              \log\frac{\Delta_{j,\max}}{\Delta_{j,\min}}\Bigr)\Bigr]\ell_T
              + \Delta_{\max}\Bigl(L + \sum_{t \le T}\min\{1, K C_1(t)e^{-\ell_t}\}
              + L\sum_{1 < t \le T}2e^{-\ell_t}\Bigr)

    with :math:`\ell_t = \rho\log t + c\log^+\log t`, b the sum of the weights, :math:`\Gamma_j^2` the largest sum of
    variances :math:`\sigma^2` of :math:`\sum_i w_i X_{ij}` over batches with arm j, whatever the dependence between
    items, and :math:`C_1(t) \le 2\sqrt t`. With one arm per batch :math:`E = 1` and the first term is
    :math:`8\sigma_j^2/\Delta_j`. The sums are bounded for ``rho=1.5, c=2``, so that the bound is
    :math:`12\sigma_j^2/\Delta_j\cdot\log T` and smaller terms; for the default ``rho=1, c=3`` the first one grows like
    :math:`\sqrt T/\log^3T`, and with one arm per batch is below 10 up to :math:`10^7` rounds.
    ``gamma_g`` of the result is the term with deviations, ``gamma_inf`` that with b. Theorem 1
    of ``docs/theory/directional.md``, derived for superarm in the setting of [MerlisMannor2019]_.

    Parameters
    ----------
    instance
        The instance; its law enters by its means and by ``deviations``.
    horizon
        One or more horizons T.
    known
        The gaps, if they have been computed already.
    index
        The index of the policy, whose level counts; ``KL(1.5, 2)`` by default.
    deviations
        The standard deviation of the weighted sum of the items of each arm, (n_arms,); by default that of independent
        items for ``Bernoulli``, and otherwise the largest that the means allow.

    Examples
    --------
    >>> from superarm import environments
    >>> from superarm.problem import Problem
    >>> problem = Problem(2, 16, Coverage(), Subsets(1))
    >>> instance = Instance(problem, environments.Bernoulli([[0.5] * 16, [0.45] * 16]))
    >>> bounds = [upper_bound_directional(instance, 10**6, deviations=[sd, sd]) for sd in (2.0, 8.0)]
    >>> [round(float(bound.gamma_g)) for bound in bounds]
    [1039, 16624]
    """
    problem = instance.problem
    known_direction = problem.k == 1 or (problem.reward.modular and problem.actions.matroid)
    if not (problem.reward.linear_gain and known_direction):
        raise InvalidArgument(
            "instance", "the direction is estimated", "take batches of one arm, or Linear on a matroid"
        )
    sd = deviations_of(instance) if deviations is None else np.asarray(deviations, float)
    g, level = gaps(instance, alpha=1.0) if known is None else known, index or KL(1.5, 2.0)
    s, top = setting(instance, g), np.sort(sd**2)[::-1][: problem.k]
    spread = np.minimum(top.sum(), top[:-1].sum() + sd**2)[g.suboptimal]
    optimism = add_failures(level, 1, math.log(problem.k))
    width = add_failures(level, 0, math.log(2.0))

    def cost(t: Floats) -> Any:
        return s.largest * (s.n_arms + optimism(t) + s.n_arms * (width(t) - 1.0))

    main, slow = amortise(s, 8.0 * spread, 14.0 / 3.0 * s.weight)
    return grow("upper_bound_directional", s, horizon, main, slow, cost, level.numerator)


def deviations_of(instance: Instance) -> Floats:
    """At least the standard deviation of the weighted sum of the items of each arm, (n_arms,).

    >>> from superarm.simulation import instances
    >>> deviations_of(instances.random_coverage(2, 3, 1, low=0.5, high=0.5)).round(4).tolist()
    [0.866, 0.866]
    """
    problem = instance.problem
    q, weights = problem.entries(instance.p), problem.support.by_item(problem.weights[None])
    if isinstance(instance.environment, Bernoulli):
        return np.sqrt(problem.support.sum_items(weights**2 * q * (1.0 - q))[0])
    return np.asarray(problem.support.sum_items(weights * np.sqrt(q * (1.0 - q)))[0])


def upper_bound_directional_greedy(
    instance: Instance, horizon: Any, known: Gaps | None = None, index: KL | None = None
) -> Bound:
    r"""``directional_kl_ucb(rho, c)`` with ``Coverage`` on ``Subsets``: the direction is estimated.

    .. math:: R(T) \le \sum_j\Bigl[\frac{9\bar M^2}{\Delta_{j,\min}}\Bigl(E + E'\Bigl(1 -
              \frac{\Delta_{j,\min}}{\Delta_{j,\max}}\Bigr)\Bigr) + 23\bar M\Bigl(E + E'
              \log\frac{\Delta_{j,\max}}{\Delta_{j,\min}}\Bigr)\Bigr]\ell_T
              + \Delta_{\max}\Bigl(L + \sum_{t \le T}\min\{1, 2L\,C_M(t)e^{-\ell_t}\}\Bigr), \qquad
              C_M(t) = \frac{\sqrt\pi\,\Gamma(t + \frac{M+1}2)}{\Gamma(\frac{M+1}2)\,\Gamma(t + \frac12)}

    with :math:`\ell_t = \rho\log t + c\log^+\log t`, :math:`\rho \ge M/2`, M items, :math:`\bar M = \sum_i w_i` and
    gaps from :math:`(1 - (1 - 1/K)^K)\,r_{\max}`, whatever the dependence between items and arms. The sum is bounded
    for ``rho=M/2+1, c=2``, the default here. ``gamma_g`` of the result is the first term, ``gamma_inf`` the second.
    Theorem 2 of ``docs/theory/directional.md``, derived for superarm in the setting of [MerlisMannor2019]_. It does not
    adapt to the dependence between items, and is larger than that of KL-UCB.

    Parameters
    ----------
    instance
        The instance.
    horizon
        One or more horizons T.
    known
        The gaps, if they have been computed already, for :math:`\alpha = 1 - (1 - 1/K)^K`.
    index
        The index of the policy, whose level counts.

    Examples
    --------
    >>> from superarm.simulation import instances
    >>> from superarm.theory.upper.kl_ucb import upper_bound_kl
    >>> instance = instances.random_coverage(6, 2, 2, high=0.9)
    >>> float(upper_bound_directional_greedy(instance, 100)) > float(upper_bound_kl(instance, 100))
    True
    """
    problem = instance.problem
    if not (isinstance(problem.reward, Coverage) and isinstance(problem.actions, Subsets)):
        raise InvalidArgument("instance", "another reward or action set", "take Coverage with Subsets(k)")
    m = problem.n_items
    level = index or KL(m / 2.0 + 1.0, 2.0)
    alpha = 1.0 - (1.0 - 1.0 / problem.k) ** problem.k
    s = setting(instance, gaps(instance, alpha=alpha) if known is None else known)
    directions = add_failures(level, m, math.log(2.0 * s.n_arms))
    main, slow = amortise(s, 9.0 * s.weight**2, 23.0 * s.weight)

    def cost(t: Floats) -> Any:
        return s.largest * (s.n_arms + directions(t))

    return grow("upper_bound_directional_greedy", s, horizon, main, slow, cost, level.numerator)


def add_failures(level: KL, m: int, log_factor: float) -> Callable[[Floats], Any]:
    r"""The function :math:`T \mapsto \sum_{t \le T}\min\{1, factor\cdot C_m(t)e^{-\ell_t}\}`, at most 1 % too large.

    ``m`` is the number of items whose directions the bound is for, 0 for a width. Beyond the first rounds
    :math:`C_m(t) \le \frac{\sqrt\pi}{\Gamma((m+1)/2)}(t + \frac{m+2}4)^{m/2}` is used, and the terms fall if
    :math:`\rho \ge m/2`, so that each block of rounds costs at most its length times its first term.

    >>> round(float(add_failures(KL(1.5, 2.0), 1, 0.0)(np.array(1e9))), 1)  # optimism of one arm
    3.8
    """
    first = np.arange(1.0, ONE_BY_ONE + 1.0)
    blocks = ONE_BY_ONE * BLOCK ** np.arange(0.0, math.log(1e300 / ONE_BY_ONE) / math.log(BLOCK))
    if level.rho < m / 2.0:
        wrong = f"the level {level.rho:g} log t is too low for the directions of {m} item{'s' * (m > 1)}"
        raise InvalidArgument("index", wrong, f"take rho >= {m / 2.0 + 1.0:g}")
    half, shift = m / 2.0, 0.5 * math.log(math.pi) - float(gammaln(0.5 * (m + 1.0))) + log_factor
    exact = gammaln(first + half + 0.5) - gammaln(first + 0.5)
    rest = half * np.log(blocks + 0.25 * (m + 2.0))
    terms = [
        np.exp(np.minimum(0.0, shift + growth - level.numerator(t))) for t, growth in ((first, exact), (blocks, rest))
    ]
    start = np.cumsum(terms[0])
    later = start[-1] + np.concatenate([[0.0], np.cumsum(terms[1][:-1] * np.diff(blocks))])

    def total(t: Floats) -> Any:
        early = start[np.minimum(t, ONE_BY_ONE).astype(int) - 1]
        at = np.clip(np.searchsorted(blocks, t, "right") - 1, 0, len(blocks) - 1)
        return np.where(t <= ONE_BY_ONE, early, later[at] + (t - blocks[at]) * terms[1][at])

    return total
