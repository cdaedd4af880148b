"""The high-water mark: a small file beside the database that says how far the log had come.

If the end of the log is lost, with a write-ahead log that was cut or removed for instance, what is left looks like a
shorter log. The mark tells the difference.
"""

import logging
import os
import time
from pathlib import Path

from msgspec import DecodeError, Struct, json

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
