import asyncio

import numpy as np
import pytest

import superarm as sa
from superarm.service.transport import ServiceError

from .running import Server


@pytest.fixture
def agent(served):
    service = sa.connect(served.url)
    yield service.create("client", ["a", "b", "c"], ["x", "y"], 2, seed=0)
    service.close()


def test_ask_and_tell_are_the_agents(agent):
    decision = agent.ask()
    assert isinstance(decision, sa.Decision)
    assert decision.arms == tuple("abc"[j] for j in decision.action)
    outcome = np.ones((2, 2))
    assert agent.tell(decision, outcome) is True
    assert agent.tell(decision.id, outcome) is False
    with pytest.raises(sa.ConflictingFeedback):
        agent.tell(decision, 0.5 * outcome)
    with pytest.raises(sa.UnknownDecision):
        agent.tell("nobody", outcome)
    with pytest.raises(sa.InvalidArgument):
        agent.tell(decision, [[2.0, 0.0], [0.0, 0.0]])


def test_the_same_id_is_the_same_decision(agent):
    one, two = agent.ask(id="mine-1"), agent.ask(id="mine-1")
    assert (one.id, one.arms, one.t) == (two.id, two.arms, two.t)


def test_seen_and_eligible_and_arms(agent):
    agent.add_arms(["new"])
    decision = agent.ask(eligible=["new", "a"])
    assert set(decision.arms) == {"new", "a"}
    agent.tell(decision, [[1, 1], [1, 1]], [[True, False], [False, False]])
    agent.retire_arms(["new"])
    assert agent.statistics()[3]["retired"]
    deferred = agent.ask(deferred=True)
    assert agent.activate(deferred) is True
    assert agent.activate(deferred) is False


def test_triggered_arms_of_a_sparse_problem(served):
    service = sa.connect(served.url)
    support = {"a": ["x"], "b": ["x", "y"], "c": ["y"]}
    remote = service.create("triggered", ["a", "b", "c"], ["x", "y"], 2, support=support, triggered=True, seed=0)
    decision = remote.ask(eligible=["a", "b"])
    assert remote.tell(decision, [[1.0, 0.5], [0.25]], [[True, False], [True]], arms=["b", "c"]) is True
    assert remote.tell(decision, [[1.0, 0.5], [0.25]], [[True, False], [True]], arms=["b", "c"]) is False
    rows = {row["arm"]: row for row in remote.statistics()}
    assert [rows[arm]["pulls"] for arm in "abc"] == [0, 1, 1]
    assert [rows[arm]["pending"] for arm in "abc"] == [0, 0, 0]
    assert (rows["b"]["items"], rows["b"]["mean"], rows["b"]["seen"]) == (["x", "y"], [1.0, None], [1, 0])
    assert (rows["c"]["items"], rows["c"]["mean"]) == (["y"], [0.25])
    remote.add_arms(["d"], support={"d": ["x"]})
    assert "d" in remote.ask().arms
    service.close()


def test_async(served, agent):
    service = sa.connect(served.url)

    async def run():
        remote = service.async_problem("client")
        decision = await remote.ask()
        assert await remote.activate(decision) is False
        return await remote.tell(decision, np.zeros((2, 2)))

    assert asyncio.run(run()) is True
    service.close()


def test_calls_are_made_again_over_a_restart(sqlite_file):
    server = Server(sqlite_file)
    service = sa.connect(server.url, retries=12)
    agent = service.create("p", ["a", "b"], ["x"], 1, settings={"policy": {"name": "bc_ucb"}})
    decision = agent.ask()
    server.kill()
    server = Server(sqlite_file, port=server.port, wait=False)
    try:
        assert agent.tell(decision, [[1.0]]) is True
        assert agent.statistics()[0]["pulls"] == 1
    finally:
        service.close()
        server.stop()


def test_an_unreachable_service_is_named():
    with pytest.raises(ServiceError, match="did not answer"):
        sa.connect("http://127.0.0.1:9", retries=0).problems()
    with pytest.raises(sa.InvalidArgument):
        sa.connect("localhost:8000")
