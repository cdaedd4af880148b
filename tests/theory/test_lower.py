import math

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom

import superarm as sa
from superarm.theory import gaps, graves_lai, kl_inf
from superarm.theory.lower import divergence, lower_bound, lower_bound_gap_free, lower_bound_independent, rates


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
    rate = lower_bound(instance)
    assert rate.stated == pytest.approx(9 * 6 / (4 * 0.6))
    table = sa.theory.bounds(instance, sa.kl_ucb(), [10, 100])
    assert table["lower_bound"].rate == rate.exact
    assert table["lower_bound"].value.tolist() == [0.0, 0.0]


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
    bound, rate = lower_bound_independent(instance), graves_lai(instance, precision=1e-5)
    assert rate.low * (1 - 1e-6) <= bound.exact <= rate.high * (1 + 1e-6)
    assert bound.stated <= bound.exact * (1 + 1e-12)
    assert bound.stated == pytest.approx(sum(weights) * 3 / (4 * len(weights) * epsilon))


def test_independent_items_have_the_stated_limit():
    weights = np.array([0.5, 1.0, 3.0])
    bound = lower_bound_independent(with_independent_items(6, 3, weights, 1e-4))
    assert bound.exact == pytest.approx(3 * (weights @ weights) / (2 * 4.5e-4), rel=1e-3)
    equal = np.ones(4)
    exact = lower_bound_independent(with_independent_items(6, 3, equal, 0.2)).exact
    assert exact == pytest.approx(3 * 0.2 / divergence(0.3, 0.5))  # M times less than with dependent items
    assert lower_bound(sa.instances.lower_bound(6, 3, n_items=4, epsilon=0.2)).exact == pytest.approx(4 * exact)


@pytest.mark.parametrize("gap", [0.0, -0.1, 0.51, math.inf, math.nan])
def test_gaps_that_no_such_instance_has(gap):
    with pytest.raises(sa.InvalidArgument, match="gap"):
        rates(5, 2, gap)


@pytest.mark.parametrize("seed", range(6))
def test_kl_inf_is_the_least_divergence_over_laws_on_the_values_and_1(seed):
    rng = np.random.default_rng(seed)
    values, probabilities = np.sort(rng.random(5)), rng.dirichlet(np.ones(5))
    values[-1] = 1.0 if seed % 2 else values[-1]
    mean = float(probabilities @ values) + (0.95 - float(probabilities @ values)) * rng.random()
    points = np.append(values, 1.0)  # a law with more mean per mass elsewhere has no less divergence

    def cost(q):
        return float((probabilities * np.log(probabilities / np.maximum(q[:5], 1e-12))).sum())

    limits = [
        {"type": "eq", "fun": lambda q: q.sum() - 1.0},
        {"type": "ineq", "fun": lambda q: q @ points - mean},
    ]
    start = np.append(probabilities * 0.3, 0.7)
    found = minimize(cost, start, bounds=[(0.0, 1.0)] * 6, constraints=limits, options={"maxiter": 1000, "ftol": 1e-13})
    assert found.success
    assert kl_inf(values, probabilities, mean) == pytest.approx(found.fun, abs=1e-5)


def test_kl_inf_is_0_below_the_mean_and_refuses_a_mean_of_1():
    assert kl_inf([0.0, 1.0], [0.5, 0.5], 0.4) == 0.0
    with pytest.raises(sa.InvalidArgument, match="mean"):
        kl_inf([0.0, 0.5], [0.5, 0.5], 1.0)


def test_a_rare_event_of_all_items_bounds_the_information_however_many_items_there_are():
    for m in (1, 16, 256):
        law = binom.pmf(np.arange(m + 1), m, 0.48)
        assert kl_inf(np.arange(m + 1) / m, law, 0.5) <= min(2 * 0.02, m * divergence(0.48, 0.5)) + 1e-12
