"""Stored data: components and agents written by earlier versions are read, and continued with the same estimates."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

from superarm.actions import PartitionMatroid, Subsets
from superarm.agent import Agent
from superarm.contextual import ContextForgetting, c2_ucb
from superarm.core.component import Component
from superarm.core.describe import _FIELDS, _GONE, _RENAMED, _class, _import_components, build, describe
from superarm.core.errors import InvalidArgument
from superarm.core.problem import Problem
from superarm.indices import BetaPosterior, Index
from superarm.policies import IndexPolicy, policy
from superarm.policies.directional import directional_kl_moss
from superarm.rewards import Coverage
from tests.recorded import stored
from tests.stored_runs import feedback, play

AGENTS, DESCRIPTIONS = stored("v0/agents.json.gz"), stored("v0/descriptions.json.gz")
LATER = stored("agents.json.gz")
IN_CONTEXTS = ("segments", "pooled", "window of segments", "linear", "of arms", "of entries", "discounted", "logistic")
IN_CONTEXTS = (*IN_CONTEXTS, "grouped")


def as_json(plain):
    return json.loads(json.dumps(plain, allow_nan=False))


# --- descriptions


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


def numbers(agent):
    """What an agent has counted, in the layout of its state."""
    return {name: build(value) for name, value in agent.to_state()["tally"].items() if name in ("pulls", "total")}


def assert_continues(plain, continued, told=()):
    """The agent of a state has its numbers, comes back from its own state, and decides as ``continued`` says.

    ``play(agent)`` of ``continued`` is (play, actions); actions are None where the policy draws random numbers.
    """
    ours = Agent.from_state(as_json(plain))
    for name, values in numbers(ours).items():
        np.testing.assert_array_equal(values, build(plain["tally"][name]))
    again = Agent.from_state(as_json(ours.to_state()))
    assert again.to_state() == ours.to_state()
    goes_on, expected = continued
    made = [goes_on(agent) for agent in (ours, again)]
    assert made[0] == made[1]
    if expected is not None:
        assert [sorted(action) for action in made[0]] == [sorted(action) for action in expected]
    for name, values in numbers(ours).items():
        np.testing.assert_array_equal(values, numbers(again)[name])


def tell_pending(agent, widths):
    for decision in agent.pending[::2]:
        agent.tell(decision.id, *feedback(agent, decision, widths))


@pytest.mark.parametrize("state", [{}, {"version": 99}, None, [], AGENTS["sparse, joint_kl_moss"]["state"]])
def test_unknown_states_are_refused(state):
    with pytest.raises(InvalidArgument, match=r"version|joint policies were removed"):
        Agent.from_state(state)


@pytest.mark.parametrize("name", [name for name in LATER if name not in ("change of policy", *IN_CONTEXTS)])
def test_an_agent_of_a_later_version_continues(name):
    case = LATER[name]

    def go_on(agent):
        tell_pending(agent, case["widths"])
        return play(agent, 8, case["widths"])

    assert_continues(case["state"], (go_on, case["next"]))


def test_a_change_of_policy_is_read():
    case, told = LATER["change of policy"], [[0.5, 0.2, 0.7], [0.1, 0.6, 0.4]]
    agent = Agent.from_state(case["state"])
    assert agent.learner.roundings == ["coin", "exact"]
    agent.untell(case["told"], told)
    assert numbers(agent)["total"].tolist() == case["total"]
    assert play(agent, 6) == case["after"]


def play_in_contexts(agent, rounds):
    made, rng = [], np.random.default_rng(7)
    for n in range(rounds):
        known = {"age": 17 * n % 90, "country": ["NO", "SE", "DK"][n % 3], "query": ["red", "blue"][n % 2]}
        context = {name: known[name] for name in agent.problem.context.features.names}
        decision = agent.ask(context=context)
        made.append(decision.action.tolist())
        if n % 4:
            agent.tell(decision, (rng.random((2, len(agent.items))) < 0.4).astype(float))
    return made


@pytest.mark.parametrize("name", IN_CONTEXTS)
def test_an_agent_with_contexts_of_a_later_version_continues(name):
    case = LATER[name]

    def go_on(agent):
        tell_pending(agent, case["widths"])
        return play_in_contexts(agent, 8)

    assert_continues(case["state"], (go_on, case["next"]))


def test_a_state_does_not_depend_on_the_layout_in_memory():
    agent = Agent(Problem(3, 2, Coverage(), Subsets(2)), IndexPolicy(BetaPosterior()), seed=0)
    agent.tell(agent.ask(), [[0.25, 0.5], [0.75, 1.0]])
    plain = agent.to_state()
    assert build(plain["tally"]["total"]).tolist() == [0.25, 0.5, 0.75, 1.0, 0.0, 0.0]
    assert plain["version"] == 2
