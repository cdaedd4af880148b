r"""BC-UCB with sharper constants: the exact gamma_g, the sensitivity lemma with 2, amortised charges.

The proof is in ``docs/theory/bc-ucb.md``. Outside of the paper's event :math:`H_t`, a batch with gap :math:`\Delta` is
played only if :math:`\Delta \le \bar M(8\sqrt3\gamma_g\sqrt S + 28\gamma_\infty S)`.
"""

from typing import Any

import numpy as np

from superarm.arrays import Floats
from superarm.simulation.instances import Instance
from superarm.theory.bound import BERNSTEIN_FAILURES, Bound, Setting, assemble, initial_and_failed, setting
from superarm.theory.gaps import Gaps
from superarm.theory.labels import LABELS
from superarm.theory.upper.charges import charge_factors

MAIN, SLOW = 192.0, 56.0
r""":math:`(8\sqrt3)^2` and :math:`2 \cdot 28`: the squares and doubles of the width that enter the charges."""


def upper_bound_sharp(instance: Instance, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""BC-UCB with sharper constants than the paper's.

    .. math:: R(T) \le \sum_j\Bigl[\frac{192\gamma_g^2\bar M^2 F_K}{\Delta_{j,\min}} + 56\gamma_\infty\bar M
              \Bigl(E_K + E'_K\log\frac{\Delta_{j,\max}}{\Delta_{j,\min}}\Bigr)\Bigr]\log T
              + L\Delta_{\max}\Bigl(2 + M\frac{2\pi^2}{3}\Bigr)

    with :math:`E_K, E'_K` and :math:`F_K = E_K + E'_K \le 2(1 + \log K + 1/K)` of
    :func:`superarm.theory.charge_factors`.

    Theorem of ``docs/theory/bc-ucb.md``, derived for superarm from the algorithm of [MerlisMannor2019]_ with the
    amortisation of [LiuEtAl2023]_. Assumes what the paper does: the same means in every round, outcomes in [0, 1] that
    are independent over rounds, every arm in some batch, complete and immediate feedback.

    >>> import superarm as sa
    >>> f"{float(upper_bound_sharp(sa.instances.disjoint_batches(4), 10**6)):.4g}"
    '8.372e+05'
    """
    return sharp(setting(instance, known), horizon)


def sharp(s: Setting, horizon: Any) -> Bound:
    """:func:`upper_bound_sharp` of given numbers."""
    factors = charge_factors(s.k)
    g = MAIN * s.smoothness.gamma_g**2 * s.weight**2 * factors.total * s.inverse_gaps
    inf = SLOW * s.smoothness.gamma_inf * s.weight * s.log_ratios(factors.base, factors.ratio)
    return assemble(LABELS["upper_bound_sharp"], horizon, g, inf, initial_and_failed(s, 2.0, BERNSTEIN_FAILURES))


def upper_bound_sharp_gap_free(instance: Instance, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""The same without any gap but the largest: Corollary 1 with sharper constants.

    .. math:: R(T) \le 2\sqrt{u_1 T\log T} + 56\gamma_\infty\bar M L\Bigl(E_K + E'_K\log^+\frac{\Delta_{\max}}{D}\Bigr)
              \log T + L\Delta_{\max}\Bigl(2 + M\frac{2\pi^2}{3}\Bigr), \qquad
              u_1 = 192\gamma_g^2\bar M^2 F_K L,\quad D = \sqrt{u_1\log T/T}

    Corollary of ``docs/theory/bc-ucb.md``, derived for superarm for the algorithm of [MerlisMannor2019]_. Assumptions
    as for :func:`upper_bound_sharp`.

    >>> import superarm as sa
    >>> f"{float(upper_bound_sharp_gap_free(sa.instances.disjoint_batches(4), 10**6)):.4g}"
    '1.639e+06'
    """
    return sharp_gap_free(setting(instance, known), horizon)


def sharp_gap_free(s: Setting, horizon: Any) -> Bound:
    """:func:`upper_bound_sharp_gap_free` of given numbers."""
    factors = charge_factors(s.k)
    u1 = MAIN * s.smoothness.gamma_g**2 * s.weight**2 * factors.total * s.n_arms
    u2 = SLOW * s.smoothness.gamma_inf * s.weight * s.n_arms

    def slow(t: Floats) -> Floats:
        log_t = np.log(t)
        with np.errstate(divide="ignore", invalid="ignore"):
            threshold = np.where(log_t > 0.0, np.sqrt(u1 * log_t / t), s.largest)
            beyond = np.log(np.maximum(1.0, s.largest / threshold))
        return np.asarray(u2 * (factors.base + factors.ratio * np.where(s.largest > 0.0, beyond, 0.0)) * log_t)

    return assemble(
        LABELS["upper_bound_sharp_gap_free"],
        horizon,
        lambda t: 2.0 * np.sqrt(u1 * t * np.log(t)),
        slow,
        initial_and_failed(s, 2.0, BERNSTEIN_FAILURES),
    )
