"""Bounds of differences between slates hold for all parameters of the box, and shared arms cancel."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import superarm as sa
from superarm.offline.estimators.slates import difference_bounds, shared_arms_cancel

REWARDS = [
    sa.Coverage(),
    sa.Linear(),
    sa.rewards.ClippedLinear(2.0, 0.1),
    sa.rewards.Conjunctive(),
    sa.Logistic(0.5),
    sa.Logistic(4.0),
]


def naive(problem, low, high, a, b):
    least = problem.value(low, a) - problem.value(high, b)
    return least, problem.value(high, a) - problem.value(low, b)


@pytest.mark.parametrize("reward", REWARDS, ids=str)
@given(st.integers(0, 2**32 - 1))
def test_the_bounds_contain_every_difference_and_lie_within_the_naive_ones(reward, seed):
    rng = np.random.default_rng(seed)
    problem = sa.Problem(n_arms=5, n_items=2, reward=reward, actions=sa.Subsets(3), weights=[1.0, 2.0])
    ends = np.sort(rng.random((2, 10)), axis=0)
    a, b = (rng.choice(5, 3, replace=False) for _ in range(2))
    least, most = (float(end[0]) for end in difference_bounds(problem, *ends, a, b[None, :]))
    for draw in range(20):
        share = rng.random(10) if draw % 2 else rng.integers(0, 2, 10)
        p = ends[0] + share * (ends[1] - ends[0])
        assert least - 1e-9 <= problem.value(p, a) - problem.value(p, b) <= most + 1e-9
    wide = naive(problem, *ends, a, b)
    assert wide[0] - 1e-9 <= least
    assert most <= wide[1] + 1e-9


def test_equal_slates_do_not_differ_and_one_exchange_costs_one_interval():
    problem = sa.Problem(n_arms=4, n_items=1, reward=sa.Linear(), actions=sa.Subsets(3))
    low, high = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.3, 0.4, 0.5, 0.9])
    others = np.array([[2, 1, 0], [0, 1, 3]])
    least, most = difference_bounds(problem, low, high, np.array([0, 1, 2]), others)
    np.testing.assert_allclose(least, [0.0, 0.3 - 0.9])
    np.testing.assert_allclose(most, [0.0, 0.5 - 0.4])


def test_rewards_of_users_are_not_assumed_to_cancel():
    assert not shared_arms_cancel(sa.Logistic(4.0))
    assert not shared_arms_cancel(sa.Reward())
    assert shared_arms_cancel(sa.Logistic(1.0))
