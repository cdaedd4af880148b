"""Coordinator: plans an event, appends it to the log, and applies it to the state after the commit.

The state is used on the event loop alone, so a decision waits for no lock; the writer thread sees lines of the log, not
the state. At most one event of a stream is being written at a time.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from superarm.service.domain.compilation import compile_kernels
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.events import Created
from superarm.service.domain.ledger import Key, Ledger, LogEntry
from superarm.service.domain.problem import ProblemState
from superarm.service.errors import overloaded, unknown
from superarm.service.runtime.batcher import Batcher
from superarm.service.runtime.condition import Condition
from superarm.service.runtime.deadlines import Deadlines
from superarm.service.runtime.following import RETRY_SECONDS, Follower
from superarm.service.runtime.locks import StreamLock, StreamLocks
from superarm.service.runtime.writer import Writer, WriteRequest, fail_all, make_write
from superarm.service.storage.base import Position, ReadEntry, Store, StoreUnavailable, recall_decision
from superarm.service.storage.snapshot import restore_ledger, take_snapshot

log = logging.getLogger("superarm.coordinator")

SNAPSHOT_EVERY = 50_000
"""Events between two snapshots: folding as many takes about 3 seconds, so a start after a crash waits no longer."""

MAX_ATTEMPTS = 20


class StepTaken(Exception):
    """Another worker wrote this step first: plan the event again."""


class Coordinator:
    """One process of the service, around a store."""

    def __init__(self, store: Store, queue_limit: int = 10_000, snapshot_every: int = SNAPSHOT_EVERY) -> None:
        self.store = store
        self.position: Position = {}
        self.ledger: Ledger
        self.deadlines = Deadlines()
        self._queue_limit, self._snapshot_every = queue_limit, snapshot_every
        self.locks = StreamLocks()
        self._since_snapshot = 0
        self.on_failed: Callable[[], None] = lambda: None
        self.batcher = Batcher(self._submit, self._n_pending)
        self.condition = Condition()
        self.follower = Follower(store, self.condition, self.read_unapplied, self._apply_reads)

    @property
    def ready(self) -> bool:
        """Whether events are planned and given to the writer: between the start and the stop."""
        return self.condition.phase == "running"

    async def start(self) -> None:
        """Read the snapshot and the log, compile the kernels of all problems, and start the writer.

        As long as the database cannot be reached, this waits.
        """
        while True:
            try:
                await asyncio.to_thread(self.store.open)
                self.ledger, self.position, self._since_snapshot = await asyncio.to_thread(restore_ledger, self.store)
                break
            except StoreUnavailable as error:
                self.condition.enter("starting", str(error))
                await asyncio.sleep(RETRY_SECONDS)
        self.condition.enter("starting", "the kernels of the problems are being compiled or loaded")
        for key, record in self.ledger.pending.items():
            self.deadlines.watch(key, record, resumed=True)
        for kind in {learner.kind: learner for learner in self.ledger.problems.values()}.values():
            created = kind.created
            now = replace(created, spec=replace(created.spec, settings=kind.settings))
            await asyncio.to_thread(compile_kernels, now)
        self.writer = Writer(self.store, self, self._queue_limit)
        self.condition.enter("running")

    async def stop(self) -> None:
        """Write what is queued, save a snapshot, and close the store."""
        if self.condition.phase == "starting":
            await asyncio.to_thread(self.store.close)
            return
        self.condition.enter("stopping", "the service is stopping")
        await (
            self.writer.stop()
        )  # its reports were queued on this loop before it ended, so all of them have been handled
        if self._since_snapshot and self.condition.phase != "failed":
            try:
                await asyncio.to_thread(self.store.save, take_snapshot(self.ledger, self.position))
            except Exception:
                log.exception("no snapshot could be written; the next start reads more of the log")
        await asyncio.to_thread(self.store.close)

    def lock(self, kind: str, key: Key) -> StreamLock:
        """The lock of a stream: while it is held, nobody else in this process plans or writes an event of it."""
        return self.locks.lock((kind, *key))

    async def write(self, tenant: str, kind: str, stream: str, step: int, event: Any) -> None:
        """Write an event and apply it, or raise ``StepTaken`` or ``RequestError`` with status 503."""
        self._require_ready()
        done = asyncio.get_running_loop().create_future()
        self.batcher.post(make_write(LogEntry(tenant, kind, stream, step, event), done))
        if not await done:
            raise StepTaken

    def _submit(self, writes: list[WriteRequest]) -> None:
        self._require_ready()
        self.writer.submit(writes)

    def _require_ready(self) -> None:
        if not self.ready:
            raise overloaded(f"{self.condition.reason}; try again")

    def _n_pending(self, problem: Key) -> int:
        return self.ledger.n_pending.get(problem, 0)

    def on_commit(self, batch: list[WriteRequest], numbers: list[int], worker: str) -> None:
        """Called by the writer: apply what is in the log, then answer the requests."""
        self.condition.clear("write")
        known = self.position.get(worker, 0)  # reading the log may have been quicker than this report
        for n, (written, seq) in enumerate(zip(batch, numbers, strict=True)):
            if seq > known and not self._try_to_apply(written.entry, worker, seq):
                fail_all(batch[n:], overloaded(self.condition.reason))
                return
            written.on_finish()
            if not written.done.done():
                written.done.set_result(seq > 0)
        self._snapshot_if_due()

    def on_failure(self, batch: list[WriteRequest], error: Exception) -> None:
        """Called by the writer: answer that nothing is known to be written."""
        reason = f"the log cannot be written: {error}"
        self.condition.report("write", reason)
        fail_all(batch, overloaded(reason, 2))

    def read_unapplied(self) -> list[ReadEntry]:
        """The events of all workers that are in the log and not in the state, in one consistent read."""
        return list(self.store.tail(dict(self.position)))

    def recover(self, reads: list[ReadEntry]) -> None:
        """Called by the writer after a failure: apply what did reach the log although it was never acknowledged."""
        self._apply_reads(reads)

    def _apply_reads(self, reads: list[ReadEntry]) -> None:
        """Apply events that were read from the log, except those that are in the state by now.

        They come in an order in which they can be applied, not by number: until all of them are in the state, the
        position does not describe it, and no snapshot may be taken.
        """
        known = dict(self.position)
        for worker, seq, entry in reads:
            furthest = max(seq, self.position.get(worker, 0))
            if seq > known.get(worker, 0) and not self._try_to_apply(entry, worker, furthest):
                return
        self._snapshot_if_due()

    def _try_to_apply(self, entry: LogEntry, worker: str, seq: int) -> bool:
        """Apply an event and move the position. If that fails, the state is no longer what the log says: give up."""
        if self.condition.phase == "failed":
            return False
        try:
            self.position[worker] = seq
            self._apply(entry)
        except Exception:
            log.exception("step %s of %s %r cannot be applied", entry.step, entry.kind, entry.stream)
            self.condition.enter("failed", f"an event of {entry.kind} {entry.stream!r} cannot be applied; restart")
            self.on_failed()
            return False
        return True

    def _apply(self, entry: LogEntry) -> None:
        self.ledger.apply(entry)
        if entry.kind == "decision" and entry.step == 0:
            key = (entry.tenant, entry.stream)
            record = self.ledger.pending.get(key)
            if record is not None:
                self.deadlines.watch(key, record)
        self._since_snapshot += 1

    def _snapshot_if_due(self) -> None:
        """Save a snapshot if it is time. Called where the position describes the state: never within a batch."""
        if self._since_snapshot >= self._snapshot_every:
            self._since_snapshot = 0
            saved = take_snapshot(self.ledger, self.position)
            self.writer.run(lambda: self.store.save(saved))

    async def catch_up(self) -> None:
        """Apply what other workers wrote, and what this one wrote before: events of others may depend on both."""
        await self.follower.catch_up()

    async def learner(self, tenant: str, name: str) -> ProblemState:
        """A problem, or 404."""
        if (tenant, name) not in self.ledger.problems:
            await self.catch_up()
        found = self.ledger.problems.get((tenant, name))
        if found is None:
            raise unknown("problem", name)
        return found

    async def record(self, key: Key) -> DecisionRecord:
        """A decision, or 404; one that is not in memory is read from the log."""
        found = self.ledger.record(key)
        if found is None and "\0" in key[1]:
            raise unknown("decision", key[1])  # no id contains it, and PostgreSQL does not accept it in a query
        if found is None:
            await self.catch_up()
            found = self.ledger.record(key)
        if found is None:
            shared = self.store.shared
            found = (
                await asyncio.to_thread(recall_decision, self.store, key)
                if shared
                else recall_decision(self.store, key)
            )
            if found is None:
                raise unknown("decision", key[1])
            if found.closed:
                self.ledger.remember(key, found)
        return found

    async def decide(
        self, key: Key, plan: Callable[[DecisionRecord, ProblemState], Any]
    ) -> tuple[bool, DecisionRecord, Any]:
        """Write the event that ``plan`` makes of a decision, and return the decision as it is then.

        If another worker writes the same step first, the event is planned again.
        """
        async with self.lock("decision", key):
            for _ in range(MAX_ATTEMPTS):
                record = await self.record(key)
                learner = await self.learner(key[0], record.asked.problem)
                event = plan(record, learner)
                if event is None:
                    return False, record, None
                try:
                    await self.write(key[0], "decision", key[1], record.step + 1, event)
                except StepTaken:
                    await self._reload(key)
                    continue
                return True, self.ledger.record(key) or record, event
        raise overloaded("too many workers write to this decision at once; try again")

    async def _reload(self, key: Key) -> None:
        await self.catch_up()
        self.ledger.closed.pop(key, None)

    async def change(self, tenant: str, name: str, plan: Callable[[ProblemState], Any]) -> bool:
        """Write the event that ``plan`` makes of a problem; False if it makes none."""
        async with self.lock("problem", (tenant, name)):
            for _ in range(MAX_ATTEMPTS):
                learner = await self.learner(tenant, name)
                event = plan(learner)
                if event is None:
                    return False
                try:
                    await self.write(tenant, "problem", name, learner.step + 1, event)
                except StepTaken:
                    await self.catch_up()
                    continue
                return True
        raise overloaded("too many workers change this problem at once; try again")

    async def create(self, tenant: str, name: str, event: Created) -> bool:
        """Write the creation of a problem; False if another worker created it first."""
        async with self.lock("problem", (tenant, name)):
            try:
                await self.write(tenant, "problem", name, 0, event)
            except StepTaken:
                await self.catch_up()
                return False
            return True
