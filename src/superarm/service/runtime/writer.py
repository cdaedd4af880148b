"""The one thread that writes to the store: it commits together what was queued while the last commit ran."""

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram

from superarm.service.errors import NOT_NOW, overloaded
from superarm.service.storage.base import LogLine, Store

MAX_QUEUED_AT_ONCE = 64
"""So many batches of events are written by one commit at most."""

STALLED_SECONDS = 10.0
"""A commit that takes longer has stalled: the process is not ready until it ends."""

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds: an objective such as "99 % within 50 ms" is the share of one of them."""

Result = TypeVar("Result")


class _Queued(NamedTuple):
    """Lines to write, or a job to do, and the future of the result."""

    lines: list[LogLine]
    job: Callable[[], Any] | None
    done: "asyncio.Future[Any]"


class Writer:
    """Group commit: a batch is what was queued while the last commit ran, so no timer is needed.

    ``limit`` events may wait; ``on_change`` is told after every commit whether the log could be written: "" or why not.
    """

    def __init__(self, store: Store, limit: int, on_change: Callable[[str], None]) -> None:
        self._store, self._limit, self._on_change = store, limit, on_change
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[_Queued | None] = queue.SimpleQueue()
        self._busy_since: float | None = None
        self.depth = 0
        self.registry = CollectorRegistry()
        self._seconds = Histogram(
            "superarm_commit_seconds", "Time of a commit of the log", buckets=BUCKETS, registry=self.registry
        )
        self._events = Counter("superarm_events", "Events written to the log", registry=self.registry)
        self._failures = Counter("superarm_commit_failures", "Commits that failed", registry=self.registry)
        self._thread = threading.Thread(target=self._run, name="superarm-writer", daemon=True)
        self._thread.start()

    async def commit(self, lines: list[LogLine]) -> list[int]:
        """Write lines in one transaction, perhaps with others': the numbers that ``Store.commit`` gives."""
        if (reason := self.overload(len(lines))) is not None:
            raise overloaded(f"{reason}; try again")
        done = self._loop.create_future()
        self.depth += len(lines)
        self._queue.put(_Queued(lines, None, done))
        return await done

    async def run(self, job: Callable[[], Result]) -> Result:
        """The result of a job in the writer's thread, after everything that was queued before."""
        done = self._loop.create_future()
        self._queue.put(_Queued([], job, done))
        return await done

    async def probe(self) -> None:
        """Find out whether the log can be written."""
        if self.depth == 0 and self._busy_since is None:
            try:
                await self.run(self._store.probe)
            except Exception as error:
                self._on_change(str(error))
            else:
                self._on_change("")

    def overload(self, more: int = 1) -> str | None:
        """Why ``more`` events would be refused, in a few words; None if they would be queued."""
        if self.depth + more > self._limit:
            return f"{self.depth} writes are waiting"
        since = self._busy_since
        if since is not None and time.monotonic() - since > STALLED_SECONDS:
            return f"a commit has not ended for {time.monotonic() - since:.0f} s"
        return None

    async def stop(self) -> None:
        """Write what is queued, then end."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        going = True
        while going:
            queued = [self._queue.get()]
            while not self._queue.empty() and len(queued) < MAX_QUEUED_AT_ONCE:
                queued.append(self._queue.get())
            going = queued[-1] is not None  # nothing is queued after the end
            parts = [one for one in queued if one is not None]
            for is_job, part in groupby(parts, lambda one: one.job is not None):
                for one in part if is_job else ():
                    self._do(one)
                if batch := list(part):
                    self._write(batch)

    def _do(self, queued: _Queued) -> None:
        assert queued.job is not None
        try:
            result = queued.job()
        except Exception as error:
            result = error
        self._loop.call_soon_threadsafe(resolve, queued.done, result)

    def _write(self, batch: list[_Queued]) -> None:
        lines = [line for queued in batch for line in queued.lines]
        self._busy_since = began = time.monotonic()
        result: list[int] | Exception
        try:
            result = self._store.commit(lines)
            self._seconds.observe(time.monotonic() - began)
            self._events.inc(len(lines))
        except Exception as error:
            self._failures.inc()
            result = error
        finally:
            self._busy_since = None
        self._loop.call_soon_threadsafe(self._report, batch, result)

    def _report(self, batch: list[_Queued], result: list[int] | Exception) -> None:
        at, failed = 0, isinstance(result, Exception)
        self._on_change(str(result) if failed else "")
        for queued in batch:
            n = len(queued.lines)
            self.depth -= n
            resolve(queued.done, overloaded(NOT_NOW, 2) if isinstance(result, Exception) else result[at : at + n])
            at += n


def resolve(done: "asyncio.Future[Any]", result: Any) -> None:
    """Give a future its result, or the error in its place; whoever waited for it may be gone."""
    if done.done():
        return
    if isinstance(result, Exception):
        done.set_exception(result)
    else:
        done.set_result(result)
