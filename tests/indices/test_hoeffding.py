"""The index of CUCB, and the empirical mean."""

import math

import naive
import pytest
from hypothesis import given
from hypothesis import strategies as st

from superarm.indices import Hoeffding, Mean

means = st.floats(0.0, 1.0)
pulls = st.integers(1, 10**9)
times = st.integers(1, 10**12)


def score(index, mean, n, t):
    return index.score(mean, 0.3, index.level(float(n), t, 0.5), None)


@given(means, pulls, times)
def test_hoeffding_is_the_formula_of_cucb(mean, n, t):
    assert score(Hoeffding(), mean, n, t) == pytest.approx(naive.cucb(mean, n, t), rel=1e-12)


def test_by_hand():
    # sqrt(3 log t / 2N) with log t = 2, N = 300: sqrt(0.01) = 0.1.
    assert Hoeffding().score(0.25, 0.4, 3.0 * 2.0 / 300.0, None) == pytest.approx(0.35, rel=1e-15)
    assert Hoeffding().score(0.95, 0.4, 3.0 * 2.0 / 300.0, None) == 1.0


@given(pulls, times, st.floats(0.01, 10.0))
def test_rho_scales_the_level(n, t, rho):
    assert Hoeffding(rho).level(float(n), t, 0.1) == pytest.approx(rho * math.log(t) / n, rel=1e-14)


@given(means, st.floats(0.0, 0.5), pulls, times)
def test_mean_is_the_mean(mean, deviation, n, t):
    assert Mean().score(mean, deviation, Mean().level(float(n), t, 0.1), None) == mean
