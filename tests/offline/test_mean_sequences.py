"""Intervals of mean rewards hold at all times, at the stated rate, also while the mean changes."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp

from superarm.offline.mean_sequences import (
    BoundedSums,
    Stratum,
    bound_strata,
    normal_radius,
    sequence_factor,
    strata_radius,
)


@pytest.mark.parametrize("means", [np.full(150, 0.1), np.linspace(0.9, 0.1, 150), np.tile([0.05, 0.95], 75)])
def test_means_are_held_at_all_times(means):
    """With delta 0.3, of 60 runs more than 30 miss with probability below 0.001 if the rate is 0.3."""
    rng, missed, truth = np.random.default_rng(5), 0, 2.0 * np.cumsum(means) / np.arange(1, len(means) + 1)
    for _ in range(60):
        sums, wrong = BoundedSums(), False
        for t, (p, mean) in enumerate(zip(means, truth, strict=True)):
            sums.add(2.0 * float(rng.random() < p))
            if t % 7 == 0:
                low, high = bound_strata([Stratum(sums, 2.0)], 0.3)[1:]
                wrong |= not low <= mean <= high
        missed += wrong
    assert missed <= 30


GRID = 0.9 * 0.5 ** (np.arange(40) / 2.0)
PSI = -np.log1p(-GRID) - GRID


def sum_radius(spread: float, delta: float) -> float:
    """How far a sum may be above that of its means, by solving the equation of the proposition."""
    need = math.log(len(GRID) / delta)
    return brentq(lambda x: logsumexp(GRID * x - PSI * spread) - need, 0.0, 10.0 * spread + 1e3)


def test_the_interval_would_be_wrong_if_it_were_much_narrower():
    """Half of the radius is not enough: the test above can fail."""
    rng, missed = np.random.default_rng(0), 0
    for _ in range(60):
        walk = np.cumsum(rng.random(400) < 0.5) - 0.5 * np.arange(1, 401)
        missed += any(abs(walk[t]) > 0.35 * sum_radius((t + 1) / 4.0, 0.15) for t in range(5, 400, 5))
    assert missed > 20


def test_fan_grama_and_lius_inequality():
    for lam in (0.01, 0.5, 0.9):
        psi = -math.log1p(-lam) - lam
        for xi in np.linspace(-1.0, 3.0, 81):
            assert math.exp(lam * xi - psi * xi * xi) <= 1.0 + lam * xi + 1e-12


def test_joined_sums():
    assert BoundedSums(1, 1.0, 0.0).joined(BoundedSums(1, 0.0, 1.0)) == BoundedSums(2, 1.0, 1.0)


def test_sums_of_means_over_strata_are_held_at_all_times():
    """With delta 0.3, of 60 runs more than 30 miss with probability below 0.001 if the rate is 0.3."""
    rng, missed, means, scales = np.random.default_rng(1), 0, np.array([0.1, 0.5, 0.8]), np.array([1.0, 4.0, 0.5])
    for _ in range(60):
        strata, wrong = [Stratum(BoundedSums(), scale) for scale in scales], False
        for t, i in enumerate(rng.choice(3, 200, p=[0.6, 0.3, 0.1])):
            strata[i].sums.add(scales[i] * float(rng.random() < means[i]))
            if t % 10 == 0 and all(one.sums.n for one in strata):
                low, high = bound_strata(strata, 0.3)[1:]
                wrong |= not low <= means @ scales <= high
        missed += wrong
    assert missed <= 30


def missed_by(radius, seed, n=4000, runs=1000, rate=0.05):
    """The share of runs in which the mean of clicks is farther from the truth than ``radius(deviation, t)``, ever."""
    rng, t = np.random.default_rng(seed), np.arange(1, n + 1)
    total = np.cumsum(rng.random((runs, n)) < rate, 1)
    deviation = np.sqrt(total / t * (1.0 - total / t) / t)
    return (np.abs(total / t - rate) > radius(deviation, t))[:, 200:].any(1).mean()


def test_sequences_for_large_numbers_hold_at_all_times_and_one_look_does_not():
    # Of 1,000 runs more than 7.2 % miss with probability below 0.001 if the rate is 5 %.
    assert missed_by(lambda deviation, t: deviation * sequence_factor(t, 0.025, 2000), 1) <= 0.072
    assert missed_by(lambda deviation, t: deviation * 1.96, 1) > 0.3


def test_intervals_for_large_numbers_are_those_of_the_formulas():
    strata = [Stratum(BoundedSums(900, 90.0, 81.0), 1.0, 0.5), Stratum(BoundedSums(100, 30.0, 21.0), 2.0, 0.5)]
    deviation = math.sqrt(0.25 * 81.0 / 900**2 + 0.25 * 21.0 / 100**2)
    assert normal_radius(strata, 0.025) == pytest.approx(1.959964 * deviation, rel=1e-6)
    rho = (-2 * math.log(0.05) + math.log(-2 * math.log(0.05) + 1)) / 500
    factor = math.sqrt(2 * (1000 * rho + 1) / (1000 * rho) * math.log(math.sqrt(1000 * rho + 1) / 0.05))
    assert normal_radius(strata, 0.025, 500) == pytest.approx(factor * deviation)
    low, high = bound_strata(strata, 0.05, large=True, planned=500)[1:]
    assert high - low == pytest.approx(2.0 * factor * deviation)
    assert 1.5 < sequence_factor(1000, 0.025, 1000) / 1.96 < 1.65  # narrowest where it is planned


@pytest.mark.parametrize(("n", "spread"), [(20, 1.0), (400, 100.0), (10**6, 10.0), (10**6, 2e5)])
def test_one_stratum_has_the_radius_of_a_mean_and_several_have_less_than_the_sum(n, spread):
    sums = BoundedSums(n, n / 2, spread)
    one = strata_radius([Stratum(sums, 1.0)], 0.05)
    assert sum_radius(spread, 0.05) / n <= one * (1.0 + 1e-9) <= 1.005 * sum_radius(spread, 0.05) / n
    assert strata_radius([Stratum(sums, 1.0)] * 4, 0.05) < 3.0 * one
