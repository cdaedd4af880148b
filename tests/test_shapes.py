"""Shapes: its draws against Dirichlet distributions, its masses by loops; and SDCB, by a program of its own."""

import numpy as np
import pytest
from scipy import stats

import superarm as sa
from superarm.core import streams
from superarm.core.ops import engine
from superarm.simulation.engine import Run

SCALE = sa.Thresholds(edges=[0, 1, 3, 4])


def tally_of(problem, arms, scores):
    return problem.past(arms, problem.thresholds.encode(scores))


def masses_by_loops(scores_of, n_arms, edges, strength=1.0, even=0.1):
    """The mass of each bin of each arm: a score inside a bin counts in part for that bin, in part for the one below."""
    own = np.zeros((n_arms, len(edges)))
    for j, scores in scores_of.items():
        for x in scores:
            b = int(np.searchsorted(edges, x, side="left"))  # it ends in (e_{b-1}, e_b]
            part = (x - edges[b - 1]) / (edges[b] - edges[b - 1]) if b else 0.0
            own[j, b] += part if b else 1.0
            if b:
                own[j, b - 1] += 1.0 - part
    pooled = (own.sum(0) + 1.0 / len(edges)) / (own.sum() + 1.0)
    return own + strength * (even / len(edges) + (1.0 - even) * pooled)


def test_draws_are_dirichlet_with_the_masses_of_the_tally():
    problem = sa.Problem(n_arms=3, items=SCALE, actions=sa.Subsets(2))
    told = {0: [0.0, 0.5, 3.0], 1: [4.0, 3.5, 2.0, 2.0]}
    arms = [j for j, scores in told.items() for _ in scores]
    tally = tally_of(problem, arms, [x for scores in told.values() for x in scores])
    policy = sa.policies.shapes()
    alpha = 2.0 * masses_by_loops(told, 3, SCALE.edges)
    keys = streams.run_keys(np.random.SeedSequence(0).spawn(4000)).policy
    view = problem.view(tally, 5, keys[:1])
    mean, _ = policy.estimates(problem, view, policy.new_memory(problem, 1))
    reached = alpha[:, ::-1].cumsum(1)[:, ::-1]
    np.testing.assert_allclose(mean[0].T, reached[:, 1:] / reached[:, :1], atol=1e-6)  # sums are on a grid
    draws = np.array([policy.estimates(problem, problem.view(tally, 5, key[None]), None)[1][0] for key in keys])
    assert (np.diff(draws, axis=1) <= 0.0).all()  # (draws, n_items, n_arms): monotone in the threshold
    total = alpha.sum(1)
    for j in range(3):  # the chance to reach a threshold is Beta; six tests at 1e-3 each
        for i in (0, 2):
            a = alpha[j, i + 1 :].sum()
            assert stats.kstest(draws[:, i, j], stats.beta(a, total[j] - a).cdf).pvalue > 1e-3


def test_kernels_and_numpy_draw_the_same_and_replications_are_apart():
    problem = sa.Problem(n_arms=6, items=sa.Thresholds(0, 1), actions=sa.Subsets(2))
    environment = sa.environments.Beta(np.full((6, 20), 0.5))
    keys = streams.run_keys(np.random.SeedSequence(3).spawn(3))
    batches = []
    for mode in ("numpy", "numba"):
        with engine(mode):
            run = Run(problem, environment, sa.policies.shapes(), keys)
            batches.append([run.play_round().action.tolist() for _ in range(20)])
    assert batches[0] == batches[1]
    alone = streams.RunKeys(*(part[1:2] for part in keys))
    run = Run(problem, environment, sa.policies.shapes(), alone)
    assert [run.play_round().action[0].tolist() for _ in range(20)] == [batch[1] for batch in batches[0]]


def test_many_pending_decisions_differ():
    problem = sa.Problem(n_arms=8, items=SCALE, actions=sa.Subsets(2))
    agent = sa.Agent(problem, seed=0)
    assert len({tuple(sorted(agent.ask().arms)) for _ in range(12)}) > 5


def test_shapes_are_recommended_for_scores_and_refused_without():
    problem = sa.Problem(n_arms=3, items=SCALE, actions=sa.Subsets(2))
    assert sa.recommend(problem).policy == sa.policies.shapes() == sa.Agent(problem).policy
    assert sa.recommend(problem, whole=True).name == "shapes"
    assert sa.recommend(problem, listed=True).name == "pooled_thompson"
    with pytest.raises(sa.InvalidArgument, match="declare the scale of the scores"):
        sa.Agent(sa.Problem(3, 2, sa.Coverage(), sa.Subsets(2)), sa.policies.shapes())
    with pytest.raises(sa.InvalidArgument, match=r"even.*give a share in \(0, 1\]"):
        sa.policies.shapes(even=0.0)


def test_a_bold_arm_beats_a_second_safe_one():
    """The mean of the bold arm is the lowest, and the best pair has it: 0.7 against 0.6 of two safe ones."""
    x = np.random.default_rng(0)
    problem = sa.Problem(n_arms=4, items=sa.Thresholds(0, 1), actions=sa.Subsets(2))
    agent = sa.Agent(problem, seed=1)
    for _ in range(300):
        decision = agent.ask()
        scores = np.where(decision.action == 3, x.random(2) < 0.45, 0.5 + 0.1 * x.random(2))
        agent.tell(decision, problem.thresholds.encode(scores))
    assert agent.tally.pulls[0, 3] > 250


# --- SDCB, [ChenEtAl2016]_ ---


class SDCB:
    """SDCB on scores that are kept themselves: lower every empirical distribution function, then be greedy.

    It knows nothing of bins, items or tallies: distribution functions are over the distinct scores ``values``. Like the
    library, it plays arms without a score first, and breaks ties by fewest plays, then by number.
    """

    def __init__(self, n_arms, k, values):
        self.k, self.values = k, np.asarray(values, float)
        self.scores, self.clear = [[] for _ in range(n_arms)], 0

    def choose(self, t):
        plays = np.array([len(one) for one in self.scores])
        if not plays.all():
            return np.lexsort((np.arange(len(plays)), plays, plays > 0))[: self.k]
        below = np.array([[np.sum(np.array(one) <= v) / len(one) for v in self.values] for one in self.scores])
        lowered = np.maximum(below - np.sqrt(1.5 * np.log(t) / plays)[:, None], 0.0)
        lowered[:, -1] = 1.0
        batch, together = [], np.ones(len(self.values))
        for _ in range(self.k):
            worth = np.array([self.expected_max(together * own) for own in lowered])
            worth[batch] = -1.0
            near = np.flatnonzero(worth >= worth.max() - 1e-12)
            self.clear += len(near) == 1
            batch.append(int(near[np.lexsort((near, plays[near]))[0]]))
            together = together * lowered[batch[-1]]
        return np.array(batch)

    def expected_max(self, function):
        return self.values @ np.diff(function, prepend=0.0)


def test_cucb_on_bins_is_sdcb_round_by_round():
    values = np.linspace(0.0, 1.0, 5)
    problem = sa.Problem(n_arms=6, items=sa.Thresholds(0, 1, bins=4), actions=sa.Subsets(2))
    rng = np.random.default_rng(7)
    worlds = rng.dirichlet(np.ones(5), 6)
    other, policy = SDCB(6, 2, values), sa.cucb()
    memory = policy.new_memory(problem, 1)
    for t in range(1, 2001):
        view = problem.view(memory.tally, t)
        batch, theirs = policy.choose(problem, view, memory)[0], other.choose(t)
        assert batch.tolist() == theirs.tolist(), t
        x = np.array([rng.choice(values, p=worlds[j]) for j in batch])
        for j, score in zip(batch, x, strict=True):
            other.scores[j].append(score)
        memory.learn(sa.core.tally.Feedback(t, batch[None], problem.thresholds.encode(x)[None]))
    assert other.clear > 3000  # most of the 4,000 choices are decided by distributions, not by ties
