"""Connections to a SQLite file that may be closed while another thread reads from them."""

import contextlib
import sqlite3
import threading
from pathlib import Path
from typing import Any, Self


class GuardedConnection(sqlite3.Connection):
    """A connection that waits with its closing for statements of other threads; they get an error afterwards.

    Without this, SQLite would go on with a statement that has been freed, and the process would crash.
    """

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.in_use = threading.RLock()

    def execute(self, *given: Any) -> sqlite3.Cursor:
        return self.cursor(_GuardedCursor).execute(*given)

    def close(self) -> None:
        with self.in_use:
            super().close()


class _GuardedCursor(sqlite3.Cursor):
    """A cursor whose every step is complete before the connection can be closed."""

    connection: GuardedConnection

    def execute(self, *given: Any) -> Self:
        with self.connection.in_use:
            super().execute(*given)
        return self

    def fetchone(self) -> Any:
        with self.connection.in_use:
            return super().fetchone()

    def fetchall(self) -> list[Any]:
        with self.connection.in_use:
            return super().fetchall()

    def __next__(self) -> Any:
        with self.connection.in_use:
            return super().__next__()


def connect(path: Path) -> GuardedConnection:
    """A connection to a log, with every commit on disk before it returns."""
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, timeout=10.0, factory=GuardedConnection
    )
    with contextlib.ExitStack() as opened:
        opened.callback(connection.close)  # if the file is no database, or cannot be written
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA busy_timeout = 10000")
        opened.pop_all()
    return connection
