"""The tables of PostgreSQL, their versions, and the queries on them."""

from typing import Any

from superarm.core.errors import SuperarmError
from superarm.service.storage.postgres_locks import CLASS, MIGRATION

MIGRATIONS = [
    """
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
    """,
]
"""One script per version of the tables; ``superarm_version`` counts those that have run."""

SHARDING = """
ALTER TABLE superarm_snapshots ADD COLUMN log text NOT NULL DEFAULT '';
CREATE INDEX superarm_snapshots_log ON superarm_snapshots (log, id);
CREATE UNLOGGED TABLE superarm_claims (log text PRIMARY KEY, worker text NOT NULL, at timestamptz NOT NULL);
"""
"""Not a version of the tables: superarm 0.1.0 can use them, as long as no problem has a log of its own."""

SHARDED_VERSION = 2
"""The version of tables in which problems have logs of their own: superarm 0.1.0 refuses it."""

COMPACTED = """
CREATE TABLE IF NOT EXISTS superarm_bases (
    log text PRIMARY KEY, digest text NOT NULL, body bytea NOT NULL, archive text NOT NULL
)
"""
COMPACTED_VERSIONS = 1_000
"""Added to the version of the tables when a log is compacted: superarm from before there were compacted logs refuses
them."""

INSERT = """
INSERT INTO superarm_events (worker, seq, tenant, kind, stream, step, body)
SELECT * FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::text[], %s::text[], %s::int[], %s::text[])
    AS line (worker, seq, tenant, kind, stream, step, body)
ORDER BY tenant, kind, stream, step -- all workers in one order: no deadlocks
ON CONFLICT (tenant, kind, stream, step) DO NOTHING RETURNING worker, seq
"""
TAIL = """
SELECT event.worker, event.seq, tenant, kind, stream, step, body
FROM superarm_workers AS known CROSS JOIN LATERAL (
    SELECT * FROM superarm_events
    WHERE worker = known.worker AND seq > coalesce((%s::jsonb ->> known.worker)::bigint, 0)
) AS event
WHERE kind LIKE %s
ORDER BY kind DESC, tenant, stream, step -- problems before decisions, and every stream in its own order
"""

_PROBLEM = r"""md5(substring(body from '^{"type":"asked","at":[0-9]+,"problem":("(?:[^"\\]|\\.)*")'))"""
_AT = r"""(substring(body from '^{"type":"asked","at":([0-9]+)')::bigint)"""
BY_TIME = f"""
CREATE INDEX IF NOT EXISTS superarm_decisions_by_time ON superarm_events (tenant, {_PROBLEM}, {_AT}, stream)
WHERE kind = 'decision' AND step = 0
"""
"""Not a version of the tables: earlier versions of superarm can use tables with this index, and those without it."""

FIND = f"""
WITH found AS (
    SELECT stream, {_AT} AS at FROM superarm_events
    WHERE kind = 'decision' AND step = 0 AND tenant = %(tenant)s AND {_PROBLEM} = md5(%(problem)s)
        AND {_AT} >= %(since)s AND {_AT} <= %(at)s AND ({_AT} < %(at)s OR stream < %(id)s)
    ORDER BY {_AT} DESC, stream DESC LIMIT %(limit)s
)
SELECT event.tenant, event.kind, event.stream, event.step, event.body FROM found JOIN superarm_events AS event
ON (event.tenant, event.kind, event.stream) = (%(tenant)s, 'decision', found.stream)
ORDER BY found.at DESC, event.stream DESC, event.step
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
        if version > SHARDED_VERSION:
            raise SuperarmError(
                f"the database is of version {version}, this superarm knows {SHARDED_VERSION}; install a newer superarm"
            )
        for number, script in enumerate(MIGRATIONS[version:], version + 1):
            connection.execute(script)
            note_version(connection, number + compacted)
        if connection.execute("SELECT to_regclass('superarm_claims') IS NULL").fetchone()[0]:
            connection.execute(SHARDING)
        connection.execute(BY_TIME)
    return max(version, len(MIGRATIONS)) + compacted


def note_version(connection: Any, version: int) -> None:
    """Note the version of the tables."""
    connection.execute("INSERT INTO superarm_version VALUES (%s)", (version,))


def note_sharding(connection: Any) -> None:
    """Note that problems have logs of their own from now on."""
    (version,) = connection.execute("SELECT max(version) FROM superarm_version").fetchone()
    sharded = version - version % COMPACTED_VERSIONS + SHARDED_VERSION
    if sharded != version:
        note_version(connection, sharded)
