r"""KL-UCB: bounds for the levels :math:`3\log t` and :math:`\log t + 3\log\log t`, and for late feedback.

The proof is in ``docs/theory/kl-ucb.md``. On the good event both :math:`kl(\hat p, p)` and :math:`kl(\hat p, q)` are at
most x = f(t)/N, the angles of p and q differ by at most :math:`\sqrt{2x}`, and a batch with gap :math:`\Delta` is
played only if :math:`\Delta \le 2\sqrt2\gamma_g\bar M\sqrt S` with :math:`S = \sum_{j \in A} f(t)/N_j`. There is no
term in :math:`\gamma_\infty`. :math:`E, E'` and :math:`F = E + E'` are those of
:func:`superarm.theory.upper.bc_ucb.charge_factors`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from superarm.core.arrays import Floats, count
from superarm.simulation.instances import Instance
from superarm.theory.bound import CHERNOFF_FAILURES, Bound, Setting, grow, initial_and_failed, rounds, setting
from superarm.theory.gaps import Gaps
from superarm.theory.upper.bc_ucb import amortise, charge_factors

MAIN = 8.0
r""":math:`(2\sqrt2)^2`, the square of the width in angles."""

PEELING_OFFSET = 2.3
"""The failures of the default level add up to at most e (log log T + 2.265) (``docs/theory/kl-ucb.md``)."""

LATE_FAILURES = 14.0
"""Twice the sum of the failure probabilities of an entry at the level 2 log t, which is below 6.94."""


class Exploration(NamedTuple):
    """A level of KL-UCB: ``level`` is f(T), ``failures`` the sum over t of the failure probability of one entry."""

    level: Callable[[Floats], Floats]
    failures: Callable[[Floats], Any]


def _log_plus_log(t: Floats) -> Floats:
    return np.log(np.maximum(1.0, np.log(t)))


THREE_LOGS = Exploration(lambda t: 3.0 * np.log(t), lambda t: CHERNOFF_FAILURES)
r""":math:`3\log t`, that is ``kl_ucb(rho=3, c=0)``: Chernoff's bound and a union over the number of pulls."""

DEFAULT_LEVEL = Exploration(
    lambda t: np.log(t) + 3.0 * _log_plus_log(t), lambda t: 2.0 * math.e * (_log_plus_log(t) + PEELING_OFFSET)
)
r""":math:`\log t + 3\log\log t`, that is ``kl_ucb()``: Chernoff's bound over ranges of the number of pulls."""


def upper_bound_kl(instance: Instance | Setting, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""KL-UCB with exploration :math:`3\log t`, that is ``kl_ucb(rho=3, c=0)``.

    .. math:: R(T) \le 24\gamma_g^2\bar M^2\sum_j\frac{\log T}{\Delta_{j,\min}}\Bigl(E + E'\Bigl(1 -
              \frac{\Delta_{j,\min}}{\Delta_{j,\max}}\Bigr)\Bigr) + L\Delta_{\max}\Bigl(1 + M\frac{\pi^2}{3}\Bigr)

    Theorem 1 of ``docs/theory/kl-ucb.md``, derived for superarm for the index of [GarivierCappe2011]_ and the setting
    of [MerlisMannor2019]_. Assumes the same means in every round, outcomes in [0, 1] that are independent over rounds,
    every arm in some batch, complete and immediate feedback; any dependence within a round.

    >>> from superarm.simulation import instances
    >>> f"{float(upper_bound_kl(instances.disjoint_batches(4), 10**6)):.4g}"
    '4.456e+04'
    """
    return _with_gaps("upper_bound_kl", instance, horizon, known, THREE_LOGS)


def upper_bound_kl_gap_free(instance: Instance | Setting, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""The same without any gap but the largest.

    .. math:: R(T) \le 2\bar M\gamma_g\sqrt{24 F LT\log T} + L\Delta_{\max}\Bigl(1 + M\frac{\pi^2}{3}\Bigr)

    Theorem 1 of ``docs/theory/kl-ucb.md``, derived for superarm; assumptions as for :func:`upper_bound_kl`, setting of
    [MerlisMannor2019]_.

    >>> from superarm.simulation import instances
    >>> f"{float(upper_bound_kl_gap_free(instances.disjoint_batches(4), 10**6)):.4g}"
    '4.504e+05'
    """
    return _without_gaps("upper_bound_kl_gap_free", instance, horizon, known, THREE_LOGS)


def upper_bound_kl_default(instance: Instance | Setting, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""KL-UCB with exploration :math:`f(t) = \log t + 3\log^+\log t`: the default ``kl_ucb()``.

    .. math:: R(T) \le 8\gamma_g^2\bar M^2\sum_j\frac{f(T)}{\Delta_{j,\min}}\Bigl(E + E'\Bigl(1 -
              \frac{\Delta_{j,\min}}{\Delta_{j,\max}}\Bigr)\Bigr)
              + L\Delta_{\max}\bigl(1 + 2eM(\log^+\log T + 2.3)\bigr)

    Theorem 2 of ``docs/theory/kl-ucb.md``, derived for superarm with the deviation inequality of [GarivierCappe2011]_
    (Theorem 10), which the page proves. Assumptions as for :func:`upper_bound_kl`.

    >>> from superarm.simulation import instances
    >>> f"{float(upper_bound_kl_default(instances.disjoint_batches(4), 10**6)):.4g}"
    '2.593e+04'
    """
    return _with_gaps("upper_bound_kl_default", instance, horizon, known, DEFAULT_LEVEL)


def upper_bound_kl_default_gap_free(instance: Instance | Setting, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""The default ``kl_ucb()`` without any gap but the largest.

    .. math:: R(T) \le 2\bar M\gamma_g\sqrt{8 F LT(\log T + 3\log^+\log T)}
              + L\Delta_{\max}\bigl(1 + 2eM(\log^+\log T + 2.3)\bigr)

    Theorem 2 of ``docs/theory/kl-ucb.md``, derived for superarm after [GarivierCappe2011]_; assumptions as for
    :func:`upper_bound_kl`.

    >>> from superarm.simulation import instances
    >>> f"{float(upper_bound_kl_default_gap_free(instances.disjoint_batches(4), 10**6)):.4g}"
    '3.284e+05'
    """
    return _without_gaps("upper_bound_kl_default_gap_free", instance, horizon, known, DEFAULT_LEVEL)


def upper_bound_kl_late(instance: Instance | Setting, horizon: Any, known: Gaps | None = None, delay: int = 0) -> Bound:
    r"""``kl_ucb(rho=3, c=0)`` where the feedback of a round comes at most ``delay`` = d rounds late.

    .. math:: R(T) \le 24\gamma_g^2\bar M^2\sum_j\frac{\log T}{\Delta_{j,\min}}\Bigl(E + E'\Bigl(1 -
              \frac{\Delta_{j,\min}}{\Delta_{j,\max}}\Bigr)\Bigr)
              + L\Delta_{\max}\bigl(1 + 14M + d(3d - 1)^+\bigr)

    The feedback of round t arrives before round t + d + 1 is chosen; the radius counts pending pulls, as superarm's
    policies do. Theorem 3 of ``docs/theory/kl-ucb.md``, derived for superarm for the index of [GarivierCappe2011]_.
    Assumptions as for :func:`upper_bound_kl`, but for the delay, which must not depend on outcomes; feedback is
    complete in the end. No such bound is known for the default level.

    >>> from superarm.simulation import instances
    >>> instance = instances.disjoint_batches(4)
    >>> bool(upper_bound_kl_late(instance, 10**6, delay=10).value > upper_bound_kl(instance, 10**6).value)
    True
    """
    d = count(delay, "delay", 0)
    late = Exploration(THREE_LOGS.level, lambda t: LATE_FAILURES)
    return _with_gaps("upper_bound_kl_late", instance, horizon, known, late, float(d * max(0, 3 * d - 1)))


def _with_gaps(
    name: str, instance: Any, horizon: Any, known: Gaps | None, exploration: Exploration, waiting: float = 0.0
) -> Bound:
    s = setting(instance, known)
    main, _ = amortise(s, MAIN * (s.smoothness.gamma_g * s.weight) ** 2, 0.0)
    failures = exploration.failures
    cost = initial_and_failed(s, lambda t: failures(t) + waiting / s.n_items)
    return grow(name, s, horizon, main, 0.0, cost, exploration.level)


def _without_gaps(name: str, instance: Any, horizon: Any, known: Gaps | None, exploration: Exploration) -> Bound:
    s = setting(instance, known)
    u = MAIN * (s.smoothness.gamma_g * s.weight) ** 2 * charge_factors(s.k).total * s.n_arms
    cost = initial_and_failed(s, exploration.failures)
    terms = (lambda t: 2.0 * np.sqrt(u * t * exploration.level(t)), 0.0, cost)
    return Bound(name, rounds(horizon), terms, s.largest, s.alpha)
