"""Intervals of entries: the formula, its closed form, and coverage at all times under a policy that learns."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

import superarm as sa
from superarm.offline.estimators.entries import EntryMeans, entry_intervals, entry_means, threshold
from superarm.theory.lower import divergence


@pytest.mark.parametrize(("n", "s"), [(1, 0.0), (5, 2.0), (12, 11.3), (30, 4.5)])
def test_the_threshold_is_the_mixture_martingale(n, s):
    """M = the integral of the likelihood ratio over Beta(1/2, 1/2) is 1/delta where n kl(mean, p) is the threshold."""
    delta, p = 0.1, 0.35

    def ratio(angle):  # q = sin(angle)^2 turns the prior into the uniform one on [0, pi/2]
        q = math.sin(angle) ** 2
        return (q / p) ** s * ((1 - q) / (1 - p)) ** (n - s) * 2 / math.pi

    mixture = quad(ratio, 0.0, math.pi / 2)[0]
    expected = n * divergence(s / n, p) - math.log(mixture) + math.log(1 / delta)
    assert float(threshold(np.array(float(n)), np.array(s), delta)) == pytest.approx(expected, rel=1e-9)


@given(st.integers(1, 10_000), st.floats(0.0, 1.0))
def test_the_closed_form_is_an_upper_bound(n, share):
    allowed = float(threshold(np.array(float(n)), np.array(share * n), 0.05))
    assert math.log(1 / 0.05) <= allowed <= math.log(2 / 0.05) + 0.5 * math.log(n) + 1e-9


def test_the_interval_ends_where_the_divergence_is_the_threshold():
    means = EntryMeans(np.array([[50.0, 0.0, 7.0]]), np.array([[12.0, 0.0, 7.0]]))
    low, mean, high = (one[0] for one in entry_intervals(means, 0.05))
    allowed = threshold(means.seen, means.total, 0.05 / 3)[0]
    for end in (low[0], high[0]):
        assert 50 * divergence(mean[0], end) == pytest.approx(allowed[0], rel=1e-9)
    assert (low[1], high[1]) == (0.0, 1.0)
    assert high[2] == 1.0
    flat = entry_intervals(EntryMeans(means.seen[0], means.total[0]), 0.05)  # any shape
    np.testing.assert_array_equal(flat, (low, mean, high))
    assert 7 * divergence(1.0, low[2]) == pytest.approx(allowed[2], rel=1e-9)


@pytest.mark.parametrize("kind", ["binary", "beta"])
def test_the_intervals_hold_at_all_times_at_once(kind):
    """2,000 sequences of 400 outcomes, delta = 0.1: more than 12 % of failures has probability below 1 in 300.

    An interval for one time, with the threshold log(2/delta), fails more often than that.
    """
    rng, n = np.random.default_rng(0), np.arange(1.0, 401.0)
    p = 0.2
    x = rng.random((2000, 400)) < p if kind == "binary" else rng.beta(0.2, 0.8, (2000, 400))
    total = np.cumsum(x, axis=1)
    mean = np.clip(total / n, 1e-12, 1 - 1e-12)
    kl = n * (mean * np.log(mean / p) + (1 - mean) * np.log((1 - mean) / (1 - p)))
    failures = (kl > threshold(np.broadcast_to(n, x.shape), total, 0.1)).any(axis=1).mean()
    assert failures <= 0.12
    if kind == "binary":
        assert (kl > math.log(2 / 0.1)).any(axis=1).mean() > 0.12


def test_all_entries_are_covered_under_a_policy_that_learns():
    """12 logs by KL-UCB, looked at after 20, 40 and 80 rounds: all entries at once, delta = 0.2.

    By the bound at most 2.4 logs fail on average; more than 6 would have a probability below 1 in 250.
    """
    instance = sa.instances.random_coverage(n_arms=5, n_items=2, k=2, high=0.6)
    failed = 0
    for seed in range(12):
        log = sa.offline.simulate_log(instance, sa.kl_ucb(), 80, seed=seed)
        for n in (20, 40, 80):
            low, _, high = entry_intervals(entry_means(log, np.arange(80) < n), 0.2)
            if not ((low[0] <= instance.p.ravel()) & (instance.p.ravel() <= high[0])).all():
                failed += 1
                break
    assert failed <= 6
