"""Snapshots taken while the service runs: each holds exactly what the log says up to its position."""

import asyncio
import contextlib
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from msgspec import ValidationError, msgpack

from superarm.core.errors import SuperarmError
from superarm.decisions import Told, open_record
from superarm.service.application import application
from superarm.service.domain.events import Asked, encode
from superarm.service.domain.ledger import Ledger, LogEntry
from superarm.service.domain.spec import PolicySpec, ProblemSpec, Settings
from superarm.service.errors import RequestError
from superarm.service.http.service import ServiceLimits
from superarm.service.runtime.admin import create
from superarm.service.runtime.ask import ask
from superarm.service.runtime.coordinator import Coordinator
from superarm.service.runtime.feedback import tell
from superarm.service.schemas import AskBody, TellBody, UnitBody
from superarm.service.storage import snapshot as snapshots
from superarm.service.storage.base import LogLine, ReadEntry, SavedSnapshot, Store, StoreUnavailable
from superarm.service.storage.postgres import Postgres
from superarm.service.storage.postgres_tables import MADE_FOR
from superarm.service.storage.snapshot import (
    Snapshot,
    copy_state,
    decode_snapshot,
    encode_counters,
    pack_snapshot,
    repair,
    restore_ledger,
    take_snapshot,
    verify,
)
from superarm.service.storage.sqlite import Sqlite

from .database import fresh
from .inprocess import serving
from .replaying import replay
from .running import DECISIONS, invoke
from .test_ledger import created

SPEC = ProblemSpec(arms=["a", "b", "c"], k=2, settings=Settings(policy=PolicySpec("bc_ucb"), window_s=None))

PLAIN = {"policy": {"name": "kl_ucb"}, "window_s": None}


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        store: Store = Sqlite(tmp_path / "log.db", lock=False)
    else:
        store = Postgres(fresh(request.getfixturevalue("postgres"), "snapshots"))
    yield store
    store.close()


async def decide(coordinator: Coordinator, first: int, last: int) -> None:
    """Decisions ``first`` to ``last``, and feedback to two of every three."""
    for n in range(first, last + 1):
        record, _ = await ask(coordinator, "t", "p", AskBody(id=f"d{n}"))
        if n % 3:
            arms = [SPEC.arms[arm] for arm in record.action]
            await tell(coordinator, "t", "p", f"d{n}", TellBody([UnitBody(arm, value=n % 2) for arm in arms]))


async def opened(store: Store, snapshot_every: int) -> Coordinator:
    coordinator = Coordinator(store, snapshot_every=snapshot_every)
    await coordinator.start()
    return coordinator


def counters(ledger: object) -> dict:
    return {key: encode_counters(*key, learner) for key, learner in ledger.problems.items()}


@pytest.mark.parametrize("every", [1, 7, 30])
def test_a_restart_from_a_snapshot_that_was_taken_while_running_counts_every_event_once(tmp_path, every):
    """The event that made a snapshot due was counted once more after a restart."""
    store = Sqlite(tmp_path / "log.db", lock=False)

    async def live() -> Coordinator:
        coordinator = await opened(store, every)
        await create(coordinator, "t", "p", SPEC, "", 10)
        await decide(coordinator, 1, 30)
        await asyncio.gather(*coordinator._tasks)
        await coordinator.writer.stop()  # and then it is gone, without a word
        return coordinator

    coordinator = asyncio.run(live())
    ledger, position, folded = restore_ledger(store)
    assert folded < every
    assert position == coordinator.position
    assert counters(ledger) == counters(coordinator.ledger)
    assert ledger.pending == coordinator.ledger.pending
    assert ledger.n_pending == coordinator.ledger.n_pending
    assert verify(store).faults == []
    store.close()


def test_decisions_are_made_while_a_snapshot_is_packed(tmp_path, monkeypatch):
    """Others wait only while the state is copied, and what they change then is not in the snapshot."""
    store, packing, go_on = Sqlite(tmp_path / "log.db", lock=False), threading.Event(), threading.Event()

    def pack(state: Snapshot) -> SavedSnapshot:
        packing.set()
        assert go_on.wait(60)
        return pack_snapshot(state)

    monkeypatch.setattr("superarm.service.runtime.coordinator.pack_snapshot", pack)

    async def live() -> int:
        coordinator = await opened(store, 10_000)
        await create(coordinator, "t", "p", SPEC, "", 10)
        await decide(coordinator, 1, 30)
        saving, before = asyncio.create_task(coordinator.save_snapshot()), coordinator.position[""]
        assert await asyncio.to_thread(packing.wait, 60)
        await asyncio.wait_for(decide(coordinator, 31, 40), 60)
        go_on.set()
        await saving
        await coordinator.writer.stop()
        return coordinator.position[""] - before

    assert 0 < asyncio.run(live()) == restore_ledger(store)[2]
    assert verify(store).faults == []
    (saved,) = store.snapshots()
    assert len(saved.body) < 0.5 * len(zlib.decompress(saved.body)), "commits wait while it is written"
    store.close()


def line(stream: str, step: int, event: object) -> LogLine:
    return LogLine("t", "decision", stream, step, encode(event), "p")


class LostAnswers(Sqlite):
    """A store whose commit reaches the disk and then fails, and which cannot be read at first after that."""

    failing = unreadable = False

    def commit(self, lines: list[LogLine]) -> list[int]:
        kept = super().commit(lines)
        if self.failing:
            self.failing, self.unreadable = False, True
            raise OSError("the connection was lost")
        return kept

    def find(self, lines: list[LogLine]) -> list[int]:
        if self.unreadable:
            self.unreadable = False
            raise StoreUnavailable("the connection was lost")
        return super().find(lines)


def test_a_snapshot_in_parts_is_the_whole(monkeypatch):
    """A million pending decisions, encoded in one piece, kept everybody waiting for 0.7 seconds."""
    ledger = Ledger()
    ledger.apply(LogEntry("t", "problem", "p", 0, created()))
    monkeypatch.setattr(snapshots, "ENCODED_AT_ONCE", 2)
    for n in range(6):
        state = copy_state(ledger, {"": n})
        assert decode_snapshot(pack_snapshot(state)) == msgpack.decode(msgpack.encode(state), type=Snapshot)
        assert len(state.open) == n
        ledger.apply(LogEntry("t", "decision", f"d{n}", 0, Asked(0, "p", f"d{n}", "", n, (0, 1), 2, 1)))


def test_decisions_of_other_problems_come_while_one_is_copied_or_released():
    """Where workers own single problems, a decision of another one, at that moment, ended the whole worker."""
    ledger = Ledger()

    class Busy(tuple):
        """A key; whenever it is looked at, another decision comes."""

        def __getitem__(self, n: int) -> object:
            ledger.pending["t", f"q/{len(ledger.pending)}"] = record
            return super().__getitem__(n)

    ledger.apply(LogEntry("t", "problem", "p", 0, created()))
    for n in range(3):
        ledger.apply(LogEntry("t", "decision", f"p/d{n}", 0, Asked(0, "p", f"d{n}", "", n, (0, 1), 2, 1)))
    record = open_record(Asked(0, "q", "d", "", 1, (0, 1), 2, 1))
    ledger.pending = {Busy(key): one for key, one in ledger.pending.items()}
    assert [one.asked.id for _, one in copy_state(ledger, {}, ("t", "p")).open] == ["d0", "d1", "d2"]
    ledger.remove(("t", "p"))
    assert {one.asked.problem for one in ledger.pending.values()} == {"q"}


def test_an_event_whose_answer_was_lost_counts_before_any_later_one(tmp_path):
    store = LostAnswers(tmp_path / "log.db")

    async def live() -> Coordinator:
        coordinator = await opened(store, 1)
        await create(coordinator, "t", "p", SPEC, "", 10)
        await decide(coordinator, 1, 2)
        await asyncio.gather(*coordinator._tasks)  # no snapshot is on its way
        store.failing = True
        for _ in range(2):  # the second time the log cannot be read, so it is not known yet what reached it
            with pytest.raises(RequestError, match="cannot be"):
                await ask(coordinator, "t", "p", AskBody(id="lost"))
        await decide(coordinator, 3, 5)
        await ask(coordinator, "t", "p", AskBody(id="lost"))
        await coordinator.stop()
        return coordinator

    coordinator = asyncio.run(live())
    assert ("t", "p/lost") in coordinator.ledger.pending
    again = Sqlite(tmp_path / "log.db")
    ledger, position, folded = restore_ledger(again)
    assert folded == 0
    assert (position, counters(ledger)) == (coordinator.position, counters(coordinator.ledger))
    assert verify(again).faults == []
    again.close()


def test_a_problem_whose_creation_was_not_answered_waits_for_a_snapshot(tmp_path):
    """Seed 20496 found it: the snapshot counted a decision of it that was being written."""
    store = LostAnswers(tmp_path / "log.db")

    async def live() -> None:
        coordinator = await opened(store, 1_000)
        store.failing = True
        with pytest.raises(RequestError, match="cannot be"):
            await create(coordinator, "t", "p", SPEC, "", 10)
        store.unreadable = False
        async with coordinator.lock_all():
            assert ("t", "p") in coordinator.ledger.problems
            asked = asyncio.create_task(ask(coordinator, "t", "p", AskBody(id="d")))
            for _ in range(5):
                await asyncio.sleep(0)
            assert not coordinator.ledger.problems["t", "p"].planned
            assert not coordinator.ledger.problems["t", "p"].learner.pending.any()
        assert (await asked)[1]
        await coordinator.stop()

    asyncio.run(live())


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    """JSON has no NaN: a context that became one was acknowledged, and the log could not be read any more."""
    store = Sqlite(tmp_path / "log.db")

    async def live() -> None:
        coordinator = await opened(store, 1_000)
        await create(coordinator, "t", "p", SPEC, "", 10)
        nan = Asked(0, "p", "d", "", 1, (0, 1), 1, 1, propensities=(0.5, float("nan")))
        with pytest.raises(ValidationError, match="null"):
            await coordinator.submit(("t", "p"), "d", lambda state, record: nan, new=True)
        assert not coordinator.ledger.problems["t", "p"].learner.pending.any()
        assert (await ask(coordinator, "t", "p", AskBody(id="d")))[1]
        await coordinator.stop()

    asyncio.run(live())
    again = Sqlite(tmp_path / "log.db")
    assert [read.entry.stream for read in again.tail({})] == ["p", "p/d"]
    again.close()


def test_stopping_leaves_a_snapshot_of_everything_that_was_queued(tmp_path):
    async def live() -> None:
        coordinator = await opened(Sqlite(tmp_path / "log.db"), 1_000)
        await create(coordinator, "t", "p", SPEC, "", 10)
        asks = [asyncio.create_task(ask(coordinator, "t", "p", AskBody(id=f"d{n}"))) for n in range(100)]
        while not coordinator.writer.depth:
            await asyncio.sleep(0)
        await coordinator.stop()
        await asyncio.gather(*asks, return_exceptions=True)

    asyncio.run(live())
    store = Sqlite(tmp_path / "log.db")
    assert len(list(store.tail({}))) > 1
    assert restore_ledger(store)[2] == 0
    assert verify(store).faults == []
    store.close()


def log_of(store: Store) -> Store:
    """The log that has the snapshots: in PostgreSQL, that of the problem."""
    return next(store.logs())


def damage(store: Store) -> None:
    """Save what the defect saved: a snapshot that holds event N under position N - 1."""
    ledger, position, _ = restore_ledger(log_of(store))
    log_of(store).save(take_snapshot(ledger, {worker: seq - 1 for worker, seq in position.items()}))


def fill(store: Store) -> None:
    if store.shards is not None:
        store.shards.acquire(("t", "p"))
        store.shards.admit(("t", "p"))
    store.commit([LogLine("t", "problem", "p", 0, encode(created()), "p")])
    for n in range(1, 9):
        store.commit([line(f"p/d{n}", 0, Asked(0, "p", f"d{n}", "", n, (0, 1), 2, 1))])
    log_of(store).save(take_snapshot(*restore_ledger(log_of(store))[:2]))
    store.commit([line("p/d3", 1, Told(0, [(0, -1, 1.0), (1, -1, 0.5)]))])


def test_repair_rebuilds_a_snapshot_that_counts_an_event_twice(store):
    fill(store)
    damage(store)
    assert restore_ledger(log_of(store))[0].problems["t", "p"].tally.pulls[0, 0] == 2.0  # told once
    assert verify(store).faults == [
        "the counters of problem 'p' differ from the fold of the log",
        "snapshot 1 of problem 'p' differ from the fold of the log",
        "snapshot 1: its open decisions differ from the fold of the log",
    ]
    assert repair(store) == 10
    ledger, _, folded = restore_ledger(log_of(store))
    assert folded == 0
    assert ledger.problems["t", "p"].tally.pulls[0, 0] == 1.0
    assert verify(store).faults == []
    assert repair(store) == 10


def test_repair_on_the_command_line_says_what_it_did_and_refuses_a_file_that_is_served(tmp_path):
    path = tmp_path / "log.db"
    store = Sqlite(path)
    fill(store)
    damage(store)
    served = invoke("verify", "--repair", "--db", str(path))
    assert served.exit_code == 2
    assert "served by another process" in served.stderr
    store.close()
    broken = invoke("verify", "--db", str(path))
    assert broken.exit_code == 1
    assert "superarm verify --repair" in broken.stderr
    done = invoke("verify", "--repair", "--db", str(path))
    assert done.exit_code == 0, done.stderr
    assert "replaced all snapshots by one of all 10 events" in done.stdout
    assert "sound" in done.stdout
    assert invoke("verify", "--db", str(path)).exit_code == 0


def test_repair_refuses_a_database_that_a_worker_uses(postgres):
    url = fresh(postgres, "used")
    working, idle = Postgres(url), Postgres(url, serving=False)
    with pytest.raises(SuperarmError, match="workers of a service use this database"):
        repair(idle)
    working.close()
    idle.close()
    idle = Postgres(url, serving=False)
    assert repair(idle) == 0
    with pytest.raises(SuperarmError, match="in use"):
        Postgres(url)
    idle.close()


def test_repair_leaves_a_damaged_log_alone(tmp_path):
    store = Sqlite(tmp_path / "log.db")
    fill(store)
    damage(store)
    store._writer.execute("UPDATE events SET crc = 0 WHERE seq = 4")
    with pytest.raises(SuperarmError, match="event 4 is damaged"):
        repair(store)
    assert len(list(store.snapshots())) == 2
    store.close()


def test_verify_reads_one_state_of_a_log_that_grows_meanwhile(store, monkeypatch):
    """Verify read the log twice, and found faults in one that grew in between."""
    fill(store)
    other = store if store.shards is not None else Sqlite(store.path, lock=False)
    part, numbers = type(log_of(store)), iter(range(100, 200))
    read = part.tail

    def growing(*args: object, **more: object) -> Iterator[ReadEntry]:
        yield from read(*args, **more)
        n = next(numbers)
        other.commit([line(f"p/d{n}", 0, Asked(0, "p", f"d{n}", "", n, (0, 1), 2, 1))])

    with monkeypatch.context() as patch:
        patch.setattr(part, "tail", growing)
        report = verify(store)
    assert report.faults == []
    assert (report.events, report.open) == (10, 7)
    assert len(list(store.tail({}))) > 10  # it did grow
    other.close()


def test_verify_folds_the_log_once(store, monkeypatch, caplog):
    """It was folded once more for the counters and for each snapshot, without kernels and without a word."""
    fill(store)
    log_of(store).save(take_snapshot(*restore_ledger(log_of(store))[:2]))
    done: list[int | str] = []
    apply = Ledger.apply

    def note(ledger: Ledger, entry: LogEntry) -> None:
        done.append(entry.step)
        apply(ledger, entry)

    monkeypatch.setattr(Ledger, "apply", note)
    monkeypatch.setattr("superarm.core.ops.load", lambda: done.append("kernels"))
    monkeypatch.setattr(snapshots, "KERNELS_FROM", 3)
    monkeypatch.setattr(snapshots, "PROGRESS_EVERY", 4)
    with caplog.at_level("INFO"):
        assert verify(store) == (10, 1, 7, 2, [])
    assert done[2] == "kernels"
    folded = [step for step in done if step != "kernels"]
    assert len(folded) == 10 + 3  # and the event of the problem, at two snapshots and in the one in use
    assert caplog.messages == ["4 events of the log were read", "8 events of the log were read"]


def test_a_long_log_is_read_in_parts(postgres, monkeypatch):
    """An erasure and verify held all events in memory: 1.5 kB each."""
    store = Postgres(fresh(postgres, "parts"))
    fill(store)
    monkeypatch.setattr("superarm.service.storage.postgres.ROWS_AT_ONCE", 3)
    for log in (store, log_of(store)):
        reads, kept = log.tail({}), "SELECT count(*) FROM pg_cursors"
        assert next(reads).seq == 1
        assert next(store.rows(kept, ())) == (1,), "the rest waits in the database"
        assert len(list(log.tail({}))) == 10
        assert sorted(read.seq for read in reads) == list(range(2, 11))
        assert next(store.rows(kept, ())) == (0,)
    store.close()


def test_postgresql_finds_the_decisions_of_a_unit_by_an_index(postgres):
    """An erasure read the whole log of all tenants."""
    url = fresh(postgres, "units")
    Postgres(url).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET enable_seqscan = off")  # which is faster in an empty table
        plan = connection.execute(f"EXPLAIN {MADE_FOR}", ("0" * 16,)).fetchall()
    assert any("Index Cond: (substr(body" in row[0] for row in plan), plan


@pytest.mark.parametrize("items", [["x"], "learn"])
def test_other_prices_without_a_new_arm_hold_and_outlive_a_restart(reopen, items):
    """They were ignored without a word, though the guide says that they are taken."""

    def knapsack(**costs: float) -> dict[str, object]:
        return {"name": "knapsack", "parameters": {"costs": costs, "budget": 3.0}}

    async def slates(http: httpx.AsyncClient, *ids: str) -> list[list[str]]:
        asked = [await http.post(DECISIONS, json={"id": id, "pinned": ["b"]}) for id in ids]
        return [one.json()["arms"] for one in asked]

    async def live() -> None:
        async with serving(application(reopen())) as http:
            spec = {"arms": ["a", "b", "c"], "items": items, "actions": knapsack(a=2, b=1, c=2)}
            (await http.put("/v1/problems/p", json=spec)).raise_for_status()
            assert [len(slate) for slate in await slates(http, "d0", "d1")] == [2, 2]
            dearer = {"actions": knapsack(a=2, b=3, c=2)}
            for _ in range(2):
                (await http.post("/v1/problems/p/arms", json=dearer)).raise_for_status()
            assert await slates(http, "d2") == [["b"]]
            refused = await http.post("/v1/problems/p/arms", json={"actions": knapsack(a=2, b=3)})
            assert refused.status_code == 422, refused.text
            changes = (await http.get("/v1/audit")).json()["entries"]
            assert [(one["what"], one["details"].get("actions")) for one in changes[:-1]] == [("arms", "knapsack")]

    async def again() -> None:
        async with serving(application(reopen())) as http:
            assert await slates(http, "d3") == [["b"]]

    asyncio.run(live())
    asyncio.run(again())
    with contextlib.closing(reopen(reading=True)) as store:
        assert verify(store).faults == []


def test_a_retired_arm_that_came_back_is_there_after_a_restart(reopen):
    """Review, A5: sold out and back in stock, by replay and by snapshot, on every store."""

    async def live():
        async with serving(application(reopen(), ServiceLimits(snapshot_every=4))) as http:
            await http.put("/v1/problems/p", json={"arms": list("abcd"), "k": 2, "settings": PLAIN})
            for n, change in enumerate([{"retire": ["a", "b"]}, {"add": ["a", "e"], "retire": ["c"]}, {"add": ["c"]}]):
                slate = (await http.post("/v1/problems/p/decisions", json={"id": f"d{n}"})).json()["arms"]
                await http.post(f"{DECISIONS}/d{n}/feedback", json={"outcome": [[1.0], [0.5]][: len(slate)]})
                assert (await http.post("/v1/problems/p/arms", json=change)).status_code == 200
            audit = (await http.get("/v1/audit")).json()["entries"]
            return await rows(http), audit[0]["details"]["n_restored"]

    async def rows(http):
        return (await http.get("/v1/problems/p/arms")).json()["arms"]

    async def again():
        async with serving(application(reopen())) as http:
            return await rows(http), (await http.post("/v1/problems/p/decisions", json={"id": "d3"})).json()["arms"]

    before, n_restored = asyncio.run(live())
    assert n_restored == 1
    assert [row["arm"] for row in before if row["retired"]] == ["b"]
    assert before[0]["pulls"] == 2  # before it was retired, and after it came back
    store = reopen(reading=True)
    assert verify(store).faults == []
    assert [one.same for one in replay(store, 4)] == [True] * 3
    store.close()
    after, slate = asyncio.run(again())
    assert after == before
    assert "b" not in slate
