"""The one thread that writes to the store: it commits together what was queued while the last commit ran."""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from superarm.service.domain.event_lines import encode
from superarm.service.domain.ledger import LogEntry
from superarm.service.errors import RequestError, overloaded
from superarm.service.storage.base import LogLine, ReadEntry, Store, StoreUnavailable
from superarm.service.timings import Timings

MAX_BATCH_EVENTS = 128
"""The most events in one commit: the events of a commit are applied in one turn of the event loop."""

STALLED_SECONDS = 10.0
"""A commit that takes longer has stalled: the process is not ready until it ends."""

log = logging.getLogger("superarm.writer")


def do_nothing() -> None:
    """What has to be done when there is nothing to do."""


class Completion(Protocol):
    """Gets the result of writing one event; a future, or something like it."""

    def done(self) -> bool:
        """Whether it has a result, or nobody waits for it any more."""
        ...

    def set_result(self, written: bool, /) -> None:
        """The event is in the log, or (False) another event has its step."""
        ...

    def set_exception(self, error: Exception, /) -> None:
        """The event is not known to be in the log."""
        ...


class WriteRequest(NamedTuple):
    """An event to write, as an object and as a line of the log, and where the result goes.

    ``on_finish`` is called when the event has been applied, or never will be. ``heavy`` says whether applying it may
    take long; None if that is not known yet.
    """

    entry: LogEntry
    line: LogLine
    done: Completion
    on_finish: Callable[[], None] = do_nothing
    heavy: bool | None = None


def make_write(
    entry: LogEntry,
    problem: str,
    done: Completion,
    on_finish: Callable[[], None] = do_nothing,
    heavy: bool | None = None,
) -> WriteRequest:
    """The request to write an event of a problem, or of one of its decisions."""
    tenant, kind, stream, step, event = entry
    return WriteRequest(entry, LogLine(tenant, kind, stream, step, encode(event), problem), done, on_finish, heavy)


def fail_all(writes: list[WriteRequest], error: RequestError) -> None:
    """Report an error to all who wait for these writes."""
    for write in writes:
        write.on_finish()
        if not write.done.done():
            write.done.set_exception(error)


class Receiver(Protocol):
    """Gets the writer's reports, on the event loop and in the order of commits."""

    def on_commit(self, batch: list[WriteRequest], numbers: list[int], logs: list[str]) -> None:
        """These are in the log under these numbers; 0 if another event has the step, ``MOVED`` if nothing was written.

        ``logs`` are the names of the logs that they went to; the store may have taken another name since.
        An empty batch says that the log can be written.
        """
        ...

    def on_failure(self, batch: list[WriteRequest], error: Exception) -> None:
        """None of these is known to be in the log, which cannot be written now."""
        ...

    def read_unapplied(self) -> list[ReadEntry]:
        """Events in the log that are not in the state yet; called by the writer's thread."""
        ...

    def recover(self, reads: list[ReadEntry]) -> None:
        """After a failure: these are in the log, whatever was reported before."""
        ...


class Writer:
    """Group commit: a batch is what was queued while the last commit ran, so no timer is needed.

    ``on_report`` is called on the event loop when a commit has ended.
    """

    def __init__(
        self, store: Store, receiver: Receiver, limit: int, on_report: Callable[[], None] = do_nothing
    ) -> None:
        self._store, self._receiver, self._limit, self._on_report = store, receiver, limit, on_report
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[list[WriteRequest] | Callable[[], None] | None] = queue.SimpleQueue()
        self._uncertain = False
        self._busy_since: float | None = None
        self.depth = 0
        self.timings, self.events, self.failures = Timings(), 0, 0
        self._thread = threading.Thread(target=self._run, name="superarm-writer", daemon=True)
        self._thread.start()

    def submit(self, writes: list[WriteRequest]) -> None:
        """Queue events; ``done`` of each gets its result. A full queue refuses all of them with 503."""
        if (reason := self.overload(len(writes))) is not None:
            raise overloaded(f"{reason}; try again")
        self.depth += len(writes)
        self._queue.put(writes)

    @property
    def is_writing(self) -> bool:
        """Whether a commit will be reported before more events can be written, and they would be queued."""
        return self.depth > 0 and self.overload() is None

    def overload(self, more: int = 1) -> str | None:
        """Why ``more`` events would be refused, in a few words; None if they would be queued."""
        if self.depth + more > self._limit:
            return f"{self.depth} writes are waiting"
        since = self._busy_since
        if since is not None and time.monotonic() - since > STALLED_SECONDS:
            return f"a commit has not ended for {time.monotonic() - since:.0f} s"
        return None

    def probe(self) -> None:
        """Find out whether the log can be written; the receiver gets a commit of nothing, or a failure."""
        if self.depth == 0 and self._busy_since is None:
            self._queue.put([])

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
        except StoreUnavailable as error:
            self._uncertain = True
            log.warning("a snapshot could not be written: %s", error)
        except Exception:
            self._uncertain = True
            log.exception("a job of the writer failed")

    def _write(self, batch: list[WriteRequest]) -> None:
        report = self._loop.call_soon_threadsafe
        try:
            began = self._busy_since = time.monotonic()
            if self._uncertain:
                self._store.last()  # connects again and claims this worker's name again, if the connection was lost
                report(self._receiver.recover, self._receiver.read_unapplied())
                self._uncertain = False
            lines, numbers = [write.line for write in batch], list[int]()
            if lines:
                numbers = self._store.commit(lines)
                self.timings.add(time.monotonic() - began)
                self.events += len(batch)
            else:
                self._store.probe()
        except Exception as error:
            self._uncertain = True
            self.failures += 1
            report(self._report_failure, batch, error)
        else:
            report(self._report_commit, batch, numbers, self._store.logs_of(lines))
        finally:
            self._busy_since = None

    def _report_commit(self, batch: list[WriteRequest], numbers: list[int], logs: list[str]) -> None:
        self.depth -= len(batch)
        try:
            self._on_report()  # first: the next commit runs while the events of this one are applied
        finally:
            self._receiver.on_commit(batch, numbers, logs)

    def _report_failure(self, batch: list[WriteRequest], error: Exception) -> None:
        self.depth -= len(batch)
        self._receiver.on_failure(batch, error)
        self._on_report()
