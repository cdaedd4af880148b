"""Totals over HTTP: told, repeated, amended and late; killed and restarted; and as people and programs read them."""

import csv
import json

import httpx
import numpy as np
import pytest

import superarm as sa
from superarm.core.errors import ConflictingFeedback
from superarm.core.totals import joint_feedback
from superarm.service.domain.events import encode
from superarm.service.mcp import build_server
from superarm.service.server import open_store
from superarm.service.storage.snapshot import verify

from .running import Server
from .test_mcp import call

ARMS = [f"a{n}" for n in range(12)]
TOTAL = {"arms": ARMS, "k": 3, "reward": {"name": "total"}}


@pytest.fixture
def page(served, request):
    service = sa.connect(served.url)
    yield service.create(request.node.originalname, ARMS, ["value"], 3, seed=0, reward={"name": "total"})
    service.close()


def known(told):
    """The effects and variances that follow from what was told: arms, total and trials of parts, by decision."""
    tally = sa.Problem(12, reward=sa.Total(), actions=sa.Subsets(3)).new_tally()
    for parts in told:
        tally.record(joint_feedback(1, parts, 3))
    return [part[0, 0] for part in tally.known_estimates()]


def require_known(agent, told):
    for mine, theirs in zip(known(told), agent.estimates(), strict=True):
        assert mine == pytest.approx(theirs[:, 0], rel=1e-9, abs=1e-12, nan_ok=True)


def tell_thirty(agent):
    """Thirty decisions with totals, parts and trials; what was told, and the last decision."""
    told = []
    for n in range(30):
        decision, y = agent.ask(), n % 5 / 4
        (first, *others), (j, *rest) = decision.arms, decision.action.tolist()
        given = {"total": y, "n": 1 + n % 2} if n % 3 else {"totals": {first: 0.25, tuple(others): y}}
        assert agent.tell(decision, **given)
        assert not agent.tell(decision, **given)
        told.append([([j, *rest], y, 1 + n % 2)] if n % 3 else [([j], 0.25, 1), (rest, y, 1)])
    return told, decision


def test_what_is_told_over_http_is_what_is_known(page):
    assert page.policy["name"] == "total_thompson"
    told, decision = tell_thirty(page)
    require_known(page, told)
    with pytest.raises(ConflictingFeedback, match="something else was told"):
        page.tell(decision, total=0.125)
    assert page.tell(decision, total=0.125, amend=True)
    require_known(page, [*told[:-1], [(decision.action, 0.125, 1)]])
    page.untell(decision)
    require_known(page, told[:-1])
    with pytest.raises(ConflictingFeedback, match="something else was told"):
        page.tell(decision, total=0.5)
    assert page.tell(decision, total=0.5, amend=True)
    require_known(page, [*told[:-1], [(decision.action, 0.5, 1)]])


def test_kill_9_loses_no_total_and_the_next_process_decides_alike(sqlite_file):
    server = Server(sqlite_file)
    service = sa.connect(server.url)
    agent = service.create("page", ARMS, ["value"], 3, seed=0, reward={"name": "total"})
    told, _ = tell_thirty(agent)
    waiting = [agent.ask() for _ in range(16)]
    first, *others = waiting[0].arms
    agent.tell(waiting[0], totals={first: 0.75})
    server.kill()
    server = Server(sqlite_file, port=server.port, wait=False)
    try:
        for n, decision in enumerate(waiting):
            given = {"totals": {tuple(others): 0.25}} if n == 0 else {"total": n / 16}
            assert agent.tell(decision, **given)
            j, *rest = decision.action.tolist()
            told.append([([j], 0.75, 1), (rest, 0.25, 1)] if n == 0 else [([j, *rest], n / 16, 1)])
        require_known(agent, told)
        after = [agent.ask(id=f"next-{n}").arms for n in range(3)]
    finally:
        service.close()
        server.stop()
    store = open_store(sqlite_file, serving=False)
    assert verify(store).faults == []
    store.close()
    with Server(sqlite_file) as again:
        service = sa.connect(again.url)
        repeated = service.problem("page")
        assert [repeated.ask(id=f"next-{n}").arms for n in range(3)] == after
        require_known(repeated, told)
        service.close()


def test_no_event_of_the_log_is_large(tmp_path):
    """What is fitted goes into the log as two numbers, however many arms there are."""
    db = str(tmp_path / "log.db")
    with Server(db) as server:
        service = sa.connect(server.url)
        agent = service.create("wide", [f"a{n}" for n in range(100)], ["value"], 10, reward={"name": "total"})
        for n in range(60):
            agent.tell(agent.ask(), total=n % 5 / 4)
        service.close()
    store = open_store(db, serving=False)
    kinds = {}
    for read in store.tail({}):
        kind = type(read.entry.event).__name__
        kinds[kind] = max(kinds.get(kind, 0), len(encode(read.entry.event)))
    store.close()
    assert kinds.pop("Created") < 4_096
    assert {"Fitted", "Told", "Asked"} <= kinds.keys()
    assert max(kinds.values()) < 1_500, kinds


@pytest.mark.parametrize(("late", "counts"), [("learn", True), ("ignore", False)])
def test_late_totals_count_or_are_only_logged(served, late, counts):
    service = sa.connect(served.url)
    settings = {"window_s": 0.2, "late": late}
    agent = service.create(f"late-{late}", ARMS, ["value"], 3, seed=0, reward={"name": "total"}, settings=settings)
    decision = agent.ask()
    while agent.decision(decision.id).state != "expired":
        pass
    assert agent.tell(decision, total=0.5) is counts
    assert not agent.tell(decision, total=0.5)
    require_known(agent, [[(decision.action, 0.5, 1)]] if counts else [])
    service.close()


def test_silence_is_a_total_of_zero_until_it_is_told(served):
    service = sa.connect(served.url)
    settings = {"at_window_end": 0.0}
    agent = service.create("silent", ARMS, ["value"], 3, seed=0, reward={"name": "total"}, settings=settings)
    one, two = agent.ask(), agent.ask()
    require_known(agent, [[(one.action, 0.0, 1)], [(two.action, 0.0, 1)]])
    agent.tell(two, total=1.0)
    require_known(agent, [[(one.action, 0.0, 1)], [(two.action, 1.0, 1)]])
    service.close()


def test_past_totals_count_once(page):
    body = {"id": "before", "sets": [{"arms": ["a1", "a2", "a0"], "total": 0.5}, {"arms": ["a3"], "total": 1.0}]}
    url = f"{page._service.address}/v1/problems/{page.name}/outcomes"
    assert [httpx.post(url, json=body).json()["applied"] for _ in range(2)] == [True, False]
    tally = sa.Problem(12, reward=sa.Total(), actions=sa.Subsets(3)).past(sets=[[0, 1, 2], [3]], totals=[0.5, 1.0])
    assert tally.known_estimates()[0][0, 0] == pytest.approx(page.estimates()[0][:, 0], nan_ok=True)
    refused = httpx.post(url, json={"id": "rows", "arms": ["a1"], "outcomes": [[1.0]]})
    assert (refused.status_code, "sets" in refused.json()["error"]["message"]) == (422, True)


def test_what_an_arm_adds_is_shown_with_its_sign_and_no_certificate(page):
    for n in range(200):
        decision = page.ask()
        page.tell(decision, total=float(np.clip(decision.action.mean() / 12 + (n % 3 - 1) / 8, 0, 1)))
    mean, variance = page.estimates()
    assert mean.min() < 0.0 < mean.max()
    why = page.explain(decision)
    assert sum(arm.estimated_gain for arm in why.arms) == pytest.approx(why.worth.value, abs=0.05)
    assert why.worth.low < why.worth.value < why.worth.high
    url = page._service.address
    text = httpx.get(f"{url}/?problem={page.name}").text
    assert "Effect" in text
    assert "±2 deviations, as far as arms add up" in text
    assert "95 % sure for all" not in text
    assert "The range is 95 % sure" not in text
    rows = list(csv.DictReader(httpx.get(f"{url}/export/arms.csv?problem={page.name}").text.splitlines()))
    assert [float(row["effect"]) for row in rows] == pytest.approx(mean[:, 0].tolist(), abs=1e-6)
    assert [float(row["deviation"]) ** 2 for row in rows] == pytest.approx(variance[:, 0].tolist(), abs=1e-6)
    earned = httpx.get(f"{url}/v1/problems/{page.name}/lift").json()["earned"]
    assert earned["realised"] == pytest.approx(earned["estimated"], abs=0.15)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"arms": [f"x{n}" for n in range(501)]}, "give at most 500"),
        ({"items": ["x", "y"]}, "a total has one"),
        ({"settings": {"policy": {"name": "kl_ucb"}}}, "needs what each arm did; take total_thompson"),
        ({"reward": {"name": "linear"}, "settings": {"policy": {"name": "total_thompson"}}}, "declare reward=Total"),
    ],
)
def test_what_does_not_go_with_totals_is_refused_over_http(served, body, says):
    reply = httpx.put(f"{served.url}/v1/problems/wrong", json=TOTAL | body)
    assert reply.status_code == 422
    assert says in reply.json()["error"]["message"]


def test_totals_that_do_not_fit_a_decision_are_refused(page):
    decision = page.ask()
    url = f"{page._service.address}/v1/problems/{page.name}/decisions/{decision.id}/feedback"
    other = next(arm for arm in ARMS if arm not in decision.arms)
    a, b, _ = decision.arms
    for body, says in (
        ({"total": 1.5}, "total"),
        ({"total": 0.5, "totals": [{"arms": [a], "total": 0.5}]}, "give total, totals or outcome"),
        ({"totals": [{"arms": [other], "total": 0.5}]}, "is not in the decision"),
        ({"totals": [{"arms": [a, b], "total": 0.5}, {"arms": [b], "total": 0.5}]}, "is in two parts"),
        ({"total": 0.5, "n": 0}, "n"),
    ):
        reply = httpx.post(url, json=body)
        assert (reply.status_code, says in json.dumps(reply.json())) == (422, True), reply.text
    too_many = httpx.post(
        f"{page._service.address}/v1/problems/{page.name}/arms", json={"add": [f"x{n}" for n in range(489)]}
    )
    assert (too_many.status_code, "at most 500" in too_many.text) == (422, True)


def test_an_assistant_tells_totals(page):
    def told(found):
        return {"problem": page.name, "decision": found[0].structured_content["decision"], "total": 0.5, "n": 2}

    asked, first, again = call(
        build_server(page._service), ("ask", {"problem": page.name}), ("tell_total", told), ("tell_total", told)
    )
    assert (first.structured_content["learnt"], again.structured_content["learnt"]) == (True, False)
    numbers = [ARMS.index(arm) for arm in asked.structured_content["arms"]]
    require_known(page, [[(numbers, 0.5, 2)]])
