"""The log in PostgreSQL, for several workers: each writes under its own name and reads what the others write.

No row is shared between workers, so none waits for another: a worker numbers its own events in the order in which they
commit, and reads those of others by (worker, number). The unique index decides which of two events with the same key is
written. Sequences are not used, because their numbers can commit out of order.
"""

import contextlib
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.json import encode as json_encode

from superarm.core.errors import SuperarmError
from superarm.service.domain.ledger import Key, LogEntry
from superarm.service.storage.base import (
    DecisionSpan,
    FormerPlaces,
    LogLine,
    LogReader,
    NumberedLine,
    Position,
    ReadEntry,
    SavedSnapshot,
    StoreUnavailable,
    decode_line,
)
from superarm.service.storage.keys import KeyRow
from superarm.service.storage.postgres_connection import connect, explain_errors
from superarm.service.storage.postgres_locks import CLASS, MAX_WORKERS, enter_mode, take_slot
from superarm.service.storage.postgres_tables import COMPACTED_VERSIONS, FIND, INSERT, NAMES, TAIL, migrate
from superarm.service.storage.problem_log import (
    ProblemLog,
    begin_with,
    compact,
    former_places,
    read_bases,
    reshard,
    save_snapshot,
)

log = logging.getLogger("superarm.postgres")


class Postgres:
    """A store in the database at ``url``; with ``slot``, as one of its workers, which may write events.

    It connects at once, or with ``wait`` only when ``open`` is called. A connection that is lost is made again when it
    is next needed. The lock on the worker's slot is lost with it: if another process has taken the slot meanwhile, this
    worker goes on under another name.
    """

    shared, shards, compactor = True, None, None

    def __init__(self, url: str, *, slot: bool = True, wait: bool = False) -> None:
        self._url, self._slot = url, slot
        self.worker = ""
        self._reader: Any = None
        self._writer: Any = None
        self._connecting = threading.Lock()  # several threads read
        self._seq = self._written = 0  # the last number given to a line, and to a line that was not known already
        self._version = 0
        self._lost = ""
        if not wait:
            self.open()

    @explain_errors()
    def open(self) -> None:
        if self._writer is not None:
            return
        reader = connect(self._url)
        try:
            self._version = migrate(reader)
            writer = self._claim() if self._slot else connect(self._url)
        except BaseException:
            reader.close()
            raise
        self._reader, self._writer = reader, writer
        self._seq = self._written = self.last() if self._slot else 0

    def _claim(self) -> Any:
        """A connection that holds the lock of a slot: of the same one as before, or of the first that is free."""
        connection, before = connect(self._url), self.worker
        try:
            enter_mode(connection, "whole")
            name = take_slot(connection, before)
            if name is None:
                raise SuperarmError(f"the workers 0 to {MAX_WORKERS - 1} are all in use; stop some")
        except BaseException:
            connection.close()
            raise
        self.worker = name
        if before not in ("", name):
            log.warning("the slot %s was taken by another process; going on as %s", before, name)
        return connection

    def _write_connection(self) -> Any:
        """The connection to write on. One that was lost is made again by ``last`` alone, before the log is read.

        Another process may have written under this name meanwhile, and has to be read before anything else is written.
        """
        if self._writer is None:
            self.open()
        if self._writer.closed and self._slot:
            raise StoreUnavailable("the connection to PostgreSQL was lost")
        if self._writer.closed:
            self._writer = connect(self._url)
        if self._lost:
            raise StoreUnavailable(f"the end of the log is missing: {self._lost}")
        return self._writer

    def _reclaim(self) -> None:
        """Claim a slot again, after the connection was lost."""
        before, known = self.worker, self._written
        self._writer = self._claim()
        self._seq = self._written = self.last()
        if self.worker == before and self._seq < known:
            self._lost = f"{self.worker} has {self._seq} events, but {known} were committed: restore a backup"

    def _read_connection(self) -> Any:
        if self._reader is None:
            self.open()
        with self._connecting:
            if self._reader.closed:
                self._reader = connect(self._url)
            return self._reader

    @explain_errors()
    def probe(self) -> None:
        query = "INSERT INTO superarm_workers VALUES (%s) ON CONFLICT (worker) DO UPDATE SET worker = excluded.worker"
        self._write_connection().execute(query, (self.worker,))

    @explain_errors()
    def commit(self, lines: list[LogLine]) -> list[int]:
        connection = self._write_connection()
        numbers = list(range(self._seq + 1, self._seq + len(lines) + 1))
        tenants, kinds, streams, steps, bodies, _ = (list(column) for column in zip(*lines, strict=True))
        texts, workers = [body.decode() for body in bodies], [self.worker] * len(lines)
        with connection.transaction():
            rows = connection.execute(INSERT, (workers, numbers, tenants, kinds, streams, steps, texts)).fetchall()
        self._seq += len(lines)
        written = {seq for _, seq in rows}
        self._written = max(self._written, *written, 0)
        return [number if number in written else 0 for number in numbers]

    def logs_of(self, lines: list[LogLine]) -> list[str]:
        return [self.worker] * len(lines)

    @explain_errors()
    def last(self) -> int:
        if self._slot and self._writer is not None and self._writer.closed:
            self._reclaim()
        query = "SELECT coalesce(max(seq), 0) FROM superarm_events WHERE worker = %s"
        return int(self._write_connection().execute(query, (self.worker,)).fetchone()[0])

    def tail(self, after: Position, *, problems: bool = False) -> Iterator[ReadEntry]:
        values = (json.dumps(after), "problem" if problems else "%")
        with explain_errors(), self._read_connection().cursor() as cursor:
            cursor.execute(TAIL, values)
            for worker, seq, tenant, kind, stream, step, body in cursor:
                yield ReadEntry(worker, seq, decode_line(LogLine(tenant, kind, stream, step, body)))

    @contextlib.contextmanager
    def read_transaction(self) -> Iterator[None]:
        connection = self._read_connection()
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield

    @explain_errors()
    def stream(self, tenant: str, kind: str, stream: str) -> list[LogEntry]:
        query = (
            "SELECT tenant, kind, stream, step, body FROM superarm_events"
            " WHERE tenant = %s AND kind = %s AND stream = %s ORDER BY step"
        )
        rows = self._read_connection().execute(query, (tenant, kind, stream)).fetchall()
        return [decode_line(LogLine(*row)) for row in rows]

    def find_decisions(self, span: DecisionSpan) -> Iterator[LogEntry]:
        tenant, problem, since, (at, id), limit = span
        name = json_encode(problem).decode()
        values = {"tenant": tenant, "problem": name, "since": since, "at": at, "id": id, "limit": limit}
        return (decode_line(LogLine(*row)) for row in self.rows(FIND, values))

    def snapshots(self) -> Iterator[SavedSnapshot]:
        return ProblemLog(self, "").snapshots()

    def bases(self) -> list[SavedSnapshot]:
        return read_bases(self, None)

    @explain_errors()
    def compact(
        self, bases: dict[str, SavedSnapshot], decisions: list[Key], notes: list[NumberedLine], archive: str
    ) -> None:
        version = self._version % COMPACTED_VERSIONS + COMPACTED_VERSIONS
        connection = self._write_connection()
        with connection.transaction():
            compact(connection, decisions, notes, version)
            begin_with(connection, bases, archive)
        self._version = version

    @property
    def compacted(self) -> bool:
        """Whether the log begins with bases."""
        return self._version >= COMPACTED_VERSIONS

    def problem_logs(self) -> Iterator[LogReader]:
        query = "SELECT DISTINCT log FROM superarm_snapshots WHERE log <> '' ORDER BY log"
        return (ProblemLog(self, log) for (log,) in list(self.rows(query, ())))

    def problem_names(self, tenant: str) -> list[str]:
        """The names of a tenant's problems, by a query."""
        return [name for (name,) in self.rows(NAMES, (tenant,))]

    def rows(self, query: str, values: Any) -> Iterator[Any]:
        """The rows that a query gives."""
        with explain_errors(), self._read_connection().cursor() as cursor:
            yield from cursor.execute(query, values)

    @explain_errors()
    def save(self, saved: SavedSnapshot) -> None:
        save_snapshot(self._write_connection(), "", saved)

    @explain_errors()
    def reshard(self) -> int:
        """Give every problem a log of its own; no service may run. The number of events that were moved."""
        self.keep_out_others()
        if self.compacted:
            raise SuperarmError("--db: the log was compacted before it was resharded, which cannot be undone")
        return reshard(self._write_connection())

    @explain_errors()
    def forget(self, saved: SavedSnapshot) -> None:
        self._write_connection().execute("DELETE FROM superarm_snapshots WHERE digest = %s AND body = %s", saved)

    @explain_errors()
    def keep_out_others(self) -> None:
        query = "SELECT n, pg_try_advisory_lock(%s, n) FROM generate_series(0, %s) AS n"
        taken = [
            number
            for number, free in self._write_connection().execute(query, (CLASS, MAX_WORKERS - 1)).fetchall()
            if not free
        ]
        if taken:
            raise SuperarmError(f"--db: {len(taken)} workers of a service use this database; stop them first")

    @explain_errors()
    def key_rows(self) -> list[KeyRow]:
        query = "SELECT id, digest, tenant, scopes, created, revoked, note FROM superarm_keys ORDER BY id"
        return [KeyRow(*row) for row in self._read_connection().execute(query).fetchall()]

    @explain_errors()
    def put_key(self, row: KeyRow) -> None:
        self._read_connection().execute(
            "INSERT INTO superarm_keys VALUES (%s, %s, %s, %s, %s, %s, %s)"
            " ON CONFLICT (id) DO UPDATE SET revoked = excluded.revoked",
            row,
        )

    def check(self) -> str:
        return "ok"  # PostgreSQL checks its pages itself, if it was set up with checksums

    def former_places(self) -> FormerPlaces:
        return former_places(self)

    def lost_tail(self) -> str:
        return ""  # PostgreSQL's own log is archived; a worker notices if the database has gone back while it runs

    def accept_loss(self) -> None:
        raise SuperarmError("--accept-loss: for SQLite only; PostgreSQL keeps no high-water mark")

    def backup(self, target: Path) -> None:
        raise SuperarmError("PostgreSQL is backed up with its own tools: pg_dump, or WAL archiving")

    def close(self) -> None:
        for connection in (self._reader, self._writer):
            if connection is not None:
                connection.close()
