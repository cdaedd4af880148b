"""Runs: NumPy, kernels, screens and ``play`` decide alike, and replications do not touch each other."""

import numpy as np
import pytest
from scipy.sparse import random_array

from superarm.actions import Subsets
from superarm.core import ops, streams
from superarm.environments import Bernoulli
from superarm.indices import KL, UCBV, Bernstein, BetaPosterior, GaussianSample, Hoeffding, KLMoss
from superarm.policies import IndexPolicy, screen
from superarm.policies.base import try_every_arm
from superarm.problem import Problem
from superarm.rewards import Coverage, Linear
from superarm.simulation.engine import Run

INDICES = [Bernstein(), Bernstein(0.1), KL(), KLMoss(), Hoeffding(), UCBV(), BetaPosterior(), GaussianSample()]


def game(n_arms=9, n_items=4, k=3, reward=None, seed=0, sparse=False, high=0.5):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.3, 2.0, n_items)
    if not sparse:
        problem = Problem(n_arms, n_items, reward or Coverage(), Subsets(k), weights)
        return problem, Bernoulli(rng.uniform(0.0, high, (n_arms, n_items)))
    support = random_array((n_arms, n_items), density=0.5, rng=rng, format="csr")
    problem = Problem(n_arms, n_items, reward or Coverage(), Subsets(k), weights, support)
    return problem, Bernoulli(rng.uniform(0.0, high, problem.n_entries))


def play(problem, environment, policy, rounds, replications=3, mode="numpy", fuse=False):
    keys = streams.run_keys(np.random.SeedSequence(5).spawn(replications))
    with ops.engine(mode):
        run = Run(problem, environment, policy, keys, fuse)
        batches = []
        if fuse:
            run.advance(rounds)
        else:
            for _ in range(rounds):
                run.play_round()
                batches.append(run.last.copy())
    return np.array(batches), run


@pytest.mark.parametrize("index", INDICES, ids=repr)
@pytest.mark.parametrize("sparse", [False, True])
def test_kernels_decide_as_numpy(index, sparse):
    problem, environment = game(sparse=sparse)
    plain, run = play(problem, environment, IndexPolicy(index), 60)
    compiled, other = play(problem, environment, IndexPolicy(index), 60, mode="numba")
    np.testing.assert_array_equal(plain, compiled)
    np.testing.assert_array_equal(run.earned, other.earned)
    for name in ("pulls", "total", "square", "mean", "deviation"):
        np.testing.assert_array_equal(getattr(run.tally, name), getattr(other.tally, name))


@pytest.mark.parametrize("index", INDICES, ids=repr)
@pytest.mark.parametrize("reward", [Coverage(), Linear()])
def test_replications_do_not_touch_each_other(index, reward):
    problem, environment = game(reward=reward)
    together, _ = play(problem, environment, IndexPolicy(index), 40)
    seeds = np.random.SeedSequence(5).spawn(3)
    for r, seed in enumerate(seeds):
        run = Run(problem, environment, IndexPolicy(index), streams.run_keys([seed]))
        for batch in together[:, r]:
            run.play_round()
            np.testing.assert_array_equal(run.last[0], batch)


def choose_plainly(index, problem, view):
    """The batches at the scores of all entries, without a screen."""
    policy = IndexPolicy(index)
    return try_every_arm(problem, view, lambda: policy.oracle.maximize(problem, policy.scores(problem, view), view))


@pytest.mark.parametrize("index", [Bernstein(), Bernstein(0.05), KL(), KL(0.2, 0.0), KLMoss()], ids=repr)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_screen_decides_as_plain_scores(index, sparse, monkeypatch):
    monkeypatch.setattr(screen, "FROM_ENTRIES", dict.fromkeys(screen.FROM_ENTRIES, 0))
    problem, environment = game(150, 5, 4, sparse=sparse, high=0.2)
    keys = streams.run_keys(np.random.SeedSequence(1).spawn(2))
    with ops.engine("numba"):
        run = Run(problem, environment, IndexPolicy(index), keys)
        assert (run.memory.screen is None) == (sparse and isinstance(index, KLMoss))
        rng = np.random.default_rng(0)
        for t in range(1, 700):
            if t % 50 > 40:  # arms come and go
                run.eligible[:] = rng.random(run.eligible.shape) < 0.7
            pulls = run.tally.pulls.copy()
            view = problem.view(run.tally, t, keys.policy)
            view.eligible = run.eligible.copy()
            plain = choose_plainly(index, problem, view)
            feedback = run.play_round()
            np.testing.assert_array_equal(run.last, plain)
            if t % 7 == 0:  # take back what was said and say another thing: counts stay, means do not
                run.memory.learn(feedback, -1.0)
                np.testing.assert_array_equal(run.tally.pulls, pulls)
                feedback.outcome = 1.0 - feedback.outcome
                run.memory.learn(feedback)


@pytest.mark.parametrize("index", [Bernstein(), Bernstein(0.05), KL(0.2, 0.0)], ids=repr)
def test_a_sparse_screen_of_several_groups_of_blocks_breaks_ties_as_plain_scores(index):
    problem, environment = game(4096 + 100, 6, 70, sparse=True, high=0.2)
    keys = streams.run_keys(np.random.SeedSequence(1).spawn(1))
    with ops.engine("numba"):
        run = Run(problem, environment, IndexPolicy(index), keys)
        for t in range(1, 200):
            plain = choose_plainly(index, problem, problem.view(run.tally, t, keys.policy))
            run.play_round()
            np.testing.assert_array_equal(run.last, plain)


@pytest.mark.parametrize("index", [Bernstein(), KL()], ids=repr)
def test_play_decides_as_rounds(index):
    problem, environment = game()
    _, rounds = play(problem, environment, IndexPolicy(index), 300, mode="numba")
    _, fused = play(problem, environment, IndexPolicy(index), 300, mode="numba", fuse=True)
    np.testing.assert_array_equal(rounds.earned, fused.earned)
    np.testing.assert_array_equal(rounds.tally.total, fused.tally.total)


def test_taking_back_everything_leaves_nothing():
    problem, environment = game()
    keys = streams.run_keys(np.random.SeedSequence(2).spawn(2))
    run = Run(problem, environment, IndexPolicy(KL()), keys)
    said = [run.play_round() for _ in range(30)]
    for n in np.random.default_rng(0).permutation(30):
        run.memory.learn(said[n], -1.0)
    for name in ("pulls", "total", "square", "mean", "deviation"):
        assert not getattr(run.tally, name).any()
