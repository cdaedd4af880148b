"""Policies with one bonus per batch against recorded decisions and against every batch."""

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

from superarm.actions import Explicit, Matching, Subsets
from superarm.core.errors import InvalidArgument
from superarm.core.tally import Feedback, Tally
from superarm.environments import Bernoulli
from superarm.oracles import Greedy
from superarm.policies import batch
from superarm.policies.batch import escb, escb_delta
from superarm.policies.covariance import escb_c, ols_ucb_c
from superarm.problem import Problem
from superarm.rewards import Coverage, Linear, Logistic
from superarm.simulation import Instance, simulate
from tests.action_sets import KINDS, NoNeighbours, arms, playable, random_set, random_view
from tests.recorded import Replay, independent, recorded

WEIGHTS = np.array([0.7, 1.3, 0.45])
POLICIES = {
    "escb": (escb(), Linear(), 2),
    "escb_c": (escb_c(0.2, 0.01), Linear(), 2),
    "escb_c alone": (escb_c(0.2, 0.01, 0.3), Coverage(), 1),
    "ols_ucb_c": (ols_ucb_c(0.2, 0.01, 0.1), Linear(), 2),
    "escb_delta": (escb_delta(), Coverage(), 3),
    "escb_delta logistic": (escb_delta(0.5), Logistic(0.5), 2),
}


def seven_arms(reward, k, support=None):
    return Problem(7, 3, reward, Subsets(k), WEIGHTS, support)


@pytest.mark.parametrize("share", [1.0, 0.8])
@pytest.mark.parametrize("shape", ["dense", "sparse"])
@pytest.mark.parametrize("name", POLICIES)
def test_decides_as_recorded(name, shape, share, request):
    policy, reward, k = POLICIES[name]
    rng = np.random.default_rng(1)
    matrix = rng.random((7, 3)) < 0.7
    matrix[:, 0] = True
    problem = seven_arms(reward, k, sparse.csr_array(matrix) if shape == "sparse" else None)
    replay = Replay(policy, problem, recorded(request), partial=share < 1.0)
    replay.play(40, independent(2, rng.uniform(0.05, 0.6, (7, 3)), share), undo=6)
    for t in range(41, 55):
        replay.choose(t, rng.integers(0, 3, (2, 7)).astype(float), rng.random((2, 7)) < 0.8)


@pytest.mark.parametrize("name", ["escb", "ols_ucb_c"])
def test_the_ascent_decides_as_recorded(name, monkeypatch, request):
    monkeypatch.setattr(batch, "MAX_ENUMERATED_BATCHES", 3)
    policy, reward, k = POLICIES[name]
    replay = Replay(policy, seven_arms(reward, k), recorded(request))
    replay.play(40, independent(3, np.random.default_rng(3).uniform(0.05, 0.6, (7, 3))))
    assert policy.guarantee(replay.problem).alpha == pytest.approx(1.0 - 1.0 / math.e)


@pytest.mark.parametrize("table", [True, False])
def test_searches_against_every_playable_batch(table, monkeypatch):
    rng = np.random.default_rng(4)
    problem = Problem(6, 1, Linear(), NoNeighbours(3))
    monkeypatch.setattr(NoNeighbours, "n_batches", lambda self, n: 20.0 if table else math.inf)
    rows = batch.batch_table(problem)
    for _ in range(30):
        view = problem.view(t=5)
        view.counts = np.ones((2, 6))
        view.eligible, view.counts = rng.random((2, 6)) < 0.9, rng.integers(1, 4, (2, 6)).astype(float)
        view.eligible[:, 2] = True
        view.pinned = np.full((2, int(rng.integers(0, 2))), 2)
        worth, spread = rng.random((2, 6)), rng.random((2, 6))
        found = batch.search_batches(problem, worth, spread, view, rows)
        for r in range(2):
            everything = [
                a
                for a in problem.actions.batches(6)
                if set(view.pinned[r]) <= set(a) and view.eligible[r, list(a)].all()
            ]
            values = [worth[r, list(a)].sum() + math.sqrt(spread[r, list(a)].sum()) for a in everything]
            own = found[r][found[r] >= 0]
            assert list(own[: view.pinned.shape[1]]) == list(view.pinned[r])
            assert view.eligible[r, own].all()
            assert (np.abs(np.subtract.outer(own, own))[~np.eye(len(own), dtype=bool)] > 1).all()
            value = worth[r, own].sum() + math.sqrt(spread[r, own].sum())
            if values and table:
                assert value >= max(values) - 1e-12


def test_replications_decide_as_separate_runs():
    p = np.random.default_rng(6).uniform(0.05, 0.6, (7, 3))
    for policy, reward, k in POLICIES.values():
        problem = seven_arms(reward, k)
        rng, told = np.random.default_rng(7), []
        memories = [policy.new_memory(problem, n) for n in (3, 1, 1, 1)]
        for t in range(1, 20):
            batches = [policy.choose(problem, problem.view(one.tally, t), one) for one in memories]
            assert batches[0].tolist() == np.concatenate(batches[1:]).tolist()
            told = (rng.random((3, k, 3)) < p[batches[0]]).astype(float)
            for rows, memory in zip((slice(0, 3), [0], [1], [2]), memories, strict=True):
                memory.learn(Feedback(t, batches[0][rows], told[rows]))


def test_what_does_not_apply_is_refused():
    with pytest.raises(InvalidArgument, match="modular"):
        escb().validate(seven_arms(Coverage(), 2))
    with pytest.raises(InvalidArgument, match="linear in the parameters"):
        ols_ucb_c().validate(seven_arms(Coverage(), 2))
    for make in (escb, escb_delta, escb_c, ols_ucb_c):
        with pytest.raises(InvalidArgument, match="adds a bonus"):
            make(oracle=Greedy())
        with pytest.raises(InvalidArgument):
            make(-1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_both_searches_against_every_batch(kind, monkeypatch):
    for seed in range(6):
        rng = np.random.default_rng([seed, len(kind)])
        actions, n, may_play = random_set(kind, rng)
        problem = Problem(n, 1, Linear(), actions)
        view = random_view(problem, rng, rows=2, share=(0.9, 1.0))
        worth, spread = rng.random((2, n)), rng.random((2, n))
        exact = batch.search_batches(problem, worth, spread, view, batch.batch_table(problem))
        climbed = batch.search_batches(problem, worth, spread, view, None)
        monkeypatch.setattr(batch, "MAX_ENUMERATED_BATCHES", 0)
        alpha = batch.search_guarantee(problem).alpha
        monkeypatch.undo()
        for r in range(2):
            values = {
                a: worth[r, list(a)].sum() + math.sqrt(spread[r, list(a)].sum())
                for a in playable(may_play, n, view.eligible[r])
            }
            best = max(values.values(), default=0.0)
            found = [tuple(sorted(arms(one[r]))) for one in (exact, climbed)]
            if values:
                assert values[found[0]] == pytest.approx(best)
                assert values[found[1]] >= alpha * best - 1e-9
            else:
                assert found == [(), ()]


def told(problem, hits, pulls):
    """A view of round 70 after so many pulls of each arm, of which some items were hit."""
    sums = {"pulls": pulls[None], "total": hits.T[None], "square": hits.T[None]}
    return problem.view(Tally(problem.support).from_arrays(sums), 70)


PULLS = np.array([3.0, 9.0, 5.0, 20.0, 6.0])


@pytest.mark.parametrize("always", [(), (1,), (1, 3)], ids=str)
@pytest.mark.parametrize("reward", [Coverage(), Logistic(0.8), Linear()], ids=repr)
def test_the_bonus_of_escb_delta_is_its_formula(reward, always):
    """``always`` are arms that hit their first two items in every pull: nothing is left to gain there."""
    problem = Problem(5, 4, reward, Subsets(3), [1.0, 0.5, 2.0, 1.5])
    hits = np.floor(np.random.default_rng(0).random((5, 4)) * PULLS[:, None])
    hits[list(always), :2] = PULLS[list(always), None]
    view, mean, smooth = told(problem, hits, PULLS), hits / PULLS[:, None], (hits + 1.0) / (PULLS[:, None] + 2.0)
    bonus = batch.Delta(0.7)
    for action in itertools.permutations(range(5), 3):
        states, room = reward.empty_states(problem, 1), bonus.room(problem, 1)
        for j in map(np.array, ([j] for j in action[:-1])):
            bonus.extend(problem, view, view.tally.mean, states, room, j)
            problem.support.join(states, view.tally.mean, j, reward.join)
        found = bonus.bonus(problem, view, view.tally.mean, states, room)[0, action[-1]]
        slopes = problem.gradient(mean, list(action))
        variance = (slopes**2 * smooth * (1.0 - smooth) / PULLS[:, None]).sum()
        assert found == pytest.approx(math.sqrt(2.0 * 0.7 * math.log(70) * variance), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("hair", [-0.01, 0.01])
def test_the_index_of_escb_is_that_of_the_paper(hair):
    problem, policy, pulls = Problem(3, 1, Linear(), Explicit([[0, 1], [2]])), escb(c=4.0), np.array([9.0, 9.0, 4.0])
    f = math.log(70) + 4.0 * 2 * math.log(math.log(70))
    pair = 1.0 / 9.0 + 1.0 / 9.0 + math.sqrt(f / 2.0 * (1.0 / 9.0 + 1.0 / 9.0))
    hits = np.array([[1.0], [1.0], [4.0 * (pair - math.sqrt(f / 2.0 / 4.0) + hair)]])  # a hair worse, or better
    view = told(problem, hits, pulls)
    assert arms(policy.choose(problem, view, policy.new_memory(problem, 1))[0]) == ([2] if hair > 0.0 else [0, 1])


def test_an_arm_of_which_nothing_was_told_yet_is_worth_all_it_can_be():
    problem, policy = Problem(2, 1, Linear(), Explicit([[0], [1]])), escb(c=0.0)
    view = told(problem, np.array([[40.0], [0.0]]), np.array([50.0, 0.0]))
    view.counts = np.array([[50.0, 50.0]])  # arm 1 is under way fifty times
    assert policy.choose(problem, view, policy.new_memory(problem, 1)).tolist() == [[1]]


def test_escb_finds_the_best_matching():
    actions = Matching(3, 3, [(a, b) for a in range(3) for b in range(3)])
    p = np.full((9, 1), 0.3)
    p[[0, 4, 8]] = 0.7
    instance = Instance(Problem(9, 1, Linear(), actions), Bernoulli(p))
    results = simulate(instance, {"ESCB": escb(c=0.0)}, horizon=1500, replications=2, seed=1, progress=False)
    late = np.diff(results.regret["ESCB"][:, [-20, -1]], axis=1) / np.diff(results.rounds[[-20, -1]])
    assert late.max() < 0.1 * (2.1 - 0.9)


def test_small_problems_are_searched_exactly_and_caveats_are_told():
    small, large = (Problem(n, 1, Linear(), Subsets(k)) for n, k in ((6, 3), (60, 10)))
    assert escb().guarantee(small).alpha == 1.0
    assert escb().guarantee(large).alpha == pytest.approx(1.0 - 1.0 / math.e)
    for policy in (escb(), escb_delta()):
        assert "independent" in policy.caveat
