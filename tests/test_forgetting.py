"""Forgetting and the wrappers against recorded decisions and against what they are made of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from superarm.actions import Subsets
from superarm.core import streams
from superarm.core.errors import InvalidArgument
from superarm.core.tally import Feedback, Tally
from superarm.indices import KL, Bernstein
from superarm.oracles import Greedy, Oracle
from superarm.policies.directional import Covariance, directional_kl_moss
from superarm.policies.forgetting import Forgetting, discounted, sliding_window
from superarm.policies.index import IndexPolicy
from superarm.policies.wrappers import EpsilonGreedy, OneGaussian, epsilon_greedy, uniform
from superarm.problem import Problem
from superarm.rewards import Coverage
from tests.action_sets import NoNeighbours
from tests.recorded import Replay, independent, recorded

WEIGHTS = np.array([0.7, 1.3, 0.45, 1.9])
PROBLEM = Problem(6, 4, Coverage(), Subsets(2), WEIGHTS)
P = np.random.default_rng(0).uniform(0.05, 0.4, (6, 4))


FORGETFUL = {
    "window": sliding_window(IndexPolicy(Bernstein(0.1)), 12, 3),
    "discount": discounted(IndexPolicy(KL()), 5),
    "window of directional": sliding_window(directional_kl_moss(), 30, 4),
}


@pytest.mark.parametrize("share", [1.0, 0.8])
@pytest.mark.parametrize("name", FORGETFUL)
def test_decides_as_recorded_and_takes_back_what_is_old(name, share, request):
    replay = Replay(FORGETFUL[name], PROBLEM, recorded(request), partial=share < 1.0)
    told = replay.play(50, independent(1, P, share), undo=5)
    for late in (*told[-8:], told[2], told[20]):  # some of these rounds are forgotten
        replay.learn(*late, -1.0)
    replay.learn(*told[-1])
    replay.play(15, independent(2, P, share), first=60)


@given(st.integers(0, 2**32 - 1))
def test_the_sum_is_that_of_the_blocks_in_any_order_and_over_a_saved_state(seed):
    rng = np.random.default_rng(seed)
    weights = 0.5 ** np.arange(float(rng.integers(1, 5)))
    policy = Forgetting(directional_kl_moss(Covariance()), int(rng.integers(1, 4)), weights)
    told = []
    for t in range(1, 14):
        action = np.array([rng.permutation(6)[:2] for _ in range(2)])
        x = rng.choice([0.0, 1.0, rng.random()], (2, 2, 4))
        told.append(Feedback(t, action, x, rng.random(x.shape) < 0.9))
    past = PROBLEM.past([0, 3, 3], rng.random((3, 4)))

    def run(order, undo=()):
        memory = policy.new_memory(PROBLEM, 2)
        memory.warm(past, 1)
        for feedback in order:
            memory.learn(feedback)
        for feedback in undo:
            memory.learn(feedback, -1.0)
        memory.advance(14)
        return memory

    def weight(t):
        age = 13 // policy.block - (t - 1) // policy.block
        return float(weights[age]) if age < len(weights) else 0.0

    memory = run(told)
    expected = memory.tally.like()
    if weight(1):
        expected.add(past, weight(1))
    for feedback in told:
        if weight(feedback.t):
            expected.record(feedback, weight(feedback.t))
    again = policy.new_memory(PROBLEM, 2).from_arrays(memory.to_arrays())
    others = [run([*told, *told[5:9]], told[5:9]).inner.tally, expected, again.inner.tally]
    now = memory.inner.tally
    for name in ("pulls", "total", "square", "missed", "mean", "deviation"):
        for other in others:
            np.testing.assert_array_equal(getattr(now, name), getattr(other, name), name)
    for name in ("values", "products", "mean", "spread", "peak"):
        for other in others:
            np.testing.assert_array_equal(getattr(now.moments, name), getattr(other.moments, name), name)
    view = PROBLEM.view(memory.tally, 14)
    chosen = policy.choose(PROBLEM, view, memory)
    assert policy.choose(PROBLEM, view, again).tolist() == chosen.tolist()
    assert memory.age(1) == memory.newest
    grown = memory.grown(PROBLEM.changed(n_arms=8, support=None), 14).inner.tally
    for name in ("pulls", "mean", "deviation"):
        np.testing.assert_array_equal(getattr(grown, name)[..., :6], getattr(now, name))
    np.testing.assert_array_equal(grown.moments.top[..., :6], now.moments.top)


def test_wrong_parameters_are_refused():
    for weights in ([], [0.3], [2.0], [0.0]):
        with pytest.raises(InvalidArgument, match="weights"):
            Forgetting(IndexPolicy(KL()), 3, weights)
    with pytest.raises(InvalidArgument, match="window"):
        sliding_window(IndexPolicy(KL()), 0)
    with pytest.raises(InvalidArgument, match="policy"):
        discounted("kl_ucb", 3)
    with pytest.raises(InvalidArgument, match="epsilon"):
        epsilon_greedy(1.5)
    with pytest.raises(InvalidArgument, match="only ranks"):
        OneGaussian(Greedy())


def test_epsilon_greedy_explores_as_often_as_it_says_and_follows_its_policy_otherwise():
    policy, n = epsilon_greedy(0.3), 4000
    memory = policy.new_memory(PROBLEM, n)
    for j in range(6):
        memory.learn(Feedback(1, np.full((n, 1), j), np.full((n, 1, 4), 0.1 + 0.1 * (j == 4))))
    view = PROBLEM.view(memory.tally, 9, np.random.default_rng(1).integers(0, 2**63, n).astype(np.uint64))
    batches = policy.choose(PROBLEM, view, memory)
    leader = policy.policy.choose(PROBLEM, view, memory)
    other = (np.sort(batches) != np.sort(leader)).any(1).mean()
    assert abs(other - 0.3 * 14 / 15) < 0.03  # four standard deviations
    later = EpsilonGreedy(policy.policy, 1.0, 1.0)
    assert (np.sort(later.choose(PROBLEM, view, memory)) != np.sort(leader)).any(1).mean() < 0.2


def test_random_batches_are_uniform_and_maximal_on_any_action_set():
    problem, n = Problem(5, 1, Coverage(), NoNeighbours(2)), 6000
    view = problem.view(Tally(problem.support, n), 3, np.random.default_rng(2).integers(0, 2**63, n).astype(np.uint64))
    batches = np.sort(uniform().choose(problem, view, None))
    pairs, counts = np.unique(batches, axis=0, return_counts=True)
    assert sorted(map(tuple, pairs.tolist())) == sorted(problem.actions.batches(5))
    subsets = PROBLEM.view(Tally(PROBLEM.support, n), 3, view.keys)
    _, counts = np.unique(np.sort(uniform().choose(PROBLEM, subsets, None)), axis=0, return_counts=True)
    assert len(counts) == 15
    assert np.abs(counts - n / 15).max() < 4.5 * np.sqrt(n / 15)


class Ranked(Oracle):
    ranking = True

    def maximize(self, problem, q, view):
        return problem.actions.heaviest(q[:, 0], view)


def test_one_gaussian_is_its_formula():
    problem, policy = Problem(4, 1, Coverage(), Subsets(2)), OneGaussian(Ranked())
    tally = Tally(problem.support, 2)
    tally.record(Feedback(1, np.array([[0, 2], [1, 3]]), np.array([[[1.0], [0.0]], [[0.5], [1.0]]])))
    view = problem.view(tally, 7, np.array([3, 4], np.uint64))
    batches = policy.choose(problem, view, None)
    for r in range(2):
        z = streams.quantile(streams.shared_uniform(view.keys, 7))[r, 0]
        mean, narrow = tally.mean[r, 0], np.log(8.0) / (tally.pulls[r] + 1.0)
        samples = mean + z * np.maximum(np.sqrt(mean * (1.0 - mean) * narrow), narrow)
        ties = np.lexsort((np.arange(4), tally.pulls[r], -samples))
        assert batches[r].tolist() == ties[:2].tolist()
