"""The tables of SQLite, their versions, and the query for decisions."""

import sqlite3

from superarm.core.errors import SuperarmError
from superarm.service.storage.sqlite_base import COMPACTED_VERSIONS

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
    """,
]
"""One script per version of the tables; ``user_version`` counts those that have run."""

_TEXT = "CAST(body AS TEXT)"
_BY_TIME = f"""
CREATE INDEX IF NOT EXISTS decisions_by_time ON events (tenant, {_TEXT} ->> 'problem', {_TEXT} ->> 'at', stream)
WHERE kind = 'decision' AND step = 0
"""
"""Not a version of the tables: earlier versions of superarm can use a file with this index, and one without it."""

FIND = f"""
WITH found AS (
    SELECT stream, {_TEXT} ->> 'at' AS at FROM events
    WHERE kind = 'decision' AND step = 0 AND tenant = :tenant AND {_TEXT} ->> 'problem' = :problem
        AND {_TEXT} ->> 'at' >= :since AND {_TEXT} ->> 'at' <= :at AND ({_TEXT} ->> 'at' < :at OR stream < :id)
    ORDER BY {_TEXT} ->> 'at' DESC, stream DESC LIMIT :limit
)
SELECT seq, tenant, kind, events.stream, step, crc, body FROM found CROSS JOIN events
WHERE tenant = :tenant AND kind = 'decision' AND events.stream = found.stream
ORDER BY at DESC, events.stream DESC, step
"""


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
    connection.execute(_BY_TIME)
