"""Every reward against its definition: values, gains, gradients, weights, and sparse against dense."""

import itertools
from functools import partial

import naive
import numpy as np
import pytest
from scipy import sparse

import superarm as sa

CASES = [
    pytest.param(sa.Coverage(), naive.coverage, id="coverage"),
    pytest.param(sa.Logistic(0.6), partial(naive.logistic, c=0.6), id="logistic"),
    pytest.param(sa.Linear(), naive.linear, id="linear"),
    pytest.param(sa.ClippedLinear(1.7, 0.2), partial(naive.clipped, slope=1.7, shift=0.2), id="clipped"),
]
N_ARMS, N_ITEMS = 5, 11  # eleven items: one block of eight lanes, and a rest of three


def random_problem(reward, seed):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.0, 3.0, N_ITEMS)
    weights[0] = 0.0
    p = rng.random((N_ARMS, N_ITEMS))
    p[:, 1] = rng.integers(0, 2, N_ARMS)  # the ends of [0, 1], too
    return sa.Problem(N_ARMS, N_ITEMS, reward, sa.Subsets(N_ARMS), weights=weights), p


def batches():
    return [a for n in range(1, N_ARMS + 1) for a in itertools.permutations(range(N_ARMS), n)][::7]


@pytest.mark.parametrize(("reward", "item"), CASES)
def test_value_is_the_weighted_sum_of_the_definition(reward, item):
    problem, p = random_problem(reward, 0)
    for action in batches():
        assert problem.value(p, action) == pytest.approx(naive.reward(item, problem.weights, p, action), rel=1e-12)


@pytest.mark.parametrize(("reward", "item"), CASES)
def test_gain_is_a_difference_of_values(reward, item):
    problem, p = random_problem(reward, 1)
    for action in batches():
        for arm in set(range(N_ARMS)) - set(action):
            after, before = (naive.reward(item, problem.weights, p, a) for a in ((*action, arm), action))
            assert problem.gain(p, action, arm) == pytest.approx(after - before, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize(("reward", "item"), CASES)
def test_gradient_is_that_of_finite_differences(reward, item):
    problem, p = random_problem(reward, 2)
    p = np.clip(p, 0.01, 0.99)  # the definition by outcomes wants p +- h in [0, 1]
    for action in ([0], [3, 1], [4, 0, 2]):
        wanted = naive.gradient(item, problem.weights, p, action)
        assert problem.gradient(p, action) == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize(("reward", "item"), CASES[:2])
def test_sparse_equals_dense_with_zeros(reward, item):
    rng = np.random.default_rng(3)
    mask = rng.random((N_ARMS, N_ITEMS)) < 0.6
    mask[2] = False  # an arm that touches nothing
    mask[:, 4] = False  # an item that nothing touches
    dense, p = random_problem(reward, 3)
    p = np.where(mask, p, 0.0)
    thin = sa.Problem(
        N_ARMS, N_ITEMS, reward, sa.Subsets(N_ARMS), weights=dense.weights, support=sparse.csr_array(mask)
    )
    assert thin.n_entries == mask.sum()
    for action in batches():
        assert thin.value(p[mask], action) == pytest.approx(dense.value(p, action), rel=1e-13)
        assert thin.value(p[mask], action) == pytest.approx(naive.reward(item, dense.weights, p, action), rel=1e-12)
    for action, arm in (([0, 1], 3), ([2], 0), ([4], 2)):
        assert thin.gain(p[mask], action, arm) == pytest.approx(dense.gain(p, action, arm), rel=1e-12, abs=1e-15)
        assert thin.gradient(p[mask], action) == pytest.approx(dense.gradient(p, action)[mask], rel=1e-13)


@pytest.mark.parametrize(("reward", "item"), CASES)
def test_the_flags_are_true(reward, item):
    rng = np.random.default_rng(4)
    for _ in range(20):
        qs = rng.random(4)
        assert naive.is_submodular(item, qs) or not reward.submodular
        singles = sum(item([q]) - item([]) for q in qs)
        assert np.isclose(item(list(qs)) - item([]), singles) == reward.modular


@pytest.mark.parametrize(("reward", "item"), CASES)
def test_monotone_in_arms_and_parameters(reward, item):
    problem, p = random_problem(reward, 5)
    higher = p + 0.3 * (1.0 - p)
    for action in batches():
        assert problem.value(higher, action) >= problem.value(p, action)
        if len(action) > 1:
            assert problem.value(p, action) >= problem.value(p, action[:-1])
