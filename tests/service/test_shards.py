"""Workers that own single problems: locks, fences, moves, and logs that become logs of problems."""

import asyncio

import psycopg
import pytest

from superarm.core.errors import SuperarmError
from superarm.service.application import application
from superarm.service.domain.events import Asked, encode
from superarm.service.http.service import ServiceLimits
from superarm.service.runtime import ownership
from superarm.service.storage.base import MOVED, LogLine, StoreUnavailable
from superarm.service.storage.postgres import Postgres
from superarm.service.storage.snapshot import verify

from .database import fresh
from .inprocess import serving
from .shards import trial

pytestmark = pytest.mark.slow("PostgreSQL fleets")

SPEC = {"arms": ["a", "b", "c"], "items": ["x", "y"], "k": 2, "settings": {"policy": {"name": "cucb"}}}
P = ("default", "p")
JSON = {"content-type": "application/json"}
ASK = "/v1/problems/p/decisions"


def line(id: str, problem: str = "p") -> LogLine:
    asked = Asked(0, problem, id, "", 1, (0, 1), 2, 1)
    return LogLine("default", "decision", f"{problem}/{id}", 0, encode(asked), problem)


def owning(url: str, *problems: tuple[str, str]) -> Postgres:
    store = Postgres(url)
    for problem in problems:
        assert store.acquire(problem) is not None
        assert store.admit(problem)
    return store


def end_session(url: str, store: Postgres) -> None:
    """What PostgreSQL does to a worker that is silent for too long, or whose machine has gone."""
    pid = store._session.connection.info.backend_pid
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
        while connection.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone()[0]:
            pass


def streams(url: str) -> list[str]:
    reader = Postgres(url, serving=False)
    try:
        assert verify(reader).faults == []
        return sorted(read.entry.stream for read in reader.tail({}) if read.entry.step == 0)
    finally:
        reader.close()


def test_a_problem_has_one_owner_and_nobody_else_writes_its_events(postgres):
    url = fresh(postgres, "owners")
    first, second = owning(url, P), owning(url, ("default", "q"))
    assert second.acquire(P) is None
    assert first.commit([line("d1"), line("d2", "q"), line("d1"), line("d3")]) == [1, MOVED, 0, 3]
    assert second.commit([line("d1", "q"), line("d4", "q"), line("d5")]) == [1, 2, MOVED], "ids are those of a problem"
    first.release(P)
    assert first.commit([line("d6")]) == [MOVED]
    assert second.acquire(P) == 3
    assert second.commit([line("d6")]) == [MOVED], "not before its log was read"
    assert second.admit(P)
    assert second.commit([line("d6")]) == [4]
    for store in (first, second):
        store.close()


def test_a_worker_whose_session_has_ended_writes_nothing(postgres):
    url = fresh(postgres, "fenced")
    first, second = owning(url, P), owning(url)
    assert first.commit([line("d1")]) == [1]
    end_session(url, first)
    assert first.holds(P), "it does not know yet"
    assert second.acquire(P) == 1
    assert first.commit([line("d2")]) == [MOVED], "a new session has nothing that another worker owns"
    assert not first.holds(P)
    assert first.acquire(P) is None
    assert not first.admit(P)
    for store in (first, second):
        store.close()


def test_two_sessions_that_both_believe_to_own_a_problem_cannot_both_write(postgres):
    """Behind a pool that shares sessions, locks mean nothing; the primary key still refuses the second."""
    url = fresh(postgres, "pooled")
    first, second = owning(url, P), owning(url)
    second._session.locked["p/default/p"] = 0
    assert second.admit(P)
    assert first.commit([line("d1"), line("d2")]) == [1, 2]
    with pytest.raises(StoreUnavailable, match="another worker has written"):
        second.commit([line("d3")])
    assert not second.holds(P)
    first.close()
    second.close()


async def create_and_decide(http, name: str = "p", ids: tuple[str, ...] = ("d1", "d2")) -> None:
    assert (await http.put(f"/v1/problems/{name}", json=SPEC)).status_code == 201
    for id in ids:
        answer = (await http.post(f"/v1/problems/{name}/decisions", json={"id": id})).json()
        body = {"outcome": [[1, 0.5]] * len(answer["arms"])}
        told = await http.post(f"/v1/problems/{name}/decisions/{id}/feedback", json=body)
        assert told.json()["applied"], told.text


def sharded(store: Postgres, snapshot_every: int = 50_000):
    return application(store, ServiceLimits(snapshot_every=snapshot_every))


def test_a_problem_moves_to_the_worker_that_gets_its_requests(postgres, monkeypatch):
    monkeypatch.setattr(ownership, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(ownership, "WAIT_SECONDS", 0.2)
    url = fresh(postgres, "moving")

    async def live() -> None:
        first, second = Postgres(url), Postgres(url)
        async with serving(sharded(first, 2)) as one, serving(sharded(second)) as two:
            await create_and_decide(one)
            before = (await one.get("/v1/problems/p/arms")).json()
            refused = await two.post(ASK, json={"id": "d3"})
            assert (refused.status_code, "another worker" in refused.text) == (503, True)
            assert (await two.get("/v1/problems")).json() == {"problems": ["p"]}
            assert (await two.get("/v1/problems/unknown")).status_code == 404
            assert (await two.get("/v1/problems/other/decisions/d1")).status_code == 404

            monkeypatch.setattr(ownership, "IDLE_SECONDS", 0.0)  # no requests come to the first any more
            monkeypatch.setattr(ownership, "WAIT_SECONDS", 30.0)
            assert (await two.get("/v1/problems/p/arms")).json() == before
            monkeypatch.setattr(ownership, "IDLE_SECONDS", 3600.0)
            assert not first.holds(P)
            assert (await two.post(ASK, json={"id": "d3"})).status_code == 201
            repeated = await two.post(ASK, json={"id": "d1"})
            assert (repeated.status_code, repeated.json()["state"]) == (200, "complete")

    asyncio.run(live())
    assert streams(url) == ["p", "p/d1", "p/d2", "p/d3"]


def n_locks(url: str) -> int:
    query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchone()[0]


def test_names_without_a_problem_leave_nothing_behind(postgres):
    """A lock of each would fill the lock table of the whole cluster."""
    url = fresh(postgres, "names")

    async def live() -> None:
        app = sharded(Postgres(url))
        async with serving(app) as http:
            await create_and_decide(http)
            coordinator = app.service.coordinator
            known = [len(part) for part in (coordinator.ownership._used, coordinator.locks)]
            for n in range(5):
                wrong = SPEC | {"k": 5}
                assert (await http.put(f"/v1/problems/bad{n}", json=wrong)).status_code == 422
                assert (await http.put(f"/v1/problems/broken{n}", content=b"{", headers=JSON)).status_code == 400
                assert (await http.get(f"/v1/problems/none{n}")).status_code == 404
                assert (await http.post(f"/v1/problems/none{n}/decisions", json={})).status_code == 404
            assert [len(part) for part in (coordinator.ownership._used, coordinator.locks)] == known
            assert n_locks(url) == 1
            for _ in range(2):  # a name that was given up may be used again
                assert (await http.put("/v1/problems/gone", json=SPEC)).status_code == 201
                assert n_locks(url) == 2
                assert (await http.delete("/v1/problems/gone")).status_code == 200
                assert (await http.get("/v1/problems/gone")).status_code == 404
                assert n_locks(url) == 1

    asyncio.run(live())


@pytest.mark.parametrize("path", ["", "/d1/feedback"])
def test_a_request_whose_problem_moves_before_its_body_came_is_told_to_try_again(postgres, path):
    """404 would be final: clients would drop the feedback."""
    url = fresh(postgres, "gone")

    async def live() -> None:
        first = sharded(Postgres(url))
        async with serving(first) as http:
            await create_and_decide(http)

            async def body():
                yield b'{"id": "d1"}' if not path else b'{"feedback": '
                await first.service.coordinator.ownership._release(P)
                yield b"" if not path else b'[{"arm": "a", "value": 1}], "amend": true}'

            moved = await http.post(f"{ASK}{path}", content=body(), headers=JSON)
            assert (moved.status_code, "moved" in moved.text) == (503, True), moved.text
            again = await http.post(ASK, json={"id": "d1"})
            assert again.status_code == 200, again.text

    asyncio.run(live())


def test_a_fenced_worker_does_not_acknowledge_and_the_next_owner_knows_everything(postgres, monkeypatch):
    monkeypatch.setattr(ownership, "WAIT_SECONDS", 0.2)
    url = fresh(postgres, "fence")

    async def live() -> None:
        first, second = Postgres(url), Postgres(url)
        async with serving(sharded(first)) as one, serving(sharded(second)) as two:
            await create_and_decide(one)
            before = (await one.get("/v1/problems/p/arms")).json()
            end_session(url, first)
            assert (await two.get("/v1/problems/p/arms")).json() == before
            for _ in range(2):  # at first it does not know that its session has ended
                body = {"feedback": [{"arm": "a", "value": 0}], "amend": True}
                tried = [await one.post(ASK, json={"id": "d3"}), await one.post(f"{ASK}/d1/feedback", json=body)]
                assert [reply.status_code for reply in tried] == [503, 503], tried
            assert (await two.post(ASK, json={"id": "d4"})).status_code == 201

    asyncio.run(live())
    assert streams(url) == ["p", "p/d1", "p/d2", "p/d4"]


def test_a_worker_that_lost_its_session_and_nothing_else_goes_on(postgres):
    """It answered with 503 twice: for the write that found out, and because a new session owns nothing."""
    url = fresh(postgres, "alone")

    async def live() -> None:
        store = Postgres(url)
        async with serving(sharded(store)) as http:
            await create_and_decide(http)
            end_session(url, store)
            assert (await http.post(ASK, json={"id": "d3"})).status_code == 201
            assert (await http.post(ASK, json={"id": "d3"})).status_code == 200
            assert (await http.get("/v1/problems/p")).json()["pending"] == 1

    asyncio.run(live())
    assert streams(url) == ["p", "p/d1", "p/d2", "p/d3"]


def test_a_database_of_another_version_is_refused(postgres):
    url = fresh(postgres, "version")
    Postgres(url).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE superarm_version SET version = version + 1")
    with pytest.raises(SuperarmError, match="made by another version of superarm"):
        Postgres(url)


@pytest.mark.slow("nginx")
@pytest.mark.needs("nginx")
def test_behind_nginx_problems_move_and_nothing_is_lost_or_counted_twice(postgres_server, tmp_path):
    done = trial(postgres_server, tmp_path, 2, seed=1)
    assert (done["kill"], done["lose"]) == (1, 1)
