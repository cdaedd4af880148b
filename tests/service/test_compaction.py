"""Old decisions leave the log for an archive: nothing else changes, and an interruption at any step does no harm."""

import asyncio
import sqlite3

import psycopg
import pytest

from superarm.core.errors import SuperarmError
from superarm.service.application import application
from superarm.service.domain.ledger import fold
from superarm.service.http.service import ServiceLimits
from superarm.service.storage import archive, compaction
from superarm.service.storage.archive import read_archive
from superarm.service.storage.base import SavedSnapshot, recall_decision
from superarm.service.storage.compaction import compact
from superarm.service.storage.replay import replay
from superarm.service.storage.snapshot import encode_counters, restore_ledger, verify
from superarm.service.storage.sqlite import DamagedLog, Sqlite

from .inprocess import serving
from .running import invoke
from .test_erasure import ASK, SETTINGS, use

LATER = 10**15


def counters(ledger) -> dict:
    return {key: encode_counters(*key, learner) for key, learner in ledger.problems.items()}


async def show(http) -> list:
    paths = ("/v1/problems/p", "/v1/problems/p/arms", "/v1/problems/p/versions", "/v1/problems")
    return [(await http.get(path)).json() for path in paths]


def test_nothing_but_old_decisions_is_gone(reopen, tmp_path):
    async def live() -> list:
        async with serving(application(reopen(), ServiceLimits(snapshot_every=30))) as http:
            await use(http, SETTINGS["control"])
            await http.put("/v1/problems/q", json={"arms": ["a"], "k": 1})
            await http.post("/v1/problems/q/decisions", json={"id": "gone"})
            await http.delete("/v1/problems/q")
            return await show(http)

    shown = asyncio.run(live())
    store = reopen(reading=True)
    before = list(store.tail({}))
    pending = restore_ledger(store)[0].pending
    done = compact(store, tmp_path / "archive", LATER)
    assert done.removed == 1  # of the deleted problem
    assert done.archived == 60 - len(pending)
    assert verify(store).faults == []
    live_state = restore_ledger(store)[0]
    assert live_state.pending == pending
    left = list(store.tail({}))
    assert {read.entry.stream for read in left if read.entry.kind == "decision"} == {id for _, id in pending}
    # the archive and the log together are the log that was
    again = [*read_archive(done.archive), *(read for read in left if read.entry.kind == "decision")]
    was = [read for read in before if read.entry.kind == "decision" and read.entry.stream != "gone"]
    assert sorted(again, key=str) == sorted(was, key=str)
    problems = [read.entry for read in left if read.entry.kind == "problem"]
    streams = sorted(again, key=lambda read: (read.entry.stream, read.entry.step))
    ledger = fold([*problems, *(read.entry for read in streams)], lambda key, step: recall_decision(store, key, step))
    assert {key: one.tally for key, one in counters(ledger).items()} == {
        key: one.tally for key, one in counters(live_state).items()
    }
    assert compact(store, tmp_path / "archive", LATER).archived == 0
    assert not any(one.same for one in replay(store, None, None, 1))
    store.close()

    async def on() -> None:
        async with serving(application(reopen(), ServiceLimits(snapshot_every=10))) as http:
            assert await show(http) == shown
            open_id = next(id for _, id in sorted(pending) if pending["default", id].active)
            slate = (await http.get(f"/v1/decisions/{open_id}")).json()["arms"]
            told = await http.post(f"{ASK}/{open_id}/feedback", json={"feedback": [{"arm": slate[0], "seen": False}]})
            assert told.status_code in (200, 409)
            old = next(iter({read.entry.stream for read in was} - {id for _, id in pending}))
            assert (await http.get(f"/v1/decisions/{old}")).status_code == 404
            await use_more(http)
            audit = (await http.get("/v1/audit?problem=p")).json()["entries"]
            noted = [one["details"] for one in audit if one["what"] == "compacted"]
            assert noted == [{"decisions": done.archived, "archives": [done.archive.name]}]

    asyncio.run(on())
    store = reopen(reading=True)
    assert verify(store).faults == []
    assert {one.same for one in replay(store, None, None, 1) if one.key[1].startswith("more")} == {True}
    second = compact(store, tmp_path / "archive", LATER)
    assert second.archived >= 20
    assert second.archive != done.archive
    assert verify(store).faults == []
    store.close()


async def use_more(http) -> None:
    for n in range(20):
        slate = (await http.post(ASK, json={"id": f"more-{n}"})).json()["arms"]
        feedback = [{"arm": arm, "value": n % 2} for arm in slate]
        (await http.post(f"{ASK}/more-{n}/feedback", json={"feedback": feedback})).raise_for_status()


class Interrupted(BaseException):
    """What a kill looks like from within: nothing handles it."""


def interrupt(*_, **__):
    raise Interrupted


STEPS = {
    "before the notes": (compaction, "_note"),
    "before the archive": (compaction, "write_archive"),
    "before the archive is on the disk": (archive, "force"),
    "before the archive has its name": (archive.os, "replace"),
    "before the base": (compaction, "make_bases"),
}


@pytest.mark.parametrize("step", [*STEPS, "before the transaction ends"])
def test_an_interruption_leaves_a_log_that_can_be_read(reopen, tmp_path, monkeypatch, step):
    async def live() -> list:
        async with serving(application(reopen())) as http:
            await use(http, SETTINGS["plain"], 15)
            return await show(http)

    shown = asyncio.run(live())
    store = reopen(reading=True)
    with monkeypatch.context() as patch:
        if step in STEPS:
            patch.setattr(*STEPS[step], interrupt)
        else:  # what the transaction inserts last is nothing that a database takes
            patch.setattr(compaction, "make_bases", lambda *_: {"": SavedSnapshot("", object())})
        with pytest.raises(Interrupted if step in STEPS else (sqlite3.Error, psycopg.Error, TypeError)):
            compact(store, tmp_path / "archive", LATER)
    store.close()
    store = reopen(reading=True)
    assert verify(store).faults == []
    store.close()

    async def again() -> list:
        async with serving(application(reopen())) as http:
            return await show(http)

    assert asyncio.run(again()) == shown
    store = reopen(reading=True)
    assert compact(store, tmp_path / "archive", LATER).archived > 0
    assert verify(store).faults == []
    assert [path.name for path in (tmp_path / "archive").iterdir() if path.name.startswith(".")] == []
    store.close()
    assert asyncio.run(again()) == shown


def make_compacted(home) -> Sqlite:
    """A log of a few decisions that was compacted."""

    async def live() -> None:
        async with serving(application(Sqlite(home / "log.db"))) as http:
            await use(http, SETTINGS["plain"], 20)

    asyncio.run(live())
    store = Sqlite(home / "log.db", lock=False)
    compact(store, None, LATER)
    return store


def test_a_compacted_log_of_which_events_are_missing_is_refused(tmp_path):
    store = make_compacted(tmp_path)
    store._writer.execute("DELETE FROM events WHERE seq = (SELECT min(seq) FROM events WHERE kind = 'decision')")
    store.close()
    with pytest.raises(DamagedLog, match="restore a backup"):
        Sqlite(tmp_path / "log.db")


def test_the_base_is_checked(tmp_path):
    store = make_compacted(tmp_path)
    store._writer.execute("UPDATE base SET body = CAST('nonsense' AS BLOB)")
    with pytest.raises(SuperarmError, match="the base of a compacted log is damaged"):
        verify(store)
    store.close()


def test_the_command_compacts_what_is_old_and_no_log_in_use(tmp_path):
    db = str(tmp_path / "log.db")

    async def live() -> None:
        async with serving(application(Sqlite(tmp_path / "log.db"))) as http:
            await use(http, SETTINGS["plain"], 20)
            used = invoke("compact", "--db", db, "--discard", "--older-than", "0")
            assert used.exit_code == 2
            assert "served by another process" in used.output

    asyncio.run(live())
    assert "give --archive DIRECTORY" in invoke("compact", "--db", db).output
    kept = invoke("compact", "--db", db, "--archive", str(tmp_path / "a"))
    assert "0 decisions archived, 0 removed" in kept.output
    done = invoke("compact", "--db", db, "--archive", str(tmp_path / "a"), "--older-than", "0")
    (file,) = (tmp_path / "a").iterdir()
    assert f"decisions archived to {file}, 0 removed" in done.output
    assert "sound" in invoke("verify", "--db", db).output


def test_an_archive_is_the_same_however_many_rows_are_converted_at_once(tmp_path, monkeypatch):
    app = application(Sqlite(tmp_path / "log.db"))

    async def live() -> set:
        async with serving(app) as http:
            await use(http, SETTINGS["plain"], 20)
            return set(app.service.coordinator.ledger.closed)

    decisions = asyncio.run(live())
    store = Sqlite(tmp_path / "log.db")
    whole = archive.write_archive(store, tmp_path / "whole", decisions)
    monkeypatch.setattr(archive, "CONVERTED_ROWS", 3)
    monkeypatch.setattr(archive, "BATCH_ROWS", 7)
    parts = archive.write_archive(store, tmp_path / "parts", decisions)
    store.close()
    assert parts.name == whole.name
    assert list(read_archive(parts)) == list(read_archive(whole))
    assert len(list(read_archive(parts))) > 14
