"""The linear reward and the clipped lines of the paper's introduction."""

import math

import numpy as np
import pytest

import superarm as sa


def test_by_hand():
    reward = sa.Linear()
    state = reward.join(reward.join(reward.start(2.0), 0.5), 0.25)
    assert reward.worth(2.0, state) == 1.5
    assert reward.item_gain(2.0, state, 0.125) == 0.25
    assert reward.derivative(2.0, state, 0.125) == 2.0
    assert (reward.submodular, reward.modular) == (True, True)


def test_the_two_examples_of_the_introduction():
    # c = 4: the sum of min{4 mu, 1} over (0.125, 0.2, 0.7) is 0.5 + 0.8 + 1;
    # that of max{min{4 (mu - 1/2), 1}, 0} over (0.4, 0.625, 0.9) is 0 + 0.5 + 1.
    problem = sa.Problem(3, 1, sa.ClippedLinear(4), sa.Subsets(3))
    assert problem.value([[0.125], [0.2], [0.7]], [0, 1, 2]) == pytest.approx(2.3, rel=1e-15)
    shifted = sa.Problem(3, 1, sa.ClippedLinear(4, 0.5), sa.Subsets(3))
    assert shifted.value([[0.4], [0.625], [0.9]], [0, 1, 2]) == pytest.approx(1.5, rel=1e-15)


@pytest.mark.parametrize(("q", "slope"), [(0.1, 0.0), (0.3, 4.0), (0.4, 4.0), (0.6, 0.0)])
def test_clipped_slopes(q, slope):
    assert sa.ClippedLinear(4.0, 0.2).derivative(1.5, 0.0, q) == 1.5 * slope  # the line rises from 0.2 to 0.45


@pytest.mark.parametrize("k", [1, 4, 9])
def test_linear_smoothness(k):
    smoothness = sa.Linear().smoothness(k)
    assert smoothness == (1.0, math.sqrt(k) / 2.0, math.sqrt(k) / 2.0)  # all at 1/2


@pytest.mark.parametrize(
    ("slope", "shift"),
    [(1.0, 0.0), (0.5, 0.0), (4.0, 0.0), (4.0, 0.5), (4.0, 0.3), (2.0, 0.9), (10.0, 0.2), (1.0, 0.5)],
)
def test_clipped_smoothness_is_the_supremum_where_the_line_rises(slope, shift):
    x = np.linspace(0.0, 1.0, 1_000_001)[1:-1]
    rising = x[(slope * (x - shift) > 0.0) & (slope * (x - shift) < 1.0)]
    for k in (1, 5):
        smoothness = sa.ClippedLinear(slope, shift).smoothness(k)
        assert smoothness.gamma_inf == slope
        # Arms are separate: k times the best x(1-x); the grid is 1e-6 fine.
        wanted = slope * math.sqrt(k * (rising * (1.0 - rising)).max())
        assert smoothness.gamma_g == pytest.approx(wanted, abs=2e-5)
        assert smoothness.gamma_g >= wanted
        assert smoothness.gamma_g_paper == pytest.approx(slope * math.sqrt(k) / 2.0)
