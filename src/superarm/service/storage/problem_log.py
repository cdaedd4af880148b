"""The log of one problem in PostgreSQL, with snapshots of its own; and how whole logs become logs of problems."""

from collections.abc import Iterator
from typing import Any, Protocol

from superarm.service.domain.ledger import Key, LogEntry
from superarm.service.storage.base import (
    FormerPlaces,
    LogLine,
    NumberedLine,
    Position,
    ReadEntry,
    SavedSnapshot,
    decode_line,
)
from superarm.service.storage.postgres_tables import COMPACTED, note_sharding, note_version

MAX_SNAPSHOTS = 2

_TAIL = """
SELECT seq, tenant, kind, stream, step, body FROM superarm_events
WHERE worker = %s AND seq > %s AND kind LIKE %s ORDER BY seq
"""

_RESHARD = """
WITH place AS (
    SELECT event.worker, event.seq, 'p/' || event.tenant || '/' || problem.name AS log,
        row_number() OVER (
            PARTITION BY event.tenant, problem.name ORDER BY kind DESC, event.stream, event.step
        ) AS number
    FROM superarm_events AS event CROSS JOIN LATERAL (
        SELECT CASE WHEN event.kind = 'problem' THEN event.stream ELSE (
            SELECT asked.body::jsonb ->> 'problem' FROM superarm_events AS asked
            WHERE (asked.tenant, asked.kind, asked.stream, asked.step) = (event.tenant, 'decision', event.stream, 0)
        ) END AS name
    ) AS problem
    WHERE event.worker LIKE 'w%%'
), moved AS (
    UPDATE superarm_events AS event SET worker = place.log, seq = place.number + (
        SELECT coalesce(max(seq), 0) FROM superarm_events WHERE worker = place.log
    )
    FROM place WHERE (event.worker, event.seq) = (place.worker, place.seq)
    RETURNING event.worker, event.seq, place.worker AS former_worker, place.seq AS former_seq
), noted AS (
    INSERT INTO superarm_moved SELECT * FROM moved
), named AS (
    INSERT INTO superarm_workers SELECT DISTINCT worker FROM moved ON CONFLICT DO NOTHING
)
SELECT count(*) FROM moved
"""

_MOVED = """
CREATE TABLE IF NOT EXISTS superarm_moved (
    worker text NOT NULL, seq bigint NOT NULL, former_worker text NOT NULL, former_seq bigint NOT NULL,
    PRIMARY KEY (worker, seq)
)
"""


def log_name(problem: Key) -> str:
    """The name of a problem's log. A problem's name has no slash, so that different problems have different logs.

    >>> log_name(("shop", "ads"))
    'p/shop/ads'
    """
    return f"p/{problem[0]}/{problem[1]}"


def problem_of(log: str) -> Key:
    """The problem that a log is of.

    >>> problem_of("p/shop/ads")
    ('shop', 'ads')
    """
    tenant, _, name = log[2:].rpartition("/")
    return tenant, name


class Reading(Protocol):
    """A store in PostgreSQL, for reading."""

    @property
    def compacted(self) -> bool:
        """Whether the log begins with bases."""
        ...

    def rows(self, query: str, values: tuple[Any, ...]) -> Iterator[Any]:
        """The rows that a query gives."""
        ...

    def stream(self, tenant: str, kind: str, stream: str) -> list[LogEntry]:
        """All events of one problem or decision."""
        ...


class ProblemLog:
    """The events and snapshots of one problem."""

    def __init__(self, store: Reading, log: str) -> None:
        self._store, self._log = store, log

    def tail(self, after: Position, *, problems: bool = False) -> Iterator[ReadEntry]:
        values = (self._log, after.get(self._log, 0), "problem" if problems else "%")
        for seq, *line in self._store.rows(_TAIL, values):
            yield ReadEntry(self._log, seq, decode_line(LogLine(*line)))

    def stream(self, tenant: str, kind: str, stream: str) -> list[LogEntry]:
        return self._store.stream(tenant, kind, stream)

    def bases(self) -> list[SavedSnapshot]:
        return read_bases(self._store, self._log)

    def snapshots(self) -> Iterator[SavedSnapshot]:
        query = "SELECT digest, body FROM superarm_snapshots WHERE log = %s ORDER BY id DESC"
        for digest, body in self._store.rows(query, (self._log,)):
            yield SavedSnapshot(digest, bytes(body))


def read_bases(store: Reading, log: str | None) -> list[SavedSnapshot]:
    """The base of a log, or of all logs (None), if it was compacted."""
    if not store.compacted:
        return []
    query = "SELECT digest, body FROM superarm_bases WHERE %s::text IS NULL OR log = %s ORDER BY log"
    return [SavedSnapshot(digest, bytes(body)) for digest, body in store.rows(query, (log, log))]


def compact(connection: Any, decisions: list[Key], notes: list[NumberedLine], version: int) -> None:
    """Remove decisions and write notes, within a transaction; see ``Store.compact``."""
    tenants, ids = [tenant for tenant, _ in decisions], [id for _, id in decisions]
    connection.execute(COMPACTED)
    for log, seq, line in notes:
        values = (log, seq, *line[:4], line.body.decode())
        connection.execute("INSERT INTO superarm_events VALUES (%s, %s, %s, %s, %s, %s, %s)", values)
    connection.execute(
        "DELETE FROM superarm_events AS event USING unnest(%s::text[], %s::text[]) AS gone (tenant, stream)"
        " WHERE (event.tenant, event.kind, event.stream) = (gone.tenant, 'decision', gone.stream)",
        (tenants, ids),
    )
    note_version(connection, version)


def begin_with(connection: Any, bases: dict[str, SavedSnapshot], archive: str) -> None:
    """Let logs begin with bases, and delete all snapshots, within a transaction."""
    connection.execute("DELETE FROM superarm_snapshots")
    connection.execute("DELETE FROM superarm_bases")
    for log, saved in bases.items():
        connection.execute("INSERT INTO superarm_bases VALUES (%s, %s, %s, %s)", (log, *saved, archive))


def save_snapshot(connection: Any, log: str, saved: SavedSnapshot) -> None:
    """Save a snapshot of a log ("": of all logs together), and delete all but a few older ones."""
    with connection.transaction():
        connection.execute("INSERT INTO superarm_snapshots (log, digest, body) VALUES (%s, %s, %s)", (log, *saved))
        connection.execute(
            "DELETE FROM superarm_snapshots WHERE log = %s AND id NOT IN"
            " (SELECT id FROM superarm_snapshots WHERE log = %s ORDER BY id DESC LIMIT %s)",
            (log, log, MAX_SNAPSHOTS),
        )


def reshard(connection: Any) -> int:
    """Give every problem a log of its own, in one transaction: the number of events that were moved there.

    No event changes; it gets another number in another log, and its former place is noted, because decisions name what
    they saw by it. Snapshots of all logs together are deleted.
    """
    with connection.transaction():
        note_sharding(connection)
        connection.execute(_MOVED)
        connection.execute("DELETE FROM superarm_snapshots WHERE log = ''")
        return int(connection.execute(_RESHARD, ()).fetchone()[0])


def former_places(store: Reading) -> FormerPlaces:
    """Where events were before they were moved."""
    ((known,),) = store.rows("SELECT to_regclass('superarm_moved') IS NOT NULL", ())
    found = store.rows("SELECT worker, seq, former_worker, former_seq FROM superarm_moved", ()) if known else ()
    return {(worker, seq): (former, number) for worker, seq, former, number in found}
