"""Snapshots in SQLite, the base of a compacted log, and how decisions that it holds are removed."""

import sqlite3
from typing import NamedTuple

from superarm.service.domain.ledger import Key
from superarm.service.storage.base import SavedSnapshot

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


def begin_with(connection: sqlite3.Connection, saved: SavedSnapshot, position: int, archive: str) -> None:
    """Let a log begin with a base, and delete its snapshots, within a transaction.

    No event after the last base is missing, so that none has to be counted.
    """
    before = read_base(connection)
    kept = before.kept + position - before.position
    connection.execute(COMPACTED)
    connection.execute("INSERT OR REPLACE INTO base VALUES (1, ?, ?, ?, ?, ?)", (position, kept, *saved, archive))
    connection.execute("DELETE FROM snapshots")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version = {version % COMPACTED_VERSIONS + COMPACTED_VERSIONS}")


def remove_decisions(connection: sqlite3.Connection, decisions: list[Key], position: int) -> None:
    """Remove the events of decisions up to the position of the base, within a transaction; nothing of them is left."""
    connection.execute("PRAGMA secure_delete = ON")
    query = "DELETE FROM events WHERE tenant = ? AND kind = 'decision' AND stream = ? AND seq <= ?"
    removed = connection.executemany(query, [(*key, position) for key in decisions]).rowcount
    connection.execute("UPDATE base SET kept = kept - ?", (max(0, removed),))
