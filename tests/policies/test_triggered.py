"""Arms that a batch triggers: what is learnt of them, in the simulation and through the agent, to the same bits."""

import json

import numpy as np
import pytest
from scipy import sparse

import superarm as sa
from superarm.environments import IndependentCascade, respond
from superarm.simulation import advance, begin, seeds
from superarm.core.streams import run_streams

N, K, ROUNDS = 7, 2, 40
TABLE = np.where(np.random.default_rng(3).random((N, N)) < 0.3, np.random.default_rng(4).random((N, N)), 0.0)
P = sparse.csr_array(TABLE * (1.0 - np.eye(N)))
PROBLEM = sa.Problem(N, N, sa.Spread(), sa.Subsets(K), support=P)
WORLD = IndependentCascade(P, samples=2000)


def test_the_agent_learns_of_triggered_arms_as_the_simulation_does():
    seed, policy = seeds(2, 1)[0], sa.bcucb_t(0.1)
    ready = policy.fit(PROBLEM)
    run = begin(PROBLEM, WORLD, ready, seed)
    advance(PROBLEM, WORLD, ready, run, np.array([0, ROUNDS]), np.empty(1))

    users, agent, seen = run_streams(seed).environment, sa.Agent(PROBLEM, policy, seed=seed), np.zeros(N)
    for t in range(1, ROUNDS + 1):
        decision = agent.ask()
        told = respond(WORLD, PROBLEM.support, decision.action, t, users)
        assert set(decision.action) <= set(told.action)
        assert agent.tell(decision, told.outcome, arms=told.action)
        assert not agent.tell(decision, told.outcome, arms=told.action)  # told before
        seen[told.action] += 1.0
        if t % 10 == 0:
            agent = sa.Agent.from_state(json.loads(json.dumps(agent.to_state())))
    assert agent.tally.pulls.tolist() == run.tally.pulls.tolist() == seen.tolist()
    assert seen.sum() > K * ROUNDS  # more arms were observed than played
    for mine, theirs in zip(agent.tally, run.tally, strict=True):
        assert np.array_equal(mine, theirs)

    before = [values.copy() for values in agent.tally]
    decision = agent.ask()
    told = respond(WORLD, PROBLEM.support, decision.action, 99, users)
    agent.tell(decision, told.outcome, arms=told.action)
    with pytest.raises(sa.ConflictingFeedback):
        agent.tell(decision, told.outcome, arms=told.action[::-1])
    agent.untell(decision, told.outcome, arms=told.action)
    for now, then in zip(agent.tally, before, strict=True):
        assert np.array_equal(now, then)
    agent.cancel(decision)
    assert not agent.learner.pending.any()


def test_arms_by_name_and_none_but_the_observed():
    problem = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(1))
    agent = sa.Agent(problem, sa.uniform(), arms=["a", "b", "c"])
    decision = agent.ask()
    agent.tell(decision, [[1, 0], [0, 1]], arms=["c", "b"])
    assert agent.tally.pulls.tolist() == [0.0, 1.0, 1.0]
    assert np.array_equal(agent.estimates()[0], [[np.nan, np.nan], [0, 1], [1, 0]], equal_nan=True)
    assert not agent.learner.pending.any()
    decision = agent.ask()
    with pytest.raises(sa.InvalidArgument, match="unknown name"):
        agent.tell(decision, [[1, 0]], arms=["d"])
    with pytest.raises(sa.InvalidArgument, match="outcome"):
        agent.tell(decision, [[1, 0]], arms=["a", "b"])
    agent.tell(decision, np.zeros((0, 2)), arms=[])  # nothing was observed
    assert agent.pending == ()


def test_no_node_is_played_for_its_own_sake():
    rich = sparse.csr_array(np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    problem = sa.Problem(3, 3, sa.Spread(), sa.Subsets(1), support=rich)
    agent = sa.Agent(problem, sa.bcucb_t(oracle=sa.IMM(0.2)))
    for _ in range(3):
        decision = agent.ask()
        assert decision.action.tolist() == [0]
        agent.tell(decision, [1.0, 1.0], arms=[0, 1, 2])
