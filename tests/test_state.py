"""Stored data: components and agents come back from JSON, and agents that earlier versions stored go on.

``python -m tests.test_state 1.0.0`` writes ``fixtures/agents-1.0.0.json.gz``, once, when that version is made.
"""

import gzip
import json
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

import superarm as sa
from superarm import contextual, policies
from superarm.core.component import Component
from superarm.core.errors import InvalidArgument
from superarm.describe import _class, _import_components, build, describe
from tests.recorded import FIXTURES, stored
from tests.test_memory import CONTEXTS, USERS


def as_json(plain):
    return json.loads(json.dumps(plain, allow_nan=False))


# --- descriptions


class Mine(sa.Index):
    rho: float = 1.0


@pytest.mark.parametrize(
    "component",
    [
        Mine(2.0),
        sa.actions.PartitionMatroid(list("aab"), {"a": 1, "b": 1}),
        policies.Forgetting(contextual.c2_ucb(), 3, [1.0, 0.5]),
        policies.directional_kl_moss(),
        sa.Problem(2, 3, sa.Coverage(), sa.Subsets(1), [1, 2, 3], csr_array([[1, 0, 1], [0, 1, 0]])),
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
    with pytest.raises(InvalidArgument, match="cannot be stored"):
        describe(sa.policy(lambda problem, view, memory: None))
    with pytest.raises(InvalidArgument, match="import mine first"):
        _class("mine:Other")
    for wrong in ({"type": "Nothing"}, {"type": "Subsets", "n": 3}, {"k": 3}):
        with pytest.raises(InvalidArgument, match="description"):
            build(wrong)


# --- agents


def agents():
    """One agent of each kind of memory, by name."""
    bill = sa.Problem(5, 1, sa.Coverage(), sa.Subsets(2))
    plain, window = sa.Problem(5, 2, sa.Coverage(), sa.Subsets(2)), policies.sliding_window(sa.kl_ucb(), 12, 4)
    sparse = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(2), support=csr_array([[1, 1], [1, 0], [0, 1]]))
    kinds = {
        "sums": (plain, sa.kl_ucb()),
        "sparse": (sparse, sa.bc_ucb()),
        "coins": (plain, policies.gaussian_cts()),
        "moments": (plain, policies.directional_kl_ucb(spread=policies.Covariance())),
        "pooled": (plain, policies.pooled_thompson(baseline=[3, 1, 2])),
        "window": (plain, window),
        "segments": (plain.changed(context=CONTEXTS["segments"]), window),
        "pooled segments": (plain.changed(context=CONTEXTS["segments"]), policies.pooled_thompson()),
        "ladder": (bill, policies.ladder([0.1, 0.2, 0.4, 0.1, 0.3], spend=0.2)),
        "sets": (bill, policies.spend_set([0.1, 0.2, 0.4, 0.1, 0.3], spend=0.3)),
        "scores": (sa.Problem(5, items=sa.Thresholds(0, 1), actions=sa.Subsets(2)), policies.shapes()),
        "totals": (sa.Problem(5, reward=sa.Total(), actions=sa.Subsets(2)), policies.total_thompson()),
        "linear": (plain.changed(context=CONTEXTS["linear, standardised"]), contextual.vac2_ucb()),
        "logistic": (plain.changed(context=CONTEXTS["logistic"]), contextual.logistic_ts()),
    }
    return {name: sa.Agent(problem, policy, seed=7) for name, (problem, policy) in kinds.items()}


def play(agent, rounds, first=0):
    """Ask and tell, with outcomes that are functions of the round; every fourth decision stays pending."""
    played, support = [], agent.problem.support
    names = [] if agent.problem.context is None else agent.problem.context.features.names
    for n in range(first, first + rounds):
        decision = agent.ask(context={name: USERS[n % 21][name] for name in names} or None)
        widths = getattr(support, "widths", None)
        size = len(decision.action) * agent.problem.n_items if widths is None else int(widths[decision.action].sum())
        played.append(decision.action.tolist())
        told = [(7 * n + 3 * i) % 5 / 4.0 for i in range(size)]
        if n % 4 and agent.problem.reward.totals:
            agent.tell(decision, total=told[0])
        elif n % 4 and agent.problem.thresholds is not None:
            agent.tell(decision, scores=told[:2])
        elif n % 4:
            agent.tell(decision, np.array(told))
    return played


def make_stored():
    """The state of each agent, and what it does next."""
    made = {}
    for name, agent in agents().items():
        play(agent, 30)
        made[name] = {"state": agent.to_state(), "next": play(agent, 12, 30)}
    return made


FILES = {path.name.removesuffix(".json.gz"): stored(path.name) for path in sorted(FIXTURES.glob("agents*.json.gz"))}
STORED = {f"{version}: {name}": case for version, cases in FILES.items() for name, case in cases.items()}


@pytest.mark.parametrize("name", STORED)
def test_a_stored_agent_goes_on(name):
    case = STORED[name]
    agent = sa.Agent.from_state(case["state"])
    policy = as_json(describe(build(case["state"]["policy"])))  # one of an earlier superarm has other parameters
    assert as_json(agent.to_state()) == case["state"] | {"policy": policy}
    differing = ("logistic", "coins", "pooled", "linear", "sets", "scores", "totals")
    if any(word in name for word in differing):  # other machines may differ
        assert len(play(agent, 12, 30)) == 12
    else:
        assert play(agent, 12, 30) == case["next"]


def test_there_is_an_agent_of_each_kind():
    assert set(FILES["agents-1.0.0rc2"]) == set(agents())


def test_a_saved_agent_goes_on_as_the_live_one():
    for name, agent in agents().items():
        play(agent, 25)
        other = sa.Agent.from_state(as_json(agent.to_state()))
        assert play(agent, 10, 25) == play(other, 10, 25), name
        assert as_json(agent.to_state()) == as_json(other.to_state()), name


@pytest.mark.parametrize("state", [{}, {"version": 99}, {"version": 2}, None, []])
def test_unknown_states_are_refused(state):
    with pytest.raises(InvalidArgument, match="version"):
        sa.Agent.from_state(state)


@pytest.mark.parametrize("key", ["mind", "problem", "memory", "book"])
def test_a_state_without_a_key_is_refused_by_its_name(key):
    state = sa.Agent(sa.Problem(2, 1, sa.Coverage(), sa.Subsets(1)), seed=0).to_state()
    del state[key]
    with pytest.raises(sa.InvalidArgument, match=f"state: the key '{key}' is missing"):
        sa.Agent.from_state(state)


if __name__ == "__main__":
    text = json.dumps(make_stored(), allow_nan=False, sort_keys=True)
    (FIXTURES / f"agents-{sys.argv[1]}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
