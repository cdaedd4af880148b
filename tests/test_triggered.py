"""Arms that a batch triggers: what is learnt of them, in a simulation and through an agent, to the same bits."""

import functools
import json

import numpy as np
import pytest
from scipy import sparse

import superarm as sa
from superarm.core.errors import ConflictingFeedback
from superarm.core.streams import run_keys
from superarm.diffusion import IMM, IndependentCascade, Spread
from superarm.simulation.engine import Run

N, K, ROUNDS = 7, 2, 40
TABLE = np.where(np.random.default_rng(3).random((N, N)) < 0.3, np.random.default_rng(4).random((N, N)), 0.0)
P = sparse.csr_array(TABLE * (1.0 - np.eye(N)))
PROBLEM = sa.Problem(N, N, Spread(), sa.Subsets(K), support=P)
SUMS = ("pulls", "total", "square")


@functools.cache
def world():
    return IndependentCascade(P, samples=2000)


def told_by(action, t, keys):
    """The observed arms of a batch, and their outcomes laid flat."""
    answer = world().draw(PROBLEM, action[None], t, keys.environment)
    arms = answer.observed[0][answer.observed[0] >= 0]
    rows = [answer.outcome[0, n, : PROBLEM.support.widths[j]] for n, j in enumerate(arms)]
    return arms, np.concatenate(rows)


def test_an_agent_learns_of_triggered_arms_as_a_simulation_does():
    seed, policy = np.random.SeedSequence(2), sa.policies.bcucb_t(0.1)
    keys = run_keys([seed])
    run = Run(PROBLEM, world(), policy, keys)
    run.advance(ROUNDS)
    agent, seen = sa.Agent(PROBLEM, policy, seed=seed), np.zeros(N)
    for t in range(1, ROUNDS + 1):
        decision = agent.ask()
        arms, outcome = told_by(decision.action, t, keys)
        assert set(decision.action) <= set(arms)
        assert agent.tell(decision, outcome, arms=arms)
        assert not agent.tell(decision, outcome, arms=arms)  # told before
        seen[arms] += 1.0
        if t % 10 == 0:
            agent = sa.Agent.from_state(json.loads(json.dumps(agent.to_state())))
    assert agent.tally.pulls[0].tolist() == run.tally.pulls[0].tolist() == seen.tolist()
    assert seen.sum() > K * ROUNDS  # more arms were observed than played
    for name in SUMS:
        np.testing.assert_array_equal(getattr(agent.tally, name), getattr(run.tally, name))

    before = [getattr(agent.tally, name).copy() for name in SUMS]
    decision = agent.ask()
    arms, outcome = told_by(decision.action, 99, keys)
    agent.tell(decision, outcome, arms=arms)
    with pytest.raises(ConflictingFeedback):
        agent.tell(decision, outcome, arms=arms[::-1])
    agent.untell(decision, outcome, arms=arms)
    for name, then in zip(SUMS, before, strict=True):
        np.testing.assert_array_equal(getattr(agent.tally, name), then)
    agent.cancel(decision)
    assert not agent.learner.pending.any()


def test_arms_by_name_and_none_but_the_observed():
    agent = sa.Agent(sa.Problem(3, 2, sa.Coverage(), sa.Subsets(1)), sa.uniform(), arms=["a", "b", "c"])
    agent.tell(agent.ask(), [[1, 0], [0, 1]], arms=["c", "b"])
    assert agent.tally.pulls[0].tolist() == [0.0, 1.0, 1.0]
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
    problem = sa.Problem(3, 3, Spread(), sa.Subsets(1), support=rich)
    agent = sa.Agent(problem, sa.policies.bcucb_t(oracle=IMM(0.2)))
    for _ in range(3):
        decision = agent.ask()
        assert decision.action.tolist() == [0]
        agent.tell(decision, [1.0, 1.0], arms=[0, 1, 2])
