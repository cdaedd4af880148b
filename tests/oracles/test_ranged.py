"""``RangedGreedy`` picks as ``Greedy`` does, and its bounds are bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as sa
from superarm.candidates import Candidates
from superarm.oracles import Default, maximize, ranged
from superarm.oracles.gains import batch_states, gains
from superarm.oracles.lazy import PartialBatch, find_best_arm, new_limits
from superarm.core.streams import new_stream
from tests.action_sets import ALL, random_ranks, random_set

KINDS = ("alike", "topics", "tied", "clipped", "tiny", "zeros")


def draw_parameters(kind, n, m, rng):
    """Parameters with which arms are alike, share topics, are often tied, all 1 or 0, or hardly above 0."""
    if kind == "alike":
        return rng.uniform(0.2, 0.4, (n, m))
    if kind == "topics":
        topics = rng.dirichlet(np.full(m, 0.2), 4)
        return np.clip(topics[rng.integers(0, 4, n)] * rng.pareto(2.0, (n, 1)) * 3.0 + 0.05, 0.0, 1.0)
    if kind == "tied":
        return rng.integers(0, 3, (n, m)) / 2.0
    if kind == "tiny":
        return rng.uniform(0.0, 1.0, (n, m)) * 1e-160
    return np.full((n, m), 1.0 if kind == "clipped" else 0.0)


def pick(oracle, problem, p, candidates):
    return maximize(oracle, problem, problem.entries(p), candidates, new_stream(np.random.SeedSequence(0))).tolist()


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_it_picks_as_greedy_does_with_all_ties(kind, seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 150)), int(rng.integers(1, 12))
    k = int(rng.integers(1, min(n, 12) + 1))
    weights = np.append(rng.choice([1e-160, 0.0, 0.5, 1.0, 2.0], m - 1), 1.0)
    problem = sa.Problem(n, m, sa.Coverage(), sa.Subsets(k), weights=weights)
    candidates = Candidates(rng.integers(0, 3, n).astype(float), rng.random(n) < rng.choice([0.1, 0.7, 1.0]))
    p = draw_parameters(kind, n, m, rng)
    found = pick(ranged.RangedGreedy().fit(problem), problem, p, candidates)
    assert found == pick(sa.Greedy(), problem, p, candidates)
    assert found == pick(ranged.RangedGreedy(), problem, p, candidates)  # without knowing that gains shrink


@pytest.mark.parametrize("kind", ALL)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=6)
def test_it_picks_as_greedy_does_on_every_action_set(kind, seed):
    rng = np.random.default_rng(seed)
    actions, n = random_set(kind, rng)
    p, candidates = rng.choice([rng.random((n, 3)), rng.integers(0, 3, (n, 3)) / 2.0]), random_ranks(n, rng)
    problem = sa.Problem(n, 3, sa.Coverage(), actions)
    assert pick(ranged.RangedGreedy(), problem, p, candidates) == pick(sa.Greedy(), problem, p, candidates)


@pytest.mark.parametrize("kind", KINDS)
def test_no_gain_exceeds_its_bound_after_any_pick(kind):
    rng = np.random.default_rng(5)
    n, m, k = 100, 9, 8
    problem = sa.Problem(n, m, sa.Coverage(), sa.Subsets(k), weights=rng.uniform(0.0, 2.0, m))
    q, candidates = problem.entries(draw_parameters(kind, n, m, rng)), problem.candidates()
    limits, joined = new_limits(candidates, np.zeros(0, np.int64), 1.0), []
    found = ranged._evaluate_all(problem, q, candidates, batch_states(problem, q, np.zeros(0, np.int64)), limits)
    first, lowered = limits.arm.copy(), 0
    for j in rng.permutation(n)[:k]:
        joined.append(j)
        states = batch_states(problem, q, np.array(joined))
        ranged._carry_limits(problem, q, states, limits, found)
        assert (limits.arm >= gains(problem, states, q, candidates)).all()
        assert (limits.block >= [limits.arm[o : o + 64].max() for o in range(0, n, 64)]).all()
        lowered += (limits.arm < first).sum()
    assert lowered > 0 or kind in ("tiny", "zeros", "clipped")


def count_evaluated(problem, q, k, carries):
    """How many arms have their exact gain as a bound after a search, over all picks but the first."""
    candidates, chosen = problem.candidates(), np.empty(k, np.int64)
    states, limits = batch_states(problem, q, chosen[:0]), new_limits(candidates, chosen[:0], 1.0)
    found, evaluated = ranged._evaluate_all(problem, q, candidates, states, limits), 0
    for size in range(k):
        if carries and size:
            ranged._carry_limits(problem, q, states, limits, found)
        best = find_best_arm(problem, q, candidates, PartialBatch(chosen, size, states), limits)
        evaluated += (limits.arm == gains(problem, states, q, candidates)).sum() if size else 0
        chosen[size], limits.arm[best] = best, -np.inf
        states = batch_states(problem, q, chosen[: size + 1])
    return evaluated


@pytest.mark.parametrize("kind", ["topics", "alike"])
def test_it_evaluates_fewer_arms_than_lazy_greedy(kind):
    rng = np.random.default_rng(7)
    n, m, k = 400, 30, 8
    problem = sa.Problem(n, m, sa.Coverage(), sa.Subsets(k))
    q = problem.entries(draw_parameters(kind, n, m, rng))
    assert count_evaluated(problem, q, k, True) < 0.8 * count_evaluated(problem, q, k, False)


def test_it_is_the_default_of_large_dense_coverage_only():
    def default(n, m, reward):
        return type(Default().fit(sa.Problem(n, m, reward, sa.Subsets(3)))).__name__

    assert default(1_000, 50, sa.Coverage()) == "RangedGreedy"
    assert default(999, 50, sa.Coverage()) == "Greedy"
    assert default(1_000, 50, sa.Logistic()) == "LazyGreedy"
    with pytest.raises(sa.InvalidArgument, match="LazyGreedy"):
        ranged.RangedGreedy().fit(sa.Problem(4, 2, sa.Logistic(), sa.Subsets(3)))
