r"""Intervals for the mean of bounded rewards that hold at all times, also if the mean changes with the past.

Of rewards :math:`X_1, X_2, \dots` in [0, 1] with conditional means :math:`\mu_t = E[X_t \mid past]`, let
:math:`\hat x_t` be any guess that was made before :math:`X_t`, :math:`S_n = \sum_t (X_t - \mu_t)` and
:math:`V_n = \sum_t (X_t - \hat x_t)^2`. With probability at least :math:`1 - \delta`, for all n at once,

.. math:: \frac1m \sum_{k=1}^m \exp\{\lambda_k S_n - \psi(\lambda_k) V_n\} < \frac1\delta, \qquad
          \psi(\lambda) = -\log(1 - \lambda) - \lambda

for fixed :math:`\lambda_k` in (0, 1): the empirical Bernstein supermartingale of [HowardEtAl2021]_, mixed over a grid.
The proof is in ``docs/theory/offline.md``. ``normal_radius`` has narrower intervals for large numbers of rewards.
"""

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from superarm.core.arrays import Floats

_GRID = 0.9 * 0.5 ** (np.arange(40) / 2.0)
"""From 0.9 down to 1.2e-6: what suits sums of a few rewards, and of some 10^12."""
_PSI = -np.log1p(-_GRID) - _GRID


class BoundedSums(Struct, array_like=True):
    """Number, sum, and squared deviations of rewards from the mean of those before them."""

    n: int = 0
    total: float = 0.0
    spread: float = 0.0

    def add(self, value: float) -> None:
        """Add a reward; the first is compared with 0, so that rare rewards have narrow intervals on any scale."""
        guess = self.total / (self.n + 1)
        self.n += 1
        self.total += value
        self.spread += (value - guess) ** 2

    def add_many(self, rewards: Iterable[tuple[float, int]]) -> None:
        """Add rewards, each with how often it was given, in no known order: all are compared with the mean before.

        What is taken back, with negative numbers, leaves its part of the spread: intervals stay as wide as they were.
        """
        guess = self.total / (self.n + 1)
        for value, n in rewards:
            self.n += n
            self.total += n * value
            self.spread += max(n, 0) * (value - guess) ** 2

    def joined(self, other: "BoundedSums") -> "BoundedSums":
        """Both together: each guess was still made before its reward."""
        return BoundedSums(self.n + other.n, self.total + other.total, self.spread + other.spread)


class MeanBounds(NamedTuple):
    """A mean with the ends of its interval."""

    value: float
    low: float
    high: float


class Stratum(NamedTuple):
    """A part of a mean over strata: rewards between 0 and ``scale``, whose mean counts ``share`` times."""

    sums: BoundedSums
    scale: float
    share: float = 1.0


ENOUGH = 60.0
"""From so many rewards on that matter, the central limit theorem is relied upon: see ``dev.benchmarks.verdicts``."""


def effective_number(stratum: Stratum) -> float:
    r"""How many rewards a mean rests on: :math:`(\sum x)^2 / \sum x^2`, or that of what is missing to the scale.

    Of clicks it is the number of clicks, or of rewards without; of amounts it is less, the heavier their tail.

    >>> round(effective_number(Stratum(BoundedSums(4000, 40.0, 39.6), 1.0)))
    40
    """
    sums, scale, _ = stratum
    sides = sums.total, sums.n * scale - sums.total
    return min(one**2 / (sums.spread + one**2 / sums.n) if one > 0.0 else 0.0 for one in sides)


_MULTIPLIERS = 2.0 ** (np.arange(-8, 9) / 4.0)
_HALVINGS = 40


def strata_radius(strata: Sequence[Stratum], delta: float) -> float:
    r"""How far a sum of means over strata may be above the sum of their conditional means, at all times.

    Every reward belongs to one stratum i, known before the reward. The product over strata of the module's mixtures is
    a supermartingale, too, so that with :math:`f_i` the logarithm of the mixture of stratum i and
    :math:`c_i` = share × scale / n,

    .. math:: \sum_i c_i S_i \le \frac1\nu\Big(\log\frac1\delta + \sum_i \max_x \{\nu c_i x - f_i(x)\}\Big)
              \quad\text{for all } \nu > 0

    with probability 1 - ``delta``; the least of these bounds over a grid of :math:`\nu` is returned.

    >>> sums = BoundedSums(400, 200.0, 100.0)
    >>> one, four = (strata_radius([Stratum(sums, 1.0, 1 / m)] * m, 0.05) for m in (1, 4))
    >>> round(one, 3), round(four, 3)
    (0.096, 0.063)
    """
    parts = [(sums.n, sums.spread / scale**2, share * scale / sums.n) for sums, scale, share in strata]
    n, spread, coefficient = np.array(parts, float).T
    budget = -math.log(delta)
    guess = math.sqrt(2.0 * (budget + 3.0) / float(coefficient**2 @ (spread + 1.0)))
    slope = (guess * _MULTIPLIERS)[:, None] * coefficient
    low, high = -np.broadcast_to(n, slope.shape), np.broadcast_to(n, slope.shape)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        rising = _mixtures(middle, spread)[1] < slope
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    best = (slope * low - _mixtures(low, spread)[0]).sum(1)
    return float(((budget + best) / (guess * _MULTIPLIERS)).min())


def _mixtures(excess: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """The logarithm of the mixture and its derivative in ``excess``, element by element."""
    exponents = _GRID * excess[..., None] - (_PSI * spread[:, None])
    most = exponents.max(-1, keepdims=True)
    weights = np.exp(exponents - most)
    return most[..., 0] + np.log(weights.mean(-1)), weights @ _GRID / weights.sum(-1)


def normal_radius(strata: Sequence[Stratum], delta: float, planned: int | None = None) -> float:
    r"""As ``strata_radius``, for large numbers of rewards: by the central limit theorem, without the bounds of rewards.

    With n rewards in all, :math:`\hat\sigma^2` the estimated variance of the sum of means and :math:`\alpha = 2\delta`,

    .. math:: \hat\sigma\sqrt{\frac{2(n\rho^2 + 1)}{n\rho^2}\log\frac{\sqrt{n\rho^2 + 1}}{\alpha}}, \qquad
              \rho^2 = \frac{-2\log\alpha + \log(1 - 2\log\alpha)}{planned}

    holds at all times in the limit, [WaudbySmithEtAl2024]_ (Theorem 2.2), and is narrowest after about
    ``planned`` rewards: 1.6 times as wide as an interval for one look. Without ``planned`` it is that interval, valid
    for a single look at a time that was chosen beforehand.

    >>> sums = Stratum(BoundedSums(4000, 400.0, 360.0), 1.0)
    >>> round(normal_radius([sums], 0.025), 4), round(normal_radius([sums], 0.025, 4000), 4)
    (0.0093, 0.0144)
    >>> round(strata_radius([sums], 0.025), 4)
    0.0184
    """
    deviation = math.sqrt(sum(share**2 * sums.spread / sums.n**2 for sums, _, share in strata))
    if planned is None:
        return deviation * NormalDist().inv_cdf(1.0 - delta)
    return deviation * float(sequence_factor(sum(sums.n for sums, _, _ in strata), delta, planned))


def sequence_factor(n: Any, delta: float, planned: int) -> Any:
    """How many standard deviations the sequence of ``normal_radius`` has after ``n`` rewards."""
    sides = math.log(2.0 * delta)
    x = n * (math.log(1.0 - 2.0 * sides) - 2.0 * sides) / planned
    return np.sqrt(2.0 * (x + 1.0) / x * (0.5 * np.log(x + 1.0) - sides))


def bound_strata(
    strata: Sequence[Stratum], delta: float = 0.05, large: bool = False, planned: int | None = None
) -> MeanBounds:
    """The sum of means over strata; both ends hold at all times with probability 1 - ``delta``.

    With ``large``, for at least some hundred rewards in each stratum, they are those of ``normal_radius``.
    """
    mean = sum(share * sums.total / sums.n for sums, _, share in strata)
    most = sum(scale * share for _, scale, share in strata)
    reach = normal_radius(strata, 0.5 * delta, planned) if large else strata_radius(strata, 0.5 * delta)
    return MeanBounds(mean, max(0.0, mean - reach), min(most, mean + reach))
