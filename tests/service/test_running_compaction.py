"""A log is compacted while it is served: requests are answered meanwhile, and an interruption does no harm."""

import asyncio
import sys

import pytest

from superarm.service.application import application
from superarm.service.http.service import ServiceLimits
from superarm.service.runtime import compacting
from superarm.service.runtime.compacting import compact_served
from superarm.service.runtime.writer import Writer
from superarm.service.storage.archive import read_archive
from superarm.service.storage.snapshot import restore_ledger, verify
from superarm.service.storage.sqlite import Sqlite

from .inprocess import serving
from .running import invoke
from .test_compaction import LATER, Interrupted, show
from .test_erasure import ASK, SETTINGS, use


async def ask_and_tell(http, until: asyncio.Event, name: str) -> int:
    """Decisions with feedback, one after the other: how many."""
    n = 0
    while not until.is_set():
        reply = await http.post(ASK, json={"id": f"{name}-{n}"})
        assert reply.status_code == 201, reply.text
        feedback = [{"arm": arm, "value": n % 2} for arm in reply.json()["arms"]]
        told = await http.post(f"{ASK}/{name}-{n}/feedback", json={"feedback": feedback})
        assert told.status_code == 200, told.text
        n += 1
    return n


def decisions_of(store) -> set[str]:
    return {read.entry.stream for read in store.tail({}) if read.entry.kind == "decision"}


def test_requests_are_answered_while_old_decisions_leave(tmp_path, monkeypatch):
    """Also those of a deleted problem, and of an erased person, of whom nothing is left in the file."""
    monkeypatch.setattr(compacting, "MAX_REMOVED_AT_ONCE", 3)
    db, directory = tmp_path / "log.db", tmp_path / "archive"
    app = application(Sqlite(db), ServiceLimits(snapshot_every=10))
    before, erased = set[str](), set[str]()

    async def live() -> None:
        async with serving(app) as http:
            erased.update(await use(http, SETTINGS["control"]))
            await http.post("/v1/problems/p/erasures", json={"unit": "unit-1"})
            await http.put("/v1/problems/q", json={"arms": ["a"], "k": 1})
            await http.post("/v1/problems/q/decisions", json={"id": "gone"})
            await http.delete("/v1/problems/q")
            shown = await show(http)
            before.update(decisions_of(app.service.store) - {"gone"} - erased)
            pending = {id for _, id in app.service.coordinator.ledger.pending}
            done = await compact_served(app.service.coordinator, directory, LATER)
            assert (done.archived, done.removed) == (len(before - pending), len(erased) + 1)
            assert await show(http) == shown
            stop, clients = asyncio.Event(), []
            for n in range(3):
                clients.append(asyncio.create_task(ask_and_tell(http, stop, f"load{n}")))
            while len(decisions_of(app.service.store)) < len(pending) + 20:
                await asyncio.sleep(0.01)
            again = await compact_served(app.service.coordinator, directory, LATER)
            stop.set()
            n_asked = sum(await asyncio.gather(*clients))
            assert again.archived >= 15
            left = decisions_of(app.service.store)
            assert len(left) == len(pending) + n_asked - again.archived
            assert (await http.get(f"/v1/decisions/{min(before - pending)}")).status_code == 404
            audit = (await http.get("/v1/audit?problem=p")).json()["entries"]
            assert sum(one["details"]["decisions"] for one in audit if one["what"] == "compacted") == (
                done.archived + len(erased) + again.archived
            )

    asyncio.run(live())
    reader = Sqlite(db, lock=False)
    assert verify(reader).faults == []
    files = sorted(directory.iterdir())
    archived = [read.entry.stream for path in files for read in read_archive(path) if read.entry.step == 0]
    assert len(archived) == len(set(archived))
    assert not set(archived) & decisions_of(reader)
    assert before <= set(archived) | decisions_of(reader)
    reader.close()
    assert not any(f'"id":"{id}"'.encode() in db.read_bytes() for id in erased)


@pytest.mark.parametrize("n_done", [0, 1, 2])
def test_an_interruption_leaves_a_log_that_can_be_served(tmp_path, monkeypatch, n_done):
    """The process ends before the base is written, after it, or when some decisions were removed."""
    monkeypatch.setattr(compacting, "MAX_REMOVED_AT_ONCE", 5)
    db = tmp_path / "log.db"
    app = application(Sqlite(db), ServiceLimits(snapshot_every=10))
    jobs = []

    async def run(writer, job) -> object:
        if getattr(job, "func", job).__qualname__.startswith(("_remove", "Sqlite.remove")):
            if len(jobs) == n_done:
                raise Interrupted
            jobs.append(job)
        return await in_writer(writer, job)

    in_writer = Writer.run
    monkeypatch.setattr(Writer, "run", run)

    async def live() -> list:
        async with serving(app) as http:
            await use(http, SETTINGS["plain"])
            with pytest.raises(Interrupted):
                await compact_served(app.service.coordinator, None, LATER)
            await http.post(ASK, json={"id": "after"})
            return await show(http)

    shown = asyncio.run(live())
    monkeypatch.setattr(Writer, "run", in_writer)
    reader = Sqlite(db, lock=False)
    assert verify(reader).faults == []
    reader.close()
    second = application(Sqlite(db))

    async def again() -> None:
        async with serving(second) as http:
            assert await show(http) == shown
            done = await compact_served(second.service.coordinator, None, LATER)
            assert done.removed > 0
            assert await show(http) == shown

    asyncio.run(again())
    reader = Sqlite(db, lock=False)
    assert verify(reader).faults == []
    pending = restore_ledger(reader)[0].pending
    assert decisions_of(reader) == {id for _, id in pending}
    reader.close()


def test_a_decision_that_leaves_can_be_asked_for_again_later(tmp_path):
    app = application(Sqlite(tmp_path / "log.db"))

    async def live() -> None:
        async with serving(app) as http:
            await use(http, SETTINGS["plain"], 20)
            coordinator = app.service.coordinator
            key = next(iter(coordinator.ledger.closed))
            coordinator.leaving.add(key)
            coordinator.ledger.closed.pop(key)
            for reply in (
                await http.get(f"/v1/decisions/{key[1]}"),
                await http.post(f"/v1/decisions/{key[1]}/feedback", json={"feedback": []}),
                await http.post(ASK, json={"id": key[1]}),
            ):
                assert (reply.status_code, reply.headers.get("retry-after")) == (503, "1"), reply.text
            coordinator.leaving.clear()
            assert (await http.get(f"/v1/decisions/{key[1]}")).status_code == 200

    asyncio.run(live())


def test_a_service_compacts_its_log_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(compacting, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(compacting, "EVERY_SECONDS", 0.05)
    directory = tmp_path / "archive"
    app = application(Sqlite(tmp_path / "log.db"), ServiceLimits(retain_days=0.0, archive=str(directory)))

    async def live() -> None:
        async with serving(app) as http:
            await use(http, SETTINGS["plain"], 20)
            pending = {id for _, id in app.service.coordinator.ledger.pending}
            async with asyncio.timeout(60.0):
                while decisions_of(app.service.store) != pending:
                    await asyncio.sleep(0.05)

    asyncio.run(live())
    assert list(directory.glob("superarm-*.parquet"))


def test_a_service_that_could_not_write_its_archive_does_not_start(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    words = ["serve", "--db", str(tmp_path / "log.db"), "--retain-days", "30", "--archive", str(tmp_path / "archive")]
    assert "pip install '.[service]'" in invoke(*words).output


def test_settings_that_leave_open_what_becomes_of_decisions_are_refused(tmp_path):
    words = ["serve", "--db", str(tmp_path / "log.db")]
    assert "give --archive DIRECTORY, or --discard" in invoke(*words, "--retain-days", "30").output
    assert "give --retain-days, too" in invoke(*words, "--discard").output
    postgres = ["serve", "--db", "postgresql://nobody@127.0.0.1:1/none", "--retain-days", "1", "--discard"]
    assert "--retain-days: for SQLite" in invoke(*postgres).output
