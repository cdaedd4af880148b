"""Copies of an arm share what is learnt: in agents, simulations and past data, exactly."""

import json

import numpy as np
import pytest

import superarm as sa
from superarm.core import streams
from superarm.simulation.engine import Run

COPIES = sa.Copies({"small": 3, "large": 1, "odd": 2}, budget=4)
GROUPS = np.array([0, 0, 0, 1, 2, 2])
PROBLEM = sa.Problem(n_arms=6, items=sa.Thresholds(0, 1, bins=4), actions=COPIES)


def sums_by_group(tally):
    """Pulls and totals of each group; every copy has the same."""
    columns = np.concatenate([tally.pulls[:, None], tally.total], axis=1)[0].T
    for group in range(3):
        assert (columns[group == GROUPS] == columns[group == GROUPS][0]).all()
    return columns[[0, 3, 4]]


@pytest.mark.parametrize(
    "policy", [None, sa.cucb(), sa.pooled_thompson(), sa.cts(), sa.policies.sliding_window(sa.cucb(), 9)]
)
def test_what_one_copy_is_told_counts_for_all_and_is_taken_back(policy):
    rng, agent, told = np.random.default_rng(1), sa.Agent(PROBLEM, policy, seed=2, arms=COPIES.names), {}
    for _ in range(12):
        decision = agent.ask()
        told[decision.id] = decision, (rng.random((len(decision.action), 4)) < 0.5).astype(float)
        agent.tell(*told[decision.id])
    if policy is None or policy == sa.cucb():
        expected = np.zeros((3, 5))
        for decision, outcome in told.values():
            for j, row in zip(decision.action, outcome, strict=True):
                expected[GROUPS[j]] += [1.0, *row]
        np.testing.assert_array_equal(sums_by_group(agent.tally), expected)
    state = json.loads(json.dumps(agent.to_state()))
    again = sa.Agent.from_state(state)
    assert (again.t, again.ask().arms) == (12, agent.ask().arms)
    for decision, outcome in told.values():
        agent.untell(decision, outcome)
    assert not agent.tally.pulls.any()
    assert not agent.tally.total.any()


def test_simulations_and_past_data_share_too():
    environment = sa.environments.Bernoulli(np.repeat([[0.3], [0.5], [0.7]], [3, 1, 2], axis=0) * np.ones((6, 4)))
    run = Run(PROBLEM, environment, sa.kl_ucb(), streams.run_keys(np.random.SeedSequence(0).spawn(1)))
    for _ in range(30):
        run.play_round()
    assert sums_by_group(run.tally)[:, 0].sum() == 30 * 4
    past = PROBLEM.past([0, 5], [[1, 0, 0, 0], [1, 1, 0, 0]])
    assert past.pulls.tolist() == [[1, 1, 1, 0, 1, 1]]


def test_pending_calls_of_one_copy_count_for_all():
    agent = sa.Agent(PROBLEM, sa.cucb(), seed=0, arms=COPIES.names)
    agent.ask(pinned=["small#1", "small#2"], eligible=["small#1", "small#2"])
    view = agent.learner.view(2, np.zeros(1, np.uint64))
    assert view.counts.tolist() == [[2, 2, 2, 0, 0, 0]]


def test_the_best_of_three_samples_of_a_bold_model_is_found():
    """A sample of bold is worth .3 on average and three are worth .66; one of safe costs as much and is worth .5."""
    copies = sa.Copies({"bold": 3, "safe": 1}, budget=3, prices={"bold": 1, "safe": 3})
    agent = sa.Agent(sa.Problem(n_arms=4, items=sa.Thresholds(0, 1), actions=copies), seed=0, arms=copies.names)
    rng, chosen = np.random.default_rng(0), []
    for _ in range(150):
        decision = agent.ask()
        scores = np.where(np.array(decision.arms) == "safe", 0.5, rng.random(len(decision.arms)) < 0.3)
        agent.tell(decision, agent.problem.thresholds.encode(scores))
        chosen.append(len(decision.arms))
    assert np.mean(chosen[50:]) > 2.5


def test_what_does_not_go_with_copies_is_refused():
    context = sa.Context(sa.Features(categorical={"country": ["NO", "other"]}))
    with pytest.raises(sa.InvalidArgument, match="copies share what is learnt"):
        sa.Problem(n_arms=6, items=sa.Thresholds(0, 1), actions=COPIES, context=context)
    agent = sa.Agent(PROBLEM, arms=COPIES.names)
    with pytest.raises(sa.InvalidArgument, match="make a new agent for other copies"):
        agent.add_arms(["huge"], sa.Subsets(2))
    with pytest.raises(sa.InvalidArgument, match="they are thresholds of scores"):
        agent.add_items(["more"])
    with pytest.raises(sa.InvalidArgument, match="they are thresholds of scores"):
        agent.retire_items(["0"])
