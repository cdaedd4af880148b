"""A log whose end was lost is noticed at the start and by verify."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from superarm.service.storage import sqlite as mark
from superarm.service.storage.base import StoreUnavailable
from superarm.service.storage.snapshot import verify
from superarm.service.storage.sqlite import DamagedLog, Sqlite

from .running import invoke
from .test_sqlite import asked, crashed, filled


@pytest.fixture
def log(tmp_path, monkeypatch) -> Path:
    """A log of 16 events as a crash leaves it, with its write-ahead log and its mark."""
    monkeypatch.setattr(mark, "MARK_SECONDS", 0.0)
    store = filled(tmp_path / "live.db", 16)
    target = crashed(store, tmp_path / "crashed.db")
    shutil.copy(tmp_path / "live.db.mark", tmp_path / "crashed.db.mark")
    store.close()
    return target


def keep_all(path: Path) -> None:
    pass


def cut_wal(path: Path) -> None:
    wal = path.with_name(f"{path.name}-wal")
    wal.write_bytes(wal.read_bytes()[: wal.stat().st_size * 9 // 10])


def remove_wal(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def delete_rows(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM events WHERE seq > 9")
    connection.close()


def change_last(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE events SET crc = crc + 1 WHERE seq = 16")
    connection.close()


@pytest.mark.parametrize("lose", [cut_wal, remove_wal, delete_rows, change_last])
def test_a_lost_end_is_noticed_at_the_start(log, lose):
    """A log without its end was served, and verify called it sound."""
    lose(log)
    with pytest.raises(DamagedLog, match=r"16.*accept the loss"):
        Sqlite(log)


@pytest.mark.parametrize("marked", [True, False])
def test_a_write_ahead_log_that_is_torn_anywhere_holds_whole_commits_or_is_refused(log, tmp_path, marked):
    """Torn in the middle of every page, and at its end; without the mark, what is left are the first commits."""
    wal, found = log.with_name(f"{log.name}-wal").read_bytes(), list[int]()
    page = 24 + 4096
    for n in range(2 * (len(wal) - 32) // page + 1):
        torn = tmp_path / str(n) / log.name
        torn.parent.mkdir()
        shutil.copy(log, torn)
        if marked:
            shutil.copy(f"{log}.mark", torn.with_name(f"{log.name}.mark"))
        torn.with_name(f"{log.name}-wal").write_bytes(wal[: 32 + n * page // 2])
        try:
            store = Sqlite(torn)
        except DamagedLog:
            continue
        found.append(len(list(store.tail({}))))
        assert verify(store).faults == []
        store.close()
    assert set(found) == ({16} if marked else {0, 1, 6, 11, 16})


def test_a_whole_log_is_served_and_a_missing_one_is_not_replaced_by_an_empty_one(log):
    Sqlite(log).close()
    for name in (log, *log.parent.glob(f"{log.name}-*")):
        name.unlink()
    for _ in range(2):
        with pytest.raises(DamagedLog, match="16 events were committed"):
            Sqlite(log)
        assert not log.exists()
    log.with_name(f"{log.name}.mark").unlink()
    Sqlite(log).close()


@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_acknowledged_after_the_file_was_removed_or_replaced(log, tmp_path, replaced):
    store, kept = Sqlite(log), tmp_path / "kept.db"
    log.rename(kept)
    if replaced:
        shutil.copy(kept, log)
    with pytest.raises(StoreUnavailable, match="removed or replaced"):
        store.commit([asked(20)])
    with pytest.raises(StoreUnavailable, match="removed or replaced"):
        store.probe()
    assert store.find([asked(20)]) == [0], "nothing of it is in the log, so that no later request finds it"
    kept.replace(log)
    store.probe()
    assert store.commit([asked(20)]) == [17]
    store.close()


def test_verify_reports_a_lost_end_and_the_loss_can_be_accepted(log):
    delete_rows(log)
    seen = invoke("verify", "--db", str(log))
    assert seen.exit_code == 1
    assert "it has 9 events, but 16 were committed" in seen.output
    accepted = invoke("verify", "--db", str(log), "--accept-loss")
    assert (accepted.exit_code, "accepted" in accepted.output) == (0, True), accepted.output
    store = Sqlite(log)
    assert store.commit([asked(99)]) == [10]
    assert verify(store).faults == []
    store.close()


def test_the_mark_is_written_at_a_bounded_rate_and_at_the_end(tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(mark.time, "monotonic", lambda: now[0])
    store = filled(tmp_path / "log.db", 6)
    line = mark.HighWaterMark(tmp_path / "log.db.mark")
    assert line.read().position == 1  # the first commit
    now[0] += 0.9
    store.commit([asked(50)])
    assert line.read().position == 1
    now[0] += 0.2
    store.commit([asked(51)])
    assert line.read().position == 8
    store.commit([asked(52)])
    store.close()
    assert line.read().position == 9
