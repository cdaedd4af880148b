import itertools
import math

import numpy as np
import pytest

import superarm as sa
from superarm.oracles.subset_search import SubsetSearch
from superarm.theory import gaps
from superarm.theory.gaps import _enumerate_gaps, _search_gaps
from superarm.theory.upper.paper import upper_bound, upper_bound_gap_free


def naive(instance, alpha):
    """Gaps by the definition, over plain tuples."""
    problem = instance.problem
    value = {batch: instance.value(batch) for batch in problem.actions.batches(problem.n_arms)}
    target = alpha * max(value.values())
    least, most = np.full(problem.n_arms, math.nan), np.full(problem.n_arms, math.nan)
    for batch, r in value.items():
        gap = target - r
        if gap > 1e-12 * max(value.values()):
            for j in batch:
                least[j], most[j] = np.fmin(least[j], gap), np.fmax(most[j], gap)
    return least, most


def random(seed, n_arms=8, n_items=2, k=3, reward=None):
    rng = np.random.default_rng(seed)
    problem = sa.Problem(n_arms, n_items, reward or sa.Coverage(), sa.Subsets(k), weights=rng.uniform(0.5, 2, n_items))
    return sa.Instance(problem, sa.environments.Bernoulli(rng.uniform(0, 0.5, (n_arms, n_items))))


@pytest.mark.parametrize("alpha", [1.0, 1 - 1 / math.e, 0.8])
@pytest.mark.parametrize("seed", range(4))
def test_enumeration_and_search_are_the_definition(seed, alpha):
    instance = random(seed)
    least, most = naive(instance, alpha)
    for found in (
        _enumerate_gaps(instance, alpha),
        _search_gaps(SubsetSearch(instance.problem, instance.p, 10**6), alpha),
    ):
        assert found.exact
        np.testing.assert_allclose(found.minimum, least, rtol=1e-9)
        np.testing.assert_allclose(found.maximum, most, rtol=1e-9)
        assert found.largest == pytest.approx(np.nanmax(most), rel=1e-9)


@pytest.mark.parametrize("k", [1, 2, 8])
def test_batches_of_one_and_of_all_arms(k):
    instance = random(1, k=k)
    least, most = naive(instance, 1.0)
    found = _search_gaps(SubsetSearch(instance.problem, instance.p, 10**6), 1.0)
    np.testing.assert_allclose(found.minimum, least, rtol=1e-9)
    np.testing.assert_allclose(found.maximum, most, rtol=1e-9)


def test_search_needs_no_submodularity():
    instance = random(3, reward=sa.Logistic(50.0))
    assert not instance.problem.reward.submodular
    found = _search_gaps(SubsetSearch(instance.problem, instance.p, 10**6), 1.0)
    np.testing.assert_allclose(found.minimum, naive(instance, 1.0)[0], rtol=1e-9)


def test_ties_are_no_gaps():
    problem = sa.Problem(n_arms=4, n_items=3, reward=sa.Coverage(), actions=sa.Subsets(2))
    p = np.array([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2], [0.1, 0.2, 0.3], [0.3, 0.1, 0.2]])
    found = gaps(sa.Instance(problem, sa.environments.Bernoulli(p)), alpha=1.0)
    # four batches of unlike arms are equal up to rounding, and each arm is in one of two like arms
    assert found.smallest > 1e-3
    assert found.suboptimal.all()


def test_arms_in_no_suboptimal_batch():
    problem = sa.Problem(n_arms=4, n_items=1, reward=sa.Coverage(), actions=sa.actions.Explicit([[0, 1], [0, 2], [3]]))
    found = gaps(sa.Instance(problem, sa.environments.Bernoulli([[0.5], [0.4], [0.4], [0.1]])))
    assert np.isnan(found.minimum).tolist() == [True, True, True, False]
    assert found.largest == found.smallest == pytest.approx(0.6)


def test_everything_optimal():
    problem = sa.Problem(n_arms=2, n_items=1, reward=sa.Coverage(), actions=sa.Subsets(2))
    found = gaps(sa.Instance(problem, sa.environments.Bernoulli([[0.5], [0.4]])))
    assert (found.largest, found.smallest) == (0.0, math.inf)
    assert float(upper_bound(sa.Instance(problem, sa.environments.Bernoulli([[0.5], [0.4]])), 10)) == 0.0


def test_an_unfinished_search_is_a_bracket_that_holds():
    instance = random(2, n_arms=12, k=4)
    exact = gaps(instance, alpha=1.0)
    bracket = _search_gaps(SubsetSearch(instance.problem, instance.p, 5), 1.0)
    assert not bracket.exact
    assert "NOT exact" in str(bracket)
    assert bracket.r_max.low <= exact.r_max.high <= bracket.r_max.high
    assert (bracket.minimum <= exact.minimum).all()
    assert (bracket.maximum >= exact.maximum).all()
    assert float(upper_bound(instance, 100, bracket)) == math.inf
    assert math.isfinite(float(upper_bound_gap_free(instance, 100, bracket)))


def test_alpha_is_the_oracles():
    assert gaps(random(0)).alpha == pytest.approx(1 - (2 / 3) ** 3)
    assert gaps(random(0, n_items=1)).alpha == 1.0
    with pytest.raises(sa.InvalidArgument, match="alpha"):
        gaps(random(0), alpha=1.5)


def test_a_problem_without_a_guarantee_needs_alpha():
    instance = random(0, n_arms=40, k=4, reward=sa.Logistic(50.0))
    with pytest.raises(sa.InvalidArgument, match="no oracle has a guarantee"):
        gaps(instance)


def test_large_instances_are_exact():
    small = gaps(sa.instances.random_coverage(30, 10, 5, seed=1), alpha=1.0)
    assert small.method == "enumeration"
    assert small.nodes == math.comb(30, 5)
    large = gaps(sa.instances.random_coverage(60, 5, 5, seed=1), alpha=1.0)
    assert large.method == "search"
    assert large.exact


def test_search_at_sixty_arms_agrees_with_the_closed_form_for_one_item():
    # one item: the best batch is the k largest p; an arm outside does best beside the k - 1 largest
    instance = sa.instances.rare_hits(5, n_arms=60)
    own = instance.p[:, 0]
    p = np.sort(own)[::-1]
    found = _search_gaps(SubsetSearch(instance.problem, instance.p, 10**8), 1.0)
    best = 1 - np.prod(1 - p[:5])
    for j in np.flatnonzero(own < p[4]):
        beside = 1 - np.prod(1 - p[:4]) * (1 - own[j])
        assert found.minimum[j] == pytest.approx(best - beside, rel=1e-9)
    worst = 1 - np.prod(1 - p[-5:])
    assert found.largest == pytest.approx(best - worst, rel=1e-9)


def test_other_action_sets_are_enumerate_gaps():
    batches = list(itertools.combinations(range(5), 2))
    problem = sa.Problem(5, 2, sa.Coverage(), sa.actions.Explicit(batches))
    p = np.random.default_rng(5).uniform(0, 1, (5, 2))
    listed = sa.Instance(problem, sa.environments.Bernoulli(p))
    subsets = sa.Instance(sa.Problem(5, 2, sa.Coverage(), sa.Subsets(2)), sa.environments.Bernoulli(p))
    np.testing.assert_array_equal(gaps(listed, alpha=1.0).minimum, gaps(subsets, alpha=1.0).minimum)
