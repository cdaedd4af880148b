"""Probabilistic maximum coverage by hand, and its smoothness."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

import superarm as sa


def gini(x):
    """The square of sqrt(sum x(1-x)(dr/dx)^2), where dr/dx_j = prod of the others' (1 - x)."""
    slopes = [np.prod(1.0 - np.delete(x, j)) for j in range(len(x))]
    return float(np.sum(x * (1.0 - x) * np.square(slopes)))


def test_by_hand():
    # Uncovered: 0.5 * 0.8 = 0.4 of weight 2, so worth 1.2.
    reward = sa.Coverage()
    state = reward.join(reward.join(reward.start(2.0), 0.5), 0.2)
    assert state == 0.8
    assert reward.worth(2.0, state) == pytest.approx(1.2, rel=1e-15)
    assert reward.item_gain(2.0, state, 0.25) == 0.2
    assert reward.derivative(2.0, state, 0.25) == 0.8
    assert (reward.submodular, reward.modular) == (True, False)


def test_a_sure_arm_leaves_nothing():
    reward = sa.Coverage()
    assert reward.join(reward.start(3.0), 1.0) == 0.0
    assert reward.item_gain(3.0, 0.0, 0.7) == 0.0


@pytest.mark.parametrize("k", [1, 2, 4])
def test_gamma_g_is_the_numerical_supremum(k):
    rng = np.random.default_rng(k)
    best = max(
        -minimize(lambda x: -gini(x), rng.random(k), bounds=[(0.0, 1.0)] * k, method="L-BFGS-B").fun for _ in range(12)
    )
    assert math.sqrt(best) == pytest.approx(0.5, abs=1e-6)  # at (1/2, 0, ..., 0)
    assert sa.Coverage().smoothness(k).gamma_g == 0.5
    assert gini(np.eye(k)[0] / 2) == 0.25


def test_the_paper_s_constants():
    smoothness = sa.Coverage().smoothness(8)
    assert smoothness.gamma_inf == 1.0
    assert smoothness.gamma_g_paper == pytest.approx(0.606531, abs=5e-7)


def test_the_symmetric_point_is_not_the_supremum():
    # sqrt(0.5 (1 - 1/2k)^(2k - 1)) for k = 1, 2, 4, 16.
    found = [math.sqrt(gini(np.full(k, 0.5 / k))) for k in (1, 2, 4, 16)]
    assert found == pytest.approx([0.5, 0.4593, 0.4431, 0.4323], abs=5e-5)
