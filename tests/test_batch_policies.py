"""Policies with one bonus per batch against recorded decisions and against every batch."""

import math

import numpy as np
import pytest
from scipy import sparse

from superarm.actions import Subsets
from superarm.core.errors import InvalidArgument
from superarm.core.problem import Problem
from superarm.core.tally import Feedback
from superarm.oracles import Greedy
from superarm.policies import batch
from superarm.policies.batch import escb, escb_delta, least_played
from superarm.policies.covariance import escb_c, ols_ucb_c
from superarm.rewards import Coverage, Linear, Logistic
from tests.action_sets import NoNeighbours
from tests.recorded import Replay, independent, recorded

WEIGHTS = np.array([0.7, 1.3, 0.45])
POLICIES = {
    "escb": (escb(), Linear(), 2),
    "escb_c": (escb_c(0.2, 0.01), Linear(), 2),
    "escb_c alone": (escb_c(0.2, 0.01, 0.3), Coverage(), 1),
    "ols_ucb_c": (ols_ucb_c(0.2, 0.01, 0.1), Linear(), 2),
    "escb_delta": (escb_delta(), Coverage(), 3),
    "escb_delta logistic": (escb_delta(0.5), Logistic(0.5), 2),
    "least_played": (least_played(0.01), Coverage(), 3),
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
        tallies = [policy.new_tally(problem, n) for n in (3, 1, 1, 1)]
        memories = [policy.prepare(problem, tally) for tally in tallies]
        for t in range(1, 20):
            batches = [policy.choose(problem, problem.view(a, t), m) for a, m in zip(tallies, memories, strict=True)]
            assert batches[0].tolist() == np.concatenate(batches[1:]).tolist()
            told = (rng.random((3, k, 3)) < p[batches[0]]).astype(float)
            for rows, tally, memory in zip((slice(0, 3), [0], [1], [2]), tallies, memories, strict=True):
                policy.learn(problem, tally, memory, Feedback(t, batches[0][rows], told[rows]))


def test_what_does_not_apply_is_refused():
    with pytest.raises(InvalidArgument, match="modular"):
        escb().validate(seven_arms(Coverage(), 2))
    with pytest.raises(InvalidArgument, match="linear in the parameters"):
        ols_ucb_c().validate(seven_arms(Coverage(), 2))
    for make in (escb, escb_delta, least_played, escb_c, ols_ucb_c):
        with pytest.raises(InvalidArgument, match="adds a bonus"):
            make(oracle=Greedy())
        with pytest.raises(InvalidArgument):
            make(-1.0)
