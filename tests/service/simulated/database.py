"""A PostgreSQL in memory: what the statements of ``storage.postgres`` do, and sessions that end at bad moments.

A statement that is not known here raises, so that a new one of the service is noticed.
"""

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import psycopg

from superarm.service.storage import postgres_tables as tables
from superarm.service.storage.base import TABLES_VERSION
from superarm.service.storage.postgres import CLAIM_SECONDS, MAX_SNAPSHOTS, SESSION_SECONDS, explain_errors

Line = tuple[str, int, str, str, str, int, str]
"""A row of the log: the name of the log, the number, tenant, kind, stream, step and body."""


class Database:
    """The tables and the sessions.

    ``up`` says whether it can be reached, ``risk`` is the chance that a message is lost; ``dead`` workers are refused.
    """

    def __init__(self, loop: Any, rng: random.Random, trace: Callable[..., None]) -> None:
        self.loop, self.rng, self.trace = loop, rng, trace
        self.up, self.risk, self.dead = True, 0.0, set[str]()
        self.events: dict[tuple[str, str, str, int], Line] = {}
        self.logs: dict[str, dict[int, Line]] = {}
        self.streams: dict[tuple[str, str, str], list[Line]] = {}
        self.saved: list[tuple[str, str, bytes]] = []
        self.claims: dict[str, tuple[str, float]] = {}
        self.locks: dict[int, Connection] = {}
        self.sessions: list[Connection] = []

    def connect(self, url: str) -> "Connection":
        """A new session."""
        with explain_errors():
            if not self.up or url in self.dead:
                raise psycopg.OperationalError("connection refused")
        session = Connection(self, url)
        self.sessions.append(session)
        return session

    def has(self, place: tuple[str, str, str, int]) -> bool:
        """Whether an event is in the log."""
        return place in self.events

    def lines(self) -> list[Line]:
        """All events."""
        return list(self.events.values())

    def expire(self) -> None:
        """End the sessions that were silent for too long."""
        for session in list(self.sessions):
            if session.watched and self.loop.now - session.heard > SESSION_SECONDS:
                session.end()

    def tear(self) -> None:
        """Damage the newest snapshot, as a disk would."""
        if self.saved:
            log, digest, body = self.saved[-1]
            self.saved[-1] = log, digest, bytes(body[: self.rng.randrange(len(body))])

    def insert(self, columns: list[list[Any]]) -> list[tuple[str, int]]:
        """Write events in one transaction: the logs and numbers of those whose keys were free."""
        rows = [tuple(row) for row in zip(*columns, strict=True)]
        if any(row[1] in self.logs.get(row[0], {}) for row in rows):
            raise psycopg.errors.UniqueViolation("duplicate key value violates unique constraint")
        free = [row for row in rows if row[2:6] not in self.events]
        for row in free:
            self.events[row[2:6]] = row
            self.logs.setdefault(row[0], {})[row[1]] = row
            self.streams.setdefault(row[2:5], []).append(row)
        self.trace("commit", [row[:6] for row in free])
        return [row[:2] for row in free]

    def exists(self, tenant: str, name: str) -> list[tuple[bool]]:
        """Whether the last creation or deletion of a problem is a creation."""
        bodies = [row[6] for row in self.streams.get((tenant, "problem", name), [])]
        made = [body for body in bodies if body.startswith(('{"type":"created"', '{"type":"deleted"'))]
        return [(made[-1].startswith('{"type":"created"'),)] if made else []


class Rows:
    """What a statement gave."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def fetchone(self) -> Any:
        """The first row."""
        return self._rows[0] if self._rows else None

    def fetchall(self) -> list[Any]:
        """All rows."""
        return self._rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)


class Connection:
    """A session, at both ends: ``ended`` says that the server has ended it, ``closed`` that the client knows."""

    def __init__(self, database: Database, worker: str) -> None:
        self._database, self.worker, self.heard = database, worker, database.loop.now
        self.closed, self.ended, self.watched, self.itersize = False, False, False, 0

    def end(self) -> None:
        """End it at the server, with its locks."""
        self.ended = True
        database = self._database
        database.locks = {number: owner for number, owner in database.locks.items() if owner is not self}
        if self in database.sessions:
            database.sessions.remove(self)

    def close(self) -> None:
        """Close it; the server ends it at once."""
        self.closed = True
        self.end()

    @explain_errors()
    def execute(self, query: str, values: Any = ()) -> Rows:
        """What a statement gives, or that the connection is lost: before it came, after it was done, or meanwhile."""
        database = self._database
        database.expire()
        if self.closed or self.ended or not database.up:
            self._lose("the connection is closed")
        self.heard = database.loop.now
        if database.rng.random() >= database.risk:
            return Rows(list(self._do(query, values)))
        how = database.rng.choice(("before", "after", "later"))
        database.trace("cut", how, query[:30])
        if how == "after":
            self._do(query, values)
        if how == "later":  # the server goes on for a while, and keeps the locks meanwhile
            self.closed = True
            database.loop.call_later(database.rng.expovariate(1.0), self._finish, query, values)
            raise psycopg.OperationalError("the connection is lost")
        return self._lose("the connection is lost")

    def _finish(self, query: str, values: Any) -> None:
        with contextlib.suppress(psycopg.Error):
            if not self.ended:
                self._do(query, values)
        self.end()

    def _lose(self, why: str) -> Any:
        self.closed = True
        self.end()
        raise psycopg.OperationalError(why)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements within, or none: of those that write there, all are of snapshots."""
        before = list(self._database.saved)
        try:
            yield
        except BaseException:
            self._database.saved[:] = before
            raise

    @contextlib.contextmanager
    def cursor(self, name: str, withhold: bool) -> Iterator["Connection"]:
        """A cursor at the server."""
        yield self

    def _do(self, query: str, values: Any) -> Any:
        if query == tables.INSERT:
            return self._database.insert(values)
        for begin, method in STATEMENTS.items():
            if query.lstrip().startswith(begin):
                return method(self, *values)
        raise AssertionError(f"the simulated database does not know: {query}")

    # --- statements ---

    def _nothing(self, *values: Any) -> list[Any]:
        return []

    def _true(self, *values: Any) -> list[Any]:
        return [(True,)]

    def _watch(self, *values: Any) -> list[Any]:
        self.watched = True
        return []

    def _version(self) -> list[Any]:
        return [(TABLES_VERSION,)]

    def _lock(self, number: int) -> list[Any]:
        return [(self._database.locks.setdefault(number, self) is self,)]

    def _unlock(self, number: int) -> list[Any]:
        return [(self._database.locks.pop(number, None) is not None,)]

    def _last(self, log: str) -> list[Any]:
        return [(max(self._database.logs.get(log, {0: None})),)]

    def _claim(self, log: str, worker: str) -> list[Any]:
        self._database.claims[log] = worker, self._database.loop.now
        return []

    def _unclaim(self, log: str) -> list[Any]:
        self._database.claims.pop(log, None)
        return []

    def _claims(self, own: str, seconds: float) -> list[Any]:
        since = self._database.loop.now - CLAIM_SECONDS
        return [(log,) for log, (worker, at) in self._database.claims.items() if worker != own and at > since]

    def _tail(self, log: str, after: int, kind: str) -> list[Any]:
        rows = sorted(self._database.logs.get(log, {}).items())
        return [row for seq, row in rows if seq > after and kind in ("%", row[3])]

    def _stream(self, *place: str) -> list[Any]:
        return [row[2:] for row in self._database.streams.get(place, [])]

    def _find(self, *values: Any) -> list[Any]:
        row = self._database.events.get(values[:4])
        return [(row[1],)] if row is not None and row[6] == values[4] else []

    def _names(self, tenant: str) -> list[Any]:
        names = sorted(stream for owner, kind, stream in self._database.streams if (owner, kind) == (tenant, "problem"))
        return [(name,) for name in names if self._database.exists(tenant, name)[0][0]]

    def _exists(self, tenant: str, name: str) -> list[Any]:
        return self._database.exists(tenant, name)

    def _logs(self) -> list[Any]:
        return [(log,) for log in sorted(self._database.logs)]

    def _save(self, log: str, digest: str, body: bytes) -> list[Any]:
        self._database.saved.append((log, digest, bytes(body)))
        return []

    def _drop_old(self, log: str, *more: Any) -> list[Any]:
        saved = self._database.saved
        old = [one for one in saved if one[0] == log][:-MAX_SNAPSHOTS]
        saved[:] = [one for one in saved if not any(one is gone for gone in old)]
        return []

    def _snapshots(self, log: str) -> list[Any]:
        return [one[1:] for one in reversed(self._database.saved) if one[0] == log]


STATEMENTS: dict[str, Callable[..., Any]] = {
    "SET idle_session_timeout": Connection._watch,
    "SELECT set_config": Connection._nothing,
    "SET TRANSACTION": Connection._nothing,
    "SELECT pg_advisory_xact_lock": Connection._nothing,
    "CREATE TABLE IF NOT EXISTS superarm_version": Connection._nothing,
    "SELECT max(version)": Connection._version,
    "SELECT pg_try_advisory_lock_shared": Connection._true,
    "SELECT pg_try_advisory_lock(%s)": Connection._lock,
    "SELECT pg_advisory_unlock": Connection._unlock,
    "SELECT coalesce(max(seq), 0)": Connection._last,
    "DELETE FROM superarm_claims": Connection._unclaim,
    "INSERT INTO superarm_claims": Connection._claim,
    "SELECT log FROM superarm_claims": Connection._claims,
    "INSERT INTO superarm_workers": Connection._nothing,
    "SELECT seq FROM superarm_events": Connection._find,
    "SELECT tenant, kind, stream, step, body FROM superarm_events WHERE tenant = %s AND kind": Connection._stream,
    "INSERT INTO superarm_snapshots": Connection._save,
    "DELETE FROM superarm_snapshots WHERE": Connection._drop_old,
    "SELECT digest, body FROM superarm_snapshots": Connection._snapshots,
    "SELECT digest, body FROM superarm_bases": Connection._nothing,
    "SELECT id, digest, tenant, scopes": Connection._nothing,
    tables.TAIL_OF_LOG.strip(): Connection._tail,
    tables.NAMES.strip(): Connection._names,
    tables.LOGS: Connection._logs,
    **({tables.EXISTS.strip(): Connection._exists} if hasattr(tables, "EXISTS") else {}),
}
"""What a statement begins with, and what it does."""
