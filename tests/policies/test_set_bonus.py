"""ESCB against its formula, and every policy on every action set."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as sa
from superarm.candidates import Candidates
from superarm.oracles.base import greedy_alpha
from superarm.policies import Ascent, EveryBatch, choose, prepare
from superarm.policies.base import Round
from superarm.policies.set_search import optimistic_value, search
from superarm.simulation.engine import advance, begin
from superarm.core.streams import new_stream
from superarm.core.tally import Tally
from tests.action_sets import ALL, KINDS, playable, random_set


def _listed(actions, n):
    listed = sa.Explicit(actions.batches(n))
    return EveryBatch(listed.table, listed.sizes)


@pytest.mark.parametrize("kind", [*KINDS, "pinned paths"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_both_searches_against_every_batch(kind, seed):
    rng = np.random.default_rng(seed)
    actions, n = random_set(kind, rng)
    problem = sa.Problem(n, 1, sa.Linear(), actions)
    worth, spread, candidates = rng.random(n), rng.random(n), problem.candidates()
    candidates.eligible[rng.integers(n)] = kind in ("trees", "paths", "pinned paths")
    allowed = playable(actions, n, candidates.eligible)
    best = max(worth[list(a)].sum() + math.sqrt(spread[list(a)].sum()) for a in allowed)
    exact, climbed = (search(finder, problem, worth, spread, candidates) for finder in (_listed(actions, n), Ascent()))
    assert optimistic_value(worth, spread, exact) == pytest.approx(best)
    assert tuple(sorted(climbed.tolist())) in allowed
    assert optimistic_value(worth, spread, climbed) >= Ascent().guarantee(problem).alpha * best - 1e-9


@pytest.mark.parametrize("hair", [-0.01, 0.01])
def test_the_index_is_that_of_the_paper(hair):
    problem = sa.Problem(3, 1, sa.Linear(), sa.Explicit([[0, 1], [2]]))
    policy = sa.escb(c=4.0).fit(problem)
    t, pulls = 50, np.array([9.0, 9.0, 4.0])
    f = math.log(t) + 4.0 * 2 * math.log(math.log(t))
    pair = 1.0 / 9.0 + 1.0 / 9.0 + math.sqrt(f / 2.0 * (1.0 / 9.0 + 1.0 / 9.0))
    total = np.array([1.0, 1.0, 4.0 * (pair - math.sqrt(f / 2.0 / 4.0) + hair)])  # arm 2 is a hair worse, or better
    tally = Tally(pulls, total, total.copy(), np.zeros(0))
    current = Round(t, tally, Candidates(pulls, np.ones(3, bool)))
    action = choose(policy, problem, current, prepare(policy, problem, tally), new_stream(np.random.SeedSequence(0)))
    assert action.tolist() == ([2] if hair > 0.0 else [0, 1])


def test_escb_says_how_it_searches_and_refuses_other_rewards():
    small = sa.Problem(6, 1, sa.Linear(), sa.Subsets(3))
    large = sa.Problem(60, 1, sa.Linear(), sa.Subsets(10))
    assert isinstance(sa.escb().fit(small).finder, EveryBatch)
    assert sa.escb().fit(small).guarantee(small).alpha == 1.0
    assert isinstance(sa.escb().fit(large).finder, Ascent)
    assert sa.escb().fit(large).guarantee(large).alpha == greedy_alpha(10)
    with pytest.raises(sa.InvalidArgument, match="modular"):
        sa.escb().fit(sa.Problem(6, 1, sa.Coverage(), sa.Subsets(3)))
    with pytest.raises(sa.InvalidArgument, match="c"):
        sa.escb(c=-1.0)


POLICIES = {"bc_ucb": sa.bc_ucb(), "cucb": sa.cucb(), "kl_ucb": sa.kl_ucb(), "cts": sa.cts(), "escb": sa.escb()}
RUNS = [
    (kind, name, reward)
    for kind in ALL
    for name in POLICIES
    for reward in (sa.Linear(), sa.Coverage())
    if reward.modular or name != "escb"
]


@pytest.mark.parametrize(("kind", "name", "reward"), RUNS)
def test_every_policy_learns_on_every_action_set(kind, name, reward):
    rng = np.random.default_rng(5)
    actions, n = random_set(kind, rng)
    p = rng.random((n, 2))
    problem, environment = sa.Problem(n, 2, reward, actions), sa.environments.Bernoulli(p)
    policy = POLICIES[name].fit(problem)
    run = begin(problem, environment, policy, np.random.SeedSequence(1))
    rounds, earned = np.arange(0, 31, 5), np.zeros(6)
    advance(problem, environment, policy, run, rounds, earned)
    batches = playable(actions, n)
    values = [problem.value(p, batch) for batch in batches]
    sizes = [len(batch) for batch in batches]
    assert 30 * min(values) - 1e-9 <= earned[-1] <= 30 * max(values) + 1e-9
    assert 30 * min(sizes) <= run.tally.pulls.sum() <= 30 * max(sizes)
    assert all(run.tally.pulls[j] > 0 for j in range(n) if any(j in batch for batch in batches))


@pytest.mark.compiled("a horizon too long for plain Python")
def test_escb_finds_the_best_matching():
    actions = sa.Matching(3, 3, [(a, b) for a in range(3) for b in range(3)])
    p = np.full((9, 1), 0.3)
    p[[0, 4, 8]] = 0.7
    instance = sa.Instance(sa.Problem(9, 1, sa.Linear(), actions), sa.environments.Bernoulli(p))
    results = sa.simulate(instance, {"ESCB": sa.escb(c=0.0)}, horizon=3000, replications=2, seed=1, progress=False)
    late = np.diff(results.regret["ESCB"][:, [-20, -1]], axis=1) / np.diff(results.rounds[[-20, -1]])
    assert late.max() < 0.1 * (2.1 - 0.9)


def test_an_arm_of_which_nothing_was_told_yet_is_worth_all_it_can_be():
    problem = sa.Problem(2, 1, sa.Linear(), sa.Explicit([[0], [1]]))
    policy = sa.escb(c=0.0).fit(problem)
    tally = Tally(np.array([50.0, 0.0]), np.array([40.0, 0.0]), np.array([40.0, 0.0]), np.zeros(0))
    asked = Candidates(np.array([50.0, 50.0]), np.ones(2, bool))  # arm 1 is under way fifty times
    action = choose(
        policy, problem, Round(60, tally, asked), prepare(policy, problem, tally), new_stream(np.random.SeedSequence(0))
    )
    assert action.tolist() == [1]
