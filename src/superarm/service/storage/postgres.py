"""The log in PostgreSQL: every problem has a log of its own, and is served by the worker that owns it.

A worker owns a problem while its session holds the advisory lock of the problem, and it writes in this session alone: a
worker whose session has ended, whatever it believes, can write nothing, and the next owner reads everything that it has
written. Should two sessions ever write to one log (behind a pool that shares sessions, for instance), they would use
the same number, and the primary key of the table refuses the second.
"""

import contextlib
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from superarm.core.errors import MissingExtra, SuperarmError
from superarm.service.domain.ledger import Key, LogEntry
from superarm.service.storage import base
from superarm.service.storage import postgres_tables as tables
from superarm.service.storage.base import MOVED, Finding, LogLine, SavedSnapshot, Store, StoreUnavailable, decode_line
from superarm.service.storage.postgres_tables import log_name, problem_of

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError:
    raise MissingExtra("psycopg", "postgres") from None

MAX_SNAPSHOTS = 2
N_TRIES = 10
"""A session that was closed a moment ago may not have ended yet: for a second, its lock is tried again."""

SESSION_SECONDS = 10
"""PostgreSQL ends the session of a worker that was silent for so long (it says something twice a second)."""

CLAIM_SECONDS = 5
"""A claim is valid for so long; whoever waits for a problem renews it."""

FULL = 0.8
"""The share of PostgreSQL's locks from which on there is a warning: one is needed for each problem in use."""

ROWS_AT_ONCE = 1_000
"""So many events are in memory while a log is read."""

_SESSION = f"""
SET idle_session_timeout = '{SESSION_SECONDS}s';
SET idle_in_transaction_session_timeout = '{SESSION_SECONDS}s';
SET tcp_keepalives_idle = 5;
SET tcp_keepalives_interval = 2;
SET tcp_keepalives_count = 3;
"""

_CONNECTION = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Within about ten seconds a server that has vanished is noticed; what the address says takes precedence."""


@contextlib.contextmanager
def explain_errors() -> Iterator[None]:
    """Say that the database is unavailable where PostgreSQL or the way to it is the reason."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        said = str(error).strip().splitlines()
        raise StoreUnavailable(f"--db: PostgreSQL cannot be reached: {said[0] if said else 'no answer'}") from None


class Explained(psycopg.Connection[Any]):
    """A connection that says why the database cannot be used."""

    @explain_errors()
    def execute(self, *query: Any, **more: Any) -> Any:
        return super().execute(*query, **more)

    @contextlib.contextmanager
    def transaction(self, *name: Any, **more: Any) -> Iterator[Any]:
        with explain_errors(), super().transaction(*name, **more) as begun:
            yield begun


@explain_errors()
def connect(url: str) -> Any:
    """A connection on which every statement is a transaction, on disk before it is answered."""
    try:
        given: Any = _CONNECTION | conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise SuperarmError(f"--db: no address of a database: {str(error).strip()}") from None
    connection = Explained.connect(**given, autocommit=True)
    connection.execute("SET synchronous_commit = on")
    return connection


def lock_number(log: str) -> int:
    """The number of the lock of a problem's log: 64 bits of a hash of its name.

    Two logs with one number could not have two owners. Among a million problems there is such a pair with a
    probability of 3e-8.

    >>> lock_number("p/default/ads") == lock_number("p/default/ads") != lock_number("p/default/news")
    True
    """
    return int.from_bytes(hashlib.sha256(log.encode()).digest()[:8], "big", signed=True)


@dataclass(frozen=True)
class Session:
    """A session with the locks that it has: the last number in the log of each problem.

    ``locked`` are the logs whose locks it has, ``held`` those that may be written. A new session begins with none, so
    that no thread can take what an earlier session had for what the new one has.
    """

    connection: Any
    locked: dict[str, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)


class Postgres(Store):
    """A store in the database at ``url``; with ``serving``, as one of its workers, which begins without any problem.

    It connects at once, or with ``wait`` only when ``open`` is called. A connection that is lost is made again when it
    is next needed.
    """

    def __init__(self, url: str, *, serving: bool = True, wait: bool = False) -> None:
        self._url, self._serving = url, serving
        self.worker = secrets.token_hex(4) if serving else ""
        self._reader: Any = None
        self._session: Session | None = None
        self._lost: dict[str, int] = {}  # what sessions that have ended held, until it is owned again or moved
        self._connecting = threading.RLock()  # several threads read
        if not wait:
            try:
                self.open()
            except BaseException:
                self.close()
                raise

    @property
    def shards(self) -> "Postgres":
        return self

    def open(self) -> None:
        self._connection()
        if self._serving:
            self._open_session()

    def _connection(self) -> Any:
        """The connection to read from, on which a command also writes."""
        with self._connecting:
            if self._reader is None:
                reader = connect(self._url)
                try:
                    tables.create_tables(reader)
                except BaseException:
                    reader.close()
                    raise
                self._reader = reader
            elif self._reader.closed:
                self._reader = connect(self._url)
            return self._reader

    # --- ownership: only the writer thread calls acquire, release, claim, claims and save_problem ---

    def _open_session(self) -> Session:
        """The session that has the locks. After its end a new one begins, which has none."""
        with self._connecting:
            if self._session is None or self._session.connection.closed:
                self._lost |= {} if self._session is None else self._session.held
                self._session = Session(self._connect())
            return self._session

    def _connect(self) -> Any:
        connection = connect(self._url)
        try:
            connection.execute(_SESSION)
            connection.execute("SELECT set_config('application_name', %s, false)", (f"superarm {self.worker}",))
            query = "SELECT pg_try_advisory_lock_shared(%s, %s)"
            if not connection.execute(query, (tables.CLASS, tables.SERVING)).fetchone()[0]:
                raise StoreUnavailable("--db: the database is in use by a command of superarm that keeps out workers")
        except BaseException:
            connection.close()
            raise
        return connection

    def holds(self, problem: Key) -> bool:
        """Whether this worker may write events of a problem, as far as it knows; answered from memory."""
        session = self._session
        return session is not None and log_name(problem) in session.held and not session.connection.closed

    def acquire(self, problem: Key) -> int | None:
        """Own a problem, unless another worker does (None): the number of its last event.

        Nothing of it can be written before ``admit``: its log has to be read first.
        """
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
        """Let events of an acquired problem be written; False if it was lost meanwhile. Answered from memory."""
        log, session = log_name(problem), self._session
        if session is None or log not in session.locked:
            return False
        session.held.setdefault(log, session.locked[log])
        return True

    def release(self, problem: Key) -> None:
        """Own a problem no longer."""
        log, session = log_name(problem), self._open_session()
        session.held.pop(log, None)
        if session.locked.pop(log, None) is not None:
            session.connection.execute("SELECT pg_advisory_unlock(%s)", (lock_number(log),))

    def claim(self, problem: Key) -> None:
        """Ask the owner of a problem to release it."""
        query = (
            "INSERT INTO superarm_claims VALUES (%s, %s, now())"
            " ON CONFLICT (log) DO UPDATE SET worker = excluded.worker, at = now()"
        )
        self._open_session().connection.execute(query, (log_name(problem), self.worker))

    def claims(self) -> list[Key]:
        """The problems of this worker that others have asked for during the last seconds."""
        query = "SELECT log FROM superarm_claims WHERE worker <> %s AND at > now() - make_interval(secs => %s)"
        session = self._open_session()
        rows = session.connection.execute(query, (self.worker, CLAIM_SECONDS)).fetchall()
        return [problem_of(log) for (log,) in rows if log in session.held]

    def problem_log(self, problem: Key) -> "ProblemLog":
        """The log of one problem."""
        return ProblemLog(self, log_name(problem))

    def problem_names(self, tenant: str) -> list[str]:
        """The names of all problems of a tenant, whoever owns them."""
        return [name for (name,) in self.rows(tables.NAMES, (tenant,))]

    def has_problem(self, problem: Key) -> bool:
        """Whether there is a problem of this name, whoever owns it."""
        return next(self.rows(tables.EXISTS, problem), (False,))[0]

    def keep_out_others(self) -> None:
        connection = self._connection() if self._session is None else self._session.connection
        query = "SELECT pg_try_advisory_lock(%s, %s)"
        for _ in range(N_TRIES):
            if connection.execute(query, (tables.CLASS, tables.SERVING)).fetchone()[0]:
                return
            time.sleep(0.1)
        raise SuperarmError("--db: workers of a service use this database; stop them first")

    # --- the log ---

    def probe(self) -> None:
        query = "INSERT INTO superarm_workers VALUES ('') ON CONFLICT (worker) DO UPDATE SET worker = excluded.worker"
        self._open_session().connection.execute(query)

    def commit(self, lines: list[LogLine]) -> list[int]:
        try:
            return self._commit(lines)
        except StoreUnavailable as error:
            lost = isinstance(error.__context__, psycopg.OperationalError)
            if not lost or self._session is None or not self._session.connection.closed:
                raise
            return self._commit(lines)  # by a new session, if it is only the session that has ended

    def _regain(self, session: Session, log: str) -> None:
        """Own a problem again that an earlier session owned, unless another worker does, or has written to it since."""
        if (last := self._lost.pop(log, None)) is not None and self.acquire(problem_of(log)) == last:
            session.held[log] = last

    def _commit(self, lines: list[LogLine]) -> list[int]:
        session = self._open_session()
        last, places, rows = dict[str, int](), list[tuple[str, int]](), list[Any]()
        for line, log in zip(lines, self.logs_of(lines), strict=True):
            number = MOVED
            if log not in session.held:
                self._regain(session, log)
            if log in session.held:
                number = last[log] = last.get(log, session.held[log]) + 1
                rows.append((log, number, *line[:4], line.body.decode()))
            places.append((log, number))
        written = _insert(session, rows) if rows else set()
        session.held.update(last)
        return [place[1] if place[1] == MOVED or place in written else 0 for place in places]

    def logs_of(self, lines: list[LogLine]) -> list[str]:
        return [log_name((line.tenant, line.problem)) for line in lines]

    def find(self, lines: list[LogLine]) -> list[int]:
        query = (
            "SELECT seq FROM superarm_events"
            " WHERE tenant = %s AND kind = %s AND stream = %s AND step = %s AND body = %s"
        )
        return [next(self.rows(query, (*line[:4], line.body.decode())), (0,))[0] for line in lines]

    def tail(self, after: base.Position, *, problems: bool = False) -> Iterator[base.ReadEntry]:
        return self.entries(tables.TAIL, (json.dumps(after), "problem" if problems else "%"))

    def entries(self, query: str, values: Any) -> Iterator[base.ReadEntry]:
        """The events that a query gives, some at a time: a log may be larger than the memory."""
        with explain_errors(), self._connection().cursor(secrets.token_hex(8), withhold=True) as cursor:
            cursor.itersize = ROWS_AT_ONCE
            for worker, seq, *line in cursor.execute(query, values):
                yield base.ReadEntry(worker, seq, decode_line(LogLine(*line)))

    @contextlib.contextmanager
    def read_transaction(self) -> Iterator[None]:
        connection = self._connection()
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield

    def stream(self, tenant: str, kind: str, stream: str) -> list[LogEntry]:
        query = (
            "SELECT tenant, kind, stream, step, body FROM superarm_events"
            " WHERE tenant = %s AND kind = %s AND stream = %s ORDER BY step"
        )
        return [decode_line(LogLine(*row)) for row in self.rows(query, (tenant, kind, stream))]

    def made_for(self, unit: str) -> list[LogEntry]:
        entries = (decode_line(LogLine(*row)) for row in self.rows(tables.MADE_FOR, (unit,)))
        return [entry for entry in entries if entry.event.unit == unit]

    def rows(self, query: str, values: Any) -> Iterator[Any]:
        """The rows that a query gives, of which there are few."""
        return iter(self._connection().execute(query, values).fetchall())

    # --- snapshots ---

    def snapshots(self) -> Iterator[SavedSnapshot]:
        return ProblemLog(self, "").snapshots()

    def bases(self) -> list[SavedSnapshot]:
        return self.read_bases(None)

    def read_bases(self, log: str | None) -> list[SavedSnapshot]:
        """The base of a log, or of all logs (None), if it was compacted."""
        query = "SELECT digest, body FROM superarm_bases WHERE %s::text IS NULL OR log = %s ORDER BY log"
        return [SavedSnapshot(digest, bytes(body)) for digest, body in self.rows(query, (log, log))]

    def logs(self) -> Iterator[Store]:
        return (ProblemLog(self, log) for (log,) in self.rows(tables.LOGS, ()))

    def save_problem(self, problem: Key, saved: SavedSnapshot) -> None:
        """Save a snapshot of one problem, and delete all but a few older ones."""
        _save_snapshot(self._open_session().connection, log_name(problem), saved)

    def save(self, saved: SavedSnapshot) -> None:
        _save_snapshot(self._connection(), "", saved)

    def drop_snapshots(self) -> None:
        self._connection().execute("DELETE FROM superarm_snapshots")

    def compact(self, bases: dict[str, SavedSnapshot], decisions: list[Key], notes: list[base.NumberedLine]) -> None:
        connection = self._connection()
        with connection.transaction():
            for log, seq, line in notes:
                values = (log, seq, *line[:4], line.body.decode())
                connection.execute("INSERT INTO superarm_events VALUES (%s, %s, %s, %s, %s, %s, %s)", values)
            connection.execute(
                "DELETE FROM superarm_events AS event USING unnest(%s::text[], %s::text[]) AS gone (tenant, stream)"
                " WHERE (event.tenant, event.kind, event.stream) = (gone.tenant, 'decision', gone.stream)",
                ([tenant for tenant, _ in decisions], [id for _, id in decisions]),
            )
            _begin_with(connection, bases)

    # --- keys, and the rest ---

    def findings(self) -> list[Finding]:
        (row,) = self.rows(tables.FACTS, ())
        events, size, snapshots, damaged, clock, workers, standbys, used, most = row
        ahead = float(clock) - time.time()
        locks = f"served by {workers} workers; {used:,} of {most:,} locks (max_locks_per_transaction)"
        return [
            Finding("log", f"{events:,} events, {size / 2**20:,.0f} MB"),
            Finding("mark", f"kept by PostgreSQL, with {standbys} standbys"),
            Finding("snapshots", f"{snapshots}, {damaged} damaged", damaged > 0),
            Finding("disk", "PostgreSQL's own, which superarm cannot see"),
            Finding("clocks", f"PostgreSQL is {ahead:.0f} s ahead", abs(ahead) > base.CLOCK_SECONDS),
            Finding("locks", locks, used > FULL * most),
            Finding("backup", "by PostgreSQL's own tools, which superarm cannot see"),
        ]

    def key_rows(self) -> list[base.KeyRow]:
        query = "SELECT id, digest, tenant, scopes, created, revoked, note FROM superarm_keys ORDER BY id"
        return [base.KeyRow(*row) for row in self.rows(query, ())]

    def put_key(self, row: base.KeyRow) -> None:
        self._connection().execute(
            "INSERT INTO superarm_keys VALUES (%s, %s, %s, %s, %s, %s, %s)"
            " ON CONFLICT (id) DO UPDATE SET revoked = excluded.revoked",
            row,
        )

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        if self._session is not None:
            self._session.connection.close()


class ProblemLog(Store):
    """The events and snapshots of one problem."""

    def __init__(self, store: Postgres, log: str) -> None:
        self._store, self._log = store, log

    def tail(self, after: base.Position, *, problems: bool = False) -> Iterator[base.ReadEntry]:
        values = (self._log, after.get(self._log, 0), "problem" if problems else "%")
        return self._store.entries(tables.TAIL_OF_LOG, values)

    def stream(self, tenant: str, kind: str, stream: str) -> list[LogEntry]:
        return self._store.stream(tenant, kind, stream)

    def save(self, saved: SavedSnapshot) -> None:
        _save_snapshot(self._store._connection(), self._log, saved)

    def bases(self) -> list[SavedSnapshot]:
        return self._store.read_bases(self._log)

    def snapshots(self) -> Iterator[SavedSnapshot]:
        query = "SELECT digest, body FROM superarm_snapshots WHERE log = %s ORDER BY id DESC"
        for digest, body in self._store.rows(query, (self._log,)):
            yield SavedSnapshot(digest, bytes(body))


def _insert(session: Session, rows: list[Any]) -> set[tuple[str, int]]:
    """Write events: the logs and numbers of those whose keys were not taken."""
    columns, connection = [list(column) for column in zip(*rows, strict=True)], session.connection
    try:
        return set(connection.execute(tables.INSERT, columns).fetchall())
    except psycopg.errors.UniqueViolation:
        connection.close()  # nothing that this worker has can be relied on
        raise StoreUnavailable("another worker has written to a problem of this one") from None


def _begin_with(connection: Any, bases: dict[str, SavedSnapshot]) -> None:
    """Let logs begin with bases, and delete all snapshots, within a transaction."""
    connection.execute("DELETE FROM superarm_snapshots")
    connection.execute("DELETE FROM superarm_bases")
    for log, saved in bases.items():
        connection.execute("INSERT INTO superarm_bases VALUES (%s, %s, %s)", (log, *saved))


def _save_snapshot(connection: Any, log: str, saved: SavedSnapshot) -> None:
    """Save a snapshot of a log ("": of all logs together), and delete all but a few older ones."""
    with connection.transaction():
        connection.execute("INSERT INTO superarm_snapshots (log, digest, body) VALUES (%s, %s, %s)", (log, *saved))
        connection.execute(
            "DELETE FROM superarm_snapshots WHERE log = %s AND id NOT IN"
            " (SELECT id FROM superarm_snapshots WHERE log = %s ORDER BY id DESC LIMIT %s)",
            (log, log, MAX_SNAPSHOTS),
        )
