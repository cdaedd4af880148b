"""The database goes away, a slot is lost, the log cannot be written: nothing is acknowledged, and it comes back."""

import asyncio
import contextlib
import logging
import threading
import time
from functools import partial
from typing import ClassVar

import httpx
import numpy as np
import pytest

from superarm import Policy
from superarm.core.errors import SuperarmError
from superarm.policies.memory import NEVER, Memory
from superarm.policies.pooled import PoolMemory
from superarm.service.application import application
from superarm.service.domain import components
from superarm.service.domain.events import Asked, Created, Fitted, decode
from superarm.service.domain.ledger import Ledger
from superarm.service.http.service import ServiceLimits, make_key
from superarm.service.runtime import coordinator as coordinators
from superarm.service.runtime import writer as writers
from superarm.service.server import prepare
from superarm.service.storage import snapshot
from superarm.service.storage.base import StoreUnavailable
from superarm.service.storage.postgres import Postgres
from superarm.service.storage.snapshot import verify
from superarm.service.storage.sqlite import Sqlite

from .database import Database, fresh
from .inprocess import serving
from .memory_store import MemoryStore
from .running import DECISIONS, Server

SPEC = {"arms": ["a", "b"], "k": 1, "settings": {"policy": {"name": "bc_ucb"}, "window_s": None}}


class Failing(MemoryStore):
    """A store that can be switched off."""

    def __init__(self) -> None:
        super().__init__()
        self.down = False
        self.keys = []

    def _check(self) -> None:
        if self.down:
            raise StoreUnavailable("the database is away")

    def open(self) -> None:
        self._check()

    def probe(self) -> None:
        self._check()

    def commit(self, lines) -> list[int]:
        self._check()
        return super().commit(lines)

    def tail(self, after, *, problems=False):
        self._check()
        return super().tail(after, problems=problems)

    def stream(self, tenant, kind, stream) -> list:
        self._check()
        return super().stream(tenant, kind, stream)

    def key_rows(self) -> list:
        self._check()
        return self.keys


async def until(holds, seconds: float = 20.0) -> None:
    limit = time.monotonic() + seconds
    while not await holds():
        assert time.monotonic() < limit
        await asyncio.sleep(0.02)


async def is_ready(http: httpx.AsyncClient) -> bool:
    return (await http.get("/health")).status_code == 200


def test_while_the_database_is_away_writes_are_refused_and_reads_answered(caplog):
    """An outage was answered with 500 and a traceback for each request."""
    store = Failing()

    async def live() -> None:
        app = application(store)
        async with serving(app) as http:
            assert (await http.put("/v1/problems/p", json=SPEC)).status_code == 201
            assert (await http.post("/v1/problems/p/decisions", json={"id": "before"})).status_code == 201
            store.down = True
            caplog.clear()
            for n in range(5):
                refused = await http.post("/v1/problems/p/decisions", json={"id": f"d{n}"})
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "2"), refused.text
            assert (await http.post(f"{DECISIONS}/unknown/feedback", json={"feedback": []})).status_code == 503
            health = await http.get("/health")
            assert (health.status_code, health.json()["status"]) == (503, "unavailable")
            assert "cannot be read or written" in health.json()["reason"]
            assert (await http.get("/health/ready")).status_code == 503
            assert (await http.get("/health/live")).status_code == 200
            assert (await http.get("/v1/problems/p")).json()["decisions"] == 1
            assert (await http.get("/v1/problems/p/decisions/before")).status_code == 200
            assert "Not ready" in (await http.get("/")).text
            errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
            assert {record.exc_info for record in errors} == {None}
            assert len(errors) <= 3  # writing, reading and keys, once each
            store.down = False
            await app.service.coordinator.look()
            await until(lambda: is_ready(http))
            assert (await http.post("/v1/problems/p/decisions", json={"id": "d0"})).status_code == 201
            assert "Not ready" not in (await http.get("/")).text

    asyncio.run(live())
    assert [line.stream for line in store.lines] == ["p", "p/before", "p/d0"]


def test_nobody_is_told_where_the_database_is(caplog):
    """Everybody was told its host and port, by /health and by every 503; the log has it."""
    store, made = Failing(), [make_key("default", ("admin",))]
    store.keys = [row for _, row in made]
    headers = [{}, {"authorization": f"Bearer {made[0][0]}"}]

    async def live() -> None:
        async with serving(application(store)) as http:
            assert (await http.put("/v1/problems/p", json=SPEC, headers=headers[-1])).status_code == 201
            store.down = True
            line, page = b'{"decision": "d", "feedback": []}\n', {"cookie": f"superarm_key={made[-1][0]}"}
            ndjson = {"content-type": "application/x-ndjson", **headers[-1]}
            refused = [
                await http.post("/v1/problems/p/decisions", json={}, headers=headers[-1]),
                await http.post("/v1/problems/p/decisions/d/feedback", json={"feedback": []}, headers=headers[-1]),
                await http.post("/v1/problems/p/feedback/bulk", content=line, headers=ndjson),
                *[await http.get(path, headers=one) for path in ("/", "/health") for one in headers],
            ]
            assert [answer.status_code for answer in refused[:2]] == [503, 503]
            assert not any("the database is away" in answer.text for answer in refused)
            assert "Not ready" in (await http.get("/", headers=page)).text

    asyncio.run(live())
    assert "the database is away" in caplog.text


def test_a_start_waits_for_the_database(monkeypatch):
    """A worker that started while PostgreSQL was away took the whole service with it."""
    monkeypatch.setattr(coordinators, "RETRY_SECONDS", 0.01)
    store = Failing()
    store.down = True

    async def live() -> None:
        async with serving(application(store, patience=0.05)) as http:
            assert (await http.get("/health/live")).status_code == 200
            health = (await http.get("/health")).json()
            assert (health["status"], "the database is awaited" in health["reason"]) == ("starting", True)
            for path in ("/v1/problems", "/", "/metrics"):
                assert (await http.get(path)).status_code == 503
            store.down = False
            await until(lambda: is_ready(http))
            assert (await http.put("/v1/problems/p", json=SPEC)).status_code == 201

    asyncio.run(live())


def test_a_first_process_waits_for_a_postgresql_that_does_not_answer(postgres_server):
    """It ended. The operator's key is added, and the address is checked, when the database is there."""
    url = fresh(postgres_server.address, "later")
    key, _ = make_key("default", ("admin", "metrics"), "given at the start")
    postgres_server.kill()
    try:
        with Server(url, "--admin-key", key, wait=False) as server, httpx.Client(base_url=server.url) as http:
            wait_until_alive(server)
            health = http.get("/health")
            assert health.status_code == 503
            assert health.json()["status"] == "starting"
            assert "PostgreSQL" not in health.text  # keys cannot be read yet: everybody is anonymous
            assert http.get("/v1/problems").status_code == 503
            assert "PostgreSQL cannot be reached" in server.log.read_text()
            postgres_server.start()
            server.ready()
            assert http.get("/v1/problems").status_code == 401
            http.headers["authorization"] = f"Bearer {key}"
            assert http.put("/v1/problems/p", json=SPEC, timeout=60.0).status_code == 201
            assert "Traceback" not in server.log.read_text()
    finally:
        if postgres_server.server.poll() is not None:
            postgres_server.start()
    with pytest.raises(StoreUnavailable, match="does not exist"):
        Postgres(postgres_server.address.format("nowhere"))


def wait_until_alive(server: Server, seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{server.url}/health/live", timeout=1.0).status_code == 200:
                return
        assert server.process.poll() is None, server.log.read_text()[-4000:]
        time.sleep(0.05)
    raise AssertionError(server.log.read_text()[-4000:])


def test_a_store_is_prepared_once_and_adds_no_revoked_key(tmp_path):
    _, row = make_key("default", ("admin",), "given at the start")
    store = Sqlite(tmp_path / "log.db")
    for _ in range(2):
        prepare(store, "0.0.0.0", row)
        assert [known.id for known in store.key_rows()] == [row.id]
    store.put_key(row._replace(revoked=7))
    with pytest.raises(SuperarmError, match="is revoked"):
        prepare(store, "0.0.0.0", row)
    store.close()
    with pytest.raises(SuperarmError, match="without keys only loopback is served"):
        prepare(MemoryStore(), "0.0.0.0", None)


def test_a_store_that_goes_away_while_it_is_prepared_is_waited_for(monkeypatch):
    monkeypatch.setattr(coordinators, "RETRY_SECONDS", 0.01)
    tried = []

    def prepare(store) -> None:
        tried.append(store)
        if len(tried) < 3:
            raise StoreUnavailable("the database is away")

    async def live() -> None:
        async with serving(application(MemoryStore(), prepare=prepare)) as http:
            assert await is_ready(http)

    asyncio.run(live())
    assert len(tried) == 3


def test_feedback_to_a_decision_that_has_to_be_read_needs_the_database(monkeypatch):
    monkeypatch.setattr(snapshot, "Ledger", partial(Ledger, remembered=0))  # closed decisions are read from the log
    store = Failing()

    async def live() -> None:
        async with serving(application(store)) as http:
            assert (await http.put("/v1/problems/p", json=SPEC)).status_code == 201
            assert (await http.post("/v1/problems/p/decisions", json={"id": "d"})).status_code == 201
            for value, amend in ((1.0, False), (0.0, True)):
                body = {"outcome": [[value]], "amend": amend}
                store.down = amend
                if amend:
                    assert (await http.post("/v1/problems/p/decisions/d/feedback", json=body)).status_code == 503
                    store.down = False
                told = await http.post("/v1/problems/p/decisions/d/feedback", json=body)
                assert (told.status_code, told.json()["applied"]) == (200, True)
            (mean,) = [row["mean"] for row in (await http.get("/v1/problems/p/arms")).json()["arms"] if row["pulls"]]
            assert mean == [0.0]

    asyncio.run(live())


def test_keys_that_were_read_stay_valid_while_they_cannot_be_read(monkeypatch):
    """Keys were read on the event loop for each request, which got 500 while PostgreSQL was away."""
    monkeypatch.setattr("superarm.service.http.service.REREAD_SECONDS", 0.005)
    store = Failing()
    key, row = make_key("shop", ("read",))
    store.keys = [row]

    async def live() -> None:
        async with serving(application(store)) as http:
            headers = {"authorization": f"Bearer {key}"}
            store.down = True
            await asyncio.sleep(0.05)
            assert (await http.get("/v1/problems", headers=headers)).status_code == 200
            assert (await http.get("/v1/problems")).status_code == 401
            store.down, store.keys = False, [row._replace(revoked=1)]

            async def refused() -> bool:
                return (await http.get("/v1/problems", headers=headers)).status_code == 401

            await until(refused)

    asyncio.run(live())


class Counted(Memory):
    """A memory of one's own that keeps a count under a name of its own, and fails where a test says."""

    fails: ClassVar[set[str]] = set()
    key: ClassVar[str] = "rows"
    n = 0.0

    def note(self, feedback, weight):
        if "learn" in self.fails:
            raise ZeroDivisionError("nothing was learnt")
        self.n += weight

    def warm(self, past, t, weight=1.0):
        self._change()
        super().warm(past, t, weight)

    def grown(self, problem, t):
        self._change()
        return super().grown(problem, t)

    def _change(self):
        if "change" in self.fails:
            raise ZeroDivisionError("nothing was changed")

    def beside(self):
        return {self.key: np.array([self.n])}

    def take_beside(self, arrays):
        self.n = float(arrays[self.key][0])


class Faulty(Policy):
    remembers = Counted

    def choose(self, problem, view, memory):
        return problem.actions.heaviest(view.tally.mean.sum(1) + 1.0 / (1.0 + view.counts), view)


@pytest.fixture
def faulty(monkeypatch):
    monkeypatch.setitem(components.POLICIES, "faulty", Faulty)
    monkeypatch.setattr(Counted, "fails", set())
    return {"arms": ["a", "b", "c"], "k": 2, "settings": {"policy": {"name": "faulty"}}}


ONE = {"feedback": [{"arm": "a", "value": 1}]}
CHANGES = [
    ("POST", "/arms", {"add": ["d"]}),
    ("POST", "/outcomes", {"id": "past", "arms": ["a"], "outcomes": [[1]]}),
    ("POST", "/items", {"add": ["x"]}),
]


@pytest.mark.parametrize("key", ["rows", "blocks", "newest", "point", "prior", "kept"])
def test_a_policy_may_keep_its_state_under_any_name(faulty, monkeypatch, key):
    """Some names were taken for what policies of superarm keep: the service could not be started again."""
    monkeypatch.setattr(Counted, "key", key)
    store = MemoryStore()

    async def live(start: int) -> float:
        app = application(store)
        async with serving(app) as http:
            if not start:
                assert (await http.put("/v1/problems/p", json=faulty)).status_code == 201
            assert (await http.post("/v1/problems/p/decisions", json={"id": f"d{start}"})).status_code == 201
            assert (await http.post(f"/v1/problems/p/decisions/d{start}/feedback", json=ONE)).status_code == 200
            for method, path, body in CHANGES[start : start + 1]:
                assert (await http.request(method, f"/v1/problems/p{path}", json=body)).status_code == 200
            return app.service.coordinator.ledger.problems["default", "p"].learner.memory.n

    assert [asyncio.run(live(start)) for start in range(3)] == [1.0, 2.0, 3.0]


def test_a_change_that_a_policy_cannot_take_is_refused_before_it_is_written(faulty):
    store = MemoryStore()

    async def live() -> None:
        async with serving(application(store)) as http:
            assert (await http.put("/v1/problems/p", json=faulty)).status_code == 201
            Counted.fails = {"change"}
            for method, path, body in CHANGES:
                refused = await http.request(method, f"/v1/problems/p{path}", json=body)
                assert (refused.status_code, "nothing was changed" in refused.text) == (422, True), refused.text
            assert len(store.lines) == 1
            assert (await http.post("/v1/problems/p/decisions", json={})).status_code == 201

    asyncio.run(live())


@pytest.mark.parametrize("fails", [False, True])
def test_a_decision_is_answered_before_the_fit_that_it_makes_due(monkeypatch, fails):
    """It waited for it; and a fit that failed ended the service."""
    go_on, n_fits = threading.Event(), []

    def plan(memory, t, within=NEVER):
        n_fits.append(go_on.wait(60.0))
        return 1 / 0 if fails else before(memory, t, within)

    before = PoolMemory.plan
    monkeypatch.setattr(PoolMemory, "plan", plan)
    store, spec = MemoryStore(), {"arms": ["a", "b", "c"], "k": 1, "settings": {"policy": {"name": "pooled_thompson"}}}

    async def live() -> None:
        async with serving(application(store)) as http:
            assert (await http.put("/v1/problems/p", json=spec)).status_code == 201
            ask = partial(http.post, "/v1/problems/p/decisions", json={})
            assert (await asyncio.wait_for(ask(), 30.0)).status_code == 201
            go_on.set()
            assert (await ask()).status_code == 201
            assert (await http.get("/v1/problems/p")).json()["decisions"] == 2

    asyncio.run(live())
    assert n_fits == ([True, True] if fails else [True])
    kinds = [decode(line.body).__class__ for line in store.lines]
    assert kinds == [Created, Asked, Asked] if fails else [Created, Asked, Fitted, Asked]


def test_a_problem_whose_events_cannot_be_applied_is_closed_alone(faulty, reopen):
    """It ended the whole service, which could not be started again."""

    async def first() -> None:
        async with serving(application(reopen())) as http:
            for name, spec in (("p", faulty), ("q", SPEC)):
                assert (await http.put(f"/v1/problems/{name}", json=spec)).status_code == 201
                assert (await http.post(f"/v1/problems/{name}/decisions", json={"id": name})).status_code == 201
            Counted.fails = {"learn"}
            await is_closed(http, await http.post("/v1/problems/p/decisions/p/feedback", json=ONE))

    async def is_closed(http: httpx.AsyncClient, *more: httpx.Response) -> None:
        replies = [*more, await http.get("/v1/problems/p/arms"), await http.put("/v1/problems/p", json=faulty)]
        replies += [await http.post("/v1/problems/p/decisions", json={}), await http.get("/?problem=p")]
        replies += [await http.get("/v1/problems/p/decisions/p"), await http.delete("/v1/problems/p")]
        for reply in replies:
            assert (reply.status_code, "nothing was learnt" in reply.text) == (503, True), reply.text
        health = await http.get("/health")
        assert (health.status_code, "1 of the problems" in health.json()["reason"]) == (200, True), health.text
        assert (await http.get("/v1/problems")).json() == {"problems": ["p", "q"]}
        assert "superarm_closed_problems 1" in (await http.get("/metrics")).text
        assert (await http.post("/v1/problems/q/decisions", json={})).status_code == 201

    async def closed_again() -> None:
        async with serving(application(reopen())) as http:
            for name in "pq":  # where problems are owned, they are read when they are asked for
                await http.get(f"/v1/problems/{name}")
            await is_closed(http)
        with contextlib.closing(reopen(reading=True)) as store:
            assert any("nothing was learnt" in fault for fault in verify(store).faults)

    async def repaired() -> None:
        Counted.fails = set()
        async with serving(application(reopen())) as http:
            assert (await http.get("/v1/problems/p/arms")).json()["arms"][0]["pulls"] == 1.0
            assert (await http.post("/v1/problems/p/decisions", json={})).status_code == 201

    asyncio.run(first())
    asyncio.run(closed_again())
    asyncio.run(repaired())


def test_no_snapshot_is_saved_that_has_waited_for_a_change_that_closes_a_problem(faulty):
    """It had no counters of that problem, which was served from zero after a restart."""
    store = MemoryStore()

    async def live() -> None:
        app = application(store)
        async with serving(app) as http:
            assert (await http.put("/v1/problems/p", json=faulty)).status_code == 201
            coordinator = app.service.coordinator
            async with coordinator.lock_all():
                saving = asyncio.create_task(coordinator.save_snapshot())
                for _ in range(10):
                    await asyncio.sleep(0)  # so that it waits for the locks
                coordinator.ledger.close(("default", "p"), ZeroDivisionError("nothing was learnt"))
            await saving
            assert list(store.snapshots()) == []

    asyncio.run(live())


def test_a_stalled_commit_and_a_full_queue_are_not_ready(monkeypatch):
    store = MemoryStore()

    async def live() -> None:
        app = application(store, ServiceLimits(queue=1))
        async with serving(app) as http:
            coordinator = app.service.coordinator
            assert await is_ready(http)
            coordinator.writer.depth = 1
            assert (await http.get("/health")).status_code == 503
            coordinator.writer.depth = 0
            coordinator.writer._busy_since = time.monotonic() - writers.STALLED_SECONDS - 1.0
            assert "has not ended" in (await http.get("/health")).json()["reason"]
            await coordinator.look()
            assert coordinator.condition.status == "unavailable"
            coordinator.writer._busy_since = None
            await coordinator.look()
            await until(lambda: is_ready(http))

    asyncio.run(live())


def test_postgresql_is_killed_and_comes_back(postgres_server):
    url = fresh(postgres_server.address, "outage")
    try:
        asyncio.run(_outlive(postgres_server, url))
    finally:
        if postgres_server.server.poll() is not None:
            postgres_server.start()


async def _outlive(database: Database, url: str) -> None:
    async with serving(application(Postgres(url))) as http:
        assert (await http.put("/v1/problems/p", json=SPEC)).status_code == 201
        assert (await http.post("/v1/problems/p/decisions", json={"id": "d0"})).status_code == 201
        database.kill()
        for n in range(3):
            refused = await http.post("/v1/problems/p/decisions", json={"id": f"lost{n}"})
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert (await http.get("/health")).status_code == 503
        assert (await http.get("/health/live")).status_code == 200
        assert (await http.get("/v1/problems/p")).json()["decisions"] == 1
        async with serving(application(Postgres(url, wait=True), patience=0.05)) as restarted:
            assert (await restarted.get("/health")).json()["status"] == "starting"
            await asyncio.to_thread(database.start)
            await until(lambda: is_ready(restarted))
            await until(lambda: is_ready(http))
            assert (await http.post("/v1/problems/p/decisions", json={"id": "d1"})).status_code == 201
            assert (await restarted.get("/v1/problems/p/decisions/d1")).status_code == 200  # the first releases it
    reader = Postgres(url, serving=False)
    assert verify(reader).faults == []
    assert sorted(read.entry.stream for read in reader.tail({})) == ["p", "p/d0", "p/d1"]
    reader.close()
