"""The one thread that writes: it takes what queued while the last commit ran, and commits it together."""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from typing import NamedTuple, Protocol

from superarm.service.domain.events import encode
from superarm.service.domain.ledger import LogEntry
from superarm.service.errors import RequestError, overloaded
from superarm.service.storage.base import LogLine, ReadEntry, Store

MAX_BATCH_EVENTS = 2_048

log = logging.getLogger("superarm.writer")


def _nothing() -> None:
    pass


class Completion(Protocol):
    """Where it is told whether an event took its place; a future, or one's own."""

    def done(self) -> bool:
        """Whether it was told, or nobody waits for it any more."""
        ...

    def set_result(self, kept: bool, /) -> None:
        """It is in the log, or lost its place to another event."""
        ...

    def set_exception(self, error: Exception, /) -> None:
        """It is not known to be in the log."""
        ...


class WriteRequest(NamedTuple):
    """An event to write, as an object and as a line, and where the answer goes.

    ``settle`` is called as soon as the event counts, or never will.
    """

    entry: LogEntry
    line: LogLine
    done: Completion
    settle: Callable[[], None] = _nothing


def make_write(entry: LogEntry, done: Completion, settle: Callable[[], None] = _nothing) -> WriteRequest:
    """An event on its way to the writer."""
    tenant, kind, stream, step, event = entry
    return WriteRequest(entry, LogLine(tenant, kind, stream, step, encode(event)), done, settle)


def fail_all(commands: list[WriteRequest], refusal: RequestError) -> None:
    """Tell all who wait that nothing of theirs will be written."""
    for waiting in commands:
        waiting.settle()
        if not waiting.done.done():
            waiting.done.set_exception(refusal)


class Receiver(Protocol):
    """Who is told, on the event loop and in commit order, what the writer did."""

    def committed(self, batch: list[WriteRequest], kept: list[int]) -> None:
        """These are in the log under these numbers; 0 lost its place to another event."""
        ...

    def failed(self, batch: list[WriteRequest], error: Exception) -> None:
        """Of these nothing is known to be in the log."""
        ...

    def uncounted(self) -> list[ReadEntry]:
        """Events in the log that were not reported yet; called by the writer's thread."""
        ...

    def reread(self, reads: list[ReadEntry]) -> None:
        """After a failure: these are in the log, whatever was reported."""
        ...


class Writer:
    """Group commit without a timer."""

    def __init__(self, store: Store, receiver: Receiver, limit: int) -> None:
        self._store, self._receiver, self._limit = store, receiver, limit
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[list[WriteRequest] | Callable[[], None] | None] = queue.SimpleQueue()
        self._doubt = False
        self.depth = 0
        self._thread = threading.Thread(target=self._run, name="superarm-writer", daemon=True)
        self._thread.start()

    def submit(self, commands: list[WriteRequest]) -> None:
        """Queue events; their futures tell whether they took their places. A full queue refuses all of them."""
        if self.depth + len(commands) > self._limit:
            raise overloaded(f"{self.depth} writes are waiting; try again")
        self.depth += len(commands)
        self._queue.put(commands)

    def run(self, job: Callable[[], None]) -> None:
        """Queue a job for the writer's connection."""
        self._queue.put(job)

    async def stop(self) -> None:
        """Write what is queued, then end."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            if not isinstance(first, list):
                self._do(first)
                continue
            batch, following = [*first], None
            while len(batch) < MAX_BATCH_EVENTS and not self._queue.empty():
                following = self._queue.get()
                if not isinstance(following, list):
                    break
                batch += following
            else:
                self._write(batch)
                continue
            self._write(batch)
            if following is None:
                return
            self._do(following)

    def _do(self, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception:
            log.exception("a job of the writer failed")

    def _write(self, batch: list[WriteRequest]) -> None:
        tell = self._loop.call_soon_threadsafe
        try:
            if self._doubt:
                self._store.last()  # also connects anew, and takes this worker's place again, where that is needed
                tell(self._receiver.reread, self._receiver.uncounted())
                self._doubt = False
            kept = self._store.commit([write.line for write in batch])
        except Exception as error:
            self._doubt = True
            log.error("commit failed: %s", error)
            tell(self._failed, batch, error)
        else:
            tell(self._committed, batch, kept)

    def _committed(self, batch: list[WriteRequest], kept: list[int]) -> None:
        self.depth -= len(batch)
        self._receiver.committed(batch, kept)

    def _failed(self, batch: list[WriteRequest], error: Exception) -> None:
        self.depth -= len(batch)
        self._receiver.failed(batch, error)
