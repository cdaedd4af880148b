import math
from typing import NamedTuple

import numpy as np
import pytest

import superarm as sa
from superarm.candidates import Candidates
from superarm.policies import IndexPolicy, Round, choose, learn, prepare, screened
from superarm.simulation import advance, begin, seeds
from superarm.core.streams import Stream, new_stream, uniform
from superarm.core.tally import Feedback, allow_missing, empty


@sa.component
class Sampled(NamedTuple):
    """A sampled index that the library does not know."""

    def level(self, pulls: float, t: int, share: float) -> float:
        return pulls

    def score(self, mean: float, deviation: float, level: float, stream: Stream) -> float:
        return min(1.0, mean + uniform(stream) / math.sqrt(level))


def overlapping(seed, n_items=2):
    """Random batches that share arms, of unlike sizes."""
    rng = np.random.default_rng(seed)
    batches = [rng.choice(9, rng.integers(1, 5), replace=False).tolist() for _ in range(12)] + [[j] for j in range(9)]
    problem = sa.Problem(9, n_items, sa.Coverage(), sa.Explicit(batches), weights=rng.uniform(0.5, 2.0, n_items))
    return sa.Instance(problem, sa.environments.Bernoulli(rng.uniform(0.0, 0.4, (9, n_items))))


@pytest.mark.compiled("whole trajectories take too long as plain Python")
@pytest.mark.parametrize("policy", [sa.kl_ucb()], ids=["KL-UCB"])
def test_whole_trajectories_are_equal(policy):
    for instance in (sa.instances.disjoint_batches(8, suboptimal_arms=32), overlapping(0), overlapping(1)):
        every = np.arange(1, 1501)
        found = sa.simulate(
            instance,
            {"plain": policy, "screened": screened(policy)},
            1500,
            replications=2,
            rounds=every,
            progress=False,
        )
        np.testing.assert_array_equal(found.regret["plain"], found.regret["screened"])
        np.testing.assert_array_equal(found.pulls["plain"], found.pulls["screened"])


def decisions(policy, instance, seed, steps):
    """Choices when feedback comes late, is taken back, is partly unseen, and arms come and go."""
    rng = np.random.default_rng(seed)
    problem = instance.problem
    fitted = policy.fit(problem)
    tally = allow_missing(empty(problem.support))
    memory = prepare(fitted, problem, tally)
    stream = new_stream(np.random.SeedSequence(1))
    pending, told, chosen = [], [], []
    for t in range(1, steps + 1):
        pulls = tally.pulls.copy()
        for action in pending:
            pulls[action] += 1.0
        eligible = rng.uniform(size=problem.n_arms) < 0.9
        action = choose(fitted, problem, Round(t, tally, Candidates(pulls, eligible)), memory, stream)
        chosen.append(action.tolist())
        if action.size:
            pending.append(action)
        coin = rng.uniform()
        if pending and coin < 0.6:
            arms = pending.pop(0)
            size = len(arms) * problem.n_items
            feedback = Feedback(t, arms, (rng.uniform(size=size) < 0.3).astype(float), rng.uniform(size=size) < 0.9)
            learn(fitted, problem, tally, memory, feedback, stream, 1.0)
            told.append(feedback)
        elif pending and coin < 0.75:
            pending.pop()  # never answered: its pulls are taken back
        elif told and coin < 0.8:
            learn(fitted, problem, tally, memory, told.pop(), stream, -1.0)
    return chosen


def test_late_partial_and_withdrawn_feedback():
    for seed in range(3):
        instance = overlapping(seed)
        assert decisions(sa.cucb(), instance, seed, 400) == decisions(screened(sa.cucb()), instance, seed, 400)


def test_it_skips():
    # after a while batches are passed over: their bounds reach beyond the next round
    instance = sa.instances.disjoint_batches(8, suboptimal_arms=32)
    policy = screened(sa.cucb()).fit(instance.problem)
    run = begin(instance.problem, instance.environment, policy, seeds(0, 1)[0])
    for t in range(0, 5000, 250):
        advance(instance.problem, instance.environment, policy, run, np.array([t, t + 250]), np.zeros(1))
        if (run.memory.stride > 8).sum() >= 2:
            return
    pytest.fail("every batch was looked at again and again")


def test_refusals():
    listed = sa.instances.disjoint_batches(64).problem
    with pytest.raises(sa.InvalidArgument, match="listed"):
        screened(sa.cucb()).fit(sa.instances.random_coverage(5, 2, 2).problem)
    with pytest.raises(sa.InvalidArgument, match="sampled"):
        screened(sa.cts()).fit(listed)
    with pytest.raises(sa.InvalidArgument, match="sampled"):  # a user's own, which the library does not know
        screened(IndexPolicy(Sampled())).fit(listed)
    with pytest.raises(sa.InvalidArgument, match="index policy"):
        screened(sa.uniform())
    with pytest.raises(sa.InvalidArgument, match="start"):
        screened(sa.bcucb_t())
    with pytest.raises(sa.InvalidArgument, match="exhaustive"):
        screened(IndexPolicy(sa.cucb().confidence, sa.Greedy()))
    assert screened(sa.cucb()).guarantee(listed) == (1.0, 1.0)
