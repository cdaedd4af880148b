r"""BC-UCB with sharper constants: the exact gamma_g, the sensitivity lemma with 2, amortised charges.

The proof is in ``docs/theory/bc-ucb.md``. Outside of the paper's event :math:`H_t`, a batch with gap :math:`\Delta` is
played only if :math:`\Delta \le \bar M(8\sqrt3\gamma_g\sqrt S + 28\gamma_\infty S)`.

How much the pulls of one arm can cost in all: the amortisation that the sharper theorems share.

If a batch with gap :math:`\Delta` is played only while :math:`\Delta \le c_1\sqrt S + c_2 S` with
:math:`S = \sum_{j \in A} f/N_j`, then its gap is paid for by charges to its arms, each value of :math:`N_j` is charged
once, and with :math:`D = \Delta_{j,\min}` and :math:`\bar D = \Delta_{j,\max}` the charges of arm j add up to at most

.. math:: \frac{c_1^2 f}{D}\,F + 2c_2 f\Bigl(E + E'\log\frac{\bar D}{D}\Bigr) + D, \qquad
          E = \lambda\log\Bigl(1 + \frac{K}{\lambda - 1}\Bigr),\quad E' = \frac{\lambda K}{K + \lambda - 1},\quad
          F = E + E'

for every :math:`\lambda > 1` (``docs/theory/amortisation.md``).
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.simulation.instances import Instance
from superarm.theory.bound import BERNSTEIN_FAILURES, LABELS, Bound, Setting, assemble, initial_and_failed, setting
from superarm.theory.gaps import Gaps

SMALLEST_K = 2
"""From this batch size on some finite lambda is best; for batches of one arm the limit of large lambda is."""


class ChargeFactors(NamedTuple):
    r""":math:`E` and :math:`E'` of one arm's charges; ``total`` is :math:`F = E + E'`."""

    base: float
    ratio: float

    @property
    def total(self) -> float:
        """The factor of the leading term."""
        return self.base + self.ratio


def factors_at(k: int, scale: float) -> ChargeFactors:
    r"""The factors for batches of at most ``k`` arms and :math:`\lambda` = ``scale``.

    After the amortisation of [LiuEtAl2023]_; ``scale=2`` is their doubling.

    >>> round(factors_at(5, 2.0).total, 4), round(2 * (math.log(6) + 5 / 6), 4)
    (5.2502, 5.2502)
    """
    return ChargeFactors(scale * math.log1p(k / (scale - 1.0)), scale * k / (k + scale - 1.0))


@functools.cache
def charge_factors(k: int) -> ChargeFactors:
    r"""The factors with the smallest leading term that a search over :math:`\lambda` finds.

    Every :math:`\lambda` gives a valid bound, so that the search cannot make the result wrong, only larger than
    necessary. At :math:`\lambda = 2` the leading factor is :math:`2(\log(K+1) + K/(K+1)) \le 2(1 + \log K + 1/K)`.
    For K = 1 the limit of large :math:`\lambda` is best: :math:`E = E' = 1`. Derived for superarm
    (``docs/theory/amortisation.md``) after [LiuEtAl2023]_.

    >>> [round(charge_factors(k).total, 2) for k in (1, 2, 5, 64)]
    [2.0, 3.53, 4.94, 8.11]
    """
    if k < 1:
        raise InvalidArgument("k", f"{k}", "give a batch size of at least 1")
    if k < SMALLEST_K:
        return ChargeFactors(1.0, 1.0)
    found = minimize_scalar(
        lambda x: factors_at(k, 1.0 + math.exp(x)).total, bounds=(-8.0, 2.0), method="bounded", options={"xatol": 1e-9}
    )
    return min(factors_at(k, 1.0 + math.exp(found.x)), factors_at(k, 2.0), key=lambda f: f.total)


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

    >>> from superarm.simulation import instances
    >>> f"{float(upper_bound_sharp(instances.disjoint_batches(4), 10**6)):.4g}"
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

    >>> from superarm.simulation import instances
    >>> f"{float(upper_bound_sharp_gap_free(instances.disjoint_batches(4), 10**6)):.4g}"
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
