"""Batches are filled: whatever is eligible, no eligible arm could be added to the batch that is played.

Truth is a list of all feasible batches of eligible arms. Where batches are the independent sets of a matroid, all that
cannot be extended have one size, the largest, so that size is reached. Knapsacks and matchings have batches of several
sizes to which nothing can be added. Paths and spanning trees are feasible only as a whole. The batches of an
``Explicit`` set are complete as listed, even if the list contains a larger one.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as sa
from superarm.oracles import Default, maximize
from superarm.past_data import from_prior
from superarm.policies import Ascent, EveryBatch, Round, choose, prepare
from superarm.policies.set_search import search
from superarm.core.streams import new_stream
from tests.action_sets import ALL, playable, random_ranks, random_set

REWARDS = {
    "linear": sa.Linear(),
    "clipped linear": sa.ClippedLinear(2.0, 0.2),
    "coverage": sa.Coverage(),
    "submodular logistic": sa.Logistic(0.5),
    "logistic": sa.Logistic(20.0),
    "conjunctive": sa.Conjunctive(),
}
ORACLES = [
    *(Default(), sa.Greedy(), sa.LazyGreedy(), sa.Modular(), sa.Exhaustive(), sa.TopArms(), sa.Reversed()),
    *(sa.LocalSearch(), sa.ContinuousGreedy(4), sa.LocalSearch(sa.ContinuousGreedy(3)), sa.Linearised()),
    *(sa.KnapsackTable(), sa.KnapsackScheme(0.2), sa.CostBenefit(), sa.GreedyMax(), sa.PartialEnumeration()),
    *(sa.StochasticGreedy(0.2), sa.Failing(sa.Greedy(), 0.5), sa.LocalSearch(sa.Exhaustive())),
]
POLICIES = [sa.kl_ucb(), sa.joint_kl_moss(), sa.escb(), sa.escb_delta(), sa.uniform(), sa.ts_cascade()]


def fitted(component, problem):
    """The component for this problem, or None if it says that it does not serve it."""
    try:
        return component.fit(problem)
    except sa.InvalidArgument:
        return None


def feasible(problem, candidates):
    """Every feasible batch of eligible arms."""
    return {frozenset(batch) for batch in playable(problem.actions, problem.n_arms, candidates.eligible)}


def assert_filled(action, allowed, kind, problem, who):
    batch = frozenset(action.tolist())
    assert len(batch) == len(action), who
    if not allowed:
        assert not batch, who
        return
    assert batch in allowed, who
    if "explicit" not in kind:
        assert not any(batch < other for other in allowed), who
    if problem.actions.matroid:
        assert len(batch) == max(map(len, allowed)), who


def problems(rng, kind, reward):
    """A random problem of this kind, parameters with and without ties, and who may play."""
    actions, n = random_set(kind, rng)
    m = n if isinstance(reward, sa.Spread) else int(rng.integers(1, 4))
    problem = sa.Problem(n, m, reward, actions)
    p = rng.choice([rng.random((n, m)), rng.integers(0, 3, (n, m)) / 2.0, np.zeros((n, m))])
    eligible = rng.random(n) < rng.choice([0.4, 0.7, 1.0])
    return problem, p, random_ranks(n, rng)._replace(eligible=eligible)


@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize("kind", ALL)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=3)
def test_every_oracle_fills_its_batch(kind, reward, seed):
    rng = np.random.default_rng(seed)
    problem, p, candidates = problems(rng, kind, REWARDS[reward])
    allowed = feasible(problem, candidates)
    for oracle in filter(None, (fitted(oracle, problem) for oracle in ORACLES)):
        action = maximize(oracle, problem, problem.entries(p), candidates, new_stream(np.random.SeedSequence(seed)))
        assert_filled(action, allowed, kind, problem, oracle)


@pytest.mark.parametrize("kind", ["subsets", "pinned subsets", "slots", "knapsack"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=2)
def test_seeds_of_influence_are_filled_too(kind, seed):
    problem, p, candidates = problems(np.random.default_rng(seed), kind, sa.Spread())
    allowed = feasible(problem, candidates)
    for oracle in filter(None, (fitted(oracle, problem) for oracle in (sa.IMM(0.6), sa.Greedy(), sa.Exhaustive()))):
        action = maximize(oracle, problem, problem.entries(p), candidates, new_stream(np.random.SeedSequence(seed)))
        assert_filled(action, allowed, kind, problem, oracle)


@pytest.mark.parametrize("kind", ALL)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=3)
def test_every_policy_and_search_fills_its_batch(kind, seed):
    rng = np.random.default_rng(seed)
    for reward in REWARDS.values():
        problem, p, candidates = problems(rng, kind, reward)
        allowed = feasible(problem, candidates)
        tally = from_prior(problem.support, p, 4)
        current = Round(9, tally, candidates._replace(counts=tally.pulls + candidates.counts))
        for policy in filter(None, (fitted(policy, problem) for policy in POLICIES)):
            memory = prepare(policy, problem, tally)
            action = choose(policy, problem, current, memory, new_stream(np.random.SeedSequence(seed)))
            assert_filled(action, allowed, kind, problem, policy)
    worth, spread = rng.integers(-2, 3, problem.n_arms) / 2.0, rng.random(problem.n_arms)
    listed = sa.Explicit(problem.actions.batches(problem.n_arms))
    for finder in (EveryBatch(listed.table, listed.sizes), Ascent()):
        action = search(finder, problem, worth, spread, candidates)
        assert_filled(action, allowed, kind, problem, finder)


def test_conjunctive_batches_are_full_when_some_arms_are_excluded():
    agent = sa.Agent(sa.Problem(6, 1, sa.Conjunctive(), sa.Subsets(3)), sa.kl_ucb())
    for _ in range(20):
        decision = agent.ask(eligible=[0, 1, 2, 3])
        assert len(decision.action) == 3
        agent.tell(decision.id, [[1.0], [0.0], [1.0]])
