"""The log in a file: what is left of it after damage is an exact prefix, or is refused loudly."""

import shutil
import sqlite3
import threading
from pathlib import Path

import pytest

from superarm.core.errors import SuperarmError
from superarm.decisions import Expired
from superarm.service.domain.events import Asked, encode
from superarm.service.domain.ledger import Ledger, LogEntry
from superarm.service.storage.base import TABLES_VERSION, LogLine, SavedSnapshot, recall_decision
from superarm.service.storage.snapshot import restore_ledger, take_snapshot, verify
from superarm.service.storage.sqlite import DamagedLog, Sqlite
from superarm.testing import ContractViolation, check_store

from .memory_store import MemoryStore
from .running import command, free_port, invoke
from .test_ledger import created


def asked(n: int) -> LogLine:
    event = Asked(0, "p", f"d{n}", "", n, (0, 1), 2, 1)
    return LogLine("t", "decision", f"p/d{n}", 0, encode(event))


def filled(path: Path, n: int) -> Sqlite:
    store = Sqlite(path, lock=False)
    store.commit([LogLine("t", "problem", "p", 0, encode(created()))])
    for first in range(1, n, 5):
        store.commit([asked(first + more) for more in range(5)])
    return store


def crashed(store: Sqlite, target: Path) -> Path:
    """The files as a power cut leaves them: database and WAL, no shared memory."""
    shutil.copy(store.path, target)
    shutil.copy(f"{store.path}-wal", f"{target}-wal")
    return target


def streams(path: Path) -> list[str]:
    store = Sqlite(path, lock=False)
    try:
        return [read.entry.stream for read in store.tail({})]
    finally:
        store.close()


def test_settings_are_durable(tmp_path):
    store = Sqlite(tmp_path / "log.db")
    for connection in (store._writer, store._reader):
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    strict = store._reader.execute("SELECT name, strict FROM pragma_table_list WHERE schema='main'").fetchall()
    assert all(flag for name, flag in strict if not name.startswith("sqlite_"))
    store.close()


def test_a_place_is_taken_once_and_numbers_have_no_gaps(tmp_path):
    store = filled(tmp_path / "log.db", 5)
    assert store.commit([asked(1), asked(6), asked(6), asked(7)]) == [0, 7, 0, 8]
    assert len(list(store.tail({}))) == 8
    store.close()


@pytest.mark.parametrize("cut", [0.1, 0.35, 0.5, 0.77, 0.99])
def test_a_truncated_wal_recovers_to_an_exact_prefix(tmp_path, cut):
    store = filled(tmp_path / "log.db", 60)
    whole = [read.entry.stream for read in store.tail({})]
    copy = crashed(store, tmp_path / "copy.db")
    store.close()
    wal = Path(f"{copy}-wal")
    wal.write_bytes(wal.read_bytes()[: int(wal.stat().st_size * cut)])
    left = streams(copy)
    assert left == whole[: len(left)]
    assert len(left) < len(whole)


@pytest.mark.parametrize("place", [0.2, 0.4, 0.6, 0.8])
def test_a_flipped_bit_in_the_wal_recovers_to_an_exact_prefix(tmp_path, place):
    store = filled(tmp_path / "log.db", 60)
    whole = [read.entry.stream for read in store.tail({})]
    copy = crashed(store, tmp_path / "copy.db")
    store.close()
    wal = Path(f"{copy}-wal")
    data = bytearray(wal.read_bytes())
    data[int(len(data) * place)] ^= 0x40
    wal.write_bytes(bytes(data))
    left = streams(copy)
    assert left == whole[: len(left)]
    assert len(left) < len(whole)


def test_an_intact_wal_recovers_everything(tmp_path):
    store = filled(tmp_path / "log.db", 60)
    copy = crashed(store, tmp_path / "copy.db")
    store.close()
    assert len(streams(copy)) == 61


def test_a_flipped_bit_in_an_event_is_refused_loudly(tmp_path):
    path = tmp_path / "log.db"
    filled(path, 20).close()
    data = path.read_bytes()
    at = data.index(b'"id":"d7"') + 7
    path.write_bytes(data[:at] + b"x" + data[at + 1 :])
    store = Sqlite(path, lock=False)
    with pytest.raises(DamagedLog, match="event 8 is damaged"):
        restore_ledger(store)
    with pytest.raises(DamagedLog):
        verify(store)
    store.close()


def test_a_missing_event_is_refused_loudly(tmp_path):
    path = tmp_path / "log.db"
    filled(path, 20).close()
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM events WHERE seq = 9")
    connection.close()
    with pytest.raises(DamagedLog, match="restore a backup"):
        Sqlite(path, lock=False)


def test_snapshots_are_used_and_a_damaged_one_is_passed_over(tmp_path):
    store = filled(tmp_path / "log.db", 20)
    ledger, position, folded = restore_ledger(store)
    assert folded == 21
    saved = take_snapshot(ledger, position)
    store.save(saved)
    store.commit([LogLine("t", "decision", "p/d3", 1, encode(Expired(0, 0.0)))])
    again, _, folded = restore_ledger(store)
    assert folded == 1
    assert verify(store).faults == []
    store.save(SavedSnapshot(saved.digest, saved.body[:-1] + b"\x7f"))
    third, _, folded = restore_ledger(store)
    assert folded == 1
    assert take_snapshot(third, position) == take_snapshot(again, position)
    assert verify(store).faults == ["snapshot 1 is damaged, or of another version"]
    store.close()


def test_a_snapshot_that_lies_is_found(tmp_path):
    store = filled(tmp_path / "log.db", 20)
    ledger, position, _ = restore_ledger(store)
    ledger.problems["t", "p"].tally.pulls[0] += 1.0
    store.save(take_snapshot(ledger, position))
    faults = verify(store).faults
    assert any("snapshot 1" in fault for fault in faults)
    assert any("the counters" in fault for fault in faults)
    store.close()


def test_a_second_process_is_refused_and_a_dead_ones_lock_is_free(tmp_path):
    first = Sqlite(tmp_path / "log.db")
    with pytest.raises(SuperarmError, match="served by another process"):
        Sqlite(tmp_path / "log.db")
    first.close()
    Sqlite(tmp_path / "log.db").close()


@pytest.mark.parametrize("version", [1, TABLES_VERSION + 1])
def test_a_database_of_another_version_is_refused_and_left_alone(tmp_path, version):
    store = filled(tmp_path / "log.db", 5)
    store._writer.execute(f"PRAGMA user_version = {version}")
    store.close()
    before = (tmp_path / "log.db").read_bytes()
    with pytest.raises(SuperarmError, match=f"tables are of version {version}, not {TABLES_VERSION}; serve it with"):
        Sqlite(tmp_path / "log.db")
    assert (tmp_path / "log.db").read_bytes() == before


def test_the_decisions_of_a_unit_are_found_by_an_index(tmp_path):
    store, asked = filled(tmp_path / "log.db", 3), []
    store._writer.set_trace_callback(asked.append)
    store._reader.set_trace_callback(asked.append)
    assert store.made_for("0" * 16) == []
    (plan,) = store._reader.execute(f"EXPLAIN QUERY PLAN {asked[0]}").fetchall()[:1]
    assert "USING INDEX decisions_of_units" in plan[3]
    store.close()


def test_places_that_are_taken_keep_their_events(tmp_path):
    store = filled(tmp_path / "log.db", 5)
    assert store.commit([asked(1), asked(9), asked(9), asked(2)]) == [0, 7, 0, 0]
    assert store.commit([asked(1)]) == [0]
    assert store.commit([asked(10), asked(11)]) == [8, 9]
    store.close()


def test_a_decision_that_memory_forgot_is_read_from_the_log(tmp_path):
    store = filled(tmp_path / "log.db", 20)
    store.commit([LogLine("t", "decision", "p/d3", 1, encode(Expired(0, 0.0)))])
    assert recall_decision(store, ("t", "p/d3")).closed == "expired"
    assert recall_decision(store, ("t", "p/d3"), 1).closed == ""
    assert recall_decision(store, ("other", "p/d3")) is None
    ledger = Ledger(lambda key, step: recall_decision(store, key, step))
    ledger.apply(LogEntry("t", "problem", "p", 0, created()))
    for read in store.tail({"": 1}):
        ledger.apply(read.entry)
        ledger.closed.clear()
    assert ledger.problems["t", "p"].tally.pulls[0, 0] == 1.0
    store.close()


@pytest.mark.parametrize("way", ["symlink", "hard link", "renamed", "directory"])
def test_a_file_is_served_once_whatever_its_path(tmp_path, way):
    """By a symbolic link, a second process served the same file."""
    (tmp_path / "data").mkdir()
    path, other = tmp_path / "data" / "log.db", tmp_path / "other.db"
    first = Sqlite(path)
    if way == "symlink":
        other.symlink_to(path)
    elif way == "hard link":
        other.hardlink_to(path)
    elif way == "renamed":
        path.rename(other)
    else:
        (tmp_path / "again").symlink_to(tmp_path / "data")
        other = tmp_path / "again" / "log.db"
    with pytest.raises(SuperarmError, match="served by another process"):
        Sqlite(other)
    first.close()
    if way != "renamed":  # its write-ahead log has the old name
        Sqlite(other).close()


def test_a_file_that_cannot_be_used_is_named_in_a_sentence(tmp_path):
    """Such a file gave a traceback."""
    (tmp_path / "directory.db").mkdir()
    (tmp_path / "garbage.db").write_bytes(b"no database at all " * 100)
    filled(tmp_path / "damaged.db", 60).close()
    data = bytearray((tmp_path / "damaged.db").read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    (tmp_path / "damaged.db").write_bytes(bytes(data))
    for name in ("directory.db", "garbage.db", "damaged.db"):
        for verb in ("verify", "serve"):
            done = invoke(verb, "--db", str(tmp_path / name))
            assert done.exit_code == 2, (verb, name, done.output, done.exception)
            assert done.stderr.startswith("Error: ")
            assert name in done.stderr
            assert len(done.stderr.splitlines()) == 1


def test_a_file_that_may_not_be_written_is_named_in_a_sentence(tmp_path, monkeypatch):
    path = tmp_path / "log.db"
    filled(path, 10).close()

    def refuse(path: Path) -> sqlite3.Connection:  # root, who runs the tests in containers, may write any file
        raise sqlite3.OperationalError("attempt to write a readonly database")

    monkeypatch.setattr("superarm.service.storage.sqlite.connect", refuse)
    done = invoke("verify", "--db", str(path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "readonly" in done.stderr
    assert "can be written" in done.stderr


def test_a_file_that_is_no_database_leaves_no_connection_open(tmp_path, monkeypatch):
    path, opened = tmp_path / "log.db", []
    path.write_text("no database" * 100)
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **more: opened.append(connect(*given, **more)) or opened[-1])
    with pytest.raises(SuperarmError):
        Sqlite(path)
    assert opened
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def test_a_damaged_log_stops_the_service_with_a_sentence(tmp_path):
    path = tmp_path / "log.db"
    store = filled(path, 10)
    store._writer.execute("UPDATE events SET crc = 0 WHERE seq = 4")
    store.close()
    done = command("serve", "--db", str(path), "--port", str(free_port()))
    assert done.returncode == 2
    assert "event 4 is damaged" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: the service could not start")


@pytest.mark.parametrize("read", [Sqlite.key_rows, lambda store: list(store.tail({"": 0}))])
def test_a_store_can_be_closed_while_threads_read_from_it(tmp_path, read):
    Sqlite(tmp_path / "log.db").close()
    for _ in range(60):  # without the guard, the process crashes within a few
        store, ends = Sqlite(tmp_path / "log.db"), []

        def work(store=store, ends=ends):
            try:
                while True:
                    read(store)
            except (sqlite3.ProgrammingError, SuperarmError) as error:
                ends.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        store.close()
        for thread in threads:
            thread.join()
        assert len(ends) == 3
        assert all("closed" in text for text in ends), ends


# --- Every store keeps the contract of stores, and the check of it notices stores that do not.


def test_the_stores_of_the_service_keep_the_contract(reopen):
    check_store(reopen)


def test_the_least_that_a_store_has_to_be_is_enough():
    store = MemoryStore()
    check_store(lambda: store)


class Forgetful(MemoryStore):
    """A store that loses what its process did not read again."""

    def stream(self, tenant, kind, stream):
        return super().stream(tenant, kind, stream)[:1]


class Repeating(MemoryStore):
    """A store that writes an event twice."""

    def commit(self, lines):
        self._taken.clear()
        return super().commit(lines)


class Unordered(MemoryStore):
    """A store that gives its oldest snapshot first."""

    def snapshots(self):
        yield from self.saved

    def save(self, saved):
        self.saved += [saved._replace(digest=""), saved]


@pytest.mark.parametrize("kind", [Forgetful, Repeating, Unordered])
def test_a_store_that_does_not_is_noticed(kind):
    store = kind()
    with pytest.raises(ContractViolation):
        check_store(lambda: store)


def test_what_a_store_need_not_do_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(Exception, match="a log in MemoryStore cannot be copied by superarm"):
        MemoryStore().backup(tmp_path / "copy")
