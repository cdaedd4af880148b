import asyncio
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import numpy as np
import pytest

import superarm as sa
from superarm.core.errors import InvalidArgument
from superarm.service import client
from superarm.service.client import ServiceError

from .running import Server

PLAIN = {"policy": {"name": "kl_ucb"}}


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
    with pytest.raises(sa.core.errors.ConflictingFeedback):
        agent.tell(decision, 0.5 * outcome)
    with pytest.raises(sa.core.errors.UnknownDecision):
        agent.tell("nobody", outcome)
    with pytest.raises(sa.InvalidArgument):
        agent.tell(decision, [[2.0, 0.0], [0.0, 0.0]])


def test_a_connection_and_its_problems_are_shown_without_a_call_and_without_secrets():
    service = sa.connect("https://user:secret@shop.example:8443/bandits", key="another secret")
    assert repr(service) == "connect('https://shop.example:8443/bandits')"
    assert repr(service.problem("ads")) == "connect('https://shop.example:8443/bandits').problem('ads')"


def test_the_same_id_is_the_same_decision(agent):
    one, two = agent.ask(id="mine-1"), agent.ask(id="mine-1")
    assert (one.id, one.arms, one.t) == (two.id, two.arms, two.t)


@pytest.mark.parametrize("id", ["shop/S/M", "https://shop.example/a?b=c&d#e", "/", "%2F", "a/feedback", "../x"])
def test_names_may_be_paths(served, id):
    """Arms, items, units and ids could hold no slash, because a path holds ids."""
    arms, service = ["AC/DC shirt", "https://shop.example/a%2Fb"], sa.connect(served.url)
    agent = service.create("named by paths", [*arms, "plain"], ["S/M"], 2)
    decision = agent.ask(eligible=arms, id=id, unit="visitor/1", deferred=True)
    assert (set(decision.arms), agent.activate(id)) == (set(arms), True)
    assert agent.tell(decision, np.ones((2, 1))) is True
    assert (agent.decision(id).id, agent.decision(id).state) == (id, "complete")
    assert [arm.name for arm in agent.explain(id).arms] == list(decision.arms)
    assert agent.erase("visitor/1") == 1
    service.close()


def test_what_a_slash_could_be_taken_for_is_not_there(served):
    """An encoded slash never separates segments: no other operation is reached by it."""
    with httpx.Client(base_url=served.url) as http:
        assert http.put("/v1/problems/paths", json={"arms": ["a", "b"], "k": 1}).status_code == 201
        assert http.post("/v1/problems/paths%2Farms", json={"add": ["c"]}).status_code == 405
        assert http.get("/v1/problems/paths%2Farms").status_code == 404
        assert http.get("/v1%2fproblems").status_code == 404
        assert http.get("/v1/problems/paths/arms").json()["total"] == 2
        refused = http.put("/v1/problems/a%2Fb", json={"arms": ["a"]})
        assert (refused.status_code, "no slash" in refused.text) == (422, True)


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
    remote = service.create("triggered", "abc", ["x", "y"], 2, support=support, triggered=True, settings=PLAIN)
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


def test_what_may_still_come_stays_pending(served):
    """The client could not say that something may still come."""
    service = sa.connect(served.url)
    agent = service.create("pending", ["a", "b"], ["x", "y"], 2, settings={"window_s": None})
    decision = agent.ask()
    assert agent.tell(decision, [[1.0, None], [None, None]]) is True
    assert agent.decision(decision.id).state == "open"
    assert agent.tell(decision, [[1.0, None], [None, None]]) is False
    assert agent.tell(decision, [[0.25, 0.75]], arms=decision.arms[1:], complete=False) is True
    assert agent.decision(decision.id).state == "open"
    assert agent.tell(decision, [[None, 0.5], [None, None]], [[True, True], [True, True]]) is True
    assert agent.decision(decision.id).state == "complete"
    rows = {row["arm"]: row for row in agent.statistics()}
    assert [rows[arm]["mean"] for arm in decision.arms] == [[1.0, 0.5], [0.25, 0.75]]
    with pytest.raises(sa.InvalidArgument):
        agent.tell(agent.ask(), [[1.0, float("nan")], [0.0, 0.0]])
    service.close()


def test_propensities_slots_and_the_policys_slate_are_kept(served):
    """The client dropped them."""
    service = sa.connect(served.url)
    remote = service.create("kept", ["a", "b", "c"], ["x"], 2, settings=PLAIN | {"explore": 0.5, "mode": "apprentice"})
    shown = remote.ask(baseline=["c", "a"], slots=[{"id": "top"}, {"id": "side"}])
    assert (shown.arms, shown.slots, shown.propensities) == (("c", "a"), ("top", "side"), None)
    assert len(shown.policy_arms) == 2
    remote.change_settings(mode="online")
    chosen = remote.ask()
    assert len(chosen.propensities) == 2
    assert all(0.0 < chance <= 1.0 for chance in chosen.propensities)
    service.close()


def test_clicks_alone_are_told_and_replace_their_zeros(served):
    service = sa.connect(served.url)
    remote = service.create("clicks", ["a", "b", "c"], ["click"], 2, settings={"at_window_end": 0})
    decision = remote.ask()
    assert remote.estimates()[0][decision.action, 0].tolist() == [0.0, 0.0]
    assert remote.tell(decision, clicks=[decision.arms[1]])
    assert not remote.tell(decision, clicks=[decision.arms[1]])
    assert not remote.tell(decision, clicks=[])
    assert remote.estimates()[0][decision.action, 0].tolist() == [0.0, 1.0]
    other = remote.ask()
    assert remote.tell(other, clicks={other.arms[0]: 0.5})
    service.close()


def test_the_agents_other_methods(served):
    service = sa.connect(served.url)
    remote = service.create("methods", ["a", "b", "c"], ["x", "y"], 1, settings={"window_s": None})
    remote.add_items(["z"], [2.0])
    remote.retire_items(["y"])
    assert (remote.items, remote.arms) == (("x", "y", "z"), ("a", "b", "c"))
    decision = remote.ask()
    remote.tell(decision, [[1.0, 0.5, 0.25]])
    mean, _ = remote.estimates()
    assert mean.reshape(3, 3)[decision.action[0]].tolist() == [1.0, 0.5, 0.25]
    remote.untell(decision)
    assert np.isnan(remote.estimates()[0]).all()
    assert remote.statistics()[decision.action[0]]["pulls"] == 0
    played = remote.ask()
    remote.cancel(played)
    assert remote.decision(played.id).state == "unshown"
    assert sum(row["pending"] for row in remote.statistics()) == 0
    assert remote.change_policy("bc_ucb", rho=1.0) == 2
    assert (remote.policy["name"], remote.policy["parameters"], remote.t) == ("bc_ucb", {"rho": 1.0}, 2)
    service.close()


def test_async_calls_run_at_the_same_time():
    """Every call waits until all of them have arrived: one after the other they would never be answered."""
    together = threading.Barrier(5, timeout=30.0)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            together.wait()
            body = b'{"arms": [], "total": 0}'
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    service = sa.connect(f"http://127.0.0.1:{server.server_port}", retry_for=0)

    with ThreadPoolExecutor(5) as threads:
        assert list(threads.map(lambda _: service.problem("p").statistics(), range(5))) == [[]] * 5
    service.close()
    server.shutdown()
    server.server_close()


def test_calls_are_made_again_over_a_restart(sqlite_file):
    server = Server(sqlite_file)
    service = sa.connect(server.url)
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


def test_a_restart_of_a_minute_is_waited_for(monkeypatch):
    """A clock that only sleeping moves: the service is back after 55 seconds, or never."""
    clock, back = [0.0], 55.0
    answers = iter(lambda: (200, 0.0, b"7") if clock[0] >= back else (503, 1.0, b""), None)
    monkeypatch.setattr(client.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(client.time, "sleep", lambda seconds: clock.append(clock.pop() + seconds))
    transport = sa.connect("http://127.0.0.1:9")
    monkeypatch.setattr(transport, "_try", lambda *_: next(answers))
    assert transport.call("GET", "/") == 7
    assert clock[0] < 60.0
    back = math.inf
    with pytest.raises(ServiceError, match="503"):
        transport.call("GET", "/")
    assert 115.0 < clock[0] < 125.0


def test_half_a_character_in_a_name_is_refused_in_a_sentence(agent):
    """It was an error of the encoder, and over MCP an unexpected one."""
    for call in (
        lambda: agent._service.problem("\ud800"),
        lambda: agent.ask(id="visit \ud800"),
        lambda: agent.decision("\ud800"),
        lambda: agent.lift(item="\ud800"),
    ):
        with pytest.raises(InvalidArgument, match=r"'.*\\ud800' is not valid text; leave out surrogates"):
            call()


def test_an_unreachable_service_is_named():
    with pytest.raises(ServiceError, match="did not answer"):
        sa.connect("http://127.0.0.1:9", retry_for=0).problems()
    with pytest.raises(sa.InvalidArgument):
        sa.connect("localhost:8000")


@pytest.fixture
def service(served):
    service = sa.connect(served.url)
    yield service
    service.close()


def test_prices_and_budget_change_in_one_call_and_are_shown(service):
    """New names are new arms, what was learnt stays, and arms above the budget are never chosen."""
    knapsack = {"name": "knapsack", "parameters": {"costs": {"a": 0.03, "b": 0.1}, "budget": 0.1}}
    agent = service.create("prices", ["a", "b"], ["solved"], actions=knapsack, seed=0)
    for _ in range(4):
        decision = agent.ask()
        agent.tell(decision, [[1.0]] * len(decision.arms))
    pulls = {row["arm"]: row["pulls"] for row in agent.statistics()}
    agent.change_prices({"b": 0.05, "new": 0.02, "dear": 9.0}, budget=0.08, retire=["a"])
    shown = service.call("GET", "/v1/problems/prices")["actions"]["parameters"]
    assert shown == {"costs": {"a": 0.03, "b": 0.05, "new": 0.02, "dear": 9.0}, "budget": 0.08}
    assert {row["arm"]: row["pulls"] for row in agent.statistics()} == pulls | {"new": 0, "dear": 0}
    for _ in range(5):
        decision = agent.ask()
        assert set(decision.arms) <= {"b", "new"}
        agent.tell(decision, [[1.0]] * len(decision.arms))
    assert agent.ask(budget=0.02, id="small").arms == ("new",)
    assert agent.ask(budget=0.02, id="small").arms == ("new",)
    assert set(agent.ask(budget=10.0).arms) == {"b", "new", "dear"}
    for budget, match in ((0.01, "budget: 0.01 buys no arm"), (-1.0, "budget")):
        with pytest.raises(ServiceError, match=match):
            agent.ask(budget=budget)
    agent.change_prices(budget=0.02)
    assert agent.ask().arms == ("new",)
    with pytest.raises(ServiceError, match=r"buys no arm"):
        agent.change_prices(budget=0.001)
    plain = service.create("no prices", ["a", "b"], ["solved"])
    with pytest.raises(ServiceError, match="no knapsack"):
        plain.change_prices({"a": 1.0})
    with pytest.raises(ServiceError, match="budget: the problem has no knapsack"):
        plain.ask(budget=1.0)


def test_a_ladder_with_a_spend_is_served_and_its_spend_changes(service):
    """Costs are learnt from the second item; a new model and another spend keep what was learnt."""
    policy = {"policy": {"name": "ladder", "parameters": {"spend": 0.2, "scale": 1.0}}}
    agent = service.create("spend", ["small", "large"], ["solved", "saving"], 2, settings=policy, seed=0)
    rng, costs, spent = np.random.default_rng(0), {"small": 0.05, "large": 0.4, "new": 0.1}, []

    def play(n):
        for _ in range(n):
            decision, own, done = agent.ask(), 0.0, False
            rows, seen = [], []
            for arm in decision.arms:
                won = float(rng.random() < 0.5)
                rows.append([won, 1.0 - costs[arm]])
                seen.append([not done] * 2)
                own += 0.0 if done else costs[arm]
                done = done or won == 1.0
            agent.tell(decision, rows, seen)
            spent.append(own)

    play(120)
    assert np.mean(spent[40:]) == pytest.approx(0.2, rel=0.1)
    agent.add_arms(["new"])
    agent.change_settings(policy={"name": "ladder", "parameters": {"spend": 0.08, "scale": 1.0}})
    play(80)
    assert np.mean(spent[140:]) == pytest.approx(0.08, rel=0.15)
    assert {row["arm"]: row["pulls"] > 0 for row in agent.statistics()} == dict.fromkeys(costs, True)
    assert set(agent.ask(pinned=list(costs)).arms) == set(costs)  # there were two places
    with pytest.raises(ServiceError, match=r"prices: the policy learns what arms cost.*; name new arms in add"):
        agent.change_prices({"small": 0.1})
    with pytest.raises(ServiceError, match=r"k: 1, so that a ladder would try one arm and stop; give 2, to try all"):
        service.create("short", ["small", "large"], ["solved", "saving"], settings=policy)


def test_calls_of_an_asynchronous_client_are_awaited_and_others_have_a_turn(served):
    async def run():
        service = sa.connect(served.url, asynchronous=True)
        agent = await service.create("awaited", ["a", "b", "c"], ["x"], 2, seed=0)
        made = await asyncio.gather(*(agent.ask(id=f"d{n}") for n in range(20)))
        assert await asyncio.gather(*(agent.tell(one, np.ones((2, 1))) for one in made)) == [True] * 20
        assert await service.problem("awaited").arms() == ("a", "b", "c")
        assert sum(row["pulls"] for row in await agent.statistics()) == 40
        with pytest.raises(sa.core.errors.UnknownDecision):
            await agent.tell("nobody", [[1.0]])
        with pytest.raises(AttributeError, match="has no 'wish'"):
            agent.wish()
        assert repr(agent).endswith("problem('awaited'), awaited")
        await service.close()
        turns = 0
        waiting = asyncio.create_task(sa.connect("http://127.0.0.1:9", asynchronous=True, retry_for=0.3).problems())
        while not waiting.done():
            turns += 1
            await asyncio.sleep(0.01)
        assert turns > 5
        with pytest.raises(ServiceError, match="did not answer"):
            await waiting

    asyncio.run(run())
