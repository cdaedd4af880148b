"""Every oracle, on random small problems, against trying every batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import superarm as sa
from superarm.oracles import Default, certify, exact, maximize
from superarm.core.streams import new_stream
from tests.action_sets import ALL, playable, random_ranks, random_set

ORACLES = [
    Default(),
    sa.Greedy(),
    sa.LazyGreedy(),
    sa.Modular(),
    sa.LocalSearch(),
    sa.ContinuousGreedy(4),
    sa.LocalSearch(sa.ContinuousGreedy(3)),
    sa.Linearised(),
    sa.KnapsackTable(),
    sa.KnapsackScheme(0.2),
    sa.CostBenefit(),
    sa.GreedyMax(),
    sa.PartialEnumeration(),
    sa.StochasticGreedy(0.2),
]
REWARDS = [sa.Linear(), sa.Coverage(), sa.Logistic(0.5)]
PAIRS = [(reward, kind, ORACLES) for reward in REWARDS for kind in ALL]


def random_parameters(n, m, rng):
    """Parameters in general position, or with many ties, ones and zeros."""
    return rng.choice([rng.random((n, m)), rng.integers(0, 3, (n, m)) / 2.0, rng.random((n, m)) * rng.integers(0, 2)])


def fitted(oracle, problem):
    """The oracle for this problem, or None if it says that it does not serve it."""
    try:
        return oracle.fit(problem)
    except sa.InvalidArgument:
        return None


@pytest.mark.parametrize(("reward", "kind", "oracles"), PAIRS, ids=lambda x: x if isinstance(x, str) else "")
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=8)
def test_feasible_always_and_never_below_the_guarantee(reward, kind, oracles, seed):
    rng = np.random.default_rng(seed)
    actions, n = random_set(kind, rng)
    m = int(rng.integers(1, 4))
    problem = sa.Problem(n, m, reward, actions, weights=rng.uniform(0.1, 2.0, m))
    p, candidates = random_parameters(n, m, rng), random_ranks(n, rng)
    allowed = playable(actions, n, candidates.eligible)
    best = max((problem.value(p, batch) for batch in allowed), default=None)
    for oracle in filter(None, (fitted(oracle, problem) for oracle in oracles)):
        action = maximize(oracle, problem, problem.entries(p), candidates, new_stream(np.random.SeedSequence(seed)))
        if best is None:
            assert len(action) == 0, oracle
            continue
        assert tuple(sorted(action.tolist())) in allowed, oracle
        value, promise = problem.value(p, action), oracle.guarantee(problem)
        assert promise.beta < 1.0 or value >= promise.alpha * best - 1e-9, oracle
        proof = certify(problem, p, action, np.flatnonzero(candidates.eligible))
        assert proof.value == pytest.approx(value, abs=1e-9)
        assert proof.bound >= best - 1e-9, oracle
        assert proof.measured_alpha <= value / best + 1e-9 if best > 0.0 else proof.measured_alpha == 1.0


@pytest.mark.parametrize("kind", ALL)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=6)
def test_lazy_greedy_picks_as_greedy_does_and_search_is_exact(kind, seed):
    rng = np.random.default_rng(seed)
    actions, n = random_set(kind, rng)
    p, candidates = random_parameters(n, 3, rng), random_ranks(n, rng)
    mask = csr_array(rng.random((n, 3)) < 0.7)
    problem = sa.Problem(n, 3, sa.Coverage(), actions, support=mask)
    entries = p[mask.nonzero()]
    stream = new_stream(np.random.SeedSequence(0))
    plain, lazy = (maximize(oracle, problem, entries, candidates, stream) for oracle in (sa.Greedy(), sa.LazyGreedy()))
    assert plain.tolist() == lazy.tolist()
    found = exact(problem, entries)
    best = max(problem.value(entries, batch) for batch in playable(actions, n))
    assert found.certificate == pytest.approx((best, best))
    assert found.guarantee == sa.Guarantee(1.0, 1.0)
    assert problem.value(entries, found.action) == pytest.approx(best)
