"""A log in memory that one process serves, as it serves a SQLite file: writes fail before or after they are done."""

import random
from collections.abc import Callable, Iterator
from typing import Any

from superarm.service.storage.base import LogLine, Position, ReadEntry, SavedSnapshot, StoreUnavailable, decode_line

from ..memory_store import MemoryStore


class Disk:
    """What outlives a process. ``up`` says whether it can be written, ``risk`` is the chance that a write fails."""

    def __init__(self, loop: Any, rng: random.Random, trace: Callable[..., None]) -> None:
        self.loop, self.rng, self.trace = loop, rng, trace
        self.up, self.risk, self.dead = True, 0.0, set[str]()
        self.log: list[LogLine] = []
        self.places: dict[tuple[str, str, str, int], int] = {}
        self.streams: dict[tuple[str, str, str], list[LogLine]] = {}
        self.saved: list[SavedSnapshot] = []

    def has(self, place: tuple[str, str, str, int]) -> bool:
        """Whether an event is in the log."""
        return place in self.places

    def lines(self) -> list[tuple[Any, ...]]:
        """All events, in the form of the rows of a database."""
        return [("", seq, *line[:4], line.body.decode()) for seq, line in enumerate(self.log, 1)]

    def expire(self) -> None:
        """A process that has the file keeps it."""

    def tear(self) -> None:
        """Damage the newest snapshot."""
        if self.saved:
            body = self.saved[-1].body
            self.saved[-1] = self.saved[-1]._replace(body=bytes(body[: self.rng.randrange(len(body))]))

    def write(self, lines: list[LogLine]) -> list[int]:
        """Write events in one transaction."""
        numbers = []
        for line in lines:
            if line[:4] in self.places:
                numbers.append(0)
                continue
            self.log.append(line)
            self.streams.setdefault(line[:3], []).append(line)
            numbers.append(len(self.log))
            self.places[line[:4]] = len(self.log)
        self.trace("commit", [line[:4] for line in lines], numbers)
        return numbers


class FileStore(MemoryStore):
    """A process's store on a disk."""

    def __init__(self, disk: Disk, name: str) -> None:
        super().__init__()
        self._disk, self.worker, self.saved = disk, name, disk.saved

    def _attempt(self, write: Callable[[], Any]) -> Any:
        disk = self._disk
        if not disk.up or self.worker in disk.dead:
            raise StoreUnavailable("the disk is full")
        if disk.rng.random() >= disk.risk:
            return write()
        if done := disk.rng.random() < 0.5:
            write()
        disk.trace("write failed", done)
        raise StoreUnavailable("the disk says that the write failed")

    def commit(self, lines: list[LogLine]) -> list[int]:
        return self._attempt(lambda: self._disk.write(lines))

    def save(self, saved: SavedSnapshot) -> None:
        self._attempt(lambda: self.saved.append(saved))

    def tail(self, after: Position, *, problems: bool = False) -> Iterator[ReadEntry]:
        for seq, line in enumerate(self._disk.log[after.get("", 0) :], after.get("", 0) + 1):
            if line.kind == "problem" or not problems:
                yield ReadEntry("", seq, decode_line(line))

    def stream(self, tenant: str, kind: str, stream: str) -> list[Any]:
        return [decode_line(line) for line in self._disk.streams.get((tenant, kind, stream), [])]
