"""Scores as thresholds: the encoding and what it claims, by enumeration of discrete worlds."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as sa
from superarm.describe import build, describe

EDGES = st.lists(st.integers(-50, 50), min_size=2, max_size=8, unique=True).map(lambda e: np.sort(np.array(e) / 4.0))
SEEDS = st.integers(0, 2**32 - 1)


@given(EDGES, SEEDS)
def test_encoding_and_max_commute_and_decoding_clips(edges, seed):
    scale, x = sa.Thresholds(edges=edges), np.random.default_rng(seed).normal(0.0, 12.0, (20, 3))
    parts = scale.encode(x)
    assert (np.diff(parts, axis=-1) <= 0.0).all()
    np.testing.assert_array_equal(parts.max(1), scale.encode(x.max(1)))
    np.testing.assert_allclose(scale.decode(parts), np.clip(x, edges[0], edges[-1]), atol=1e-12)


@settings(max_examples=60)
@given(EDGES, SEEDS, st.integers(2, 4), st.integers(1, 5))
def test_what_coverage_claims_lies_between_the_truth_and_the_bound(edges, seed, k, n_values):
    """Every world of k independent arms with n values each, by enumeration; for one arm the claim is exact."""
    rng, scale = np.random.default_rng(seed), sa.Thresholds(edges=edges)
    low, width = edges[0], edges[-1] - edges[0]
    x, p = low + width * rng.random((k, n_values)), rng.dirichlet(np.ones(n_values), k)
    q = np.minimum(np.einsum("ks,ksm->km", p, scale.encode(x)), 1.0)
    problem = sa.Problem(n_arms=k, items=scale, actions=sa.Subsets(k))
    for j in range(k):
        assert abs(problem.value(q, [j]) - p[j] @ x[j]) < 1e-12 * (1.0 + np.abs(edges).max())
    y = np.linspace(0.0, 1.0, 2001)
    c = (1.0 - (1.0 - y) ** k - y).max() + 1e-6
    true = bound = 0.0
    for pick in itertools.product(range(n_values), repeat=k):
        chance = np.prod([p[j, s] for j, s in enumerate(pick)])
        scores = np.array([x[j, s] for j, s in enumerate(pick)])
        ends = np.clip(np.searchsorted(edges, scores) - 1, 0, len(scale) - 1)
        top = ends.max()
        true += chance * scores.max()
        bound += chance * c * np.diff(edges)[top] * ((ends == top).sum() >= 2)
    claimed = problem.value(q, range(k))
    assert -1e-10 <= claimed - true <= bound + 1e-10


@given(EDGES, SEEDS)
def test_a_utility_weighs_bins_by_what_it_gains_in_them(edges, seed):
    scale = sa.Thresholds(edges=edges, utility=lambda x: x**3)
    x = np.random.default_rng(seed).choice(edges, (1, 4))  # at the edges a utility is exact
    problem = sa.Problem(n_arms=4, items=scale, actions=sa.Subsets(4))
    value = problem.value(scale.encode(x)[0], range(4))
    assert value == pytest.approx(x.max() ** 3, abs=1e-9)
    assert scale.value(x.max()) == pytest.approx(x.max() ** 3)


def test_unseen_scores_stay_unseen_and_scales_are_stored():
    scale = sa.Thresholds(edges=[0, 1, 4], utility=np.sqrt)
    assert np.isnan(scale.encode([np.nan, 1.0])).tolist() == [[True, True], [False, False]]
    assert build(describe(scale)) == scale == sa.Thresholds(edges=[0, 1, 4], utility=[0, 1, 2])
    problem = sa.Problem(n_arms=3, items=scale, actions=sa.Subsets(2))
    assert build(describe(problem)) == problem != problem.changed(thresholds=sa.Thresholds(edges=[0, 1, 5]))
    assert "thresholds" not in describe(sa.Problem(3, 2, sa.Coverage(), sa.Subsets(2)))
    assert repr(sa.Thresholds(0, 10)) == "Thresholds(0, 10)"
    assert repr(sa.Thresholds(0, 1, 4)) == "Thresholds(0, 1, bins=4)"


def test_a_fitted_scale_holds_the_past_and_what_may_come():
    past = np.random.default_rng(0).normal(60.0, 10.0, 200)
    even = sa.Thresholds.fit([*past, np.nan])
    beyond = np.subtract(*np.quantile(past, [0.75, 0.25]))
    assert even == sa.Thresholds(past.min() - beyond, past.max() + beyond)
    heavy = sa.Thresholds.fit(1.0 / (1.0 - np.random.default_rng(1).random(400)) ** 2)
    shares = np.histogram(1.0 / (1.0 - np.random.default_rng(2).random(4000)) ** 2, heavy.edges)[0] / 4000
    assert len(heavy) == 20
    assert shares.max() < 0.12  # even bins would hold nearly all scores in the first
    assert len(sa.Thresholds.fit([3.0] * 9 + [4.0])) == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "edges: missing; give low and high, or edges"),
        ({"low": 5, "high": 5}, "low: 5, and high is 5; give low < high"),
        ({"low": 10, "high": 0}, "low: 10, and high is 0; give low < high"),
        ({"edges": [1, 1]}, "give two or more increasing numbers"),
        ({"low": 0, "high": 1, "edges": [0, 1]}, "given beside low or high"),
        ({"low": 0, "high": float("nan")}, "contains NaN"),
        ({"low": 0, "high": 1, "bins": 0}, "is not a positive whole number"),
        ({"low": 0, "high": 1, "utility": lambda x: -x}, "give an increasing function"),
        ({"low": 0, "high": 1, "utility": [0, 1]}, "its values at the 21 edges"),
    ],
)
def test_wrong_scales_are_refused(arguments, message):
    with pytest.raises(sa.InvalidArgument) as caught:
        sa.Thresholds(**arguments)
    assert message in str(caught.value)


def test_wrong_problems_of_scores_are_refused():
    scale = sa.Thresholds(0, 10)
    with pytest.raises(sa.InvalidArgument, match="leave out n_items and weights"):
        sa.Problem(n_arms=3, n_items=20, items=scale, actions=sa.Subsets(2))
    with pytest.raises(sa.InvalidArgument, match="20 bins for 2 items"):
        sa.Problem(3, 2, sa.Coverage(), sa.Subsets(2), thresholds=scale)
    with pytest.raises(sa.InvalidArgument, match="no two different scores"):
        sa.Thresholds.fit([1.0, 1.0])


def test_a_bound_that_needs_no_gap_does_not_grow_with_the_bins():
    """It depends on the weights through their sum alone, the range of the scale."""
    found = []
    for bins in (1, 5, 40):
        scores = sa.instances.best_of(
            [{"norm": [0.5, 0.05]}, {"norm": [0.4, 0.2]}, {"norm": [0.3, 0.1]}], k=2, bins=bins
        )
        told = sa.Instance(scores.problem, sa.environments.Bernoulli(scores.p))
        found.append(sa.theory.bounds(told, sa.kl_ucb(), [10**4, 10**6])["upper_bound_kl_default_gap_free"].value[-1])
    assert found == pytest.approx([found[0]] * 3, rel=1e-3)  # the best batch is worth a little less with more bins
