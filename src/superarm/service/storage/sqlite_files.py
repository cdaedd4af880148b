"""The files of a SQLite log: connections, the locks by which one process serves it, and the high-water mark.

The mark is a small file beside the database that says how far the log had come. If the end of the log is lost, with a
write-ahead log that was cut or removed for instance, what is left looks like a shorter log. The mark tells the
difference.
"""

import contextlib
import fcntl
import logging
import os
import sqlite3
import time
from pathlib import Path

from msgspec import DecodeError, Struct, json

from superarm.core.errors import SuperarmError

log = logging.getLogger("superarm.mark")

MARK_SECONDS = 1.0
"""The mark is written at most so often: what was lost of the last second may go unnoticed."""


class Mark(Struct, frozen=True):
    """The number of an event that was committed, and its checksum."""

    position: int
    crc: int


class HighWaterMark:
    """The mark in the file ``path``. It is behind the log, never ahead of it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._newest: Mark | None = None
        self._written = -MARK_SECONDS
        self._failing = False

    def read(self) -> Mark | None:
        """The mark; None if there is none that can be read."""
        try:
            return json.decode(self._path.read_bytes(), type=Mark)
        except (OSError, DecodeError):
            return None

    def advance(self, position: int, crc: int) -> None:
        """Note that an event was committed."""
        self._newest = Mark(position, crc)
        if time.monotonic() - self._written >= MARK_SECONDS:
            self.write()

    def write(self) -> None:
        """Write the newest mark. It is not forced to the disk: an old mark does no harm."""
        if self._newest is None:
            return
        beside = self._path.with_name(f".{self._path.name}.new")
        try:
            beside.write_bytes(json.encode(self._newest))
            os.replace(beside, self._path)
            self._failing = False
        except OSError as error:  # a full disk, for instance: the log itself is what matters
            if not self._failing:
                log.warning("the high-water mark cannot be written: %s", error)
            self._failing = True
        self._newest, self._written = None, time.monotonic()

    def replace(self, position: int, crc: int) -> None:
        """Set the mark, also to an earlier event."""
        self._newest = Mark(position, crc)
        self.write()


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a log, with every commit on disk before it returns."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
    with contextlib.ExitStack() as opened:
        opened.callback(connection.close)  # if the file is no database, or cannot be written
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA busy_timeout = 10000")
        opened.pop_all()
    return connection


def lock_file(path: Path) -> list[int]:
    """Handles that keep other processes from serving the file, by whatever path they find it.

    One is a lock file beside the real file, which earlier versions know as well. The other is the file itself, so the
    lock follows it through hard links and renaming. ``flock`` is apart from the locks that SQLite takes, but to close
    any handle of a file ends SQLite's locks in this process, so it is closed after SQLite's connections.
    """
    if not path.parent.is_dir():
        raise SuperarmError(f"{path}: there is no directory {path.parent}; create it, or see that the path is right")
    real = path.resolve()
    handles: list[int] = []
    try:
        for name, mode in ((real.parent / f".{real.name}.lock", 0o600), (real, 0o644)):
            handles.append(os.open(name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, mode))
            fcntl.flock(handles[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        for handle in handles:
            os.close(handle)
        if isinstance(error, BlockingIOError):
            raise SuperarmError(f"{path} is served by another process; stop it, or give another --db") from None
        raise
    return handles
