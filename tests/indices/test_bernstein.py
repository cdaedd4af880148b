"""The index of BC-UCB, and UCB-V: the paper's formula, its corners, its order."""

import math

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from superarm.indices import UCBV, Bernstein

means = st.floats(0.0, 1.0)
pulls = st.integers(1, 10**9)
times = st.integers(1, 10**12)


def score(index, mean, variance, n, t):
    return index.score(mean, math.sqrt(variance), index.level(float(n), t, 0.5), None)


@given(means, st.floats(0.0, 1.0), pulls, times)
def test_bernstein_is_the_formula_of_the_paper(mean, share, n, t):
    variance = share * mean * (1.0 - mean)
    assert score(Bernstein(), mean, variance, n, t) == pytest.approx(naive.bc_ucb(mean, variance, n, t), rel=1e-12)


@given(means, st.floats(0.0, 1.0), pulls, times, st.floats(0.01, 10.0), st.floats(0.0, 3.0))
def test_ucb_v_is_its_formula(mean, share, n, t, zeta, c):
    variance = share * mean * (1.0 - mean)
    wanted = naive.ucb_v(mean, variance, n, t, zeta, c)
    assert score(UCBV(zeta, c), mean, variance, n, t) == pytest.approx(wanted, rel=1e-12)


def test_by_hand():
    # With log t = 2, N = 300, V = 1/4: 6 V log t / N = 6 * 0.25 * 2 / 300 = 0.01, and 9 log t / N = 0.06.
    assert Bernstein().score(0.5, 0.5, 3.0 * 2.0 / 300.0, None) == pytest.approx(0.5 + 0.1 + 0.06, rel=1e-15)
    # After 100 pulls at t = 100 the last term alone is 9 * 4.605170186 / 100.
    assert score(Bernstein(), 0.0, 0.0, 100, 100) == pytest.approx(0.4144653167, rel=1e-9)


@given(means, pulls, times)
def test_bc_ucb_is_ucb_v_with_zeta_3_and_c_1(mean, n, t):
    variance = mean * (1.0 - mean)
    assert score(UCBV(3, 1), mean, variance, n, t) == score(Bernstein(3), mean, variance, n, t)


def test_the_first_round_has_no_radius():
    assert score(Bernstein(), 0.25, 0.1, 1, 1) == 0.25  # log 1 = 0


def test_clipped_until_9_log_t_pulls():
    # At t = 10^4, 9 log t = 82.9: an arm that never hit is at 1 for 82 pulls and below from 83 on.
    assert score(Bernstein(), 0.0, 0.0, 82, 10_000) == 1.0
    assert score(Bernstein(), 0.0, 0.0, 83, 10_000) < 1.0


@pytest.mark.parametrize("index", [Bernstein(), Bernstein(0.2), UCBV(), UCBV(2.0, 0.0)])
def test_order(index):
    grid = np.linspace(0.0, 1.0, 21)
    for t, n in ((2, 1), (50, 20), (10_000, 900)):
        for mean in grid:
            spread = [score(index, mean, v * mean * (1 - mean), n, t) for v in grid]
            assert all(mean <= q <= 1.0 for q in spread)
            assert spread == sorted(spread)
            assert score(index, mean, 0.0, n, 2 * t) >= score(index, mean, 0.0, n, t)
            assert score(index, mean, 0.0, 2 * n, t) <= score(index, mean, 0.0, n, t)
