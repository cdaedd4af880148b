r"""The directional policy where its direction is known, and with coverage, where it is estimated.

The proofs are in ``docs/theory/directional.md``: a batch with gap :math:`\Delta` is played only if
:math:`\Delta \le 2\sqrt2\,\Gamma\sqrt S + \tfrac73 b S`, :math:`S = \sum_{j \in A} 3\log t/N_j`, where the direction is
known, and :math:`\Delta \le 5\bar M\sqrt S + 17\bar M S`, :math:`S = \sum_{j \in A} (M + 3)\log t/N_j`, for coverage.
"""

from typing import Any

import numpy as np

from superarm.actions import Subsets
from superarm.core import arrays
from superarm.core.errors import InvalidArgument
from superarm.rewards import Coverage
from superarm.simulation.instances import Instance
from superarm.theory.bound import Bound, assemble
from superarm.theory.gaps import Gaps, gaps
from superarm.theory.upper.bc_ucb import charge_factors

FAILED = 12.0
"""The sum over t of the probability that a bound or width fails, per arm: at most (e + 2) pi^2 / 6 + e zeta(3)."""
FAILED_IN_SOME_DIRECTION = 9.0
"""The same for a bound in some direction, at the level (M + 3) log t and from round M on: at most e^2 zeta(3)."""


def upper_bound_directional(instance: Instance, deviations: Any, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""``directional_kl_ucb(rho=3, c=0)`` with batches of one arm, or with ``Linear`` rewards on a matroid.

    .. math:: R(T) \le \sum_j\Bigl(\frac{24\sigma_j^2}{\Delta_j} + 14b\Bigr)\log T + \sum_j\Delta_j + 13L\Delta_{\max}

    for batches of one arm, b the sum of the weights and :math:`\sigma_j` the standard deviation of
    :math:`\sum_i w_i X_{ij}`, whatever the dependence between items; for linear rewards

    .. math:: R(T) \le \sum_j\Bigl[\frac{24\Gamma^2F_K}{\Delta_{j,\min}} + 14b\Bigl(E_K + E'_K
              \log\frac{\Delta_{j,\max}}{\Delta_{j,\min}}\Bigr)\Bigr]\log T + 14L\Delta_{\max}

    with :math:`\Gamma^2` the sum of the k largest :math:`\sigma_j^2`. ``gamma_g`` of the result is the term with
    deviations, ``gamma_inf`` that with b. Theorems 1 and 2 of ``docs/theory/directional.md``, derived for superarm in
    the setting of [MerlisMannor2019]_.

    Parameters
    ----------
    instance
        The instance; its law enters by its means and by ``deviations``.
    deviations
        The standard deviation of the weighted sum of the items of each arm, (n_arms,).
    horizon
        One or more horizons T.
    known
        The gaps, if they have been computed already.

    Examples
    --------
    >>> from superarm import environments
    >>> from superarm.actions import Subsets
    >>> from superarm.core.problem import Problem
    >>> from superarm.rewards import Coverage
    >>> from superarm.simulation.instances import Instance
    >>> problem = Problem(2, 16, Coverage(), Subsets(1))
    >>> instance = Instance(problem, environments.Bernoulli([[0.5] * 16, [0.45] * 16]))
    >>> [round(float(upper_bound_directional(instance, [sd, sd], 10**6).gamma_g)) for sd in (2.0, 8.0)]
    [1658, 26526]
    """
    problem = instance.problem
    known_direction = problem.k == 1 or (problem.reward.modular and problem.actions.matroid)
    if not (problem.reward.linear_gain and known_direction):
        raise InvalidArgument(
            "instance", "the direction is estimated", "take batches of one arm, or Linear on a matroid"
        )
    sd = arrays.floats(deviations, "deviations", low=0.0, high=float(problem.weights.sum()))
    if sd.shape != (problem.n_arms,):
        raise InvalidArgument("deviations", f"shape {sd.shape}", f"give one number per arm, shape ({problem.n_arms},)")
    g = gaps(instance, alpha=1.0) if known is None else known
    mask, k, b = g.suboptimal, problem.k, float(problem.weights.sum())
    least, most = g.minimum[mask], g.maximum[mask]
    largest = float(most.max(initial=0.0))
    if k == 1:
        main, slow = 24.0 * float(np.sum(sd[mask] ** 2 / least)), 14.0 * b * len(least)
        constant = float(np.sum(least)) + (1.0 + FAILED) * problem.n_arms * largest
    else:
        factors, spread = charge_factors(k), float(np.sort(sd**2)[-k:].sum())
        main = 24.0 * spread * factors.total * float(np.sum(1.0 / least))
        slow = 14.0 * b * float(np.sum(factors.base + factors.ratio * np.log(most / least)))
        constant = (2.0 + FAILED) * problem.n_arms * largest
    return assemble("directional KL-UCB", horizon, main, slow, constant)


def upper_bound_directional_greedy(instance: Instance, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""``directional_kl_ucb(rho=M+3, c=0)`` with ``Coverage`` on ``Subsets``, M items: the direction is estimated.

    .. math:: R(T) \le (M+3)\sum_j\Bigl[\frac{25\bar M^2F_K}{\Delta_{j,\min}} + 34\bar M\Bigl(E_K + E'_K
              \log\frac{\Delta_{j,\max}}{\Delta_{j,\min}}\Bigr)\Bigr]\log T + (11L + M)\Delta_{\max}

    with :math:`\bar M = \sum_i w_i` and gaps from :math:`(1 - (1 - 1/K)^K)\,r_{\max}`, whatever the dependence
    between items and arms. ``gamma_g`` of the result is the first term, ``gamma_inf`` the second. Theorem 3 of
    ``docs/theory/directional.md``, derived for superarm in the setting of [MerlisMannor2019]_. It does not adapt to
    the dependence between items, and is larger than that of KL-UCB.

    Parameters
    ----------
    instance
        The instance.
    horizon
        One or more horizons T.
    known
        The gaps, if they have been computed already, for :math:`\alpha = 1 - (1 - 1/K)^K`.

    Examples
    --------
    >>> from superarm import environments, theory
    >>> from superarm.actions import Subsets
    >>> from superarm.core.problem import Problem
    >>> from superarm.rewards import Coverage
    >>> from superarm.simulation.instances import Instance
    >>> instance = Instance(
    ...     Problem(4, 2, Coverage(), Subsets(2)),
    ...     environments.Bernoulli([[0.9, 0.8], [0.8, 0.9], [0.1, 0.1], [0.1, 0.2]]),
    ... )
    >>> float(upper_bound_directional_greedy(instance, 100)) > float(theory.upper_bound_kl(instance, 100))
    True
    """
    problem = instance.problem
    if not (isinstance(problem.reward, Coverage) and isinstance(problem.actions, Subsets)):
        raise InvalidArgument("instance", "another reward or action set", "take Coverage with Subsets(k)")
    alpha = 1.0 - (1.0 - 1.0 / problem.k) ** problem.k
    g = gaps(instance, alpha=alpha) if known is None else known
    least, most, b = g.minimum[g.suboptimal], g.maximum[g.suboptimal], float(problem.weights.sum())
    scale, factors = problem.n_items + 3.0, charge_factors(problem.k)
    main = scale * 25.0 * b**2 * factors.total * float(np.sum(1.0 / least))
    slow = scale * 34.0 * b * float(np.sum(factors.base + factors.ratio * np.log(most / least)))
    constant = (2.0 + FAILED_IN_SOME_DIRECTION) * problem.n_arms + problem.n_items
    return assemble("directional KL-UCB, greedy", horizon, main, slow, constant * float(most.max(initial=0.0)))
