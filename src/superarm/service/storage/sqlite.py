"""The log in one SQLite file: in WAL mode, every commit on disk before it is answered, one process at a time.

Beside the database is a small file that says how far the log had come, the mark. If the end of the log is lost, with a
write-ahead log that was cut or removed for instance, what is left looks like a shorter log. The mark tells the
difference.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import DecodeError, Struct, json

from superarm.core.errors import SuperarmError
from superarm.service.domain.ledger import Key, LogEntry
from superarm.service.storage import base
from superarm.service.storage.base import Finding, LogLine, SavedSnapshot, Store, StoreUnavailable, decode_line

MAX_SNAPSHOTS = 2
ROWS_AT_ONCE = 1_000
"""So many events are read by one query."""

LITTLE_SPACE, ROOM = 64 * 2**20, 2**30
"""Bytes: below the first, writes fail soon; a backup and a compaction need the second, or the size of the log."""

BACKUP_DAYS = 7.0

_INSERT = """
INSERT INTO events (tenant, kind, stream, step, crc, body)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, CAST(value ->> 5 AS BLOB)
FROM json_each(?) WHERE true ORDER BY key
ON CONFLICT (tenant, kind, stream, step) DO NOTHING
"""
"""A whole batch and its commit in one statement, so that the thread releases the interpreter once, not once per row."""

_SELECT = "SELECT seq, tenant, kind, stream, step, crc, body FROM events"

_UNIT = 'instr(body, CAST(\'"unit":"\' AS BLOB))'
_OF_UNIT = f"substr(body, {_UNIT} + 8, 16)"
_HAS_UNIT = f"kind = 'decision' AND step = 0 AND {_UNIT} > 0"
"""Where the digest of a unit is in the event of a decision; a context may have a field of that name, too."""


class DamagedLog(SuperarmError):
    """The log is not what was written; the message says where."""


class Sqlite(Store):
    """A store in the file ``path``; with ``lock``, the only process on its directory that serves it."""

    def __init__(self, path: Path, *, lock: bool = True) -> None:
        self.path = path
        real = path.resolve()
        self._mark = HighWaterMark(real.with_name(f"{real.name}.mark"))
        self._copied = real.with_name(f"{real.name}.copied")  # its time is that of the last backup
        existed = path.exists() and path.stat().st_size > 0
        if not existed and (mark := self._mark.read()) is not None and mark.position:
            said = f"{path} is missing, but {mark.position} events were committed to it; restore a backup"
            raise DamagedLog(f"{said}, or remove {self._mark.path.name} to begin with an empty log")
        self._locks = lock_file(path) if lock else []
        self._connections: list[sqlite3.Connection] = []
        self._reading = threading.RLock()  # a connection must not be closed while a thread reads
        try:
            self._open()
            if lock and existed and (lost := self.lost_tail()):
                raise DamagedLog(f"{path}: {lost}; restore a backup, or accept the loss: superarm verify --accept-loss")
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        path = self.path
        with _explain_errors(path):
            for _ in range(2):
                self._connections.append(connect(path))
            self._writer, self._reader = self._connections
        self._file = file_number(path)
        with _explain_errors(path):
            create_tables(self._writer)
            self._check_numbers()

    def _check_numbers(self) -> None:
        """Refuse a log of which events are missing; compaction has noted how many of the older ones it kept."""
        with self.read_transaction():
            begin = read_base(self._reader)
            ((count, last),) = self._rows("SELECT (SELECT count(*) FROM events), max(seq) FROM events")
        want = begin.kept + max(0, (last or 0) - begin.position)
        if count != want:
            raise DamagedLog(f"{self.path}: {count} events, where {want} were written; restore a backup")

    def probe(self) -> None:
        self._require_file()
        write_scratch(self.path.resolve())
        (version,) = self._writer.execute("PRAGMA user_version").fetchone()
        self._writer.execute(f"PRAGMA user_version = {version}")  # what it is already: a commit like any other

    def commit(self, lines: list[LogLine]) -> list[int]:
        self._require_file()
        rows = [(*line[:4], zlib.crc32(line.body), line.body.decode()) for line in lines]
        written = self._writer.execute(_INSERT, (json.encode(rows).decode(),))
        last = written.lastrowid or 0
        first = last - written.rowcount + 1
        if written.rowcount == len(lines):
            self._mark.advance(last, rows[-1][4])
            return list(range(first, first + len(lines)))
        return self._numbers_of(lines, first, written.rowcount)

    def _require_file(self) -> None:
        if file_number(self.path) != self._file:
            raise StoreUnavailable(f"{self.path} was removed or replaced; put it back, or stop the service")

    def find(self, lines: list[LogLine]) -> list[int]:
        where = "SELECT seq FROM events WHERE tenant = ? AND kind = ? AND stream = ? AND step = ? AND body = ?"
        with _explain_errors(self.path):
            found = [self._writer.execute(where, (*line[:4], line.body)).fetchone() for line in lines]
        return [0 if row is None else row[0] for row in found]

    def _numbers_of(self, lines: list[LogLine], first: int, n: int) -> list[int]:
        """The number of each line of a batch that got the ``n`` numbers from ``first`` on; 0 if its key was taken."""
        free = set(range(first, first + n))
        where = "SELECT seq FROM events WHERE tenant = ? AND kind = ? AND stream = ? AND step = ?"
        numbers = []
        for line in lines:
            (seq,) = self._writer.execute(where, line[:4]).fetchone()
            numbers.append(seq if seq in free else 0)
            free.discard(seq)
        return numbers

    def _rows(self, query: str, values: Any = ()) -> list[Any]:
        """What a query reads, by any thread."""
        with self._reading, _explain_errors(self.path):
            return self._reader.execute(query, values).fetchall()

    def tail(self, after: base.Position, *, problems: bool = False) -> Iterator[base.ReadEntry]:
        last, only = after.get("", 0), " AND kind = 'problem'" if problems else ""
        while rows := self._rows(f"{_SELECT} WHERE seq > ?{only} ORDER BY seq LIMIT {ROWS_AT_ONCE}", (last,)):
            yield from (base.ReadEntry("", row[0], _entry(row)) for row in rows)
            last = rows[-1][0]

    @contextlib.contextmanager
    def read_transaction(self) -> Iterator[None]:
        self._reader.execute("BEGIN")
        try:
            yield
        finally:
            self._reader.execute("ROLLBACK")

    def stream(self, tenant: str, kind: str, stream: str) -> list[LogEntry]:
        where = " WHERE tenant = ? AND kind = ? AND stream = ? ORDER BY step"
        return [_entry(row) for row in self._rows(_SELECT + where, (tenant, kind, stream))]

    def made_for(self, unit: str) -> list[LogEntry]:
        where = f" WHERE {_HAS_UNIT} AND {_OF_UNIT} = ? ORDER BY seq"
        entries = (_entry(row) for row in self._rows(_SELECT + where, (unit.encode(),)))
        return [entry for entry in entries if entry.event.unit == unit]

    def snapshots(self) -> Iterator[SavedSnapshot]:
        query = "SELECT digest, body FROM snapshots WHERE id = ?"
        for (id,) in self._rows("SELECT id FROM snapshots ORDER BY id DESC"):
            yield from (SavedSnapshot(*row) for row in self._rows(query, (id,)))

    def bases(self) -> list[SavedSnapshot]:
        begin = read_base(self._reader)
        return [] if begin.saved is None else [begin.saved]

    def compact(self, bases: dict[str, SavedSnapshot], decisions: list[Key], notes: list[base.NumberedLine]) -> None:
        (saved,) = bases.values()
        with _transaction(self._writer) as connection:
            for _, seq, line in notes:
                values = (seq, *line[:4], zlib.crc32(line.body), line.body)
                connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", values)
            begin_with(connection, saved, max(seq for _, seq, _ in notes))
            remove_decisions(connection, decisions)

    def shrink(self) -> None:
        self._writer.execute("VACUUM")

    def save(self, saved: SavedSnapshot) -> None:
        with _transaction(self._writer) as connection:
            connection.execute("INSERT INTO snapshots (digest, body) VALUES (?, ?)", saved)
            connection.execute(
                "DELETE FROM snapshots WHERE id <= (SELECT max(id) FROM snapshots) - ?", (MAX_SNAPSHOTS,)
            )

    def drop_snapshots(self) -> None:
        self._writer.execute("DELETE FROM snapshots")

    def keep_out_others(self) -> None:
        if not self._locks:
            self._locks = lock_file(self.path)

    def key_rows(self) -> list[base.KeyRow]:
        query = "SELECT id, digest, tenant, scopes, created, revoked, note FROM keys ORDER BY id"
        return [base.KeyRow(*row) for row in self._rows(query)]

    def put_key(self, row: base.KeyRow) -> None:
        with _transaction(self._writer) as connection:
            connection.execute("INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def check(self) -> str:
        try:
            return str(self._reader.execute("PRAGMA integrity_check").fetchone()[0])
        except sqlite3.DatabaseError as error:
            return str(error)

    def findings(self) -> list[Finding]:
        ((size,),) = self._rows("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
        rows = self._rows(f"{_SELECT} ORDER BY seq DESC LIMIT 1")
        ahead = _entry(rows[0]).event.at / 1000 - time.time() if rows else 0.0
        sound = [hashlib.sha256(saved.body).hexdigest() == saved.digest for saved in self.snapshots()]
        lost, place = self.lost_tail(), self.path.resolve()
        free = shutil.disk_usage(place.parent).free
        days = (time.time() - self._copied.stat().st_mtime) / 86_400 if self._copied.exists() else None
        made = "none is known; superarm backup makes one" if days is None else f"made {days:.0f} days ago"
        server = "this process" if self._locks else who_locks(place)
        return [
            Finding("log", f"{rows[0][0] if rows else 0:,} events, {size / 2**20:,.0f} MB"),
            Finding("mark", lost or "the end of the log is there", wrong=bool(lost)),
            Finding("snapshots", f"{len(sound)}, {sound.count(False)} damaged", not all(sound)),
            Finding("disk", f"{free / 2**20:,.0f} MB free", free < max(ROOM, size), free < LITTLE_SPACE),
            Finding("clocks", f"the last event is {max(0.0, ahead):.0f} s ahead", ahead > base.CLOCK_SECONDS),
            Finding("locks", f"served by {server}"),
            Finding("backup", made, days is None or days > BACKUP_DAYS),
        ]

    def lost_tail(self) -> str:
        mark = self._mark.read()  # before the log: it is never ahead of it
        if mark is None:
            return ""
        found = self._rows("SELECT crc FROM events WHERE seq = ?", (mark.position,))
        if not found and mark.position > read_base(self._reader).position:
            ((last,),) = self._rows("SELECT coalesce(max(seq), 0) FROM events")
            return f"the end of the log is missing: it has {last} events, but {mark.position} were committed"
        return f"event {mark.position} is not the one that was committed" if found and found[0][0] != mark.crc else ""

    def accept_loss(self) -> None:
        self.keep_out_others()
        rows = self._rows("SELECT seq, crc FROM events ORDER BY seq DESC LIMIT 1")
        self._mark.advance(*(rows[0] if rows else (0, 0)))

    def backup(self, target: Path) -> None:
        with sqlite3.connect(target) as copy:
            self._reader.backup(copy)
        copy.close()
        with contextlib.suppress(OSError):
            self._copied.touch()

    def close(self) -> None:
        self._mark.write()
        with self._reading:
            for connection in reversed(self._connections):
                connection.close()
        for handle in self._locks:
            os.close(handle)
        self._connections, self._locks = [], []


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    with connection:  # which commits, or rolls back
        connection.execute("BEGIN IMMEDIATE")
        yield connection


@contextlib.contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    """Say in a sentence why a file cannot be used."""
    try:
        yield
    except sqlite3.OperationalError as error:
        said = f"{path} cannot be used: {error}; see that it is a file, and that it and its directory can be written"
        raise StoreUnavailable(said) from None
    except sqlite3.DatabaseError as error:
        raise DamagedLog(f"{path} is damaged, or no database: {error}; restore a backup") from None


def _entry(row: Any) -> LogEntry:
    seq, tenant, kind, stream, step, crc, body = row
    if zlib.crc32(body) != crc:
        raise DamagedLog(f"event {seq} is damaged: its checksum does not fit; restore a backup")
    return decode_line(LogLine(tenant, kind, stream, step, body))


def file_number(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one that has taken its name; None if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


MARK_SECONDS = 1.0
"""The mark is written at most so often: what was lost of the last second may go unnoticed."""


class Mark(Struct, frozen=True):
    """The number of an event that was committed, and its checksum."""

    position: int
    crc: int


class HighWaterMark:
    """The mark in the file ``path``. It is behind the log, never ahead of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._newest: Mark | None = None
        self._written = -MARK_SECONDS

    def read(self) -> Mark | None:
        """The mark; None if there is none that can be read."""
        try:
            return json.decode(self.path.read_bytes(), type=Mark)
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
        beside = self.path.with_name(f".{self.path.name}.new")
        with contextlib.suppress(OSError):  # a full disk, for instance: the log itself is what matters
            beside.write_bytes(json.encode(self._newest))
            os.replace(beside, self.path)
        self._newest, self._written = None, time.monotonic()


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a log, with every commit on disk before it returns."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
    with contextlib.ExitStack() as opened:
        opened.callback(connection.close)  # if the file is no database, or cannot be written
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        opened.pop_all()
    return connection


def lock_file(path: Path) -> list[int]:
    """Handles that keep other processes from serving the file, by whatever path they find it.

    One is of a lock file beside the real file, the other of the file itself, so that the lock follows it through hard
    links and renaming. ``flock`` is apart from the locks that SQLite takes, but to close any handle of a file ends
    SQLite's locks in this process. So the handle is closed after SQLite's connections, and the lock file, which is
    tried first, keeps another ``Sqlite`` in this process from opening the file.
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


def who_locks(path: Path) -> str:
    """Which process serves a file, as far as Linux says: ``/proc/locks`` names locks by the number of the file."""
    inode = str(path.stat().st_ino)
    with contextlib.suppress(OSError):
        for _, kind, _, _, pid, file, *_ in map(str.split, Path("/proc/locks").read_text().splitlines()):
            if kind == "FLOCK" and file.rpartition(":")[2] == inode:
                return f"process {pid}"
    return "no process that can be seen from here"


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


TABLES = f"""
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL, kind TEXT NOT NULL, stream TEXT NOT NULL, step INTEGER NOT NULL,
    crc INTEGER NOT NULL, body BLOB NOT NULL,
    UNIQUE (tenant, kind, stream, step)
) STRICT;
CREATE INDEX problem_events ON events (seq) WHERE kind = 'problem';
CREATE INDEX decisions_of_units ON events ({_OF_UNIT}) WHERE {_HAS_UNIT};
CREATE TABLE snapshots (id INTEGER PRIMARY KEY, digest TEXT NOT NULL, body BLOB NOT NULL) STRICT;
CREATE TABLE base (
    id INTEGER PRIMARY KEY CHECK (id = 1), position INTEGER NOT NULL, kept INTEGER NOT NULL,
    digest TEXT NOT NULL, body BLOB NOT NULL
) STRICT;
CREATE TABLE keys (
    id TEXT PRIMARY KEY, digest TEXT NOT NULL, tenant TEXT NOT NULL, scopes TEXT NOT NULL,
    created INTEGER NOT NULL, revoked INTEGER, note TEXT NOT NULL
) STRICT;
"""


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of a new file, whoever else does so; refuse a file that has others."""
    query = "PRAGMA user_version"
    (version,) = connection.execute(query).fetchone()
    if version == 0:
        with _transaction(connection):
            if connection.execute(query).fetchone() == (0,):
                for statement in TABLES.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {base.TABLES_VERSION}")
        (version,) = connection.execute(query).fetchone()
    base.require_tables(version)


class LogBegin(NamedTuple):
    """What a log begins with: ``kept`` of its events up to ``position`` are still in it; 0 before any compaction."""

    position: int = 0
    kept: int = 0
    saved: SavedSnapshot | None = None


def read_base(connection: sqlite3.Connection) -> LogBegin:
    """The base of a log."""
    row = connection.execute("SELECT position, kept, digest, body FROM base").fetchone()
    return LogBegin() if row is None else LogBegin(row[0], row[1], SavedSnapshot(*row[2:]))


def begin_with(connection: sqlite3.Connection, saved: SavedSnapshot, position: int) -> None:
    """Let a log begin with a base, and delete its snapshots, within a transaction.

    No event after the last base is missing, so that none has to be counted.
    """
    before = read_base(connection)
    kept = before.kept + position - before.position
    connection.execute("INSERT OR REPLACE INTO base VALUES (1, ?, ?, ?, ?)", (position, kept, *saved))
    connection.execute("DELETE FROM snapshots")


def remove_decisions(connection: sqlite3.Connection, decisions: list[Key]) -> None:
    """Remove the events of decisions, which the base holds, within a transaction; nothing of them is left."""
    connection.execute("PRAGMA secure_delete = ON")
    query = "DELETE FROM events WHERE tenant = ? AND kind = 'decision' AND stream = ?"
    removed = connection.executemany(query, decisions).rowcount
    connection.execute("UPDATE base SET kept = kept - ?", (max(0, removed),))
