r"""BC-UCB with sharper constants: the exact gamma_g, the sensitivity lemma with 2, amortised charges.

The proof is in ``docs/theory/bc-ucb.md``. Outside of the paper's event :math:`H_t`, a batch with gap :math:`\Delta` is
played only if :math:`\Delta \le \bar M(8\sqrt3\gamma_g\sqrt S + 28\gamma_\infty S)`.

How much the pulls of one arm can cost in all: the amortisation that the sharper theorems share.

If a batch with gap :math:`\Delta` is played only while :math:`\Delta \le c_1\sqrt S + c_2 S` with
:math:`S = \sum_{j \in A} f/N_j`, then its gap is paid for by charges to its arms, each value of :math:`N_j` is charged
once, and with :math:`D = \Delta_{j,\min}` and :math:`\bar D = \Delta_{j,\max}` the charges of arm j add up to at most

.. math:: \frac{c_1^2 f}{D}\Bigl(E + E'\Bigl(1 - \frac{D}{\bar D}\Bigr)\Bigr)
          + 2c_2 f\Bigl(E + E'\log\frac{\bar D}{D}\Bigr), \qquad
          E = \lambda\log\Bigl(1 + \frac{K}{\lambda - 1}\Bigr),\quad E' = \frac{\lambda K}{K + \lambda - 1}

for every :math:`\lambda > 1`, the same for all arms (``docs/theory/bc-ucb.md``).
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.simulation.instances import Instance
from superarm.theory.bound import BERNSTEIN_FAILURES, Bound, Setting, grow, initial_and_failed, rounds, setting
from superarm.theory.gaps import Gaps


class ChargeFactors(NamedTuple):
    r""":math:`E` and :math:`E'` of one arm's charges; ``total`` is :math:`F = E + E'`, for which gaps are unknown."""

    base: float
    ratio: float

    @property
    def total(self) -> float:
        """The factor of the leading term if nothing is known about the largest gap of the arm."""
        return self.base + self.ratio


def factors_at(k: int, scale: float) -> ChargeFactors:
    r"""The factors for batches of at most ``k`` arms and :math:`\lambda` = ``scale``.

    After the amortisation of [LiuEtAl2023]_; ``scale=2`` is their doubling.

    >>> round(factors_at(5, 2.0).total, 4), round(2 * (math.log(6) + 5 / 6), 4)
    (5.2502, 5.2502)
    """
    return ChargeFactors(scale * math.log1p(k / (scale - 1.0)), scale * k / (k + scale - 1.0))


@functools.cache
def charge_factors(k: int, spread: float = 1.0) -> ChargeFactors:
    r"""The factors with the smallest :math:`E + spread\,E'` that a search over :math:`\lambda` finds.

    Every :math:`\lambda` gives a valid bound, so that the search cannot make the result wrong, only larger than
    necessary. At :math:`\lambda = 2` the sum :math:`F = E + E'` is :math:`2(\log(K+1) + K/(K+1)) \le
    2(1 + \log K + 1/K)`; as :math:`\lambda` grows both factors tend to K. Derived for superarm
    (``docs/theory/bc-ucb.md``) after [LiuEtAl2023]_.

    >>> [round(charge_factors(k).total, 2) for k in (1, 2, 5, 64)]
    [2.0, 3.53, 4.94, 8.11]
    >>> [round(charge_factors(k, 0.0).base, 2) for k in (1, 2, 5, 64)]  # all gaps of an arm are equal
    [1.0, 2.0, 3.56, 6.92]
    """
    if k < 1:
        raise InvalidArgument("k", f"{k}", "give a batch size of at least 1")

    def cost(factors: ChargeFactors) -> float:
        return factors.base + spread * factors.ratio

    found = minimize_scalar(
        lambda x: cost(factors_at(k, 1.0 + math.exp(x))), bounds=(-8.0, 8.0), method="bounded", options={"xatol": 1e-9}
    )
    return min(factors_at(k, 1.0 + math.exp(found.x)), factors_at(k, 2.0), ChargeFactors(float(k), float(k)), key=cost)


def amortise(s: Setting, main: Any, slow: Any) -> tuple[float, float]:
    r"""What the lemma gives, as the factors of f in its two terms: sums over arms, with the best :math:`\lambda`.

    ``main`` is :math:`c_1^2`, ``slow`` is :math:`2c_2`: numbers, or one for each arm of some suboptimal batch.
    """
    with np.errstate(divide="ignore"):
        inverse, apart = 1.0 / s.minimum, np.log(s.maximum / s.minimum)
    if not np.isfinite(inverse).all():
        return math.inf, math.inf if np.any(slow) else 0.0
    terms = [(main * inverse, main * (inverse - 1.0 / s.maximum)), (slow + 0.0 * apart, slow * apart)]
    (first, then), (slow_first, slow_then) = ((float(np.sum(a)), float(np.sum(b))) for a, b in terms)
    total = first + slow_first
    base, ratio = charge_factors(s.k, (then + slow_then) / total if total > 0.0 else 0.0)
    return base * first + ratio * then, base * slow_first + ratio * slow_then


MAIN, SLOW = 192.0, 56.0
r""":math:`(8\sqrt3)^2` and :math:`2 \cdot 28`: the squares and doubles of the width that enter the charges."""


def upper_bound_sharp(instance: Instance | Setting, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""BC-UCB with sharper constants than the paper's.

    .. math:: R(T) \le \sum_j\Bigl[\frac{192\gamma_g^2\bar M^2}{\Delta_{j,\min}}\Bigl(E + E'\Bigl(1 -
              \frac{\Delta_{j,\min}}{\Delta_{j,\max}}\Bigr)\Bigr) + 56\gamma_\infty\bar M
              \Bigl(E + E'\log\frac{\Delta_{j,\max}}{\Delta_{j,\min}}\Bigr)\Bigr]\log T
              + L\Delta_{\max}\Bigl(1 + M\frac{2\pi^2}{3}\Bigr)

    with E and E' of :func:`charge_factors`. Theorem of ``docs/theory/bc-ucb.md``, derived for superarm from the
    algorithm of [MerlisMannor2019]_ with the amortisation of [LiuEtAl2023]_. Assumes what the paper does: the same
    means in every round, outcomes in [0, 1] that are independent over rounds, every arm in some batch, complete and
    immediate feedback.

    >>> from superarm.simulation import instances
    >>> f"{float(upper_bound_sharp(instances.disjoint_batches(4), 10**6)):.4g}"
    '6.725e+05'
    """
    s = setting(instance, known)
    smooth = s.smoothness
    g, inf = amortise(s, MAIN * (smooth.gamma_g * s.weight) ** 2, SLOW * smooth.gamma_inf * s.weight)
    return grow("upper_bound_sharp", s, horizon, g, inf, initial_and_failed(s, BERNSTEIN_FAILURES))


def upper_bound_sharp_gap_free(instance: Instance | Setting, horizon: Any, known: Gaps | None = None) -> Bound:
    r"""The same without any gap but the largest: Corollary 1 with sharper constants.

    .. math:: R(T) \le 2\sqrt{u_1 T\log T} + 56\gamma_\infty\bar M L\Bigl(E + E'\log^+\frac{\Delta_{\max}}{D}\Bigr)
              \log T + L\Delta_{\max}\Bigl(1 + M\frac{2\pi^2}{3}\Bigr), \qquad
              u_1 = 192\gamma_g^2\bar M^2 F L,\quad D = \sqrt{u_1\log T/T}

    with :math:`F = E + E'`. Corollary of ``docs/theory/bc-ucb.md``, derived for superarm for the algorithm of
    [MerlisMannor2019]_. Assumptions as for :func:`upper_bound_sharp`.

    >>> from superarm.simulation import instances
    >>> f"{float(upper_bound_sharp_gap_free(instances.disjoint_batches(4), 10**6)):.4g}"
    '1.639e+06'
    """
    s = setting(instance, known)
    factors = charge_factors(s.k)
    u1 = MAIN * s.smoothness.gamma_g**2 * s.weight**2 * factors.total * s.n_arms
    u2 = SLOW * s.smoothness.gamma_inf * s.weight * s.n_arms

    def slow(t: Floats) -> Floats:
        log_t = np.log(t)
        with np.errstate(divide="ignore", invalid="ignore"):
            threshold = np.where(log_t > 0.0, np.sqrt(u1 * log_t / t), s.largest)
            beyond = np.log(np.maximum(1.0, s.largest / threshold))
        return np.asarray(u2 * (factors.base + factors.ratio * np.where(s.largest > 0.0, beyond, 0.0)) * log_t)

    terms = (lambda t: 2.0 * np.sqrt(u1 * t * np.log(t)), slow, initial_and_failed(s, BERNSTEIN_FAILURES))
    return Bound("upper_bound_sharp_gap_free", rounds(horizon), terms, s.largest, s.alpha)
