"""Snapshots taken while the service runs: each holds exactly what the log says up to its position."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from superarm.errors import SuperarmError
from superarm.service.asking import ask
from superarm.service.changing import create
from superarm.service.desk import Desk
from superarm.service.events import Armed, Asked, Told, encode
from superarm.service.ledger import Entry
from superarm.service.postgres import Postgres
from superarm.service.refusal import Refusal
from superarm.service.snapshot import counted, restored, taken
from superarm.service.spec import PolicySpec, ProblemSpec, Settings
from superarm.service.sqlite import Sqlite
from superarm.service.store import Line, Read, Store
from superarm.service.telling import tell
from superarm.service.verify import Repaired, repair, verify
from superarm.service.wire import AskBody, TellBody, UnitBody
from superarm.service.writer import command

from .database import fresh
from .running import Server, invoke
from .test_ledger import created

SPEC = ProblemSpec(arms=["a", "b", "c"], k=2, settings=Settings(policy=PolicySpec("bc_ucb"), window_s=None))


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        store: Store = Sqlite(tmp_path / "log.db", lock=False)
    else:
        store = Postgres(fresh(request.getfixturevalue("postgres"), "snapshots"))
    yield store
    store.close()


async def decide(desk: Desk, first: int, last: int) -> None:
    """Decisions ``first`` to ``last``, and feedback to two of every three."""
    for n in range(first, last + 1):
        record, _ = await ask(desk, "t", "p", AskBody(id=f"d{n}"))
        if n % 3:
            arms = [SPEC.arms[arm] for arm in record.action]
            await tell(desk, ("t", f"d{n}"), TellBody([UnitBody(arm, value=n % 2) for arm in arms]))


async def opened(store: Store, snapshot_every: int) -> Desk:
    desk = Desk(store, snapshot_every=snapshot_every)
    await desk.start()
    return desk


def counters(ledger: object) -> dict:
    return {key: counted(*key, learner) for key, learner in ledger.problems.items()}


@pytest.mark.parametrize("every", [1, 7, 30])
def test_a_restart_from_a_snapshot_that_was_taken_while_running_counts_every_event_once(store, every):
    async def live() -> Desk:
        desk = await opened(store, every)
        await create(desk, "t", "p", SPEC, "", 10)
        await decide(desk, 1, 30)
        await desk.writer.stop()  # and then it is gone, without a word
        return desk

    desk = asyncio.run(live())
    ledger, position, folded = restored(store)
    assert folded < every
    assert position == desk.position
    assert counters(ledger) == counters(desk.ledger)
    assert ledger.open == desk.ledger.open
    assert ledger.waiting == desk.ledger.waiting
    assert verify(store).faults == []


def test_a_worker_that_joins_after_a_snapshot_agrees_with_its_peer(postgres):
    db = fresh(postgres, "joins")
    spec = {"arms": ["a", "b", "c"], "k": 2, "settings": {"policy": {"name": "bc_ucb"}, "window_s": None}}
    with Server(db, "--snapshot-every", "20") as first:
        httpx.put(f"{first.url}/v1/problems/p", json=spec, timeout=60.0).raise_for_status()
        with httpx.Client(base_url=first.url, timeout=30.0) as http:
            for n in range(40):
                made = http.post("/v1/problems/p/decisions", json={"id": f"d{n}"}).json()
                units = [{"arm": arm, "value": n % 2} for arm in made["arms"]]
                http.post(f"/v1/decisions/d{n}/feedback", json={"feedback": units}).raise_for_status()
            with Server(db) as second:
                there = httpx.get(f"{second.url}/v1/problems/p/arms", timeout=30.0).json()
            assert there == http.get("/v1/problems/p/arms").json()
        assert sum(row["pulls"] for row in there["arms"]) == 80
        assert all(row["pending"] == 0 for row in there["arms"])


def line(stream: str, step: int, event: object) -> Line:
    return Line("t", "decision", stream, step, encode(event))


def test_a_snapshot_holds_all_of_what_was_read_of_another_worker_at_once(postgres):
    """PostgreSQL gives events stream by stream, not by number: a snapshot between two of them would lose the rest."""
    url = fresh(postgres, "order")
    mine, other = Postgres(url), Postgres(url)

    async def live() -> Desk:
        desk = await opened(mine, 4)
        other.commit([Line("t", "problem", "p", 0, encode(created()))])
        for id in ("z", "m", "b", "a"):  # in an order that is not the alphabet's
            other.commit([line(id, 0, Asked(0, "p", id, "", 1, (0, 1), 2, 1))])
            other.commit([line(id, 1, Told(0, [(0, -1, 1.0), (1, -1, 0.5)]))])
        await desk.catch_up()
        await desk.writer.stop()
        return desk

    desk = asyncio.run(live())
    assert list(mine.snapshots())
    ledger, position, _ = restored(mine)
    assert (position, counters(ledger)) == (desk.position, counters(desk.ledger))
    assert verify(mine).faults == []
    mine.close()
    other.close()


class LostAnswers(Sqlite):
    """A store whose commit reaches the disk and then fails, and which cannot be read at first after that."""

    failing = unreadable = False

    def commit(self, lines: list[Line]) -> list[int]:
        kept = super().commit(lines)
        if self.failing:
            self.failing, self.unreadable = False, True
            raise OSError("the connection was lost")
        return kept

    def tail(self, *args: object, **more: object) -> Iterator[Read]:
        if self.unreadable:
            self.unreadable = False
            raise OSError("the connection was lost")
        return super().tail(*args, **more)


def test_an_event_whose_answer_was_lost_counts_before_any_later_one(tmp_path):
    store = LostAnswers(tmp_path / "log.db")

    async def live() -> Desk:
        desk = await opened(store, 1)
        await create(desk, "t", "p", SPEC, "", 10)
        await decide(desk, 1, 2)
        store.failing = True
        for _ in range(2):  # the second time the log cannot be read, so it is not known yet what reached it
            with pytest.raises(Refusal, match="cannot be written"):
                await ask(desk, "t", "p", AskBody(id="lost"))
        await decide(desk, 3, 5)
        await ask(desk, "t", "p", AskBody(id="lost"))
        await desk.stop()
        return desk

    desk = asyncio.run(live())
    assert ("t", "lost") in desk.ledger.open
    again = Sqlite(tmp_path / "log.db")
    ledger, position, folded = restored(again)
    assert folded == 0
    assert (position, counters(ledger)) == (desk.position, counters(desk.ledger))
    assert verify(again).faults == []
    again.close()


def test_stopping_leaves_a_snapshot_of_everything_that_was_queued(tmp_path):
    async def live() -> None:
        desk = await opened(Sqlite(tmp_path / "log.db"), 1_000)
        await create(desk, "t", "p", SPEC, "", 10)
        asks = [asyncio.create_task(ask(desk, "t", "p", AskBody(id=f"d{n}"))) for n in range(100)]
        while not desk.writer.depth:
            await asyncio.sleep(0)
        await desk.stop()
        await asyncio.gather(*asks, return_exceptions=True)

    asyncio.run(live())
    store = Sqlite(tmp_path / "log.db")
    assert store.last() > 1
    assert restored(store)[2] == 0
    assert verify(store).faults == []
    store.close()


def test_others_events_may_build_on_one_of_this_worker_that_was_not_reported_yet(postgres):
    """A commit is seen by other workers before its report has reached this worker's event loop."""
    url = fresh(postgres, "early")
    mine, other = Postgres(url), Postgres(url)

    async def live() -> Desk:
        desk = await opened(mine, 2)
        problem = [(0, created()), (1, Armed(0, ["more"], [], ""))]
        lines = [command(Entry("t", "problem", "p", step, event), asyncio.Future()) for step, event in problem]
        kept = mine.commit([line.line for line in lines])
        other.commit([line("d", 0, Asked(0, "p", "d", "", 1, (0, 4), 2, 1))])
        await desk.catch_up()
        desk.committed(lines, kept)
        assert all(line.done.result() for line in lines)
        await desk.writer.stop()
        return desk

    desk = asyncio.run(live())
    learner = desk.ledger.problems["t", "p"]
    assert (learner.step, learner.pending.tolist()) == (1, [1.0, 0.0, 0.0, 0.0, 1.0])
    assert counters(restored(mine)[0]) == counters(desk.ledger)
    assert verify(mine).faults == []
    mine.close()
    other.close()


def damage(store: Store) -> None:
    """Save what the defect saved: a snapshot that holds event N under position N - 1."""
    ledger, position, _ = restored(store)
    store.save(taken(ledger, {worker: seq - 1 for worker, seq in position.items()}))


def fill(store: Store) -> None:
    store.commit([Line("t", "problem", "p", 0, encode(created()))])
    for n in range(1, 9):
        store.commit([line(f"d{n}", 0, Asked(0, "p", f"d{n}", "", n, (0, 1), 2, 1))])
    store.save(taken(*restored(store)[:2]))
    store.commit([line("d3", 1, Told(0, [(0, -1, 1.0), (1, -1, 0.5)]))])


def test_repair_rebuilds_a_snapshot_that_counts_an_event_twice(store):
    fill(store)
    damage(store)
    assert restored(store)[0].problems["t", "p"].tally.pulls[0] == 2.0  # told once
    assert len(verify(store).faults) == 3  # the counters, the snapshot's counters and its open decisions
    assert repair(store) == Repaired(deleted=1, kept=1, events=10)
    ledger, _, folded = restored(store)
    assert folded == 0
    assert ledger.problems["t", "p"].tally.pulls[0] == 1.0
    assert verify(store).faults == []
    assert repair(store) == Repaired(deleted=0, kept=2, events=0)


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
    assert "deleted 1 snapshots that disagreed with the log, kept 1" in done.stdout
    assert "wrote a snapshot of all 10 events" in done.stdout
    assert "sound" in done.stdout
    assert "nothing to repair" in invoke("verify", "--repair", "--db", str(path)).stdout
    assert invoke("verify", "--db", str(path)).exit_code == 0


def test_repair_refuses_a_database_that_a_worker_uses(postgres):
    url = fresh(postgres, "used")
    working, idle = Postgres(url), Postgres(url, slot=False)
    with pytest.raises(SuperarmError, match="1 workers of a service use this database"):
        repair(idle)
    working.close()
    idle.close()
    idle = Postgres(url, slot=False)
    assert repair(idle) == Repaired(0, 0, 0)
    with pytest.raises(SuperarmError, match="taken"):
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


def test_a_snapshot_that_an_earlier_version_may_have_spoilt_is_passed_over(tmp_path, monkeypatch):
    store = Sqlite(tmp_path / "log.db")
    fill(store)
    monkeypatch.setattr("superarm.service.snapshot.FORMAT", 1)
    damage(store)
    assert restored(store)[2] == 1  # a log as short as this had no snapshot that was taken while running
    monkeypatch.setattr("superarm.service.snapshot.UNSOUND_EVENTS", 9)
    ledger, _, folded = restored(store)
    assert folded == 1  # from the older snapshot, of the format that is trusted
    assert ledger.problems["t", "p"].tally.pulls[0] == 1.0
    store.close()


def test_verify_reads_one_state_of_a_log_that_grows_meanwhile(store):
    fill(store)
    other = Postgres(store._url) if store.shared else Sqlite(store.path, lock=False)
    read, numbers = store.tail, iter(range(100, 200))

    def growing(*args: object, **more: object) -> Iterator[Read]:
        yield from read(*args, **more)
        n = next(numbers)
        other.commit([line(f"d{n}", 0, Asked(0, "p", f"d{n}", "", n, (0, 1), 2, 1))])

    store.tail = growing
    report = verify(store)
    other.close()
    assert report.faults == []
    assert (report.events, report.open) == (10, 7)
    assert len(list(read({}))) > 10  # it did grow
