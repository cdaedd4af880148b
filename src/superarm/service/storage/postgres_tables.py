"""The tables of PostgreSQL, their versions, the queries on them, and how logs of workers become logs of problems."""

import json
from typing import Any

from superarm.core.errors import SuperarmError
from superarm.service.domain.ledger import Key
from superarm.service.storage.base import Position

CLASS = 0x5A5A
"""The class of superarm's advisory locks, and those that there are: of who migrates, and of who serves."""

MIGRATION, SERVING = -1, -2

TABLES = """
CREATE TABLE superarm_workers (worker text PRIMARY KEY);
CREATE TABLE superarm_events (
    worker text NOT NULL, seq bigint NOT NULL,
    tenant text NOT NULL, kind text NOT NULL, stream text NOT NULL, step integer NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (worker, seq),
    UNIQUE (tenant, kind, stream, step)
);
CREATE TABLE superarm_snapshots (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, digest text NOT NULL, body bytea NOT NULL
);
CREATE TABLE superarm_keys (
    id text PRIMARY KEY, digest text NOT NULL, tenant text NOT NULL, scopes text NOT NULL,
    created bigint NOT NULL, revoked bigint, note text NOT NULL
);
"""
"""The tables of version 1."""

PROBLEM_IDS = """
UPDATE superarm_events AS event SET stream = chr(31) || (
    substring(asked.body FROM '"problem":("(?:[^"\\\\]|\\\\.)*")')::jsonb #>> '{}' -- jsonb may refuse the rest
) || '/' || event.stream
FROM superarm_events AS asked WHERE event.kind = 'decision'
    AND (asked.tenant, asked.kind, asked.stream, asked.step) = (event.tenant, 'decision', event.stream, 0);
UPDATE superarm_events SET stream = substr(stream, 2) WHERE kind = 'decision';
"""
"""Version 3: ids of decisions are those of a problem. Only after the second step may new names meet old ones."""

_UNIT = 'strpos(body, \'"unit":"\')'
_OF_UNIT = f"substr(body, {_UNIT} + 8, 16)"
_HAS_UNIT = f"kind = 'decision' AND step = 0 AND {_UNIT} > 0"
"""Where the digest of a unit is in the event of a decision; a context may have a field of that name, too."""

UNITS = f"CREATE INDEX superarm_units ON superarm_events (({_OF_UNIT})) WHERE {_HAS_UNIT}"
MADE_FOR = f"""
SELECT tenant, kind, stream, step, body FROM superarm_events
WHERE {_HAS_UNIT} AND {_OF_UNIT} = %s ORDER BY worker, seq
"""

SHARDING = """
ALTER TABLE superarm_snapshots ADD COLUMN log text NOT NULL DEFAULT '';
CREATE INDEX superarm_snapshots_log ON superarm_snapshots (log, id);
CREATE UNLOGGED TABLE superarm_claims (log text PRIMARY KEY, worker text NOT NULL, at timestamptz NOT NULL);
"""
"""Not a version of the tables."""

VERSION = 3
"""The version of the tables. In version 2, problems had logs of their own, and decisions had ids of their tenant."""

COMPACTED = """
CREATE TABLE IF NOT EXISTS superarm_bases (
    log text PRIMARY KEY, digest text NOT NULL, body bytea NOT NULL, archive text NOT NULL
)
"""
COMPACTED_VERSIONS = 1_000
"""Added to the version of the tables when a log is compacted, so that superarm from before that refuses them."""

INSERT = """
INSERT INTO superarm_events (worker, seq, tenant, kind, stream, step, body)
SELECT * FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::text[], %s::text[], %s::int[], %s::text[])
    AS line (worker, seq, tenant, kind, stream, step, body)
ORDER BY tenant, kind, stream, step -- all workers in one order: no deadlocks
ON CONFLICT (tenant, kind, stream, step) DO NOTHING RETURNING worker, seq
"""
TAIL = """
SELECT worker, seq, tenant, kind, stream, step, body FROM superarm_events
WHERE seq > coalesce((%s::jsonb ->> worker)::bigint, 0) AND kind LIKE %s
ORDER BY kind DESC, tenant, stream, step -- problems before decisions, and every stream in its own order
"""
TAIL_OF_LOG = """
SELECT worker, seq, tenant, kind, stream, step, body FROM superarm_events
WHERE worker = %s AND seq > %s AND kind LIKE %s ORDER BY seq
"""

LOGS = "SELECT DISTINCT worker FROM superarm_events WHERE kind = 'problem' ORDER BY worker"
"""The first event of a problem stays in its log for good."""

EXISTS = """
SELECT body LIKE '{"type":"created"%%' FROM superarm_events WHERE tenant = %s AND kind = 'problem' AND stream = %s
    AND (body LIKE '{"type":"created"%%' OR body LIKE '{"type":"deleted"%%') ORDER BY step DESC LIMIT 1
"""
NAMES = """
SELECT stream FROM superarm_events AS first WHERE tenant = %s AND kind = 'problem' AND step = 0 AND (
    SELECT body FROM superarm_events AS last
    WHERE (last.tenant, last.kind, last.stream) = (first.tenant, first.kind, first.stream)
        AND (body LIKE '{"type":"created"%%' OR body LIKE '{"type":"deleted"%%') ORDER BY step DESC LIMIT 1
) LIKE '{"type":"created"%%' ORDER BY stream
"""


def migrate(connection: Any) -> int:
    """Bring the tables up to this version, one process at a time, and return theirs; refuse those of a newer one."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (CLASS, MIGRATION))
        connection.execute("CREATE TABLE IF NOT EXISTS superarm_version (version integer NOT NULL)")
        stored = connection.execute("SELECT max(version) FROM superarm_version").fetchone()[0] or 0
        compacted = COMPACTED_VERSIONS if stored >= COMPACTED_VERSIONS else 0
        version = stored - compacted
        if version > VERSION:
            raise SuperarmError(
                f"the database is of version {version}, this superarm knows {VERSION}; install a newer superarm"
            )
        if version == 0:
            connection.execute(TABLES)
        elif version < VERSION:
            require_no_workers(connection)
            connection.execute(PROBLEM_IDS)
        if version < VERSION:
            connection.execute(UNITS)
            note_version(connection, VERSION + compacted)
        if connection.execute("SELECT to_regclass('superarm_claims') IS NULL").fetchone()[0]:
            connection.execute(SHARDING)
        connection.execute("DROP INDEX IF EXISTS superarm_decisions_by_time")  # by which earlier versions searched
    return VERSION + compacted


def require_no_workers(connection: Any) -> None:
    """Raise ``SuperarmError`` if workers of a service use the database; none starts while the transaction lasts."""
    query = "SELECT pg_try_advisory_xact_lock(%s, %s)"
    if not connection.execute(query, (CLASS, SERVING)).fetchone()[0]:
        raise SuperarmError("--db: an earlier version serves this database, whose tables have to change; stop it first")


def note_version(connection: Any, version: int) -> None:
    """Note the version of the tables."""
    connection.execute("INSERT INTO superarm_version VALUES (%s)", (version,))


def refuse_logs_of_workers(connection: Any) -> None:
    """Refuse a database of earlier versions, in which each worker, such as w0, had a log."""
    if connection.execute("SELECT FROM superarm_events WHERE worker >= 'w' LIMIT 1").fetchone() is not None:
        said = "the log was written by an earlier version; run superarm reshard once, while nothing runs"
        raise SuperarmError(f"--db: {said}")


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


_RESHARD = """
WITH place AS (
    SELECT event.worker, event.seq, 'p/' || event.tenant || '/' || problem.name AS log,
        row_number() OVER (
            PARTITION BY event.tenant, problem.name
            ORDER BY event.seq > coalesce((%s::jsonb ->> event.worker)::bigint, 0), kind DESC, event.stream, event.step
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
)
SELECT worker, seq, former_worker, former_seq FROM moved
"""


def reshard(connection: Any, begin: Position) -> tuple[int, Position]:
    """Give every problem a log of its own, within a transaction: how many events were moved there.

    No event changes; it gets another number in another log. Snapshots of all logs together are deleted. Of a log that
    was compacted, the base holds the events up to ``begin``: they come first in the new logs, and their last numbers
    are returned.
    """
    connection.execute("DELETE FROM superarm_snapshots WHERE log = ''")
    moved = connection.execute(_RESHARD, (json.dumps(begin),)).fetchall()
    held = {log: 0 for log, *_ in moved}
    for log, seq, worker, former in moved:
        if former <= begin.get(worker, 0):
            held[log] = max(held[log], seq)
    return len(moved), held
