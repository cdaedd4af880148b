"""Means, paired differences and slopes, each with what may be concluded from it."""

import math
from typing import NamedTuple

import numpy as np
from scipy import stats

from superarm.arrays import Floats, Ints

LEVEL = 0.95
"""The confidence of every interval in a report."""


class Estimate(NamedTuple):
    """A number with its confidence interval; ``p`` is the two-sided p-value of it being 0, where that was asked."""

    value: float
    low: float
    high: float
    p: float = math.nan

    @property
    def error(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2.0


def mean(values: Floats) -> Estimate:
    """The mean of independent values, with Student's interval; of a single value no interval is known.

    >>> mean(np.array([1.0, 2.0, 3.0])).value
    2.0
    """
    n, centre = len(values), float(np.mean(values))
    if n < 2:
        return Estimate(centre, math.nan, math.nan)
    error = float(np.std(values, ddof=1)) / math.sqrt(n)
    return _around(centre, error, n - 1)


def paired(a: Floats, b: Floats) -> Estimate:
    """The mean of a - b over replications that shared their random numbers, with the paired t-test.

    >>> paired(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 4.0])).p
    1.0
    """
    return mean(np.asarray(a) - np.asarray(b))


def unpaired(a: Floats, b: Floats) -> Estimate:
    """The difference of the means of two independent samples, with Welch's interval and test."""
    if min(len(a), len(b)) < 2:
        return Estimate(float(np.mean(a) - np.mean(b)), math.nan, math.nan)
    va, vb = np.var(a, ddof=1) / len(a), np.var(b, ddof=1) / len(b)
    spread = va**2 / (len(a) - 1) + vb**2 / (len(b) - 1)
    freedom = float((va + vb) ** 2 / spread) if spread > 0.0 else 1.0
    return _around(float(np.mean(a) - np.mean(b)), math.sqrt(va + vb), freedom)


def slope(x: Floats, values: Floats) -> Estimate | None:
    r"""The slope of log mean regret against log x, with a jackknife interval over replications.

    ``values`` is (n_points, replications). Replications share their random numbers across points, so a
    replication is left out at all points at once. None where a mean is not positive, since it has no logarithm.
    """
    x, values = np.asarray(x, float), np.asarray(values, float)
    means = values.mean(axis=1)
    if len(x) < 2 or (means <= 0.0).any() or (x <= 0.0).any():
        return None
    whole, n = _slope(x, means), values.shape[1]
    if n < 2:
        return Estimate(whole, math.nan, math.nan)
    without = (values.sum(axis=1, keepdims=True) - values) / (n - 1)
    if (without <= 0.0).any():
        return Estimate(whole, math.nan, math.nan)
    parts = np.array([_slope(x, column) for column in without.T])
    error = math.sqrt((n - 1) / n * float(((parts - parts.mean()) ** 2).sum()))
    return _around(whole, error, n - 1)


def growth(rounds: Ints, values: Floats) -> Estimate:
    r"""Regret a unit of :math:`\log t` over the last decade of rounds: :math:`(R(T) - R(T/10)) / \log 10`."""
    start = int(np.searchsorted(rounds, rounds[-1] / 10.0))
    return mean((values[:, -1] - values[:, start]) / math.log(rounds[-1] / rounds[start]))


def holm(p: list[float]) -> list[float]:
    """Holm's adjusted p-values: the chance of even one false alarm among them all stays below the level.

    >>> holm([0.01, 0.04])
    [0.02, 0.04]
    """
    order = sorted(range(len(p)), key=lambda n: (math.isnan(p[n]), p[n]))
    adjusted, worst = list(p), 0.0
    for rank, n in enumerate(order):
        if not math.isnan(p[n]):
            worst = max(worst, min(1.0, (len(p) - rank) * p[n]))
            adjusted[n] = worst
    return adjusted


def _slope(x: Floats, y: Floats) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _around(centre: float, error: float, freedom: float) -> Estimate:
    if error == 0.0:
        return Estimate(centre, centre, centre, 1.0 if centre == 0.0 else 0.0)
    half = float(stats.t.ppf(0.5 + LEVEL / 2.0, freedom)) * error
    return Estimate(centre, centre - half, centre + half, float(2.0 * stats.t.sf(abs(centre) / error, freedom)))
