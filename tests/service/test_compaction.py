"""Old decisions leave the log, also while it is served: nothing else changes, and an interruption does no harm."""

import asyncio
import sqlite3

import psycopg
import pytest

from superarm.core.errors import SuperarmError
from superarm.service.application import application
from superarm.service.http.service import ServiceLimits
from superarm.service.runtime import compacting
from superarm.service.runtime.compacting import compact_served
from superarm.service.storage import compaction
from superarm.service.storage.base import SavedSnapshot
from superarm.service.storage.compaction import compact
from superarm.service.storage.snapshot import encode_counters, restore_ledger, verify
from superarm.service.storage.sqlite import DamagedLog, Sqlite

from .inprocess import serving
from .running import invoke
from .test_erasure import ASK, SETTINGS, use

LATER = 10**15


def counters(ledger) -> dict:
    return {key: encode_counters(*key, learner).tally for key, learner in ledger.problems.items()}


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
            open_id = next(id for _, id in sorted(before.pending) if before.pending["default", id].active)
            slate = (await http.get(f"/v1/decisions/{open_id}")).json()["arms"]
            told = await http.post(f"{ASK}/{open_id}/feedback", json={"feedback": [{"arm": slate[0], "seen": False}]})
            assert told.status_code in (200, 409)
            old = min(was - {id for _, id in before.pending})
            assert (await http.get(f"/v1/decisions/{old}")).status_code == 404
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


def test_a_service_goes_on_after_a_compaction_that_failed(tmp_path, monkeypatch):
    app = application(Sqlite(tmp_path / "log.db"))

    async def live() -> None:
        async with serving(app) as http:
            await use(http, SETTINGS["plain"], 15)
            await delete_another(http)
            with monkeypatch.context() as patch:
                patch.setattr(compaction, "make_bases", lambda *_: {"": SavedSnapshot("", object())})
                with pytest.raises(sqlite3.Error):
                    await compact_served(app.service.coordinator, LATER)
            await use_more(http)
            assert await compact_served(app.service.coordinator, LATER) > 15

    asyncio.run(live())
    reader = Sqlite(tmp_path / "log.db", lock=False)
    assert verify(reader).faults == []
    reader.close()


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


def test_requests_are_answered_while_old_decisions_leave(tmp_path, monkeypatch):
    """Also those of a deleted problem, and of an erased person, of whom nothing is left in the file."""
    monkeypatch.setattr(compacting, "MAX_REMOVED_AT_ONCE", 3)
    db = tmp_path / "log.db"
    app = application(Sqlite(db), ServiceLimits(snapshot_every=10))
    erased = set[str]()

    async def live() -> None:
        async with serving(app) as http:
            erased.update(await use(http, SETTINGS["control"]))
            await http.post("/v1/problems/p/erasures", json={"unit": "unit-1"})
            await delete_another(http)
            shown, before = await show(http), decisions_of(app.service.store)
            pending = {id for _, id in app.service.coordinator.ledger.pending}
            done = await compact_served(app.service.coordinator, LATER)
            assert done == len(before - pending)
            assert await show(http) == shown
            stop, clients = asyncio.Event(), []
            for n in range(3):
                clients.append(asyncio.create_task(ask_and_tell(http, stop, f"load{n}")))
            while len(decisions_of(app.service.store)) < len(pending) + 20:
                await asyncio.sleep(0.01)
            again = await compact_served(app.service.coordinator, LATER)
            stop.set()
            n_asked = sum(await asyncio.gather(*clients))
            assert again >= 15
            assert len(decisions_of(app.service.store)) == len(pending) + n_asked - again
            assert (await http.get(f"/v1/decisions/{min(before - pending)}")).status_code == 404
            audit = (await http.get("/v1/audit?problem=p&limit=1000")).json()["entries"]
            noted = sum(one["details"]["decisions"] for one in audit if one["what"] == "compacted")
            assert noted == done - 1 + again  # one was of the deleted problem

    asyncio.run(live())
    reader = Sqlite(db, lock=False)
    assert verify(reader).faults == []
    reader.close()
    assert not any(f'"id":"{id}"'.encode() in db.read_bytes() for id in erased)


def test_a_decision_that_changes_meanwhile_stays(tmp_path, monkeypatch):
    app = application(Sqlite(tmp_path / "log.db"))

    async def live() -> None:
        async with serving(app) as http:
            await use_more_of(http)
            plan = compacting.plan_compaction

            def plan_slowly(*given):
                found = plan(*given)
                asyncio.run_coroutine_threadsafe(amend(http), loop).result(30.0)
                return found

            loop = asyncio.get_running_loop()
            monkeypatch.setattr(compacting, "plan_compaction", plan_slowly)
            await compact_served(app.service.coordinator, LATER)
            assert decisions_of(app.service.store) == {"more-3"}

    async def use_more_of(http) -> None:
        await http.put("/v1/problems/p", json={"arms": ["a", "b"], "k": 1, "settings": {"policy": {"name": "bc_ucb"}}})
        await use_more(http)

    async def amend(http) -> None:
        slate = (await http.get(f"{ASK}/more-3")).json()["arms"]
        body = {"feedback": [{"arm": slate[0], "value": 0.25}], "amend": True}
        assert (await http.post(f"{ASK}/more-3/feedback", json=body)).json()["applied"]

    asyncio.run(live())
    reader = Sqlite(tmp_path / "log.db", lock=False)
    assert verify(reader).faults == []
    reader.close()


def test_a_service_compacts_its_log_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(compacting, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(compacting, "EVERY_SECONDS", 0.05)
    app = application(Sqlite(tmp_path / "log.db"), ServiceLimits(retain_days=0.0))

    async def live() -> None:
        async with serving(app) as http:
            await use(http, SETTINGS["plain"], 20)
            pending = {id for _, id in app.service.coordinator.ledger.pending}
            async with asyncio.timeout(60.0):
                while decisions_of(app.service.store) != pending:
                    await asyncio.sleep(0.05)

    asyncio.run(live())
    postgres = ["serve", "--db", "postgresql://nobody@127.0.0.1:1/none", "--retain-days", "1"]
    assert "--retain-days: for SQLite" in invoke(*postgres).output


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
