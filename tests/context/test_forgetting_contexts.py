"""Windows and discounts around policies for contexts, against an agent that is given only what is remembered."""

import json

import numpy as np
import pytest

import superarm as sa
from superarm.policies.contextual import ContextForgetting

USERS = [{"country": c, "age": a} for c in ("NO", "SE") for a in (10, 60)]
Z = [[1.0, 0.0], [0.0, 1.0], [0.5, -0.5], [-1.0, 0.25]]
MODELS = {
    "segments": (sa.models.Segments(), sa.kl_ucb()),
    "pooled": (sa.models.Segments(pooling=2.0), sa.cts()),
    "per arm": (sa.models.Linear(shared="arms"), sa.vac2_ucb(0.1)),
    "shared": (sa.models.Linear(shared=True), sa.comb_lin_ts()),
    "logistic": (sa.models.Logistic(shared=True), sa.logistic_kl_ucb()),
}


def make_problem(model):
    features = sa.Features(numeric={"age": (0, 100)}, categorical={"country": ["NO", "SE"]})
    context = sa.Context(features, arms=Z, model=model)
    return sa.Problem(4, 2, sa.Coverage(), sa.Subsets(2), context=context)


def play(agent, rng, rounds):
    made = []
    for _ in range(rounds):
        given = USERS[rng.integers(4)]
        decision = agent.ask(context=given)
        outcome = (rng.random((2, 2)) < 0.5).astype(float)
        made.append((decision, outcome))
        agent.tell(decision, outcome)
    return made


@pytest.mark.parametrize("name", MODELS)
def test_a_window_remembers_the_sums_of_its_last_blocks(name):
    model, policy = MODELS[name]
    problem = make_problem(model)
    agent = sa.Agent(problem, sa.sliding_window(policy, 6, 3), seed=1)  # three blocks of two rounds
    plain = sa.Agent(problem, policy, seed=1)
    made = play(agent, np.random.default_rng(0), 13)
    recent = agent.learner.memory.blocks.now
    blocks = {(decision.t - 1) // 2 for decision, _ in made}
    kept = sorted(blocks)[-3:]
    for decision, outcome in made:  # the same feedback, of remembered rounds alone, given to learners without a window
        entry = agent._decisions.known(decision.id)
        if (decision.t - 1) // 2 in kept:
            plain._decisions.pending[decision.id] = entry
            plain.learner.contexts.pend(plain.learner, decision.action, decision.t, entry.context)
            plain._rounding = agent._rounding
            plain.tell(decision.id, outcome)
    np.testing.assert_array_equal(recent.pulls, plain.tally.pulls)
    np.testing.assert_array_equal(recent.total, plain.tally.total)
    if hasattr(plain.tally, "precision"):
        np.testing.assert_array_equal(recent.moments, plain.tally.precision.reshape(-1))
        np.testing.assert_array_equal(recent.products, plain.tally.response.reshape(-1))
    assert plain.tally.pulls.sum() == 2 * sum((decision.t - 1) // 2 in kept for decision, _ in made)


@pytest.mark.parametrize("name", MODELS)
def test_order_undo_and_a_saved_agent_agree(name):
    model, policy = MODELS[name]
    agents = [sa.Agent(make_problem(model), sa.discounted(policy, 4), seed=1) for _ in range(2)]
    rng = np.random.default_rng(3)
    for n in range(12):
        given, outcomes = USERS[rng.integers(4)], (rng.random((2, 2, 2)) < 0.5).astype(float)
        made = [[agent.ask(context=given), agent.ask(context=USERS[n % 4])] for agent in agents]
        assert [d.arms for d in made[0]] == [d.arms for d in made[1]]
        for which in (0, 1):
            agents[0].tell(made[0][which], outcomes[which])
        agents[1].tell(made[1][1], outcomes[1])
        agents[1].tell(made[1][0], 1.0 - outcomes[0])
        agents[1].untell(made[1][0], 1.0 - outcomes[0])
        agents[1].tell(made[1][0], outcomes[0])
        agents[1] = sa.Agent.from_state(json.loads(json.dumps(agents[1].to_state())))
    for one, other in zip(agents[0].learner.memory.blocks.now, agents[1].learner.memory.blocks.now, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", MODELS)
def test_a_window_that_forgets_nothing_explains_as_the_policy_does(name):
    model, policy = MODELS[name]
    model = sa.models.Logistic(shared=True, kept=0) if name == "logistic" else model  # a window has no refits
    agents = [sa.Agent(make_problem(model), wrapped, seed=1) for wrapped in (policy, sa.sliding_window(policy, 100, 5))]
    decisions = []
    for agent in agents:
        play(agent, np.random.default_rng(0), 9)
        decisions.append(agent.ask(context=USERS[0]))
    one, other = (agent.explain(decision) for agent, decision in zip(agents, decisions, strict=True))
    assert str(one) == str(other)


def test_what_a_window_has_forgotten_explains_nothing():
    model, policy = MODELS["shared"]
    agent = sa.Agent(make_problem(model), sa.sliding_window(policy, 4, 2), seed=1)
    play(agent, np.random.default_rng(0), 5)
    for _ in range(6):  # without feedback the window becomes empty
        decision = agent.ask(context=USERS[0])
    assert all(not arm.estimate.any() and not arm.features for arm in agent.explain(decision).arms)


def test_a_window_goes_around_the_policy_that_suits_the_model():
    for model, policy in MODELS.values():
        fitted = sa.Agent(make_problem(model), sa.sliding_window(policy, 8, 4)).learner.fitted
        assert isinstance(fitted, ContextForgetting)


def test_standardised_features_need_ranges():
    context = sa.Context(sa.Features(numeric=["age"]), arms=Z, model=sa.models.Linear(shared=True))
    problem = sa.Problem(4, 2, sa.Coverage(), sa.Subsets(2), context=context)
    with pytest.raises(sa.InvalidArgument, match="standardised"):
        sa.Agent(problem, sa.sliding_window(sa.c2_ucb(), 10))
