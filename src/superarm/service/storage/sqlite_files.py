"""The files of a SQLite log: connections, locks, tables, the base of a compacted log, and the high-water mark.

The mark is a small file beside the database that says how far the log had come. If the end of the log is lost, with a
write-ahead log that was cut or removed for instance, what is left looks like a shorter log. The mark tells the
difference.
"""

import contextlib
import fcntl
import os
import sqlite3
import time
from pathlib import Path
from typing import NamedTuple

from msgspec import DecodeError, Struct, json

from superarm.core.errors import SuperarmError
from superarm.service.domain.ledger import Key
from superarm.service.storage.base import SavedSnapshot

MARK_SECONDS = 1.0
"""The mark is written at most so often: what was lost of the last second may go unnoticed."""


class Mark(Struct, frozen=True):
    """The number of an event that was committed, and its checksum."""

    position: int
    crc: int


class HighWaterMark:
    """The mark in the file ``path``. It is behind the log, never ahead of it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._newest: Mark | None = None
        self._written = -MARK_SECONDS

    def read(self) -> Mark | None:
        """The mark; None if there is none that can be read."""
        try:
            return json.decode(self._path.read_bytes(), type=Mark)
        except (OSError, DecodeError):
            return None

    def advance(self, position: int, crc: int) -> None:
        """Note that an event was committed, or that the log ends with it."""
        self._newest = Mark(position, crc)
        if time.monotonic() - self._written >= MARK_SECONDS:
            self.write()

    def write(self) -> None:
        """Write the newest mark. It is not forced to the disk: an old mark does no harm."""
        if self._newest is None:
            return
        beside = self._path.with_name(f".{self._path.name}.new")
        with contextlib.suppress(OSError):  # a full disk, for instance: the log itself is what matters
            beside.write_bytes(json.encode(self._newest))
            os.replace(beside, self._path)
        self._newest, self._written = None, time.monotonic()


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a log, with every commit on disk before it returns."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
    with contextlib.ExitStack() as opened:
        opened.callback(connection.close)  # if the file is no database, or cannot be written
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA busy_timeout = 10000")
        opened.pop_all()
    return connection


def lock_file(path: Path) -> list[int]:
    """Handles that keep other processes from serving the file, by whatever path they find it.

    One is a lock file beside the real file, which earlier versions know as well. The other is the file itself, so the
    lock follows it through hard links and renaming. ``flock`` is apart from the locks that SQLite takes, but to close
    any handle of a file ends SQLite's locks in this process, so it is closed after SQLite's connections.
    """
    if not path.parent.is_dir():
        raise SuperarmError(f"{path}: there is no directory {path.parent}; create it, or see that the path is right")
    real = path.resolve()
    handles: list[int] = []
    try:
        for name, mode in ((real.parent / f".{real.name}.lock", 0o600), (real, 0o644)):
            handles.append(os.open(name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, mode))
            fcntl.flock(handles[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        for handle in handles:
            os.close(handle)
        if isinstance(error, BlockingIOError):
            raise SuperarmError(f"{path} is served by another process; stop it, or give another --db") from None
        raise
    return handles


SCRATCH_BYTES = 262_144
"""More than a commit of some hundred small events takes."""


def write_scratch(path: Path) -> None:
    """Write ``SCRATCH_BYTES`` beside a file, force them to the disk and remove them; ``OSError`` if that is impossible.

    On a disk that is nearly full, a commit of one page may succeed where no event can be written any more.
    """
    beside = path.with_name(f".{path.name}.scratch")
    try:
        with beside.open("wb") as scratch:
            scratch.write(bytes(SCRATCH_BYTES))
            scratch.flush()
            os.fsync(scratch.fileno())
    finally:
        beside.unlink(missing_ok=True)


MIGRATIONS = [
    """
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY,
        tenant TEXT NOT NULL, kind TEXT NOT NULL, stream TEXT NOT NULL, step INTEGER NOT NULL,
        crc INTEGER NOT NULL, body BLOB NOT NULL,
        UNIQUE (tenant, kind, stream, step)
    ) STRICT;
    CREATE INDEX problem_events ON events (seq) WHERE kind = 'problem';
    CREATE TABLE snapshots (id INTEGER PRIMARY KEY, digest TEXT NOT NULL, body BLOB NOT NULL) STRICT;
    CREATE TABLE keys (
        id TEXT PRIMARY KEY, digest TEXT NOT NULL, tenant TEXT NOT NULL, scopes TEXT NOT NULL,
        created INTEGER NOT NULL, revoked INTEGER, note TEXT NOT NULL
    ) STRICT;
    """
]
"""One script per version of the tables; ``user_version`` counts those that have run."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the tables up to this version; refuse a file of a newer one."""
    (stored,) = connection.execute("PRAGMA user_version").fetchone()
    compacted = COMPACTED_VERSIONS if stored >= COMPACTED_VERSIONS else 0
    version = stored - compacted
    if version > len(MIGRATIONS):
        raise SuperarmError(
            f"the database is of version {version}, this superarm knows {len(MIGRATIONS)}; install a newer superarm"
        )
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        connection.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number + compacted}; COMMIT;")
    connection.execute("DROP INDEX IF EXISTS decisions_by_time")  # by which earlier versions searched


COMPACTED = """
CREATE TABLE IF NOT EXISTS base (
    id INTEGER PRIMARY KEY CHECK (id = 1), position INTEGER NOT NULL, kept INTEGER NOT NULL,
    digest TEXT NOT NULL, body BLOB NOT NULL, archive TEXT NOT NULL
) STRICT
"""
COMPACTED_VERSIONS = 1_000
"""Added to the version of a log when it is compacted: superarm from before there were compacted logs refuses it."""


class LogBegin(NamedTuple):
    """What a log begins with: ``kept`` of its events up to ``position`` are still in it; 0 before any compaction."""

    position: int = 0
    kept: int = 0
    saved: SavedSnapshot | None = None


def read_base(connection: sqlite3.Connection) -> LogBegin:
    """The base of a log."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version < COMPACTED_VERSIONS:
        return LogBegin()
    position, kept, *saved = connection.execute("SELECT position, kept, digest, body FROM base").fetchone()
    return LogBegin(position, kept, SavedSnapshot(*saved))


def begin_with(connection: sqlite3.Connection, saved: SavedSnapshot, position: int) -> None:
    """Let a log begin with a base, and delete its snapshots, within a transaction.

    No event after the last base is missing, so that none has to be counted.
    """
    before = read_base(connection)
    kept = before.kept + position - before.position
    connection.execute(COMPACTED)
    connection.execute("INSERT OR REPLACE INTO base VALUES (1, ?, ?, ?, ?, '')", (position, kept, *saved))
    connection.execute("DELETE FROM snapshots")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version = {version % COMPACTED_VERSIONS + COMPACTED_VERSIONS}")


def remove_decisions(connection: sqlite3.Connection, decisions: list[Key]) -> None:
    """Remove the events of decisions, which the base holds, within a transaction; nothing of them is left."""
    connection.execute("PRAGMA secure_delete = ON")
    query = "DELETE FROM events WHERE tenant = ? AND kind = 'decision' AND stream = ?"
    removed = connection.executemany(query, decisions).rowcount
    connection.execute("UPDATE base SET kept = kept - ?", (max(0, removed),))
