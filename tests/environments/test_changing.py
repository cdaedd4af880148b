"""Worlds that change, and regret against the moving optimum."""

import math

import numpy as np
import pytest

import superarm as sa
from superarm.simulation.regret import regret, target

P = np.array([[0.5, 0.1], [0.2, 0.3], [0.0, 0.9]])
PROBLEM = sa.Problem(3, 2, sa.Linear(), sa.Subsets(1))


def test_a_swing_is_its_formula():
    environment = sa.environments.Swinging(P, P[::-1].copy(), 80.0, 10)
    for t in (1, 10, 11, 41, 77):
        share = (1.0 - math.cos(2.0 * math.pi * ((t - 1) // 10 * 10) / 80.0)) / 2.0
        assert environment.means(t) == pytest.approx(P + (P[::-1] - P) * share)
    assert environment.changes(35).tolist() == [1, 11, 21, 31]


def test_the_target_moves_with_the_world():
    # The best arm is worth 0.9, 0.9 and 1.4 in the three eras of 4, 5 and 11 rounds.
    environment = sa.environments.Switching([P, P[::-1].copy(), np.minimum(1.0, P + 0.25)], [1, 5, 10])
    found = target(sa.Instance(PROBLEM, environment), sa.kl_ucb(), "optimal", 20)
    assert found.eras == ((1, pytest.approx(0.9)), (5, pytest.approx(0.9)), (10, pytest.approx(1.25)))
    assert found.value == pytest.approx((9 * 0.9 + 11 * 1.25) / 20)
    rounds = np.array([3, 9, 12, 20])
    wanted = [2.7, 8.1, 8.1 + 3 * 1.25, 8.1 + 11 * 1.25]
    assert regret(found, rounds, np.zeros(4)) == pytest.approx(wanted)
    assert "3 eras" in str(found)


def test_phases_must_begin_at_1_and_increase():
    for since in ([2, 5], [1, 1], [1]):
        with pytest.raises(sa.InvalidArgument, match="since"):
            sa.environments.Switching([P, P], since)
    with pytest.raises(sa.InvalidArgument, match="shape"):
        sa.environments.Swinging(P, P[:1], 10.0)
