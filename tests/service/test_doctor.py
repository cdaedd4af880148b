"""``superarm doctor`` and ``/health?verbose``: each fault changes the line that is about it, and no other."""

import asyncio
import os
import sqlite3
import time
from types import SimpleNamespace

import pytest

from superarm.service.application import application
from superarm.service.storage import postgres as postgres_store
from superarm.service.storage import sqlite
from superarm.service.storage.base import SavedSnapshot
from superarm.service.storage.doctor import LONG_TAIL, examine, judge
from superarm.service.storage.postgres import Postgres
from superarm.service.storage.snapshot import restore_ledger
from superarm.service.storage.sqlite import LITTLE_SPACE, ROOM, Sqlite

from .database import fresh
from .inprocess import serving
from .running import invoke
from .test_observability import SPEC, read_metrics

CHECKS = ["log", "mark", "snapshots", "disk", "clocks", "locks", "backup", "lag", "problems", "pending"]


def levels(findings, checks=CHECKS) -> dict[str, str]:
    """The checks that are not all right, and how bad each is."""
    assert [one.check for one in findings] == checks
    return {one.check: one.level for one in findings if one.level != "ok"}


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A log of three pending decisions with a sound snapshot, a mark and a backup, which nobody serves."""
    monkeypatch.setattr(sqlite, "MARK_SECONDS", 0.0)

    async def run():
        async with serving(application(Sqlite(tmp_path / "log.db"))) as http:
            await http.put("/v1/problems/p", json=SPEC)
            for n in range(3):
                await http.post("/v1/problems/p/decisions", json={"id": f"d{n}"})

    asyncio.run(run())
    assert invoke("backup", "--db", str(tmp_path / "log.db"), str(tmp_path / "copy.db")).exit_code == 0
    return tmp_path / "log.db"


def change(path, statement: str, *values) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement, values)
    connection.close()


def lose_the_end(path):
    change(path, "DELETE FROM events WHERE seq = 4")


def tear_a_snapshot(path):
    change(path, "UPDATE snapshots SET body = substr(body, 2)")


def grow_old(path):
    os.utime(f"{path}.copied", (0, time.time() - 8 * 86_400))


def forget_the_backup(path):
    os.unlink(f"{path}.copied")


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (lambda path: None, {}),
        (lose_the_end, {"mark": "wrong"}),
        (tear_a_snapshot, {"snapshots": "warning"}),
        (grow_old, {"backup": "warning"}),
        (forget_the_backup, {"backup": "warning"}),
    ],
)
def test_what_is_wrong_with_a_file_is_in_its_line(log, damage, found):
    damage(log)
    store = Sqlite(log, lock=False)
    assert levels(examine(store)) == found
    store.close()
    said = invoke("doctor", "--db", str(log))
    assert said.exit_code == ("wrong" in found.values())
    assert [line[9:20].strip() for line in said.stdout.splitlines()] == CHECKS


def test_a_log_that_cannot_be_opened_is_explained(log):
    log.unlink()
    said = invoke("doctor", "--db", str(log))
    assert (said.exit_code, said.stdout) == (2, "")
    assert "there is no such file" in said.stderr
    log.write_text("no database" * 100)
    assert "no database: file is not a database; restore a backup" in invoke("doctor", "--db", str(log)).stderr


def test_the_process_that_serves_a_file_is_named(log):
    def said() -> str:
        return next(line for line in invoke("doctor", "--db", str(log)).stdout.splitlines() if " locks " in line)

    assert "no process" in said()
    store = Sqlite(log)
    assert f"process {os.getpid()}" in said()
    store.close()


def full_disk(free):
    return lambda patched: patched.setattr(sqlite.shutil, "disk_usage", lambda path: SimpleNamespace(free=free))


def clock_set_back(seconds):
    real = time.time
    return lambda patched: patched.setattr(sqlite.time, "time", lambda: real() - seconds)


@pytest.mark.parametrize(
    ("befall", "found"),
    [
        (full_disk(ROOM), {}),
        (full_disk(ROOM - 1), {"disk": "warning"}),
        (full_disk(LITTLE_SPACE - 1), {"disk": "wrong"}),
        (clock_set_back(3.0), {}),
        (clock_set_back(60.0), {"clocks": "warning"}),
    ],
)
def test_disk_and_clock(log, monkeypatch, befall, found):
    befall(monkeypatch)
    store = Sqlite(log, lock=False)
    assert levels(examine(store)) == found
    store.close()


def test_problems_pending_decisions_and_their_windows(log, monkeypatch):
    store = Sqlite(log, lock=False)
    ledger = restore_ledger(store)[0]
    store.close()
    key = ("default", "p")
    state = CHECKS[-3:]
    assert judge(ledger, 0)[-1].said.startswith("3 decisions, the oldest 0.0 hours old; 0 windows are over")
    assert levels(judge(ledger, LONG_TAIL), state) == {}
    assert levels(judge(ledger, LONG_TAIL + 1), state) == {"lag": "warning"}
    window = next(iter(ledger.pending.values())).asked.window_ms / 1000
    real = time.time
    with monkeypatch.context() as patched:
        patched.setattr(time, "time", lambda: real() + window + 50.0)
        assert levels(judge(ledger, 0), state) == {}
        patched.setattr(time, "time", lambda: real() + window + 120.0)
        assert levels(judge(ledger, 0), state) == {"pending": "warning"}
    ledger.n_pending[key] = ledger.problems[key].settings.max_pending
    assert levels(judge(ledger, 0), state) == {"pending": "warning"}
    ledger.close(key, ValueError("cannot be applied"))
    assert levels(judge(ledger, 0), state) == {"problems": "wrong"}


def test_the_running_service_says_the_same_to_administrators(reopen):
    async def run():
        store = reopen()
        async with serving(application(store)) as http:
            await http.put("/v1/problems/p", json=SPEC)
            await http.post("/v1/problems/p/decisions", json={"id": "d"})
            told = await http.get("/health?verbose")
            metrics = read_metrics((await http.get("/metrics")).text)
            other = reopen(reading=True)
            examined = examine(other)
            other.close()
            return told, metrics, examined

    told, metrics, examined = asyncio.run(run())
    assert (told.status_code, told.json()["status"]) == (200, "ok")
    checks = {one["check"]: one for one in told.json()["checks"]}
    assert list(checks) == CHECKS
    for one in examined:
        assert checks[one.check]["level"] == one.level
        assert checks[one.check]["said"] == one.said or one.check in ("log", "locks", "pending")
    have = {key[1][1]: value for key, value in metrics.items() if key[0] == "superarm_check"}
    assert have == {one.check: ["ok", "warning", "wrong"].index(one.level) for one in examined}


def test_only_a_key_of_the_scope_admin_may_see_it(log):
    keys = [
        invoke("keys", "create", "--db", str(log), "--scope", scope).stdout.strip() for scope in ("admin", "metrics")
    ]

    async def run():
        async with serving(application(Sqlite(log))) as http:
            headers = [{}, *({"authorization": f"Bearer {key}"} for key in keys)]
            asked = [await http.get("/health?verbose", headers=one) for one in headers]
            return [one.status_code for one in asked], (await http.get("/health")).json()

    statuses, public = asyncio.run(run())
    assert statuses == [401, 200, 403]
    assert "checks" not in public


def test_what_postgresql_says_of_clocks_locks_and_snapshots(postgres, monkeypatch):
    url = fresh(postgres, "doctor")
    store = Postgres(url)
    said = invoke("doctor", "--db", url)
    assert (said.exit_code, len(said.stdout.splitlines())) == (0, len(CHECKS)), said.output
    real, checks = time.time, CHECKS[:-3]
    assert levels(store.findings(), checks) == {}
    store.save(SavedSnapshot("of another", b"body"))
    monkeypatch.setattr(postgres_store, "FULL", 0.0)
    monkeypatch.setattr(time, "time", lambda: real() + 60.0)
    found = store.findings()
    store.close()
    assert levels(found, checks) == {"snapshots": "warning", "clocks": "warning", "locks": "warning"}
    words = {one.check: one.said for one in found}
    assert words["clocks"] == "PostgreSQL is -60 s ahead"
    assert words["locks"].startswith("served by 1 workers; ")
