"""Old decisions leave the log: nothing else changes, and an interruption does no harm."""

import asyncio
import shutil
import sqlite3

import httpx
import psycopg
import pytest

from superarm.core.errors import SuperarmError
from superarm.service.application import application
from superarm.service.http.service import ServiceLimits
from superarm.service.storage import snapshot as compaction
from superarm.service.storage.base import SavedSnapshot
from superarm.service.storage.snapshot import compact, encode_counters, restore_ledger, verify
from superarm.service.storage.sqlite import DamagedLog, Sqlite

from .inprocess import serving
from .running import Server, invoke
from .test_erasure import ASK, SETTINGS, use

LATER = 10**15


def counters(ledger) -> dict:
    return {key: encode_counters(*key, learner).memory for key, learner in ledger.problems.items()}


def decisions_of(store) -> set[str]:
    return {read.entry.stream for read in store.tail({}) if read.entry.kind == "decision"}


async def show(http) -> list:
    paths = ("/v1/problems/p", "/v1/problems/p/arms", "/v1/problems/p/versions", "/v1/problems")
    return [(await http.get(path)).json() for path in paths]


async def delete_another(http) -> None:
    await http.put("/v1/problems/q", json={"arms": ["a"], "k": 1})
    await http.post("/v1/problems/q/decisions", json={"id": "gone"})
    await http.delete("/v1/problems/q")


async def use_more(http) -> None:
    for n in range(20):
        slate = (await http.post(ASK, json={"id": f"more-{n}"})).json()["arms"]
        feedback = [{"arm": arm, "value": n % 2} for arm in slate]
        (await http.post(f"{ASK}/more-{n}/feedback", json={"feedback": feedback})).raise_for_status()


def test_nothing_but_old_decisions_is_gone(reopen):
    async def live() -> list:
        async with serving(application(reopen(), ServiceLimits(snapshot_every=30))) as http:
            await use(http, SETTINGS["control"])
            await delete_another(http)
            return await show(http)

    shown = asyncio.run(live())
    store = reopen(reading=True)
    before, was = restore_ledger(store)[0], decisions_of(store)
    assert compact(store, LATER) == 61 - len(before.pending)  # one is of the deleted problem
    assert verify(store).faults == []
    after = restore_ledger(store)[0]
    assert (after.pending, counters(after)) == (before.pending, counters(before))
    assert decisions_of(store) == {id for _, id in before.pending}
    assert compact(store, LATER) == 0
    store.close()

    async def on() -> None:
        async with serving(application(reopen(), ServiceLimits(snapshot_every=10))) as http:
            assert await show(http) == shown
            open_id = next(one.asked.id for _, one in sorted(before.pending.items()) if one.active)
            slate = (await http.get(f"/v1/problems/p/decisions/{open_id}")).json()["arms"]
            told = await http.post(f"{ASK}/{open_id}/feedback", json={"feedback": [{"arm": slate[0], "seen": False}]})
            assert told.status_code in (200, 409)
            old = min(was - {stream for _, stream in before.pending}).removeprefix("p/")
            assert (await http.get(f"/v1/problems/p/decisions/{old}")).status_code == 404
            await use_more(http)
            audit = (await http.get("/v1/audit?problem=p")).json()["entries"]
            noted = [one["details"] for one in audit if one["what"] == "compacted"]
            assert noted == [{"decisions": 60 - len(before.pending)}]

    asyncio.run(on())
    store = reopen(reading=True)
    assert verify(store).faults == []
    assert compact(store, LATER) >= 20
    assert verify(store).faults == []
    store.close()


class Interrupted(BaseException):
    """What a kill looks like from within: nothing handles it."""


def interrupt(*_, **__):
    raise Interrupted


@pytest.mark.parametrize("broken", [interrupt, lambda *_: {"": SavedSnapshot("", object())}])
def test_an_interruption_leaves_a_log_that_can_be_read(reopen, monkeypatch, broken):
    """Before the base is made, and before the transaction ends: what it inserts is nothing that a database takes."""

    async def live() -> list:
        async with serving(application(reopen())) as http:
            await use(http, SETTINGS["plain"], 15)
            return await show(http)

    async def again() -> list:
        async with serving(application(reopen())) as http:
            return await show(http)

    shown = asyncio.run(live())
    store = reopen(reading=True)
    with monkeypatch.context() as patch:
        patch.setattr(compaction, "make_bases", broken)
        with pytest.raises((Interrupted, sqlite3.Error, psycopg.Error, TypeError)):
            compact(store, LATER)
    store.close()
    store = reopen(reading=True)
    assert verify(store).faults == []
    store.close()
    assert asyncio.run(again()) == shown
    store = reopen(reading=True)
    assert compact(store, LATER) > 0
    assert verify(store).faults == []
    store.close()
    assert asyncio.run(again()) == shown


def test_nothing_of_an_erased_person_and_of_a_deleted_problem_is_left_in_the_file(tmp_path):
    db, erased = tmp_path / "log.db", set[str]()

    async def live() -> None:
        async with serving(application(Sqlite(db), ServiceLimits(snapshot_every=10))) as http:
            erased.update(await use(http, SETTINGS["control"]))
            await http.post("/v1/problems/p/erasures", json={"unit": "unit-1"})
            await delete_another(http)

    asyncio.run(live())
    store = Sqlite(db, lock=False)
    assert compact(store, LATER) > len(erased)
    store.close()
    assert not any(f'"id":"{id}"'.encode() in db.read_bytes() for id in erased)


def make_compacted(home) -> Sqlite:
    """A log of a few decisions that was compacted."""

    async def live() -> None:
        async with serving(application(Sqlite(home / "log.db"))) as http:
            await use(http, SETTINGS["plain"], 20)

    asyncio.run(live())
    store = Sqlite(home / "log.db", lock=False)
    compact(store, LATER)
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
            used = invoke("compact", "--db", db, "--older-than", "0")
            assert used.exit_code == 2
            assert "served by another process" in used.output

    asyncio.run(live())
    assert "0 decisions removed" in invoke("compact", "--db", db).output
    done = invoke("compact", "--db", db, "--older-than", "0").output
    assert "decisions removed" in done
    assert not done.startswith("0 ")
    assert "sound" in invoke("verify", "--db", db).output


# --- What an operator does after a disk was lost: restore a backup.


SPEC = {"arms": ["a", "b", "c"], "items": ["x"], "k": 2}


def test_a_restored_backup_goes_on_from_where_it_was_made(tmp_path):
    db, copy = tmp_path / "log.db", tmp_path / "copy.db"
    with Server(str(db)) as server, httpx.Client(base_url=server.url) as http:
        http.put("/v1/problems/p", json=SPEC)
        for n in range(10):
            slate = http.post("/v1/problems/p/decisions", json={"id": f"d{n}"}).json()["arms"]
            feedback = [{"arm": arm, "value": n % 2} for arm in slate]
            http.post(f"/v1/problems/p/decisions/d{n}/feedback", json={"feedback": feedback})
        at_backup = http.get("/v1/problems/p/arms").json()
        assert invoke("backup", "--db", str(db), str(copy)).exit_code == 0
        lost = http.post("/v1/problems/p/decisions", json={"id": "after"}).status_code
        server.kill()
    assert lost == 201
    for name in ("log.db", "log.db-wal", "log.db-shm", "log.db.mark"):  # the disk is gone
        (tmp_path / name).unlink(missing_ok=True)
    shutil.move(copy, db)
    assert "sound" in invoke("verify", "--db", str(db)).stdout
    with Server(str(db)) as server, httpx.Client(base_url=server.url) as http:
        assert http.get("/v1/problems/p/arms").json() == at_backup
        assert http.get("/v1/problems/p/decisions/after").status_code == 404
        assert http.post("/v1/problems/p/decisions", json={"id": "after"}).status_code == 201
