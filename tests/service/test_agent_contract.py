"""One contract for the agent in this process and the remote agent: the same script, the same answers."""

import numpy as np
import pandas
import pytest

import superarm as sa

from .running import Server

ARMS, ITEMS = ["a", "b", "c", "d"], ["x", "y"]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Server(str(tmp_path_factory.mktemp("contract") / "log.db")) as server:
        client = sa.connect(server.url)
        yield client
        client.close()


def make(kind: str, service, name: str, policy: str = "kl_ucb"):
    if kind == "agent":
        problem = sa.Problem(len(ARMS), len(ITEMS), sa.Coverage(), sa.Subsets(2))
        return sa.Agent(problem, getattr(sa.policies, policy)(), arms=ARMS, items=ITEMS)
    return service.create(name, ARMS, ITEMS, 2, settings={"policy": {"name": policy}, "window_s": None})


@pytest.fixture(params=["agent", "remote"])
def agent(request, service):
    return make(request.param, service, request.node.name)


def rows(t: int) -> list[list[float]]:
    return [[t % 3 / 2, t % 2], [0.25, (t + 1) % 2]]


def test_asking_and_telling(agent):
    decision = agent.ask(id="first")
    assert isinstance(decision, sa.Decision)
    assert decision.arms == tuple(agent.arms[j] for j in decision.action)
    assert agent.ask(id="first").arms == decision.arms
    assert (agent.t, agent.arms, agent.items) == (1, tuple(ARMS), tuple(ITEMS))
    assert np.isnan(agent.estimates()[0]).all()
    assert agent.tell(decision, rows(1)) is True
    assert agent.tell("first", rows(1)) is False
    with pytest.raises(sa.core.errors.ConflictingFeedback):
        agent.tell(decision, rows(2))
    for call in (agent.tell, agent.untell):
        with pytest.raises(sa.core.errors.UnknownDecision):
            call("nobody", rows(1))
    with pytest.raises(sa.InvalidArgument):
        agent.tell(agent.ask(), [[2.0, 0.0], [0.0, 0.0]])


def test_frames_are_told_by_name(agent):
    decision = agent.ask()
    table = pandas.DataFrame([[0.1, 0.2], [0.3, 0.4]], decision.arms, ITEMS)
    agent.tell(decision, table.iloc[::-1, ::-1])
    assert np.allclose(agent.estimates()[0].reshape(4, 2)[decision.action], table, atol=1e-6)
    with pytest.raises(sa.InvalidArgument, match="columns named 'z', 'y'"):
        agent.tell(agent.ask(), table.rename(columns={"x": "z"}).reset_index(drop=True))


def test_what_is_not_seen_changes_nothing_and_can_be_taken_back(agent):
    first = agent.ask()
    agent.tell(first, rows(1), [[True, False], [True, True]])
    mean = agent.estimates()[0].reshape(4, 2)
    assert mean[first.action[0], 0] == 0.5
    assert np.isnan(mean[first.action[0], 1])
    before = agent.estimates()
    second = agent.ask()
    agent.tell(second, rows(2))
    agent.untell(second, rows(2))
    np.testing.assert_array_equal(agent.estimates(), before)


def test_restrictions_growth_and_retirement(agent):
    assert set(agent.ask(eligible=["b", "d"]).arms) == {"b", "d"}
    assert agent.ask(pinned=["c"]).arms[0] == "c"
    agent.add_arms(["e"])
    agent.retire_arms(["a"])
    agent.add_items(["z"], [3.0])
    agent.retire_items(["y"])
    assert (agent.arms, agent.items) == ((*ARMS, "e"), (*ITEMS, "z"))
    for _ in range(6):
        decision = agent.ask()
        assert "a" not in decision.arms
        agent.tell(decision, [[1, 0, 0.5], [0, 1, 0.25]])
    with pytest.raises(sa.SuperarmError):
        agent.ask(eligible=["nobody"])


def test_cancelled_decisions_and_other_policies(agent):
    decision = agent.ask()
    agent.cancel(decision)
    assert np.isnan(agent.estimates()[0]).all()
    agent.change_policy("bc_ucb", rho=1.0)
    told = agent.ask()
    agent.tell(told, rows(1))
    explained = agent.explain(told, most=2)
    assert [one.name for one in explained.arms] == list(told.arms)
    with pytest.raises(sa.SuperarmError):
        agent.change_policy("nonsense")
    with pytest.raises(sa.SuperarmError):
        agent.change_policy("bc_ucb", nu=1.0)


@pytest.mark.parametrize("policy", ["kl_ucb", "kl_moss", "directional_kl_ucb", "cucb"])
def test_the_same_script_gives_the_same_batches_and_estimates(service, policy):
    both = [make(kind, service, f"same-{policy}", policy) for kind in ("agent", "remote")]
    for t in range(12):
        one, two = (agent.ask(id=f"{policy}-{t}", pinned=["b"] if t == 5 else None) for agent in both)
        assert one.arms == two.arms
        for agent in both:
            agent.tell(f"{policy}-{t}", rows(t), [[True, t % 4 > 0], [True, True]])
        if t == 7:
            for agent in both:
                agent.add_arms(["new"])
    for here, there in zip(*(agent.estimates() for agent in both), strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-12)
