"""Batches are filled: whatever is eligible, no eligible arm could be added to the batch that is played.

Truth is a list of all batches that may be played by eligible arms. Where batches are the independent sets of a matroid,
all that cannot be extended have one size, the largest, so that size is reached. Knapsacks and matchings have batches of
several sizes to which nothing can be added. Paths and spanning trees are played as a whole. The batches of an
``Explicit`` set are complete as listed, even if the list contains a larger one.
"""

import numpy as np
import pytest

import superarm as sa
from superarm.diffusion import IMM, Spread
from superarm.policies import batch
from tests.action_sets import ALL, playable, random_set, random_view
from tests.test_oracles import ORACLES, fits

REWARDS = {
    "linear": sa.Linear(),
    "clipped linear": sa.rewards.ClippedLinear(2.0, 0.2),
    "coverage": sa.Coverage(),
    "submodular logistic": sa.Logistic(0.5),
    "logistic": sa.Logistic(20.0),
    "conjunctive": sa.rewards.Conjunctive(),
}
POLICIES = [
    *(sa.kl_ucb(), sa.directional_kl_moss(), sa.policies.escb(), sa.policies.escb_delta(), sa.uniform()),
    sa.policies.ts_cascade(),
]


def draw(kind, reward, seed):
    """A random problem, parameters with and without ties, a view of three replications, and what may be played."""
    rng = np.random.default_rng([seed, len(kind), len(repr(reward))])
    actions, n, may_play = random_set(kind, rng)
    m = n if isinstance(reward, Spread) else int(rng.integers(1, 4))
    problem = sa.Problem(n, m, reward, actions)
    p = rng.choice([rng.random((n, m)), rng.integers(0, 3, (n, m)) / 2.0, np.zeros((n, m))])
    view = random_view(problem, rng, rows=3, share=(0.4, 0.7, 1.0))
    allowed = [set(map(frozenset, playable(may_play, n, row))) for row in view.eligible]
    return problem, p, view, allowed


def assert_filled(batches, allowed, kind, problem, who):
    for row, possible in zip(batches, allowed, strict=True):
        arms = row[row >= 0].tolist()
        chosen = frozenset(arms)
        assert len(chosen) == len(arms), who
        if not possible:
            assert not chosen, who
            continue
        assert chosen in possible, who
        if "explicit" not in kind:
            assert not any(chosen < other for other in possible), who
        if problem.actions.matroid:
            assert len(chosen) == max(map(len, possible)), who


@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize("kind", ALL)
def test_every_oracle_fills_its_batch(kind, reward):
    problem, p, view, allowed = draw(kind, REWARDS[reward], 1)
    for oracle in ORACLES:
        if fits(oracle, problem):
            assert_filled(oracle.maximize(problem, problem.entries(p), view), allowed, kind, problem, oracle)


@pytest.mark.parametrize("kind", ["subsets", "pinned subsets", "slots", "knapsack"])
def test_seeds_of_influence_are_filled_too(kind):
    problem, p, view, allowed = draw(kind, Spread(), 2)
    for oracle in (IMM(0.6), sa.oracles.Greedy(), sa.oracles.Exhaustive()):
        if fits(oracle, problem):
            assert_filled(oracle.maximize(problem, problem.entries(p), view), allowed, kind, problem, oracle)


@pytest.mark.parametrize("kind", ALL)
def test_every_policy_and_search_fills_its_batch(kind):
    for seed, reward in enumerate(REWARDS.values()):
        problem, p, view, allowed = draw(kind, reward, seed)
        for policy in POLICIES:
            if fits(policy, problem):
                memory = policy.new_memory(problem, 1)
                memory.warm(problem.prior(p, 4), 1)
                view.tally, view.t, view.counts = memory.tally, 9, memory.tally.pulls + view.counts
                batches = policy.choose(problem, view, memory)
                assert_filled(batches, allowed, kind, problem, policy)
        rng = np.random.default_rng(seed)
        worth, spread = rng.integers(-2, 3, (3, problem.n_arms)) / 2.0, rng.random((3, problem.n_arms))
        for table in (batch.batch_table(problem), None):
            found = batch.search_batches(problem, worth, spread, view, table)
            assert_filled(found, allowed, kind, problem, "search")


def test_conjunctive_batches_are_full_when_some_arms_are_excluded():
    agent = sa.Agent(sa.Problem(6, 1, sa.rewards.Conjunctive(), sa.Subsets(3)), sa.kl_ucb())
    for _ in range(20):
        decision = agent.ask(eligible=[0, 1, 2, 3])
        assert len(decision.action) == 3
        agent.tell(decision.id, [[1.0], [0.0], [1.0]])
