import math

import numpy as np
import pytest
from scipy import stats

from superarm.simulation.statistics import (
    adjust_holm,
    estimate_growth,
    estimate_mean,
    estimate_slope,
    paired_difference,
    unpaired_difference,
)

RNG = np.random.default_rng(0)
A, B = RNG.normal(1.0, 1.0, 12), RNG.normal(0.0, 2.0, 12)


def test_paired_difference_agrees_with_scipy():
    reference = stats.ttest_rel(A, B)
    found = paired_difference(A, B)
    interval = reference.confidence_interval(0.95)
    assert found.p == pytest.approx(reference.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_unpaired_difference_agrees_with_scipy():
    reference = stats.ttest_ind(A, B[:9], equal_var=False)
    found = unpaired_difference(A, B[:9])
    interval = reference.confidence_interval(0.95)
    assert found.p == pytest.approx(reference.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_of_one_value_no_interval_is_known():
    assert math.isnan(estimate_mean(np.array([3.0])).low)
    assert math.isnan(unpaired_difference(np.array([3.0]), np.array([1.0, 2.0])).low)


def test_equal_values_differ_for_sure_or_not_at_all():
    assert paired_difference(np.ones(3), np.ones(3)).p == 1.0
    assert paired_difference(np.ones(3), np.zeros(3)) == (1.0, 1.0, 1.0, 0.0)
    assert unpaired_difference(np.ones(3), np.zeros(3)).p == 0.0


def test_the_slope_of_a_power_is_its_exponent():
    x = np.array([1.0, 2.0, 4.0, 8.0])
    found = estimate_slope(x, 3.0 * x[:, None] ** 1.5 * np.array([0.5, 1.0, 2.0]))
    assert found.value == pytest.approx(1.5)
    assert found.error == pytest.approx(0.0, abs=1e-12)


def test_equal_regrets_have_the_slope_zero():
    found = estimate_slope([2, 8, 32], np.tile(8010.0 + RNG.normal(0.0, 20.0, 10), (3, 1)))
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)


def test_the_jackknife_interval_of_a_slope_covers_it_as_often_as_it_says():
    x, hits, trials = np.array([1.0, 2.0, 4.0]), 0, 400
    for _ in range(trials):
        shared = RNG.gamma(50.0, 1 / 50.0, 20)  # replications share their noise across points
        values = x[:, None] * shared * RNG.gamma(50.0, 1 / 50.0, (3, 20))
        found = estimate_slope(x, values)
        hits += found.low <= 1.0 <= found.high
    assert 0.91 < hits / trials < 0.985  # 95 % up to three standard errors, and the jackknife's small bias


@pytest.mark.parametrize(
    ("x", "values"), [([1.0, 2.0], [[1.0], [-1.0]]), ([0.0, 1.0], [[1.0], [1.0]]), ([1.0], [[1.0]])]
)
def test_there_is_no_slope_without_logarithms(x, values):
    assert estimate_slope(np.array(x), np.array(values)) is None


def test_one_replication_has_a_slope_without_an_interval():
    found = estimate_slope(np.array([1.0, 2.0]), np.array([[1.0], [2.0]]))
    assert found.value == pytest.approx(1.0)
    assert math.isnan(found.low)


def test_growth_is_what_a_log_curve_has():
    rounds = np.array([1, 10, 100, 1000])
    assert estimate_growth(rounds, 7.0 * np.log(rounds)[None, :].repeat(2, axis=0)).value == pytest.approx(7.0)


def test_holm_by_hand():
    assert adjust_holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert adjust_holm([0.9, 0.8]) == [1.0, 1.0]
    assert math.isnan(adjust_holm([0.01, math.nan])[1])
