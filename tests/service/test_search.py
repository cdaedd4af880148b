"""Decisions found by time, arm, unit, state and group, page by page, compared with a plain list of what was done."""

import asyncio
import random
from datetime import UTC, datetime, timedelta

import pytest

import superarm as sa
from superarm.service.application import application
from superarm.service.domain.events import Asked, encode
from superarm.service.storage.base import DecisionSpan, LogLine
from superarm.service.storage.postgres import Postgres
from superarm.service.storage.search import DecisionFilter, decode_cursor, find_page
from superarm.service.storage.sqlite import Sqlite
from superarm.service.transport import ServiceError

from .database import fresh
from .inprocess import serving

NAMES = ["p", 'a "quoted" \\ name', "ü\u2028"]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    if request.param == "sqlite":
        found = Sqlite(tmp_path / "log.db")
    else:
        found = Postgres(fresh(request.getfixturevalue("postgres"), "search"))
        for problem in [(tenant, name) for tenant in ("t", "other") for name in NAMES]:
            found.acquire(problem)
            found.admit(problem)
    yield found
    found.close()


def page_through(store, span, wanted, limit):
    """All pages, as a client reads them."""
    found = []
    while True:
        page = find_page(store, span, wanted, limit)
        assert len(page.records) <= limit
        found += [record.asked.id for record in page.records]
        if page.cursor is None:
            return found
        span = span._replace(before=decode_cursor(page.cursor))


def test_pages_hold_every_wanted_decision_once_and_in_order(store, monkeypatch):
    """Times repeat, problems have awkward names, and few decisions are examined per page."""
    monkeypatch.setattr("superarm.service.storage.search.MAX_EXAMINED", 7)
    draw = random.Random(0)
    asked = [
        Asked(
            draw.randrange(20), draw.choice(NAMES), f"d{n}", "", n, (draw.randrange(3),), 1, 1, unit=draw.choice("uv")
        )
        for n in range(120)
    ]
    store.commit([LogLine("t", "decision", one.id, 0, encode(one), one.problem) for one in asked])
    store.commit([LogLine("other", "decision", "d0", 0, encode(asked[0]), asked[0].problem)])
    for name in NAMES:
        for since, until, limit in ((0, 10**15, 1000), (3, 15, 3), (0, 10**15, 1), (7, 8, 2)):
            inside = [one for one in asked if one.problem == name and since <= one.at < until]
            inside.sort(key=lambda one: (one.at, one.id), reverse=True)
            span = DecisionSpan("t", name, since, (until, ""), 0)
            assert page_through(store, span, DecisionFilter(), limit) == [one.id for one in inside]
            for arm in range(3):
                with_arm = [one.id for one in inside if one.action == (arm,)]
                assert page_through(store, span, DecisionFilter(arm=arm), limit) == with_arm
            of_unit = [one.id for one in inside if one.unit == "u"]
            assert page_through(store, span, DecisionFilter(unit="u"), limit) == of_unit


def test_the_client_finds_decisions_by_what_became_of_them(served):
    service = sa.connect(served.url)
    agent = service.create("found", ["a", "b", "c"], ["x"], 2, settings={"control": 0.5, "control_slate": "uniform"})
    began = datetime.now(UTC)
    states, arms, units, groups = {}, {}, {}, {}
    for n in range(30):
        decision = agent.ask(id=f"found-{n:02}", unit=f"unit-{n % 4}", deferred=n % 3 == 0)
        arms[decision.id], units[decision.id], groups[decision.id] = decision.arms, f"unit-{n % 4}", decision.group
        states[decision.id] = "deferred" if n % 3 == 0 else "open"
        if n % 3 == 1:
            agent.tell(decision, [[1.0], [0.0]])
            states[decision.id] = "complete"
    agent.cancel("found-00")
    states["found-00"] = "unshown"
    every = list(agent.decisions(since=began - timedelta(seconds=1)))
    assert {row["id"] for row in every} == states.keys()
    assert [row["t"] for row in every] == sorted((row["t"] for row in every), reverse=True)
    for state in ("open", "deferred", "complete", "expired", "unshown"):
        assert {row["id"] for row in agent.decisions(state=state)} == {id for id, one in states.items() if one == state}
    for arm in "abc":
        shown = {id for id, slate in arms.items() if arm in slate and states[id] != "unshown"}
        assert {row["id"] for row in agent.decisions(arm=arm)} == shown
    assert {row["id"] for row in agent.decisions(unit="unit-1")} == {id for id, one in units.items() if one == "unit-1"}
    assert list(agent.decisions(unit="nobody")) == []
    assert {row["id"] for row in agent.decisions(group="control")} == {
        i for i, one in groups.items() if one == "control"
    }
    assert list(agent.decisions(until=began - timedelta(seconds=1))) == []
    (told,) = [row for row in every if row["id"] == "found-01"]
    assert told["values"] == [[1.0], [0.0]]
    first = agent.find_decisions(limit=10)
    assert [row["id"] for row in first["decisions"]] == [row["id"] for row in every[:10]]
    for wrong in ({"arm": "z"}, {"state": "lost"}, {"since": "yesterday"}, {"cursor": "x"}, {"group": "none"}):
        with pytest.raises(ServiceError) as refused:
            agent.find_decisions(**wrong)
        assert refused.value.status == 422
    service.close()


def test_a_file_of_an_earlier_version_gets_the_index(tmp_path):
    path = tmp_path / "log.db"
    store = Sqlite(path)
    store.commit([LogLine("t", "decision", "d", 0, encode(Asked(5, "p", "d", "", 1, (0,), 1, 1)), "p")])
    store._writer.execute("DROP INDEX decisions_by_time")  # as commit 946dbf8 wrote it
    store.close()
    store = Sqlite(path)
    span = DecisionSpan("t", "p", 0, (10, ""), 10)
    assert [entry.stream for entry in store.find_decisions(span)] == ["d"]
    plan = store._reader.execute(
        "EXPLAIN QUERY PLAN SELECT stream FROM events WHERE kind = 'decision' AND step = 0 AND tenant = 't'"
        " AND CAST(body AS TEXT) ->> 'problem' = 'p' AND CAST(body AS TEXT) ->> 'at' >= 3"
    ).fetchall()
    assert "decisions_by_time" in str(plan)
    store.close()


def test_an_offset_in_a_time_may_lose_its_plus(tmp_path):
    """A plus sign in a URL means a space; the time is read all the same."""

    async def live() -> None:
        async with serving(application(Sqlite(tmp_path / "log.db"))) as http:
            await http.put("/v1/problems/p", json={"arms": ["a"], "k": 1})
            await http.post("/v1/problems/p/decisions", json={"id": "d"})
            for since, n in (("2020-01-01T00:00:00+02:00", 1), ("2020-01-01", 1), ("2999-01-01T00:00:00Z", 0)):
                reply = await http.get(f"/v1/problems/p/decisions?since={since}")
                assert len(reply.json()["decisions"]) == n, reply.text

    asyncio.run(live())
