import math

import mpmath as mp
import numpy as np
import pytest

import superarm as sa
from superarm.indices.kl import divergence
from superarm.theory import gaps, graves_lai, lower_bound, lower_bound_gap_free, lower_bound_independent
from superarm.theory.lower import rates


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.3, 0.5])
def test_rates_against_high_precision(epsilon):
    weight = 2.5
    with mp.workdps(40):
        p = mp.mpf(1) / 2 - mp.mpf(epsilon)
        kl = sum(x * mp.log(2 * x) for x in (p, 1 - p) if x > 0)
        exact = 8 * mp.mpf(weight) * mp.mpf(epsilon) / kl
    stated, found = rates(12, 4, weight * epsilon, weight)
    assert found == pytest.approx(float(exact), rel=1e-9)
    assert stated == pytest.approx(weight * 8 / (4 * epsilon), rel=1e-12)
    assert stated <= found <= 2.0 * stated * (1 + 1e-9)  # the stated one is loose by up to 2


def test_of_the_named_instance():
    instance = sa.instances.lower_bound(10, 4, n_items=3, epsilon=0.2)
    found = gaps(instance)
    assert found.smallest == found.largest == pytest.approx(3 * 0.2)
    bound = lower_bound(instance, [10, 100])
    assert bound.stated == pytest.approx(9 * 6 / (4 * 0.6))
    np.testing.assert_allclose(np.asarray(bound), bound.exact * np.log([10, 100]))
    assert float(lower_bound(instance, 10)) == pytest.approx(bound.value[0])


def test_gap_free():
    instance = sa.instances.lower_bound(10, 4, n_items=3)
    t = np.array([1, 4, 7, 100])
    np.testing.assert_allclose(lower_bound_gap_free(instance, t), 3 / 20 * np.minimum(np.sqrt(7 * t), t))
    np.testing.assert_allclose(lower_bound_gap_free(instance.problem, t), lower_bound_gap_free(instance, t))


def test_gap_free_where_all_arms_fit_into_one_batch():
    problem = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(3))
    assert lower_bound_gap_free(problem, [1, 10**4]).tolist() == [0.0, 0.0]


def with_independent_items(n_arms, k, weights, epsilon):
    """The paper's instance with independent items."""
    dependent = sa.instances.lower_bound(n_arms, k, n_items=len(weights), epsilon=epsilon)
    problem = sa.Problem(n_arms, len(weights), sa.Coverage(), dependent.problem.actions, weights=weights)
    return sa.Instance(problem, sa.environments.Bernoulli(dependent.p.reshape(n_arms, -1)))


@pytest.mark.parametrize("epsilon", [0.01, 0.2, 0.45])
@pytest.mark.parametrize("weights", [[1.0], [1.0, 1.0, 1.0], [0.5, 1.0, 3.0]])
def test_independent_items_against_graves_lai(weights, epsilon):
    # Graves-Lai solves a program by cutting planes; here the minimum has one multiplier
    instance = with_independent_items(6, 3, weights, epsilon)
    bound, rate = lower_bound_independent(instance, 100), graves_lai(instance, precision=1e-5)
    assert rate.low * (1 - 1e-6) <= bound.exact <= rate.high * (1 + 1e-6)
    assert bound.stated <= bound.exact * (1 + 1e-12)
    assert bound.stated == pytest.approx(sum(weights) * 3 / (4 * len(weights) * epsilon))


def test_independent_items_have_the_stated_limit():
    weights = np.array([0.5, 1.0, 3.0])
    bound = lower_bound_independent(with_independent_items(6, 3, weights, 1e-4), 100)
    assert bound.exact == pytest.approx(3 * (weights @ weights) / (2 * 4.5e-4), rel=1e-3)
    equal = np.ones(4)
    exact = lower_bound_independent(with_independent_items(6, 3, equal, 0.2), 100).exact
    assert exact == pytest.approx(3 * 0.2 / divergence(0.3, 0.5))  # M times less than with dependent items
    assert lower_bound(sa.instances.lower_bound(6, 3, n_items=4, epsilon=0.2), 100).exact == pytest.approx(4 * exact)


@pytest.mark.parametrize("gap", [0.0, -0.1, 0.51, math.inf, math.nan])
def test_gaps_that_no_such_instance_has(gap):
    with pytest.raises(sa.InvalidArgument, match="gap"):
        rates(5, 2, gap)
