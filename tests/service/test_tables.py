"""Tables out, sums in: published tables, sums that count once and are replaced exactly, lift from patterns."""

import asyncio
import itertools
import threading
from datetime import UTC, datetime, timedelta

import httpx
import msgspec
import numpy as np
import pytest

import superarm as sa
from superarm import warehouse
from superarm.core.tally import Tally
from superarm.service.application import application
from superarm.service.domain.published import plan_table
from superarm.service.domain.spec import ProblemSpec, to_problem
from superarm.service.runtime import admin
from superarm.service.server import open_store
from superarm.service.storage.snapshot import restore_ledger, verify
from superarm.tables import Control
from superarm.warehouse import Sum

from .database import fresh
from .inprocess import serving
from .memory_store import MemoryStore
from .running import Server

ARMS, SEGMENTS = ["tent", "stövel", "mug", "rope"], ["campers", "walkers"]
ONE = 1 << 24


def spec(**settings) -> dict:
    wanted = {"policy": {"name": "pooled_thompson", "baseline": ARMS}, "serve": "table", "table_rows": 16, **settings}
    context = {"features": {"categorical": {"segment": SEGMENTS}}}
    return {"arms": ARMS, "k": 2, "context": context, "settings": wanted, "seed": 0}


def during(trial, **settings):
    async def run():
        store = MemoryStore()
        app = application(store)
        async with serving(app) as http:
            created = await http.put("/v1/problems/p", json=spec(**settings))
            assert created.status_code == 201, created.text
            found = await trial(http, app.service.coordinator)
            live, fold = app.service.coordinator.ledger, restore_ledger(store)[0]
            assert same(tally_of(live), tally_of(fold))
            assert live.problems["default", "p"].history == fold.problems["default", "p"].history
            assert verify(store).faults == []
            return found

    return asyncio.run(run())


def tally_of(ledger) -> Tally:
    return ledger.problems["default", "p"].tally


def same(one, other) -> bool:
    (a, b) = (tally.to_arrays() for tally in (one, other))
    return a.keys() == b.keys() and all(a[name].tobytes() == b[name].tobytes() for name in a)


async def post(http, status: int = 200, **body) -> dict:
    reply = await http.post("/v1/problems/p/sums", json=body)
    assert reply.status_code == status, reply.text
    return reply.json()


async def table_of(http) -> sa.Table:
    reply = await http.get("/v1/problems/p/table")
    assert reply.status_code == 200, reply.text
    return sa.Table.load(reply.content)


def day(seed: int, n: int = 400) -> list:
    """The sums of a day."""
    draw, rows = np.random.default_rng(seed), []
    for segment, arm in itertools.product(SEGMENTS, ARMS):
        seen = int(draw.integers(1, n))
        total = int(draw.integers(0, seen * ONE))
        square = int(draw.integers(total**2 // (seen * ONE), total, endpoint=True))
        rows.append([segment, arm, "", seen, seen, total, square])
    return rows


def expected(*days) -> Tally:
    problem = to_problem(msgspec.convert(spec(), ProblemSpec))
    whole = Tally(problem.support, 2)
    for rows in days:
        whole.add(warehouse.tally(problem, [Sum(*row) for row in rows], ARMS))
    return whole


def test_sums_count_once_and_are_replaced_exactly():
    async def trial(http, coordinator) -> None:
        assert (await post(http, id="monday", rows=day(1)))["applied"] is True
        assert (await post(http, id="monday", rows=day(1)[::-1]))["applied"] is False
        assert (await post(http, id="tuesday", rows=day(2)))["applied"] is True
        assert same(tally_of(coordinator.ledger), expected(day(1), day(2)))
        refused = await post(http, 409, id="monday", rows=day(3))
        assert "sums 'monday' were given before with other values" in refused["error"]["message"]
        assert (await post(http, id="monday", rows=day(3), replace=True))["applied"] is True
        assert (await post(http, id="monday", rows=day(3), replace=True))["applied"] is False
        assert same(tally_of(coordinator.ledger), expected(day(2), day(3)))
        audit = (await http.get("/v1/audit")).json()["entries"]
        assert [one["what"] for one in audit][:3] == ["summed"] * 3

    during(trial)


@pytest.mark.parametrize("policy", [{"name": "kl_ucb", "window": 500}, {"name": "cts"}, {"name": "pooled_thompson"}])
def test_sums_replaced_leave_no_trace_under_other_policies(policy):
    async def trial(http, coordinator) -> None:
        await post(http, id="monday", rows=day(1, 40))
        await post(http, id="monday", rows=day(2, 40), replace=True)
        assert same(tally_of(coordinator.ledger), expected(day(2, 40)))

    during(trial, policy=policy)


WRONG = ["campers", "tent", "", 3, 3, ONE, ONE]


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        (0, "sailors", "unknown 'sailors'"),
        (1, "boat", "unknown name 'boat'"),
        (3, -1, "Expected `int` >= 0"),
        (5, 0.5, "Expected `int`"),
        (5, 4 * ONE, "more than outcomes in [0, 1] add up to"),
        (4, 4, "more outcomes than pulls"),
        (6, ONE // 4, "squares that add up to less than such a total allows"),
    ],
)
def test_wrong_sums_are_refused_and_change_nothing(place, value, told):
    async def trial(http, coordinator) -> None:
        await post(http, id="first", rows=day(1))
        row = [*WRONG[:place], value, *WRONG[place + 1 :]]
        assert told in (await post(http, 422, id="x", rows=[row]))["error"]["message"]
        assert "missing, and no patterns are given" in (await post(http, 422, id="x"))["error"]["message"]
        assert same(tally_of(coordinator.ledger), expected(day(1)))
        assert (await post(http, id="x", rows=[WRONG]))["applied"] is True  # its id is not used up

    during(trial)


@pytest.mark.parametrize("body", [{"rows": [["", "tent", "", 3, 3, ONE, ONE]]}, {"patterns": [[1, "", 0, 1, 3]]}])
def test_sums_of_arms_are_refused_where_only_totals_are_seen(body):
    async def trial(http, coordinator) -> None:
        await http.put("/v1/problems/t", json={"arms": ARMS, "k": 2, "reward": {"name": "total"}})
        refused = await http.post("/v1/problems/t/sums", json={"id": "monday", **body})
        assert refused.status_code == 422
        assert "the reward is total" in refused.json()["error"]["message"]

    during(trial)


def test_more_observations_than_are_exact_are_refused():
    async def trial(http, coordinator) -> None:
        most = ["campers", "tent", "", 2**29, 2**29, 0, 0]
        await post(http, id="all", rows=[most])
        assert "at most 2^29" in (await post(http, 422, id="one", rows=[WRONG]))["error"]["message"]
        await post(http, id="all", rows=[WRONG], replace=True)
        await post(http, id="one", rows=[WRONG])

    during(trial)


def test_a_table_has_an_etag_and_a_version():
    async def trial(http, coordinator) -> None:
        first = await http.get("/v1/problems/p/table")
        again = await http.get("/v1/problems/p/table")
        assert first.content == again.content
        kept = await http.get("/v1/problems/p/table", headers={"If-None-Match": first.headers["etag"]})
        assert (kept.status_code, kept.content, kept.headers["etag"]) == (304, b"", first.headers["etag"])
        assert (await http.get("/v1/problems/p/table", headers={"If-None-Match": "*"})).status_code == 304
        table = sa.Table.load(first.content)
        assert (table.version, table.problem, table.lifetime, len(table.slates["campers"])) == (1, "p", 10, 16)
        await post(http, id="few", rows=[["campers", "tent", "", 19, 19, 0, 0]])  # nine decisions of two
        assert (await table_of(http)).version == 1
        await post(http, id="more", rows=[["campers", "mug", "", 1, 1, 0, 0]])
        assert (await table_of(http)).version == 2
        await http.post("/v1/problems/p/arms", json={"retire": ["tent"]})
        newest = await table_of(http)
        assert newest.version == 3
        assert all(0 not in slate for rows in newest.slates.values() for slate in rows)
        changed = await http.get("/v1/problems/p/table", headers={"If-None-Match": first.headers["etag"]})
        assert changed.status_code == 200
        await http.post("/v1/problems/p/arms", json={"add": ["boots"]})
        assert (await table_of(http)).arms == (*ARMS, "boots")
        old = [[1, "campers", 0, 3, 5]]  # a table without the new arm
        await post(http, id="late", patterns=old)

    during(trial)


def test_a_table_expires_and_is_renewed_before():
    async def trial(http, coordinator) -> None:
        table = await table_of(http)
        assert table.expires is not None
        made = coordinator.ledger.problems["default", "p"].published.newest
        state = coordinator.ledger.problems["default", "p"]
        assert plan_table(state, "p", made.at + 49_999, "then") is None
        assert plan_table(state, "p", made.at + 50_001, "then").table.version == 2

    during(trial, table_expires_s=100.0)


def test_decisions_are_asked_for_unless_a_table_is_served():
    async def trial(http, coordinator) -> None:
        reply = await http.get("/v1/problems/p/table")
        assert reply.status_code == 422
        assert 'change the settings to "serve": "table"' in reply.json()["error"]["message"].replace("\\", "")

    during(trial, serve="decisions")


async def visits(http, table, n: int, chance) -> dict:
    """Patterns of so many visits, and the clicks of each group as they are told."""
    draw, patterns = np.random.default_rng(table.version), {}
    for visit in range(n):
        served = table.decide(f"visit-{visit}", SEGMENTS[visit % 2])
        mask = sum((draw.random() < chance(arm)) << place for place, arm in enumerate(served.arms))
        key = table.version, served.segment, served.row, mask
        patterns[key] = patterns.get(key, 0) + 1
    return patterns


def test_patterns_give_lift_and_realised_reward():
    async def trial(http, coordinator) -> None:
        table = await table_of(http)
        patterns = await visits(http, table, 4_000, lambda arm: 0.5 if arm == "rope" else 0.05)
        rows = [[*key, n] for key, n in patterns.items()]
        assert (await post(http, id="hour", patterns=rows))["applied"] is True
        clicks = {"policy": [], "control": []}
        for (_, _, row, mask), n in patterns.items():
            clicks["control" if row < 0 else "policy"] += [float(mask > 0)] * n  # coverage: a click is enough
        lift = (await http.get("/v1/problems/p/lift")).json()
        for group, rewards in clicks.items():
            assert lift[group]["decisions"] == len(rewards)
            assert lift[group]["mean"]["value"] == pytest.approx(np.mean(rewards))
            assert lift[group]["mean"]["low"] < np.mean(rewards) < lift[group]["mean"]["high"]
        assert lift["earned"]["realised"] == pytest.approx(np.mean(clicks["policy"]))
        shown = (await http.get("/v1/problems/p")).json()
        assert shown["decisions"] == 4_000
        assert [one for one in shown["warnings"] if "version 1 served 4000 decisions, and should have served 10" in one]
        halved = [[*key, (n + 1) // 2] for key, n in patterns.items()]
        await post(http, id="hour", patterns=halved, replace=True)
        total = sum(row[-1] for row in halved)
        assert (await http.get("/v1/problems/p")).json()["decisions"] == total
        again = (await http.get("/v1/problems/p/lift")).json()
        assert sum(again[group]["decisions"] for group in clicks) == total

    during(trial, control=0.2, control_slate=["tent", "mug"], policy={"name": "cts"})


def test_what_a_pattern_claimed_is_taken_back_with_it():
    async def trial(http, coordinator) -> None:
        await table_of(http)
        await post(http, id="hour", patterns=[[1, "campers", 0, 1, 100], [1, "", 0, 1, 5]])
        await post(http, id="day", rows=[["campers", arm, "", 5_000, 5_000, 0, 0] for arm in ARMS])
        await post(http, id="hour", patterns=[], replace=True)  # the estimates are others than they were
        for stretch in coordinator.ledger.problems["default", "p"].history.stretches:
            for moments in (stretch.policy, stretch.gap, *stretch.gap.each.values()):
                assert (moments.n, moments.total, moments.square) == (0, 0.0, 0.0)

    during(trial)


async def change(http, **settings) -> sa.Table:
    assert (await http.patch("/v1/problems/p/settings", json=settings)).status_code == 200
    return await table_of(http)


def shown(table: sa.Table) -> set[str]:
    return {table.arms[j] for rows in table.slates.values() for slate in rows for j in slate}


def test_no_table_shows_what_is_paused_or_retired():
    async def trial(http, coordinator) -> None:
        state, then = coordinator.ledger.problems["default", "p"], datetime.now(UTC) + timedelta(days=1)
        table = await change(http, paused_until={"tent": then.isoformat()})
        assert "tent" not in shown(table)
        assert table.control == Control(0.2, {"": [[2, 3]]})  # rope, the next of the baseline, for tent
        ended = int(1000 * then.timestamp()) + 1
        assert plan_table(state, "p", ended - 2, None) is None
        assert plan_table(state, "p", ended, None).table.control.slates == {"": [[0, 2]]}
        await http.post("/v1/problems/p/arms", json={"retire": ["mug"]})
        table = await table_of(http)
        assert shown(table) == {"stövel", "rope"}
        assert table.control.slates == {"": [[3, 1]]}
        await http.post("/v1/problems/p/arms", json={"retire": ["rope"]})
        assert (await table_of(http)).control.share == 0.0  # there are too few, as for decisions

    policy = {"name": "pooled_thompson", "window": 500, "baseline": ["rope", "stövel"]}
    during(trial, control=0.2, control_slate=["tent", "mug"], policy=policy)


def test_the_guardrail_holds_for_tables():
    async def trial(http, coordinator) -> None:
        shares = [(await table_of(http)).control.share]
        await post(http, id="list", patterns=[[1, "campers", -1, 3, 2_000]])
        shares.append((await table_of(http)).control.share)
        await post(http, id="worse", patterns=[[2, "campers", 0, 0, 2_000], [2, "campers", -1, 3, 500]])
        shares.append((await table_of(http)).control.share)
        assert shares == [1.0, 0.2, 1.0]

    during(trial, control=0.2, control_slate=["tent", "mug"], guardrail=0.1, policy={"name": "cts"})


def test_sums_of_an_ended_comparison_are_not_taken_from_the_next():
    async def trial(http, coordinator) -> None:
        history = coordinator.ledger.problems["default", "p"].history
        for _ in range(60):  # so that no sums move the clock
            await http.post("/v1/problems/p/decisions", json={"context": {"segment": "campers"}})
        table = await change(http, serve="table")
        await post(http, id="hour", patterns=[[table.version, "campers", 0, 1, 20]])
        assert history.lift.policy.n == 20
        await change(http, control_slate=["tent", "rope"])
        await post(http, id="hour", patterns=[], replace=True)
        assert history.lift.policy.n == 0

    during(trial, serve="decisions", control=0.2, control_slate=["tent", "mug"])


def test_a_table_that_is_too_large_is_refused():
    async def trial(http, coordinator) -> None:
        levels = [f"{n}" for n in range(1_000)]
        wanted = spec(table_rows=1024) | {"context": {"features": {"categorical": {"segment": levels}}}}
        refused = await http.put("/v1/problems/large", json=wanted)
        assert refused.status_code == 422
        assert "a table holds at most 2000000 arms in all" in refused.json()["error"]["message"]

    during(trial)


def test_a_table_is_chosen_in_a_thread(monkeypatch):
    async def trial(http, coordinator) -> None:
        threads, plan = [], admin.plan_table

        def noted(*given):
            threads.append(threading.current_thread())
            return plan(*given)

        monkeypatch.setattr(admin, "plan_table", noted)
        await table_of(http)
        assert threads
        assert threading.main_thread() not in threads

    during(trial, policy={"name": "kl_ucb"})


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ([7, "campers", 0, 0, 1], "no table has version 7"),
        ([1, "sailors", 0, 0, 1], "unknown 'sailors'"),
        ([1, "campers", 16, 0, 1], "give the number of a row"),
        ([1, "campers", -1, 0, 1], "give the number of a row"),
        ([1, "campers", 0, 4, 1], "give a bit for each place"),
    ],
)
def test_wrong_patterns_are_refused(pattern, told):
    async def trial(http, coordinator) -> None:
        await table_of(http)
        assert told in (await post(http, 422, id="x", patterns=[pattern]))["error"]["message"]

    during(trial, policy={"name": "cts"})


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_acknowledged_sums_outlive_kill_9(database, request, tmp_path):
    """Sums, corrections and repetitions from two threads while the service is killed again and again."""
    db, url, told = str(tmp_path / "log.db"), [], {}
    if database == "postgres":
        db = fresh(request.getfixturevalue("postgres"), "sums")
    stop = threading.Event()

    def send(thread: int) -> None:
        for n in itertools.count():
            if stop.is_set():
                return
            name, rows = f"{thread}/{n // 2}", day(1_000 * thread + n)
            try:
                reply = httpx.post(
                    f"{url[-1]}/v1/problems/p/sums", json={"id": name, "rows": rows, "replace": n % 2 == 1}
                )
            except httpx.HTTPError:
                told.setdefault(name, []).append((rows, False))
                continue
            told.setdefault(name, []).append((rows, reply.status_code == 200))

    threads = [threading.Thread(target=send, args=(thread,)) for thread in range(2)]
    for turn in range(3):
        with Server(db) as server:
            url.append(server.url)
            if turn == 0:
                assert httpx.put(f"{server.url}/v1/problems/p", json=spec()).status_code == 201
                [thread.start() for thread in threads]
            wanted = len(told) + 20
            while len(told) < wanted:
                stop.wait(0.01)
            if turn == 2:
                stop.set()
                [thread.join(30) for thread in threads]
            server.kill()
    store = open_store(db, serving=False)
    state = restore_ledger(store)[0].problems["default", "p"]
    assert verify(store).faults == []
    sure = []
    for name, sent in told.items():
        in_log = state.summed.digests.get(name)
        assert in_log is not None or not any(acknowledged for _, acknowledged in sent), name
        if in_log is not None:
            kept = state.summed.kept[name]
            fitting = [rows for rows, _ in sent if [row[3:] for row in rows] == [list(row[3:]) for row in kept.rows]]
            last_sure = max((n for n, (_, acknowledged) in enumerate(sent) if acknowledged), default=-1)
            assert [rows for rows, _ in sent].index(fitting[0]) >= last_sure
            sure.append(fitting[0])
    assert same(state.tally, expected(*sure))
    assert len(sure) > 30
    store.close()
