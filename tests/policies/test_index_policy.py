"""Whole trajectories against an obvious NumPy loop that shares no code with the package."""

import math

import numpy as np
import pytest

import superarm as sa
from superarm.simulation import begin, checkpoints
from superarm.simulation.engine import advance

L, M, K, T = 12, 5, 3, 250


def _bernstein(mean, variance, pulls, t):
    return np.minimum(1.0, mean + np.sqrt(6 * variance * math.log(t) / pulls) + 9 * math.log(t) / pulls)


def _hoeffding(mean, variance, pulls, t):
    return np.minimum(1.0, mean + np.sqrt(3 * math.log(t) / (2 * pulls)))


def _ucb_v(mean, variance, pulls, t):
    return np.minimum(1.0, mean + np.sqrt(2 * variance * math.log(t) / pulls) + 0.5 * math.log(t) / pulls)


def _greedy(q, weights, pulls):
    """Picks by gain, then fewest pulls, then lowest arm; gains that differ by rounding only count as equal."""
    chosen, left = [], weights.copy()
    for _ in range(K):
        gains = q @ left
        best = max(gains[j] for j in range(L) if j not in chosen)
        tied = [j for j in range(L) if j not in chosen and gains[j] >= best - 1e-12]
        chosen.append(min(tied, key=lambda j: (pulls[j], j)))
        left = left * (1 - q[chosen[-1]])
    return chosen


def _naive(table, weights, index):
    """BC-UCB and its kin, Algorithm 1, on a recorded table of outcomes (T, L, M)."""
    pulls, total, square, actions = np.zeros(L), np.zeros((L, M)), np.zeros((L, M)), []
    for t in range(1, T + 1):
        if (pulls == 0).any():
            action = sorted(range(L), key=lambda j: (pulls[j], j))[:K]
        else:
            mean = total / pulls[:, None]
            variance = np.maximum(0.0, square / pulls[:, None] - mean**2)
            action = _greedy(index(mean, variance, pulls[:, None], t), weights, pulls)
        outcome = table[t - 1][action]
        pulls[action] += 1
        total[action] += outcome
        square[action] += outcome**2
        actions.append(action)
    return np.array(actions), pulls


@pytest.mark.parametrize(
    ("policy", "index"),
    [
        pytest.param(sa.bc_ucb(), _bernstein, id="bc_ucb"),
        pytest.param(sa.cucb(), _hoeffding, id="cucb"),
        pytest.param(sa.ucb_v(), _ucb_v, id="ucb_v"),
    ],
)
@pytest.mark.parametrize("high", [0.1, 0.9])
def test_the_compiled_loop_plays_the_batches_of_the_naive_one(policy, index, high):
    rng = np.random.default_rng(8)
    weights = rng.uniform(0.5, 2.0, M)
    table = (rng.random((T, L, M)) < rng.uniform(0, high, (L, M))).astype(float)
    problem = sa.Problem(L, M, sa.Coverage(), sa.Subsets(K), weights=weights)
    agent = sa.Agent(problem, policy)
    actions = []
    for t in range(T):
        decision = agent.ask()
        agent.tell(decision, table[t][decision.action])
        actions.append(decision.action)
    expected, pulls = _naive(table, weights, index)
    assert np.array_equal(np.array(actions), expected)
    assert np.array_equal(agent.tally.pulls, pulls)
    environment = sa.environments.Replay(table)
    run = begin(problem, environment, policy.fit(problem), np.random.SeedSequence(0))
    advance(problem, environment, policy.fit(problem), run, np.array([0, T]), np.zeros(1))
    assert np.array_equal(run.tally.pulls, pulls)


def test_first_rounds_cover_all_arms_with_explicit_batches():
    batches = [[0, 1], [1, 2], [2, 3], [4]]
    problem = sa.Problem(5, 1, sa.Coverage(), sa.Explicit(batches))
    agent = sa.Agent(problem, sa.kl_ucb())
    first = [agent.ask().action.tolist() for _ in range(3)]
    assert first == [[0, 1], [2, 3], [4]]


def test_an_unsampled_arm_that_cannot_be_played_does_not_block():
    problem = sa.Problem(4, 1, sa.Coverage(), sa.Explicit([[0, 1], [2, 3]]))
    agent = sa.Agent(problem, sa.kl_ucb())
    decisions = [agent.ask(eligible=[0, 1, 2]) for _ in range(3)]
    assert [d.action.tolist() for d in decisions] == [[0, 1]] * 3


def test_checkpoints_end_at_the_horizon():
    assert checkpoints(12345)[[0, -1]].tolist() == [1, 12345]


@pytest.mark.parametrize(
    "make",
    [
        lambda: sa.bc_ucb(rho=0),
        lambda: sa.kl_ucb(rho=-1),
        lambda: sa.ucb_v(c=-1),
        lambda: sa.epsilon_greedy(2.0),
        lambda: sa.epsilon_greedy(0.1, decay=-1),
        lambda: sa.cucb(rho=float("nan")),
        lambda: sa.bc_ucb(rho="much"),
    ],
)
def test_constructors_explain_what_is_wrong(make):
    with pytest.raises(sa.InvalidArgument) as caught:
        make()
    assert caught.value.argument in str(caught.value)
    assert caught.value.remedy in str(caught.value)
