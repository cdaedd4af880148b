r"""KL-UCB on one instance: the slopes of the reward at the true parameters in place of the worst ones.

The proof is in ``docs/theory/kl-ucb.md``. If the reward is concave along increasing directions, then for
:math:`q \ge p` the value of a batch rises by at most :math:`\sum_{ij} d_{ij}(A; p)(q_{ij} - p_{ij})`, and a batch with
gap :math:`\Delta` is played only if :math:`\Delta \le 2\sqrt2\,G\sqrt S + 2HS`.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.oracles.subset_search import ROUNDING
from superarm.rewards import Coverage, Linear, Logistic, Reward
from superarm.simulation.instances import Instance
from superarm.theory.bound import Bound, grow, initial_and_failed, setting
from superarm.theory.gaps import CELLS, MAX_ENUMERATED_BATCHES, Gaps, batch_values, gaps, list_batches
from superarm.theory.upper.bc_ucb import amortise
from superarm.theory.upper.kl_ucb import DEFAULT_LEVEL, MAIN, THREE_LOGS, Exploration

SLOW = 4.0
r"""Twice the 2 of the width :math:`2\sqrt{2x\,p(1-p)} + 2x`."""


class LocalSlopes(NamedTuple):
    r"""The slopes of an instance: :math:`G_j^2` and :math:`H_j` of each arm, (n_arms,); NaN in no suboptimal batch."""

    main: Floats
    slow: Floats


def local_slopes(instance: Instance, known: Gaps | None = None) -> LocalSlopes:
    r"""The slopes of the reward at the true parameters, over the suboptimal batches with each arm.

    .. math:: G_j^2 = \max_{A \ni j}\sum_{l \in A}\Bigl(\sum_i d_{il}(A; p)\sqrt{p_{il}(1 - p_{il})}\Bigr)^2, \qquad
              H_j = \max_{A \ni j}\max_{l \in A}\sum_i d_{il}(A; p), \qquad
              d_{il} = \frac{\partial r(A; p)}{\partial p_{il}}

    over the batches A with a positive gap, by enumeration. Always :math:`G_j^2 \le \gamma_g^2\bar M^2` and
    :math:`H_j \le \gamma_\infty\bar M`. Derived for superarm (``docs/theory/kl-ucb.md``); the slopes are those of the
    Gini-weighted smoothness of [MerlisMannor2019]_ at one point.

    >>> from superarm.simulation import instances
    >>> slopes = local_slopes(instances.disjoint_batches(4))
    >>> round(float(np.nanmax(slopes.main)), 4), round(float(np.nanmax(slopes.slow)), 4)
    (0.0838, 0.9269)
    """
    problem = instance.problem
    g = gaps(instance) if known is None else known
    if problem.actions.n_batches(problem.n_arms) > MAX_ENUMERATED_BATCHES:
        raise InvalidArgument(
            "instance", f"it has more than {MAX_ENUMERATED_BATCHES} batches", "take a bound without local slopes"
        )
    table = list_batches(problem)
    table = table[batch_values(problem, instance.p, table) < g.target - ROUNDING * abs(g.r_max.high)]
    main, slow = (np.full(problem.n_arms + 1, -np.inf) for _ in range(2))  # the last is of -1
    q, step = problem.entries(instance.p), max(1, CELLS // (problem.support.widest * table.shape[1]))
    for n in range(0, len(table), step):
        some = table[n : n + step]
        slopes, p = problem.reward.slopes(problem, q, some), problem.support.rows(q, some)
        gini = ((slopes * np.sqrt(p * (1.0 - p))).sum(2) ** 2).sum(1)
        np.maximum.at(main, some, gini[:, None])
        np.maximum.at(slow, some, slopes.sum(2).max(1)[:, None])
    return LocalSlopes(*(np.where(np.isfinite(x), x, np.nan)[:-1] for x in (main, slow)))


def upper_bound_local(instance: Instance, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""``kl_ucb(rho=3, c=0)`` with the slopes of this instance: small where hits are rare or items are covered.

    .. math:: R(T) \le \sum_j\Bigl[\frac{24G_j^2}{\Delta_{j,\min}}\Bigl(E + E'\Bigl(1 -
              \frac{\Delta_{j,\min}}{\Delta_{j,\max}}\Bigr)\Bigr) + 12H_j\Bigl(E + E'
              \log\frac{\Delta_{j,\max}}{\Delta_{j,\min}}\Bigr)\Bigr]\log T
              + L\Delta_{\max}\Bigl(1 + M\frac{\pi^2}{3}\Bigr)

    with :math:`G_j, H_j` of :func:`local_slopes`, and E, E' of
    :func:`superarm.theory.upper.bc_ucb.charge_factors`. Local theorem of ``docs/theory/kl-ucb.md``, derived for
    superarm in the setting of [MerlisMannor2019]_. Assumptions as for
    :func:`superarm.theory.upper.kl_ucb.upper_bound_kl`; the reward is ``Coverage``, ``Linear``, or
    ``Logistic`` with c <= 1, and there are few batches.

    >>> from superarm.simulation import instances
    >>> from superarm.theory.upper.kl_ucb import upper_bound_kl
    >>> instance = instances.disjoint_batches(16)
    >>> local, general = (f(instance, 10**6) for f in (upper_bound_local, upper_bound_kl))
    >>> round(float(local.gamma_g / general.gamma_g), 3)
    0.329
    """
    return _local("upper_bound_local", instance, horizon, known, THREE_LOGS)


def upper_bound_local_default(instance: Instance, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""The default ``kl_ucb()`` with the slopes of this instance.

    .. math:: R(T) \le \sum_j\Bigl[\frac{8G_j^2}{\Delta_{j,\min}}\Bigl(E + E'\Bigl(1 -
              \frac{\Delta_{j,\min}}{\Delta_{j,\max}}\Bigr)\Bigr) + 4H_j\Bigl(E + E'
              \log\frac{\Delta_{j,\max}}{\Delta_{j,\min}}\Bigr)\Bigr](\log T + 3\log^+\log T)
              + L\Delta_{\max}\bigl(1 + 2eM(\log^+\log T + 2.3)\bigr)

    Local theorem of ``docs/theory/kl-ucb.md``, derived for superarm after [GarivierCappe2011]_; assumptions as for
    :func:`upper_bound_local`.

    >>> from superarm.simulation import instances
    >>> f"{float(upper_bound_local_default(instances.disjoint_batches(4), 10**6)):.4g}"
    '4.371e+04'
    """
    return _local("upper_bound_local_default", instance, horizon, known, DEFAULT_LEVEL)


def _local(name: str, instance: Instance, horizon: Any, known: Gaps | None, exploration: Exploration) -> Bound:
    if not is_concave_upwards(instance.problem.reward):
        raise InvalidArgument(
            "instance", "its reward is not known to be concave along increasing directions",
            "local bounds are for Coverage, Linear, and Logistic with c <= 1",
        )  # fmt: skip
    g = gaps(instance) if known is None else known
    s, slopes, mask = setting(instance, g), local_slopes(instance, g), g.suboptimal
    main, slow = amortise(s, MAIN * slopes.main[mask], SLOW * slopes.slow[mask])
    return grow(name, s, horizon, main, slow, initial_and_failed(s, exploration.failures), exploration.level)


def is_concave_upwards(reward: Reward) -> bool:
    """Whether the reward is known to be concave along every increasing direction (``docs/theory/kl-ucb.md``).

    >>> from superarm.rewards import Coverage, Logistic
    >>> is_concave_upwards(Coverage()), is_concave_upwards(Logistic(2.0))
    (True, False)
    """
    return isinstance(reward, Coverage | Linear) or (isinstance(reward, Logistic) and math.log(reward.c) <= 0.0)
