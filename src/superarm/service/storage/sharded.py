"""The log in PostgreSQL, for workers that serve only the problems they own.

Every problem has a log of its own, in the tables of all logs. A worker owns a problem while its session holds the
advisory lock of the problem, and it writes in this session alone: a worker whose session has ended, whatever it
believes, can write nothing, and the next owner reads everything that it has written. Should two sessions ever write to
one log (behind a pool that shares sessions, for instance), they would use the same number, and the primary key of the
table refuses the second.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from superarm.core.errors import SuperarmError
from superarm.service.domain.ledger import Key, LogEntry
from superarm.service.storage.base import (
    MOVED,
    DecisionSpan,
    FormerPlaces,
    LogLine,
    LogReader,
    NumberedLine,
    Position,
    ReadEntry,
    SavedSnapshot,
    StoreUnavailable,
)
from superarm.service.storage.keys import KeyRow
from superarm.service.storage.postgres import Postgres
from superarm.service.storage.postgres_connection import connect, explain_errors
from superarm.service.storage.postgres_locks import MAX_WORKERS, enter_mode, lock_number, take_slot
from superarm.service.storage.postgres_tables import INSERT, note_sharding
from superarm.service.storage.problem_log import ProblemLog, log_name, problem_of, save_snapshot

SESSION_SECONDS = 10
"""PostgreSQL ends the session of a worker that was silent for so long (it says something twice a second)."""

CLAIM_SECONDS = 5
"""A claim is valid for so long; whoever waits for a problem renews it."""

_SESSION = f"""
SET idle_session_timeout = '{SESSION_SECONDS}s';
SET idle_in_transaction_session_timeout = '{SESSION_SECONDS}s';
SET tcp_keepalives_idle = 5;
SET tcp_keepalives_interval = 2;
SET tcp_keepalives_count = 3;
"""


@dataclass(frozen=True)
class Session:
    """A session with the locks that it has: the last number in the log of each problem.

    ``locked`` are the logs whose locks it has, ``held`` those that may be written. A new session begins with none, so
    that no thread can take what an earlier session had for what the new one has.
    """

    connection: Any
    locked: dict[str, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)


class ShardedPostgres:
    """The store of one worker in the database at ``url``, which begins without any problem.

    It connects at once, or with ``wait`` only when ``open`` is called.
    """

    shared, compactor = False, None

    def __init__(self, url: str, *, wait: bool = False) -> None:
        self._url = url
        self._all = Postgres(url, slot=False, wait=wait)
        self.worker = ""
        self._session: Session | None = None
        self._opening = threading.Lock()
        if not wait:
            try:
                self.open()
            except BaseException:
                self.close()
                raise

    @property
    def shards(self) -> "ShardedPostgres":
        return self

    def open(self) -> None:
        self._all.open()
        self._open_session()

    @explain_errors()
    def _open_session(self) -> Session:
        """The session that has the locks. After its end a new one begins, which has none."""
        with self._opening:
            if self._session is None or self._session.connection.closed:
                self._session = Session(self._connect())
            return self._session

    def _connect(self) -> Any:
        connection = connect(self._url)
        try:
            connection.execute(_SESSION)
            enter_mode(connection, "sharded")
            _refuse_whole_logs(connection)
            note_sharding(connection)
            worker = take_slot(connection, self.worker)
            if worker is None:
                raise SuperarmError(f"the workers 0 to {MAX_WORKERS - 1} are all in use; stop some")
        except BaseException:
            connection.close()
            raise
        self.worker = worker
        return connection

    def holds(self, problem: Key) -> bool:
        session = self._session
        return session is not None and log_name(problem) in session.held and not session.connection.closed

    @explain_errors()
    def acquire(self, problem: Key) -> int | None:
        log, session = log_name(problem), self._open_session()
        if log in session.held:
            return session.held[log]
        if log not in session.locked:
            query = "SELECT pg_try_advisory_lock(%s)"
            if not session.connection.execute(query, (lock_number(log),)).fetchone()[0]:
                return None
            query = "SELECT coalesce(max(seq), 0) FROM superarm_events WHERE worker = %s"
            session.locked[log] = session.connection.execute(query, (log,)).fetchone()[0]
            session.connection.execute("DELETE FROM superarm_claims WHERE log = %s", (log,))
        return session.locked[log]

    def admit(self, problem: Key) -> bool:
        log, session = log_name(problem), self._session
        if session is None or log not in session.locked:
            return False
        session.held.setdefault(log, session.locked[log])
        return True

    @explain_errors()
    def release(self, problem: Key) -> None:
        log, session = log_name(problem), self._open_session()
        session.held.pop(log, None)
        if session.locked.pop(log, None) is not None:
            session.connection.execute("SELECT pg_advisory_unlock(%s)", (lock_number(log),))

    @explain_errors()
    def claim(self, problem: Key) -> None:
        query = (
            "INSERT INTO superarm_claims VALUES (%s, %s, now())"
            " ON CONFLICT (log) DO UPDATE SET worker = excluded.worker, at = now()"
        )
        self._open_session().connection.execute(query, (log_name(problem), self.worker))

    @explain_errors()
    def claims(self) -> list[Key]:
        query = "SELECT log FROM superarm_claims WHERE worker <> %s AND at > now() - make_interval(secs => %s)"
        session = self._open_session()
        rows = session.connection.execute(query, (self.worker, CLAIM_SECONDS)).fetchall()
        return [problem_of(log) for (log,) in rows if log in session.held]

    def log_name(self, problem: Key) -> str:
        return log_name(problem)

    def problem_log(self, problem: Key) -> LogReader:
        return ProblemLog(self._all, log_name(problem))

    def all_logs(self) -> LogReader:
        return self._all

    @explain_errors()
    def save_problem(self, problem: Key, saved: SavedSnapshot) -> None:
        save_snapshot(self._open_session().connection, log_name(problem), saved)

    @explain_errors()
    def problem_names(self, tenant: str) -> list[str]:
        return self._all.problem_names(tenant)

    @explain_errors()
    def probe(self) -> None:
        query = "INSERT INTO superarm_workers VALUES (%s) ON CONFLICT (worker) DO UPDATE SET worker = excluded.worker"
        self._open_session().connection.execute(query, (self.worker,))

    @explain_errors()
    def commit(self, lines: list[LogLine]) -> list[int]:
        session = self._open_session()
        last, places, rows = dict[str, int](), list[tuple[str, int]](), list[Any]()
        for line, log in zip(lines, self.logs_of(lines), strict=True):
            number = MOVED
            if log in session.held:
                number = last[log] = last.get(log, session.held[log]) + 1
                rows.append((log, number, *line[:4], line.body.decode()))
            places.append((log, number))
        written = _insert(session, rows, [log for log in last if session.held[log] == 0]) if rows else set()
        session.held.update(last)
        return [place[1] if place[1] == MOVED or place in written else 0 for place in places]

    def logs_of(self, lines: list[LogLine]) -> list[str]:
        return [log_name((line.tenant, line.problem)) for line in lines]

    def last(self) -> int:
        self._open_session()  # begins a new session, if the last one has ended; it holds nothing
        return 0

    def tail(self, after: Position, *, problems: bool = False) -> Iterator[ReadEntry]:
        return iter(())  # problems are read one at a time, when they are acquired

    def read_transaction(self) -> AbstractContextManager[None]:
        return self._all.read_transaction()

    def stream(self, tenant: str, kind: str, stream: str) -> list[LogEntry]:
        return self._all.stream(tenant, kind, stream)

    def find_decisions(self, span: DecisionSpan) -> Iterator[LogEntry]:
        return self._all.find_decisions(span)

    def snapshots(self) -> Iterator[SavedSnapshot]:
        return iter(())

    def bases(self) -> list[SavedSnapshot]:
        return []

    def compact(
        self, bases: dict[str, SavedSnapshot], decisions: list[Key], notes: list[NumberedLine], archive: str
    ) -> None:
        self._all.compact(bases, decisions, notes, archive)

    def problem_logs(self) -> Iterator[LogReader]:
        return self._all.problem_logs()

    def save(self, saved: SavedSnapshot) -> None:
        raise NotImplementedError("a worker that owns some problems saves them one by one")

    def forget(self, saved: SavedSnapshot) -> None:
        self._all.forget(saved)

    def keep_out_others(self) -> None:
        self._all.keep_out_others()

    def key_rows(self) -> list[KeyRow]:
        return self._all.key_rows()

    def put_key(self, row: KeyRow) -> None:
        self._all.put_key(row)

    def check(self) -> str:
        return self._all.check()

    def former_places(self) -> FormerPlaces:
        return self._all.former_places()

    def lost_tail(self) -> str:
        return self._all.lost_tail()

    def accept_loss(self) -> None:
        self._all.accept_loss()

    def backup(self, target: Path) -> None:
        self._all.backup(target)

    def close(self) -> None:
        if self._session is not None:
            self._session.connection.close()
        self._all.close()


def _insert(session: Session, rows: list[Any], new: list[str]) -> set[tuple[str, int]]:
    """Write events, and the names of logs that are new: the logs and numbers of those whose keys were not taken."""
    columns, connection = [list(column) for column in zip(*rows, strict=True)], session.connection
    try:
        with connection.transaction():
            for log in new:
                connection.execute("INSERT INTO superarm_workers VALUES (%s) ON CONFLICT DO NOTHING", (log,))
            return set(connection.execute(INSERT, columns).fetchall())
    except psycopg.errors.UniqueViolation:
        connection.close()  # nothing that this worker has can be relied on
        raise StoreUnavailable("another worker has written to a problem of this one") from None


def _refuse_whole_logs(session: Any) -> None:
    query = (
        "SELECT worker FROM superarm_workers AS known WHERE worker LIKE 'w%'"
        " AND EXISTS (SELECT FROM superarm_events AS event WHERE event.worker = known.worker)"
    )
    if session.execute(query).fetchone() is not None:
        raise SuperarmError(
            "--sharded: the log was written without it; run superarm reshard once, with no service running"
        )
