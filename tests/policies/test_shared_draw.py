"""Thompson sampling with one number per round: every entry is the same quantile of its own law."""

import numpy as np
import pytest
from scipy import stats

import superarm as sa
from superarm.core.errors import InvalidArgument
from superarm.indices import AnglePosterior, BetaPosterior
from superarm.intake import Exact
from superarm.policies import Round, SharedDraw
from superarm.core.streams import new_stream, seek
from superarm.core.tally import Feedback, empty, record

PROBLEM = sa.Problem(4, 3, sa.Coverage(), sa.Subsets(2))


def scores(policy, seed, pulls=(3, 9, 40, 200)):
    fitted, rng = policy.fit(PROBLEM), np.random.default_rng(seed)
    tally, stream = empty(PROBLEM.terms.support), new_stream(np.random.SeedSequence(seed))
    for j, n in enumerate(pulls):
        for _ in range(n):
            outcome = (rng.random(3) < 0.5).astype(float)
            record(
                tally,
                PROBLEM.terms.support,
                Feedback(1, np.array([j]), outcome, np.ones(3, bool)),
                Exact(),
                stream,
                1.0,
            )
    memory = fitted.prepare(PROBLEM, tally)
    seek(stream, 5, 0)
    counts = np.array(pulls, float)
    candidates = PROBLEM.candidates()._replace(counts=counts)
    action = fitted.choose(PROBLEM, Round(300, tally, candidates), memory, stream)
    return memory, counts, action


def test_all_entries_are_the_same_quantile():
    for seed in range(20):
        memory, counts, action = scores(sa.shared_cts(scale=0.2), seed)
        width = 0.2 / np.sqrt(np.repeat(counts, 3) + 1.0)
        inside = (memory.q > 0.0) & (memory.q < 1.0)
        quantile = stats.norm.cdf((memory.q - memory.mean) / width)[inside]
        assert np.ptp(quantile) < 1e-9
        assert sorted(action) == sorted(sa.solve(PROBLEM, memory.q, sa.Greedy()))


def test_numbers_differ_between_rounds_and_follow_the_uniform_law():
    quantiles = []
    for seed in range(200):
        memory, counts, _ = scores(sa.shared_cts(scale=0.02), seed, pulls=(9, 9, 9, 9))
        quantiles.append(stats.norm.cdf((memory.q[0] - memory.mean[0]) * np.sqrt(counts[0] + 1.0) / 0.02))
    assert stats.kstest(quantiles, "uniform").pvalue > 1e-5


def test_angles_can_be_shared_and_beta_samples_cannot():
    memory, counts, _ = scores(SharedDraw(AnglePosterior()), 3)
    n = np.repeat(counts, 3)
    centre = np.arcsin(np.sqrt((memory.mean * n + 0.375) / (n + 0.75)))
    z = (np.arcsin(np.sqrt(memory.q)) - centre) * 2.0 * np.sqrt(n)
    inside = (memory.q > 0.0) & (memory.q < 1.0)
    assert np.ptp(z[inside]) < 1e-6
    with pytest.raises(InvalidArgument, match="increasing function of one number"):
        SharedDraw(BetaPosterior()).fit(PROBLEM)


def test_unseen_entries_score_one_and_runs_learn():
    instance = sa.Instance(PROBLEM, sa.environments.Bernoulli(np.linspace(0.1, 0.9, 12).reshape(4, 3)))
    results = sa.simulate(instance, {"shared": sa.shared_cts(), "uniform": sa.uniform()}, 300, 2, 0, progress=False)
    assert results.regret["shared"][:, -1].mean() < 0.5 * results.regret["uniform"][:, -1].mean()
    agent = sa.Agent(PROBLEM, sa.shared_cts(), seed=0)
    for _ in range(3):
        decision = agent.ask()
        agent.tell(decision, np.zeros((2, 3)), seen=np.array([[True, True, False]] * 2))
    decision = agent.ask()  # every arm was pulled, and its last item never seen: it scores 1 for all of them
    assert len(decision.action) == 2
