"""Cascading bandits against the algorithms as printed, retold in plain NumPy; and the agent against the simulation."""

import numpy as np
import pytest

import superarm as sa
from superarm.environments import Bernoulli, Cascade, FreeSamples, draw, respond
from superarm.simulation import advance, begin, seeds
from superarm.core.streams import normal, run_streams, seek

L, K, ROUNDS = 6, 3, 150
P = np.array([[0.5], [0.3], [0.2], [0.35], [0.1], [0.45]])
PROBLEM = sa.Problem(L, 1, sa.Coverage(), sa.Subsets(K))
POLICIES = {"kl": sa.cascade_kl_ucb(), "ts": sa.ts_cascade()}


def attraction(t, source):
    """What every arm would do in round t."""
    everyone = np.empty(L)
    draw(Bernoulli(P), PROBLEM.support, np.arange(L), t, source, everyone, np.ones(L, bool))
    return everyone


def kl_upper(p, x):
    """The largest q with kl(p, q) <= x, by bisection."""
    low, high = p, 1.0
    for _ in range(60):
        q = 0.5 * (low + high)
        d = (p * np.log(p / q) if p > 0 else 0.0) + ((1 - p) * np.log((1 - p) / (1 - q)) if p < 1 else 0.0)
        low, high = (q, high) if d <= x else (low, q)
    return low


def printed(name, seed):
    """Pulls and sums after ROUNDS rounds of the printed algorithm, with a free sample of every arm at the start."""
    environment, policy_stream, _ = run_streams(seed)
    pulls, sums = np.ones(L), attraction(0, environment)
    for t in range(1, ROUNDS + 1):
        if name == "ts":  # Cheung, Tan, Zhong, Algorithm 1
            seek(policy_stream, t, 0)
            mean, wide = sums / np.maximum(pulls, 1.0), np.log(t + 1) / (pulls + 1.0)
            u = mean + normal(policy_stream) * np.maximum(np.sqrt(mean * (1.0 - mean) * wide), wide)
        else:  # Kveton et al., Algorithm 1
            f = np.log(t) + 3.0 * np.log(max(1.0, np.log(t)))
            u = [kl_upper(s / n, f / n) for n, s in zip(pulls, sums, strict=True)]
        order = sorted(range(L), key=lambda j: (-u[j], pulls[j], j))[:K]
        for j in order:
            x = attraction(t, environment)[j]
            pulls[j], sums[j] = pulls[j] + 1, sums[j] + x
            if x == 1.0:
                break
    return pulls, sums


@pytest.mark.parametrize("name", POLICIES)
def test_simulation_agent_and_paper_decide_alike(name):
    seed, environment = seeds(4, 1)[0], FreeSamples(Cascade(P))
    ready = POLICIES[name].fit(PROBLEM)
    run = begin(PROBLEM, environment, ready, seed)
    advance(PROBLEM, environment, ready, run, np.array([0, ROUNDS]), np.empty(1))
    pulls, sums = printed(name, seed)
    assert run.tally.pulls.tolist() == pulls.tolist()
    assert run.tally.total.tolist() == sums.tolist()

    users, (first, _, _) = run_streams(seed).environment, run_streams(seed)
    agent = sa.Agent(PROBLEM, POLICIES[name], seed=seed, tally=PROBLEM.past(range(L), attraction(0, first)[:, None]))
    agent.learner.rounds = 0  # a warm start lets time go on from its pulls; the literature's free sample does not
    for t in range(1, ROUNDS + 1):
        decision = agent.ask()
        told = respond(Cascade(P), PROBLEM.support, decision.action, t, users)
        agent.tell(decision, told.outcome[:, None], seen=told.seen[:, None])
        if t == ROUNDS // 2:
            agent = sa.Agent.from_state(agent.to_state())
    for mine, theirs in zip(agent.tally, run.tally, strict=True):
        assert np.array_equal(mine, theirs) or not theirs.any()
    assert not agent.learner.pending.any()


def test_an_arm_that_was_listed_but_never_seen_is_still_to_be_tried():
    agent = sa.Agent(PROBLEM, POLICIES["kl"])
    hidden = [[True], [False], [False]]
    tried = []
    for _ in range(L):
        decision = agent.ask()
        tried.append(int(decision.action[0]))
        agent.tell(decision, [[1], [0], [0]], seen=hidden)
    assert sorted(tried) == list(range(L))
    assert agent.tally.pulls.tolist() == [1.0] * L


def test_lists_go_by_the_index_and_ties_by_pulls():
    candidates = sa.actions.Candidates(np.array([2.0, 1.0, 0.0, 0.0, 5.0, 5.0]), np.ones(L, bool))
    q = np.array([0.5, 0.5, -1.0, -1.0, 2.0, np.inf])
    wide = sa.Problem(L, 1, sa.Coverage(), sa.Subsets(5))
    assert sa.TopArms().maximize(wide, q, candidates, None).tolist() == [5, 4, 1, 0, 2]


def test_what_does_not_only_rank_refuses_scores_above_one():
    with pytest.raises(sa.InvalidArgument, match="TopArms"):
        sa.cascade_ucb1(oracle=sa.Greedy()).fit(PROBLEM)
    with pytest.raises(sa.InvalidArgument, match="TopArms"):
        sa.ts_cascade(sa.Greedy()).fit(PROBLEM)
    several = sa.Problem(L, 2, sa.Coverage(), sa.Subsets(K))
    with pytest.raises(sa.InvalidArgument, match="one item"):
        sa.cascade_kl_ucb().fit(several)
    backwards = sa.cascade_ucb1(oracle=sa.Reversed()).fit(PROBLEM)
    assert backwards.guarantee(PROBLEM) == sa.Guarantee(1.0, 1.0)
