r"""Intervals for the mean of bounded rewards that hold at all times, also if the mean changes with the past.

Of rewards :math:`X_1, X_2, \dots` in [0, 1] with conditional means :math:`\mu_t = E[X_t \mid past]`, let
:math:`\hat x_t` be any guess that was made before :math:`X_t`, :math:`S_n = \sum_t (X_t - \mu_t)` and
:math:`V_n = \sum_t (X_t - \hat x_t)^2`. With probability at least :math:`1 - \delta`, for all n at once,

.. math:: \frac1m \sum_{k=1}^m \exp\{\lambda_k S_n - \psi(\lambda_k) V_n\} < \frac1\delta, \qquad
          \psi(\lambda) = -\log(1 - \lambda) - \lambda

for fixed :math:`\lambda_k` in (0, 1): the empirical Bernstein supermartingale of [HowardEtAl2021]_, mixed over a grid.
The proof is in ``docs/theory/offline.md``.
"""

import math
from typing import NamedTuple

import numpy as np
from msgspec import Struct

_GRID = 0.9 * 0.5 ** (np.arange(40) / 2.0)
"""From 0.9 down to 1.2e-6: what suits sums of a few rewards, and of some 10^12."""
_PSI = -np.log1p(-_GRID) - _GRID


class BoundedSums(Struct, array_like=True):
    """Number, sum, and squared deviations of rewards from the mean of those before them."""

    n: int = 0
    total: float = 0.0
    spread: float = 0.0

    def add(self, value: float, scale: float) -> None:
        """Add a reward between 0 and ``scale``; the first is compared with half of the scale."""
        guess = (0.5 * scale + self.total) / (self.n + 1)
        self.n += 1
        self.total += value
        self.spread += (value - guess) ** 2

    def joined(self, other: "BoundedSums") -> "BoundedSums":
        """Both together: each guess was still made before its reward."""
        return BoundedSums(self.n + other.n, self.total + other.total, self.spread + other.spread)


class MeanBounds(NamedTuple):
    """A mean with the ends of its interval."""

    value: float
    low: float
    high: float


def sum_radius(spread: float, delta: float) -> float:
    """How far the sum of rewards in [0, 1] may be above that of their means; see the module's formula.

    >>> round(sum_radius(100.0, 0.05), 1)
    38.3
    """
    low, high = 0.0, 1.0
    while _log_mixture(high, spread) < -math.log(delta):
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _log_mixture(middle, spread) < -math.log(delta) else (low, middle)
    return high


def _log_mixture(excess: float, spread: float) -> float:
    exponents = _GRID * excess - _PSI * spread
    most = exponents.max()
    return float(most + math.log(np.exp(exponents - most).mean()))


def bound_mean(sums: BoundedSums, scale: float, delta: float = 0.05) -> MeanBounds:
    """The mean of rewards between 0 and ``scale``; both ends hold at all times with probability 1 - ``delta``.

    >>> sums = BoundedSums()
    >>> for n in range(1000):
    ...     sums.add(float(n % 2), 1.0)
    >>> [round(end, 2) for end in bound_mean(sums, 1.0)]
    [0.5, 0.44, 0.56]
    """
    if not sums.n:
        return MeanBounds(0.5 * scale, 0.0, scale)
    mean = sums.total / sums.n
    reach = scale * sum_radius(sums.spread / scale**2, 0.5 * delta) / sums.n
    return MeanBounds(mean, max(0.0, mean - reach), min(scale, mean + reach))
