"""The logistic reward: values, honesty about submodularity, and the smoothness table of SCIENCE A.3."""

import math

import mpmath
import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import superarm as sa
from superarm.rewards.base import item_gain, transform, transformed

# gamma_g for k = 1, 2, 4, 16, 64, by c; computed for the table by multistart L-BFGS.
TABLE = {
    0.5: (0.092168, 0.109729, 0.121156, 0.130688, 0.133157),
    1.0: (0.118288, 0.149555, 0.171687, 0.190371, 0.195169),
    math.e: (0.118288, 0.176777, 0.229343, 0.274579, 0.285790),
    10.0: (0.064353, 0.133128, 0.248094, 0.360887, 0.386696),
    100.0: (0.008867, 0.025440, 0.127523, 0.454551, 0.521816),
    1000.0: (0.000919, 0.002775, 0.020551, 0.495463, 0.623060),
    1e6: (1e-6, 3e-6, 2.2e-5, 0.354217, 0.823409),
}
PAPER = {0.5: 0.138486, 1.0: 0.25, math.e: 0.353553, 10.0: 0.454325, 100.0: 0.591881, 1000.0: 0.703018, 1e6: 0.962273}


def gini(x, c):
    f = naive.logistic(x, c)
    return f * (1.0 - f) * math.sqrt(float(np.sum(x * (1.0 - x))))


def test_by_hand():
    # c = e^2, s = 2: 1 / (1 + 1) = 1/2, slope 1/4.
    reward = sa.Logistic(math.e**2)
    state = reward.join(reward.join(reward.start(4.0), 0.75), 0.25)
    assert reward.worth(4.0, reward.join(state, 1.0)) == pytest.approx(2.0, rel=1e-15)
    assert reward.derivative(4.0, state, 1.0) == pytest.approx(1.0, rel=1e-15)
    assert reward.worth(4.0, reward.start(4.0)) == pytest.approx(4.0 / (1.0 + math.e**2), rel=1e-15)


@given(st.floats(0.01, 100.0), st.floats(0.0, 5.0), st.floats(1e-14, 1.0))
def test_lift_does_not_cancel(c, s, q):
    reward, state = sa.Logistic(c), c * math.exp(-s)
    exact = 1 / (1 + mpmath.mpf(state) * mpmath.exp(-mpmath.mpf(q))) - 1 / (1 + mpmath.mpf(state))
    assert reward.item_gain(1.0, state, q) == pytest.approx(float(exact), rel=3e-15)


@given(st.floats(0.01, 100.0), st.floats(0.0, 8.0), st.floats(0.0, 1.0), st.floats(0.1, 5.0))
def test_gains_from_transformed_parameters_are_the_same(c, s, q, weight):
    reward, state = sa.Logistic(c), c * math.exp(-s)
    (z,) = transform(reward, np.array([q]))
    assert item_gain(transformed(reward), weight, state, z) == reward.item_gain(weight, state, q)


def test_not_submodular_above_1_by_hand():
    # c = e^2: f(0) = 0.1192, f(1) = 0.2689, f(2) = 0.5; the second arm adds 0.2311, more than the first's 0.1497.
    reward = sa.Logistic(math.e**2)
    first = reward.item_gain(1.0, reward.start(1.0), 1.0)
    second = reward.item_gain(1.0, reward.join(reward.start(1.0), 1.0), 1.0)
    assert (round(first, 4), round(second, 4)) == (0.1497, 0.2311)
    assert not reward.submodular


@pytest.mark.parametrize(("c", "submodular"), [(0.1, True), (0.9, True), (1.0, True), (1.01, False), (5.0, False)])
def test_submodular_exactly_up_to_1(c, submodular):
    assert sa.Logistic(c).submodular is submodular
    small = naive.is_submodular(lambda ps: naive.logistic(ps, c), [1e-3, 2e-3, 3e-3])
    large = naive.is_submodular(lambda ps: naive.logistic(ps, c), [0.9, 0.3, 0.7, 1.0])
    assert (small and large) is submodular  # just above 1, only small parameters show it


@pytest.mark.parametrize("c", TABLE)
def test_gamma_g_is_the_table(c):
    for k, wanted in zip((1, 2, 4, 16, 64), TABLE[c], strict=True):
        smoothness = sa.Logistic(c).smoothness(k)
        assert smoothness.gamma_g == pytest.approx(wanted, abs=6e-7)
        assert smoothness.gamma_g == pytest.approx(naive.logistic_gamma_g(c, k), rel=1e-9)
        assert smoothness.gamma_g_paper == pytest.approx(PAPER[c], abs=5e-7)


@pytest.mark.parametrize(("c", "k"), [(1e-3, 3), (0.2, 1000), (1.0, 10**5), (50.0, 10**4), (1e12, 40), (1e12, 10**5)])
def test_gamma_g_far_from_the_table(c, k):
    assert sa.Logistic(c).smoothness(k).gamma_g == pytest.approx(naive.logistic_gamma_g(c, k), rel=1e-9)


@pytest.mark.parametrize(("c", "k"), [(0.5, 1), (1.0, 3), (math.e, 2), (10.0, 4)])
def test_gamma_g_is_the_supremum_over_all_parameters(c, k):
    rng = np.random.default_rng(k)
    best = max(
        -minimize(lambda x: -gini(x, c), rng.uniform(0.1, 0.9, k), bounds=[(0.0, 1.0)] * k, tol=1e-14).fun
        for _ in range(5)
    )
    assert sa.Logistic(c).smoothness(k).gamma_g == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize(("c", "k"), [(0.2, 3), (1.0, 3), (5.0, 3), (math.e**3, 3), (100.0, 3), (1e6, 20)])
def test_gamma_inf_is_the_supremum_over_sums(c, k):
    s = np.linspace(0.0, k, 200_001)
    f = 1.0 / (1.0 + c * np.exp(-s))
    assert sa.Logistic(c).smoothness(k).gamma_inf == pytest.approx((f * (1.0 - f)).max(), rel=1e-8)


def test_the_paper_s_bound_holds_from_0_48497_on_and_is_not_claimed_below():
    for c in (0.48497, 0.6, 1.0, 3.0, 1e3):
        assert sa.Logistic(c).smoothness(10**5).gamma_g <= sa.Logistic(c).smoothness(10**5).gamma_g_paper
    for c in (0.1, 0.37, 0.47):
        assert math.isnan(sa.Logistic(c).smoothness(10).gamma_g_paper)
    assert naive.logistic_gamma_g(0.47, 10**5) > math.sqrt(1.0 + math.log(0.47)) / 4.0
