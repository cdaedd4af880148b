"""Means, differences and slopes with their confidence intervals and p-values."""

import math
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from superarm.core.arrays import Floats, Ints
from superarm.core.statistics import mean_and_standard_error

LEVEL = 0.95
"""The confidence level of every interval in a report."""


class Estimate(NamedTuple):
    """A number with its confidence interval; ``p`` is the two-sided p-value of it being 0, where it was tested.

    >>> print(Estimate(-70.25, -87.93, -52.56, p=1e-5))
    -70.25 [-87.93, -52.56], p < 0.001
    """

    value: float
    low: float
    high: float
    p: float = math.nan

    def __str__(self) -> str:
        tested = "" if math.isnan(self.p) else ", p < 0.001" if self.p < 0.001 else f", p = {self.p:.2g}"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]{tested}"

    @property
    def error(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2.0


def estimate_mean(values: Floats) -> Estimate:
    """The mean of independent values with Student's interval; a single value has no interval.

    >>> estimate_mean(np.array([1.0, 2.0, 3.0])).value
    2.0
    """
    mean, error = mean_and_standard_error(values)
    return Estimate(mean, math.nan, math.nan) if math.isnan(error) else _student(mean, error, len(values) - 1)


def paired_difference(a: Floats, b: Floats) -> Estimate:
    """The mean of a - b over replications that shared their random numbers, with the paired t-test.

    >>> paired_difference(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 4.0])).p
    1.0
    """
    return estimate_mean(np.asarray(a) - np.asarray(b))


def unpaired_difference(a: Floats, b: Floats) -> Estimate:
    """The difference of the means of two independent samples, with Welch's interval and test."""
    (mean_a, error_a), (mean_b, error_b) = mean_and_standard_error(a), mean_and_standard_error(b)
    if math.isnan(error_a) or math.isnan(error_b):
        return Estimate(mean_a - mean_b, math.nan, math.nan)
    spread = error_a**4 / (len(a) - 1) + error_b**4 / (len(b) - 1)
    error = math.hypot(error_a, error_b)
    return _student(mean_a - mean_b, error, error**4 / spread if spread > 0.0 else 1.0)


def estimate_slope(x: Floats, values: Floats) -> Estimate | None:
    r"""The slope of log mean regret against log x, with a jackknife interval over replications.

    ``values`` is (n_points, replications). Replications share their random numbers across points, so a
    replication is left out at all points at once. None where a mean is not positive, since it has no logarithm.
    """
    x, values = np.asarray(x, float), np.asarray(values, float)
    means = values.mean(axis=1)
    if len(x) < 2 or (means <= 0.0).any() or (x <= 0.0).any():
        return None
    whole, n = _fit_slope(x, means), values.shape[1]
    if n < 2:
        return Estimate(whole, math.nan, math.nan)
    without = (values.sum(axis=1, keepdims=True) - values) / (n - 1)
    if (without <= 0.0).any():
        return Estimate(whole, math.nan, math.nan)
    parts = np.array([_fit_slope(x, column) for column in without.T])
    error = math.sqrt((n - 1) / n * float(((parts - parts.mean()) ** 2).sum()))
    return _student(whole, error, n - 1)


def estimate_growth(rounds: Ints, values: Floats) -> Estimate:
    r"""Regret per unit of :math:`\log t` over the last decade of rounds: :math:`(R(T) - R(T/10)) / \log 10`."""
    start = int(np.searchsorted(rounds, rounds[-1] / 10.0))
    return estimate_mean((values[:, -1] - values[:, start]) / math.log(rounds[-1] / rounds[start]))


def share_with_interval(count: int, n: int) -> Estimate:
    """A share with the exact interval of Clopper and Pearson.

    >>> share_with_interval(0, 200).high < 0.019
    True
    """
    interval = stats.binomtest(count, n).proportion_ci(LEVEL)
    return Estimate(count / n, float(interval.low), float(interval.high))


def adjust_holm(p: list[float]) -> list[float]:
    """Holm's adjusted p-values: the chance of even one false alarm among all of them stays below the level.

    >>> adjust_holm([0.01, 0.04])
    [0.02, 0.04]
    """
    order = sorted(range(len(p)), key=lambda n: (math.isnan(p[n]), p[n]))
    adjusted, worst = list(p), 0.0
    for rank, n in enumerate(order):
        if not math.isnan(p[n]):
            worst = max(worst, min(1.0, (len(p) - rank) * p[n]))
            adjusted[n] = worst
    return adjusted


def _fit_slope(x: Floats, y: Floats) -> float:
    return round(float(np.polyfit(np.log(x), np.log(y), 1)[0]), 12) + 0.0  # equal values: 0, neither 1e-16 nor -0


def _student(centre: float, error: float, freedom: float) -> Estimate:
    """Student's interval and test of a number with a standard error."""
    if error == 0.0:
        return Estimate(centre, centre, centre, 1.0 if centre == 0.0 else 0.0)
    half = float(special.stdtrit(freedom, 0.5 + LEVEL / 2.0)) * error
    return Estimate(centre, centre - half, centre + half, float(2.0 * special.stdtr(freedom, -abs(centre) / error)))
