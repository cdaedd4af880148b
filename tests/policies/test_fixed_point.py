"""Sums of rounded numbers and weights: never below the true sums, and near them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superarm._lanes import WIDTH
from superarm.policies.fast.fixed_point import (
    bound_rounding,
    fit_unit,
    new_coarse_fixed_point,
    new_fixed_point,
    sum_numbers,
    write_numbers,
)

N_ARMS = WIDTH + 2


def written(numbers, arms, new=new_fixed_point):
    n = numbers.shape[1]
    table = new(N_ARMS, n)
    for arm in arms:
        write_numbers(table, arm, numbers.reshape(-1), arm * n, n)
    return table


def summed(table, weights, start=None):
    start = np.zeros(2 * WIDTH, np.float32) if start is None else start
    sums, top = np.zeros(2 * WIDTH, np.float32), np.zeros(2, np.float32)
    scale = sum_numbers(table, weights, start, sums, top)
    assert np.array_equal(top, sums.reshape(2, WIDTH).max(axis=1))
    return scale * sums.astype(float)[:N_ARMS], scale


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1, 2, 5, 128, 131, 300]),
    st.integers(0, 30),
    st.floats(0.0, 1.0),
    st.sampled_from([new_fixed_point, new_coarse_fixed_point]),
)
def test_sums_are_upper_bounds(seed, n, power, zeros, new):
    rng = np.random.default_rng(seed)
    numbers = rng.random((N_ARMS, n)) ** power * (rng.random((N_ARMS, n)) >= zeros)
    weights = rng.random(n) ** rng.integers(0, 20) * (rng.random(n) >= zeros)
    table = written(numbers, rng.permutation(N_ARMS), new)
    exact = numbers @ weights
    bounds, scale = summed(table, weights)
    assert np.all(bounds >= exact)
    excess = scale * bound_rounding(table) * table.unit[np.arange(N_ARMS) // WIDTH]
    assert np.all(bounds <= exact * (1.0 + 4e-6) + excess + 1e-300)
    assert np.all(bounds[numbers.sum(axis=1) == 0.0] == 0.0)


@pytest.mark.parametrize(("new", "near"), [(new_fixed_point, 1.0005), (new_coarse_fixed_point, 1.02)])
@pytest.mark.parametrize("n", [50, 100, 500])
def test_sums_are_near_the_true_ones(n, new, near):
    rng = np.random.default_rng(1)
    numbers, weights = rng.uniform(0.1, 0.4, (N_ARMS, n)), rng.uniform(0.2, 1.0, n)
    bounds, _ = summed(written(numbers, range(N_ARMS), new), weights)
    assert np.all(bounds <= near * (numbers @ weights))


def test_a_unit_follows_the_numbers_in_both_directions():
    numbers = np.full((N_ARMS, 4), 0.2)
    table, weights = written(numbers, range(N_ARMS)), np.ones(4)
    numbers[3] = 0.9
    write_numbers(table, 3, numbers[3].copy(), 0, 4)
    bounds, _ = summed(table, weights)
    assert np.all(bounds >= numbers @ weights)
    assert np.all(bounds <= 1.003 * (numbers @ weights))
    numbers[:] = 1e-4
    for _ in range(20):
        fit_unit(table, 0)
        for arm in range(N_ARMS):
            write_numbers(table, arm, numbers[arm].copy(), 0, 4)
        assert np.all(summed(table, weights)[0] >= numbers @ weights)
    assert np.all(summed(table, weights)[0][:WIDTH] <= 1.001 * 4e-4)


def test_arms_that_start_from_minus_infinity_stay_there():
    start = np.zeros(2 * WIDTH, np.float32)
    start[5] = -np.inf
    bounds, _ = summed(written(np.full((N_ARMS, 300), 0.5), range(N_ARMS)), np.ones(300), start)
    assert bounds[5] == -np.inf
    assert bounds[6] >= 150.0


@pytest.mark.parametrize("least", [2.0**-899, 2.0**-901, 1e-300, 1e-309, 5e-324])
def test_weights_may_be_as_small_as_numbers_can_be(least):
    rng = np.random.default_rng(2)
    numbers, factors = rng.uniform(0.1, 0.4, (N_ARMS, 200)), rng.integers(1, 9, 200)
    table = written(numbers, range(N_ARMS))
    summed(table, least * factors)  # asserts that the largest sum of a tile is one of its sums, which no NaN is
    sums, top = np.zeros(2 * WIDTH, np.float32), np.zeros(2, np.float32)
    sum_numbers(table, least * factors, np.zeros(2 * WIDTH, np.float32), sums, top)
    shares = least * factors / (least * factors).max()
    assert np.all(sums[:N_ARMS].astype(float) * (1.0 + 1e-5) >= numbers @ shares)
    assert np.all(sums[:N_ARMS] <= 1.001 * (numbers @ shares))
