"""Applies events of the log to the state, in the order of the log, and takes snapshots.

What the writer reports and what is read of other workers are jobs in a queue. A job runs on the event loop at once,
unless an event of it takes long: that one is applied in a thread, and the jobs after it wait.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from typing import TypeVar

from superarm.service.domain.compilation import compile_for_event
from superarm.service.domain.events import Changed, Created, Deleted
from superarm.service.domain.ledger import Key, Ledger, LogEntry
from superarm.service.errors import overloaded
from superarm.service.runtime.condition import Condition
from superarm.service.runtime.deadlines import Deadlines
from superarm.service.runtime.gates import Gates
from superarm.service.runtime.heavy import HEAVY_ENTRIES, SLICE_SECONDS, is_heavy_event
from superarm.service.runtime.outage import repeat_while_away
from superarm.service.runtime.saving import Saver
from superarm.service.runtime.writer import WriteRequest, do_nothing, fail_all
from superarm.service.storage.base import MOVED, Position, ReadEntry, Store
from superarm.service.storage.snapshot import StateCopy, copy_problem, copy_state, restore_ledger

log = logging.getLogger("superarm.applying")

Result = TypeVar("Result")
Work = Callable[[], Awaitable[None]]
Job = Generator[Work, None, None]  # work in order; what it yields has to be awaited before it goes on


class Applier:
    """The state of the process, and the queue of what is to be applied to it."""

    def __init__(self, store: Store, condition: Condition, snapshot_every: int) -> None:
        self._store, self._condition, self._snapshot_every = store, condition, snapshot_every
        self.ledger: Ledger
        self.position: Position = {}
        self.deadlines = Deadlines()
        self.gates = Gates()
        self.since_snapshot, self._slice_end = 0, 0.0
        self.on_failed: Callable[[], None] = lambda: None
        self.saver = Saver()
        self._jobs: deque[Job] = deque()
        self._working: asyncio.Task[None] | None = None

    def restore(self) -> None:
        """Read the newest snapshot and the events after it."""
        self.ledger, self.position, self.since_snapshot = restore_ledger(self._store)
        for learner in self.ledger.problems.values():
            learner.seen = dict(self.position)

    def on_commit(self, batch: list[WriteRequest], numbers: list[int], logs: list[str]) -> None:
        """Called by the writer: apply what is in the log, then answer the requests."""
        self._condition.clear("write")
        self._enqueue(self._apply_batch(batch, numbers, logs))

    def on_failure(self, batch: list[WriteRequest], error: Exception) -> None:
        """Called by the writer: answer that nothing is known to be written."""
        self._condition.report("write", f"the log cannot be written: {error}")
        fail_all(batch, overloaded(self._condition.public_reason, 2))

    def read_unapplied(self) -> list[ReadEntry]:
        """The events of all workers that are in the log and not in the state, in one consistent read."""
        return list(self._store.tail(dict(self.position)))

    def recover(self, reads: list[ReadEntry]) -> None:
        """Called by the writer after a failure: apply what did reach the log although it was never acknowledged."""
        self._enqueue(self._apply_reads(reads, lambda: None))

    async def apply_reads(self, reads: list[ReadEntry]) -> None:
        """Apply what was read of other workers."""
        done = asyncio.get_running_loop().create_future()
        self._enqueue(self._apply_reads(reads, lambda: None if done.done() else done.set_result(None)))
        await done

    def include(self, ledger: Ledger, position: Position) -> None:
        """Add problems that were read apart, with their pending decisions."""
        self.ledger.include(ledger)
        for learner in ledger.problems.values():
            learner.seen = dict(position)
        self.position.update(position)
        for key, record in ledger.pending.items():
            self.deadlines.watch(key, record, resumed=True)

    def exclude(self, problem: Key, log: str) -> None:
        """Remove a problem and its decisions, and its log's position."""
        self.position.pop(log, None)
        self.ledger.remove(problem)

    async def copy_problem(self, problem: Key, log: str) -> StateCopy | None:
        """A copy of one problem's state, after everything that is in the queue now; None if it is not here."""

        async def copy() -> StateCopy | None:
            async with self.gates.close(problem):
                if problem not in self.ledger.problems:
                    return None
                position = {log: self.position.get(log, 0)}
                return await asyncio.to_thread(copy_problem, self.ledger, problem, position)

        return await self._in_order(copy)

    async def copy_all(self) -> StateCopy:
        """A copy of the whole state, after everything that is in the queue now; earlier snapshots are queued then."""

        async def copy() -> StateCopy:
            async with self.gates.close_all():
                return await asyncio.to_thread(copy_state, self.ledger, self.position)

        copied = await self._in_order(copy)
        await self.saver.finish()
        return copied

    async def _in_order(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """What work gives that is done after everything that is in the queue now."""
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                done.set_result(await work())
            except Exception as error:
                done.set_exception(error)

        def job() -> Job:
            yield run

        self._enqueue(job())
        return await done

    async def finish(self) -> None:
        """Wait until everything in the queue was applied."""
        while self._working is not None:
            await asyncio.wait([self._working])
        await self.saver.finish()

    def _enqueue(self, job: Job) -> None:
        self._jobs.append(job)
        now = time.perf_counter()
        if now > self._slice_end + SLICE_SECONDS:  # otherwise it is the same turn of the event loop
            self._slice_end = now + SLICE_SECONDS
        if self._working is None:
            steps = self._steps()
            work = next(steps, None)
            if work is not None:
                self._working = asyncio.get_running_loop().create_task(self._go_on(steps, work))

    def _steps(self) -> Job:
        while self._jobs:
            yield from self._jobs.popleft()

    async def _go_on(self, steps: Job, work: Work | None) -> None:
        try:
            while work is not None:
                await work()
                work = next(steps, None)
        finally:
            self._working = None

    def _apply_batch(self, batch: list[WriteRequest], numbers: list[int], logs: list[str]) -> Job:
        for n, (written, seq, log) in enumerate(zip(batch, numbers, logs, strict=True)):
            if seq == MOVED:
                fail_all([written], overloaded("the problem has moved to another worker; try again"))
                continue
            if seq > self.position.get(log, 0):  # otherwise reading the log was quicker than this report
                self.position[log] = seq
                entry, problem = written.entry, written.line.problem
                read = ReadEntry(log, seq, entry)
                if self._must_wait(entry, (entry.tenant, problem), written.heavy):
                    yield self._in_thread(read, written.on_finish)
                else:
                    self._apply(read, problem)
                if self._condition.phase == "failed":
                    fail_all(batch[n:], overloaded(self._condition.public_reason))
                    return
            written.on_finish()  # at once: until then, a decision counts as reserved besides being pending
            if not written.done.done():
                written.done.set_result(seq > 0)
            if time.perf_counter() > self._slice_end:
                yield self._pause
        yield from self._snapshot_if_due()

    def _apply_reads(self, reads: list[ReadEntry], on_done: Callable[[], None]) -> Job:
        """Apply events that were read from the log, except those that are in the state by now.

        They come in an order in which they can be applied, not by number: until all of them are in the state, the
        position does not describe it, and no snapshot may be taken.
        """
        known = dict(self.position)
        for read in reads:
            worker, seq, entry = read
            if seq > known.get(worker, 0) and self._condition.phase != "failed":
                self.position[worker] = max(seq, self.position.get(worker, 0))
                problem = self._problem(entry)
                if problem is None or isinstance(entry.event, (Created, Changed)) or self._must_wait(entry, problem):
                    yield self._in_thread(read, compiling=True)
                else:
                    self._apply(read, problem[1])
                if time.perf_counter() > self._slice_end:
                    yield self._pause
        on_done()
        yield from self._snapshot_if_due()

    async def _pause(self) -> None:
        """Let others have a turn of the event loop."""
        await asyncio.sleep(0)
        self._slice_end = time.perf_counter() + SLICE_SECONDS

    def _must_wait(self, entry: LogEntry, problem: Key, heavy: bool | None = None) -> bool:
        """Whether an event takes long, needs the log to be read, or concerns a problem that a thread works on."""
        if entry.step > 0 and entry.kind == "decision":
            record = self.ledger.record((entry.tenant, entry.stream))
            if record is None or record.step != entry.step - 1:
                return True
        return self.gates.is_closed(problem) or (is_heavy_event(entry, self.ledger) if heavy is None else heavy)

    def _problem(self, entry: LogEntry) -> Key | None:
        """The problem that an event concerns; None if the log has to be read to know the decision before the event."""
        if entry.kind == "problem":
            return entry.tenant, entry.stream
        if entry.step == 0:
            return entry.tenant, entry.event.problem
        record = self.ledger.record((entry.tenant, entry.stream))
        return None if record is None or record.step != entry.step - 1 else (entry.tenant, record.asked.problem)

    def _in_thread(self, read: ReadEntry, then: Callable[[], None] = do_nothing, *, compiling: bool = False) -> Work:
        """Apply an event in a thread and call ``then``, while nobody else uses its problem."""
        entry = read.entry

        def apply() -> None:
            if compiling:
                compile_for_event(entry.event, self.ledger.problems.get((entry.tenant, entry.stream)))
            self.ledger.apply(entry)
            then()

        async def attempt() -> None:
            problem = None if isinstance(entry.event, Deleted) else self._problem(entry)  # decisions are in one table
            async with self.gates.close_all() if problem is None else self.gates.close(problem):
                await asyncio.to_thread(apply)
                record = self.ledger.record((entry.tenant, entry.stream)) if entry.kind == "decision" else None
                self._note(read, entry.stream if record is None else record.asked.problem)

        async def work() -> None:
            try:
                await repeat_while_away(attempt, self._condition)
            except Exception:
                self._fail(entry)

        return work

    def _apply(self, read: ReadEntry, problem: str) -> None:
        if self._condition.phase == "failed":
            return
        try:
            self.ledger.apply(read.entry)
        except Exception:
            self._fail(read.entry)
        else:
            self._note(read, problem)

    def _fail(self, entry: LogEntry) -> None:
        """Enter the phase ``failed``: an event could not be applied, so the state no longer follows from the log."""
        log.exception("step %s of %s %r cannot be applied", entry.step, entry.kind, entry.stream)
        self._condition.enter("failed", f"an event of {entry.kind} {entry.stream!r} cannot be applied; restart")
        self.on_failed()

    def _note(self, read: ReadEntry, problem: str) -> None:
        """Note that one more event of a problem is in the state."""
        worker, seq, entry = read
        if entry.step == 0 and entry.kind == "decision" and entry.event.window_ms is not None:
            key = (entry.tenant, entry.stream)
            record = self.ledger.record(key)
            if record is not None and not record.closed:
                self.deadlines.watch(key, record)
        learner = self.ledger.problems.get((entry.tenant, problem))
        if learner is not None and seq > learner.seen.get(worker, 0):
            learner.seen[worker] = seq
        self.since_snapshot += 1

    def _snapshot_if_due(self) -> Job:
        """Save a snapshot if it is time. Called where the position describes the state: never within a batch."""
        if self.since_snapshot < self._snapshot_every or self._condition.phase == "failed":
            return
        self.since_snapshot = 0
        if sum(learner.problem.n_entries for learner in self.ledger.problems.values()) >= HEAVY_ENTRIES:
            yield self._copy_in_thread
        else:
            self.saver.put(copy_state(self.ledger, self.position))

    async def _copy_in_thread(self) -> None:
        """Copy the state while nothing changes."""
        async with self.gates.close_all():
            copied = await asyncio.to_thread(copy_state, self.ledger, self.position)
        self.saver.put(copied)
