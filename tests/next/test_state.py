"""Stored data: components and agents written by earlier versions are read, and continued with the same estimates."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import superarm as old
from superarm.core.errors import InvalidArgument
from superarm.actions import PartitionMatroid, Subsets
from superarm.agent import Agent
from superarm.contextual import ContextForgetting, c2_ucb
from superarm.core.component import Component
from superarm.core.describe import _FIELDS, _GONE, _RENAMED, _class, _import_components, build, describe
from superarm.core.problem import Problem
from superarm.indices import BetaPosterior, Index
from superarm.policies import IndexPolicy, policy
from superarm.policies.directional import directional_kl_moss
from superarm.rewards import Coverage
from tests.stored_runs import feedback, play

STORED = Path(__file__).parent.parent / "fixtures" / "v0"


def stored(name):
    return json.loads(gzip.decompress((STORED / name).read_bytes()))


AGENTS, DESCRIPTIONS = stored("agents.json.gz"), stored("descriptions.json.gz")
SAMPLED = ("BetaPosterior", "AnglePosterior", "EpsilonGreedy", "Uniform", "OneGaussian", "Spread", "StochasticGreedy")
REFUSED = ("JointPolicy", "Failing")


def as_json(plain):
    return json.loads(json.dumps(plain, allow_nan=False))


# --- descriptions


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_a_component_of_version_0_1_0_is_read_and_described(name):
    short = name.rpartition(":")[2]
    if short in (*REFUSED, "IndependentCascade"):
        with pytest.raises(InvalidArgument):
            build(DESCRIPTIONS[name])
        return
    made = build(DESCRIPTIONS[name])
    again = build(as_json(describe(made)))
    assert again == made
    if isinstance(made, Component):
        assert ":" not in describe(made)["type"]
        assert type(made).__name__ == _RENAMED.get(short, short)


class Mine(Index):
    rho: float = 1.0


@pytest.mark.parametrize(
    "component",
    [
        Mine(2.0),
        PartitionMatroid(list("aab"), {"a": 1, "b": 1}),
        ContextForgetting(c2_ucb(), 3, [1.0, 0.5]),
        directional_kl_moss(),
        Problem(2, 3, Coverage(), Subsets(1), [1, 2, 3], csr_array([[1, 0, 1], [0, 1, 0]])),
    ],
    ids=repr,
)
def test_components_come_back(component):
    assert build(as_json(describe(component))) == component
    assert describe(Mine())["type"].endswith("test_state:Mine")


def test_names_are_unambiguous_and_unknown_ones_are_refused():
    _import_components()
    own = [cls.__qualname__ for name, cls in Component.classes.items() if name.startswith("superarm.")]
    public = sorted(name for name in own if not name.startswith("_"))
    assert len(set(public)) == len(public)
    assert {*_FIELDS, *_RENAMED.values()} <= set(own)
    assert not {*_GONE, *_RENAMED} & set(own)
    with pytest.raises(InvalidArgument, match="cannot be stored"):
        describe(policy(lambda problem, view, memory: None))
    with pytest.raises(InvalidArgument, match="import mine first"):
        _class("mine:Other")
    for wrong in ({"type": "Nothing"}, {"type": "Subsets", "n": 3}, {"k": 3}):
        with pytest.raises(InvalidArgument, match="description"):
            build(wrong)
    with pytest.raises(InvalidArgument, match="joint policies were removed; take directional_kl_moss"):
        build(DESCRIPTIONS["superarm.policies.joint_policy:JointPolicy"])


# --- agents


def compare(plain, rounds, widths=None, eligible=False, context=None):
    """The new agent of a state has the estimates of the old one, and decides like it unless it draws numbers."""
    text, ours = json.dumps(plain), Agent.from_state(as_json(plain))
    theirs = old.Agent.from_state(plain)
    same_estimates(ours, theirs)
    assert (ours.t, ours.arms, ours.items) == (theirs.t, theirs.arms, theirs.items)
    assert [d.id for d in ours.pending] == [d.id for d in theirs.pending]
    assert ours.learner.pending.reshape(-1).tolist() == theirs.learner.pending.tolist()
    again = Agent.from_state(as_json(ours.to_state()))
    assert again.to_state() == ours.to_state()
    sampled = any(name in text for name in SAMPLED)
    agents = (ours, again) if sampled else (ours, again, theirs)
    for decision in ours.pending[::2]:
        for agent in agents:
            agent.tell(decision.id, *feedback(agent, decision, widths))
    if context is None:
        made = [play(agent, rounds, widths, eligible=eligible) for agent in agents]
    else:
        made = [play_in_contexts(agent, rounds, context) for agent in agents]
    assert [sorted(action) for action in made[0]] == [sorted(action) for action in made[1]]
    if not sampled:
        assert [sorted(action) for action in made[0]] == [sorted(action) for action in made[2]]
        same_estimates(ours, theirs)


def same_estimates(ours, theirs):
    flat = build(ours.to_state()["tally"]["total"])
    assert np.array_equal(flat, theirs.tally.total)
    if len(ours.tally) > 1:
        return  # the old engine has no estimates of segments
    for mine, other in zip(ours.estimates(), theirs.estimates(), strict=True):
        assert np.array_equal(mine.reshape(-1), other.reshape(-1), equal_nan=True)


@pytest.mark.parametrize("name", [name for name in AGENTS if not any(one in str(AGENTS[name]) for one in REFUSED)])
def test_an_agent_of_version_0_1_0_continues(name):
    case = AGENTS[name]
    compare(case["state"], 6, case["widths"], case["eligible"])


@pytest.mark.parametrize("state", [{}, {"version": 99}, None, [], AGENTS["sparse, joint_kl_moss"]["state"]])
def test_unknown_states_are_refused(state):
    with pytest.raises(InvalidArgument, match=r"version|joint policies were removed"):
        Agent.from_state(state)


SUPPORT = csr_array([[1, 0, 1], [0, 1, 0], [0, 1, 1], [1, 1, 1], [1, 0, 0]])
FAMILIES = {
    "directional": old.directional_kl_moss(),
    "directional kl_ucb": old.directional_kl_ucb(),
    "window of directional": old.sliding_window(old.directional_kl_moss(), 12, blocks=4),
    "window": old.sliding_window(old.kl_ucb(), 12, blocks=4),
    "shared draws": old.shared_cts(),
    "gaussian": old.gaussian_cts(),
    "escb_delta": old.escb_delta(),
    "least played": old.least_played(0.1),
    "bcucb_t": old.bcucb_t(0.5),
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_an_agent_of_the_compiled_engine_continues(name, sparse):
    weights = [1.0, 0.7, 1.3]
    problem = old.Problem(5, 3, old.Coverage(), old.Subsets(2), weights, SUPPORT if sparse else None)
    widths = [2, 1, 2, 3, 1] if sparse else None
    agent = old.Agent(problem, FAMILIES[name], seed=3)
    play(agent, 12, widths)
    if not sparse:
        agent.add_arms(["new"])
        play(agent, 3)
    sampled = name in ("shared draws", "gaussian")
    if sampled:
        same_estimates(Agent.from_state(as_json(agent.to_state())), agent)
    else:
        compare(agent.to_state(), 8, widths)


def test_covariances_and_products_are_read():
    problem = old.Problem(5, 3, old.Linear(), old.Subsets(2), [1.0, 0.7, 1.3])
    agent = old.Agent(problem, old.ols_ucb_c(), seed=3)
    play(agent, 12)
    compare(agent.to_state(), 8)


def test_a_change_of_policy_is_read():
    problem = old.Problem(5, 3, old.Coverage(), old.Subsets(2), [1.0, 0.7, 1.3])
    agent = old.Agent(problem, old.cts(), seed=3)
    told = agent.ask()
    agent.tell(told, [[0.5, 0.2, 0.7], [0.1, 0.6, 0.4]])
    play(agent, 5)
    agent.change_policy(old.sliding_window(old.directional_kl_moss(), 12, blocks=4))
    play(agent, 9)
    ours = Agent.from_state(as_json(agent.to_state()))
    assert ours.learner.roundings == ["coin", "exact"]
    for one in (ours, agent):
        one.untell(told.id, [[0.5, 0.2, 0.7], [0.1, 0.6, 0.4]])
    same_estimates(ours, agent)
    assert play(ours, 6) == play(agent, 6)


FEATURES = {"numeric": {"age": (0, 100)}, "categorical": {"country": ["NO", "SE", "other"]}}
STANDARDISED = {"numeric": ["age"], "categorical": {"country": ["NO", "SE", "other"]}, "hashed": {"query": 3}}
ARMS = np.round(np.random.default_rng(3).uniform(-1, 1, (5, 2)) * 1024) / 1024
MODELS = {
    "segments": (old.models.Segments(["country"]), FEATURES, old.kl_ucb()),
    "pooled": (old.models.Segments(["country"], pooling=3.0), FEATURES, old.kl_ucb()),
    "window of segments": (old.models.Segments(["country"]), FEATURES, old.sliding_window(old.kl_ucb(), 8, blocks=2)),
    "linear": (old.models.Linear(shared=True), STANDARDISED, old.vac2_ucb()),
    "of arms": (old.models.Linear(shared="arms"), FEATURES, old.c2_ucb(0.1)),
    "of entries": (old.models.Linear(), STANDARDISED, old.c2_ucb(0.1)),
    "discounted": (old.models.Linear(shared=True), FEATURES, old.discounted(old.c2_ucb(0.1), 8)),
    "logistic": (old.models.Logistic(shared=True), STANDARDISED, old.logistic_kl_ucb()),
    "grouped": (old.models.Logistic(), {"categorical": {"country": ["NO", "SE", "other"]}}, old.logistic_kl_ucb()),
}


def play_in_contexts(agent, rounds, context):
    made, rng = [], np.random.default_rng(7)
    for n in range(rounds):
        decision = agent.ask(context=context(n))
        made.append(decision.action.tolist())
        if n % 4:
            agent.tell(decision, (rng.random((2, len(agent.items))) < 0.4).astype(float))
    return made


@pytest.mark.parametrize("name", MODELS)
def test_an_agent_with_contexts_of_the_compiled_engine_continues(name):
    model, features, policy = MODELS[name]
    arms = ARMS if getattr(model, "shared", "") in (True, "all") else None
    context = old.Context(old.Features(**features), arms, model)
    problem = old.Problem(5, 2, old.Coverage(), old.Subsets(2), [1.0, 0.7], context=context)

    def user(n):
        known = {"age": 17 * n % 90, "country": ["NO", "SE", "DK"][n % 3], "query": ["red", "blue"][n % 2]}
        return {feature: value for feature, value in known.items() if feature in context.features.names}

    agent = old.Agent(problem, policy, seed=3)
    play_in_contexts(agent, 22, user)
    compare(agent.to_state(), 8, context=user)


def test_a_state_does_not_depend_on_the_layout_in_memory():
    agent = Agent(Problem(3, 2, Coverage(), Subsets(2)), IndexPolicy(BetaPosterior()), seed=0)
    agent.tell(agent.ask(), [[0.25, 0.5], [0.75, 1.0]])
    plain = agent.to_state()
    assert build(plain["tally"]["total"]).tolist() == [0.25, 0.5, 0.75, 1.0, 0.0, 0.0]
    assert plain["version"] == 2
