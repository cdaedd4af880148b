"""The tables of PostgreSQL, and the queries on them."""

from typing import Any

from superarm.service.domain.ledger import Key
from superarm.service.storage.base import TABLES_VERSION, require_tables

CLASS = 0x5A5A
"""The class of superarm's advisory locks, and those that there are: of who creates tables, and of who serves."""

CREATION, SERVING = -1, -2

_UNIT = 'strpos(body, \'"unit":"\')'
_OF_UNIT = f"substr(body, {_UNIT} + 8, 16)"
_HAS_UNIT = f"kind = 'decision' AND step = 0 AND {_UNIT} > 0"
"""Where the digest of a unit is in the event of a decision; a context may have a field of that name, too."""

TABLES = f"""
CREATE TABLE superarm_workers (worker text PRIMARY KEY);
CREATE TABLE superarm_events (
    worker text NOT NULL, seq bigint NOT NULL,
    tenant text NOT NULL, kind text NOT NULL, stream text NOT NULL, step integer NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (worker, seq),
    UNIQUE (tenant, kind, stream, step)
);
CREATE INDEX superarm_units ON superarm_events (({_OF_UNIT})) WHERE {_HAS_UNIT};
CREATE TABLE superarm_snapshots (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, log text NOT NULL, digest text NOT NULL, body bytea NOT NULL
);
CREATE INDEX superarm_snapshots_log ON superarm_snapshots (log, id);
CREATE TABLE superarm_bases (log text PRIMARY KEY, digest text NOT NULL, body bytea NOT NULL);
CREATE UNLOGGED TABLE superarm_claims (log text PRIMARY KEY, worker text NOT NULL, at timestamptz NOT NULL);
CREATE TABLE superarm_keys (
    id text PRIMARY KEY, digest text NOT NULL, tenant text NOT NULL, scopes text NOT NULL,
    created bigint NOT NULL, revoked bigint, note text NOT NULL
);
"""

MADE_FOR = f"""
SELECT tenant, kind, stream, step, body FROM superarm_events
WHERE {_HAS_UNIT} AND {_OF_UNIT} = %s ORDER BY worker, seq
"""

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


FACTS = """
SELECT (SELECT n_live_tup FROM pg_stat_user_tables WHERE relid = 'superarm_events'::regclass),
    pg_total_relation_size('superarm_events'), (SELECT count(*) FROM superarm_snapshots),
    (SELECT count(*) FROM superarm_snapshots WHERE encode(sha256(body), 'hex') <> digest),
    extract(epoch FROM clock_timestamp()),
    (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'superarm %%'),
    (SELECT count(*) FROM pg_stat_replication), (SELECT count(*) FROM pg_locks),
    current_setting('max_locks_per_transaction')::int * current_setting('max_connections')::int
"""
"""How many events there are is what PostgreSQL's statistics say: to count them would read them all."""


def create_tables(connection: Any) -> None:
    """Create the tables of a new database, one process at a time; refuse a database that has others."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (CLASS, CREATION))
        connection.execute("CREATE TABLE IF NOT EXISTS superarm_version (version integer NOT NULL)")
        version = connection.execute("SELECT max(version) FROM superarm_version").fetchone()[0]
        if version is None:
            connection.execute(TABLES)
            connection.execute("INSERT INTO superarm_version VALUES (%s)", (TABLES_VERSION,))
        require_tables(version or TABLES_VERSION)


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
