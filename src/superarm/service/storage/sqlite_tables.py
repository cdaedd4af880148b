"""The tables of SQLite, their versions, and the base of a compacted log."""

import sqlite3
from typing import NamedTuple

from superarm.core.errors import SuperarmError
from superarm.service.domain.ledger import Key
from superarm.service.storage.base import SavedSnapshot

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
    """
]
"""One script per version of the tables; ``user_version`` counts those that have run."""


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
    connection.execute("DROP INDEX IF EXISTS decisions_by_time")  # by which earlier versions searched


COMPACTED = """
CREATE TABLE IF NOT EXISTS base (
    id INTEGER PRIMARY KEY CHECK (id = 1), position INTEGER NOT NULL, kept INTEGER NOT NULL,
    digest TEXT NOT NULL, body BLOB NOT NULL, archive TEXT NOT NULL
) STRICT
"""
COMPACTED_VERSIONS = 1_000
"""Added to the version of a log when it is compacted: superarm from before there were compacted logs refuses it."""


class LogBegin(NamedTuple):
    """What a log begins with: ``kept`` of its events up to ``position`` are still in it; 0 before any compaction."""

    position: int = 0
    kept: int = 0
    saved: SavedSnapshot | None = None


def read_base(connection: sqlite3.Connection) -> LogBegin:
    """The base of a log."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version < COMPACTED_VERSIONS:
        return LogBegin()
    position, kept, *saved = connection.execute("SELECT position, kept, digest, body FROM base").fetchone()
    return LogBegin(position, kept, SavedSnapshot(*saved))


def begin_with(connection: sqlite3.Connection, saved: SavedSnapshot, position: int) -> None:
    """Let a log begin with a base, and delete its snapshots, within a transaction.

    No event after the last base is missing, so that none has to be counted.
    """
    before = read_base(connection)
    kept = before.kept + position - before.position
    connection.execute(COMPACTED)
    connection.execute("INSERT OR REPLACE INTO base VALUES (1, ?, ?, ?, ?, '')", (position, kept, *saved))
    connection.execute("DELETE FROM snapshots")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version = {version % COMPACTED_VERSIONS + COMPACTED_VERSIONS}")


def remove_decisions(connection: sqlite3.Connection, decisions: list[Key]) -> None:
    """Remove the events of decisions, which the base holds, within a transaction; nothing of them is left."""
    connection.execute("PRAGMA secure_delete = ON")
    query = "DELETE FROM events WHERE tenant = ? AND kind = 'decision' AND stream = ?"
    removed = connection.executemany(query, decisions).rowcount
    connection.execute("UPDATE base SET kept = kept - ?", (max(0, removed),))
