"""Coordinator: plans an event, appends it to the log, and applies it to the state after the commit.

The state is used on the event loop alone, so a decision waits for no lock; the writer thread sees lines of the log, not
the state. At most one event of a stream is being written at a time.
"""

import asyncio
import logging
import sys
from collections.abc import Callable
from typing import Any, cast

from superarm.core.arrays import Floats
from superarm.core.tally import Tally
from superarm.service.domain.compilation import compile_kernels, kernel_kind
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.events import Created
from superarm.service.domain.ledger import Key, Ledger, LogEntry
from superarm.service.domain.problem import ProblemState
from superarm.service.errors import overloaded, unknown
from superarm.service.runtime.applying import Applier
from superarm.service.runtime.batcher import Batcher
from superarm.service.runtime.certifying import Certifier
from superarm.service.runtime.condition import Condition
from superarm.service.runtime.following import Follower
from superarm.service.runtime.heavy import is_heavy_event, is_heavy_problem
from superarm.service.runtime.locks import StreamLock, StreamLocks
from superarm.service.runtime.outage import RETRY_SECONDS
from superarm.service.runtime.ownership import AllProblems, OwnedProblems
from superarm.service.runtime.rates import TokenBuckets
from superarm.service.runtime.writer import Writer, WriteRequest, make_write
from superarm.service.storage.base import Position, SavedSnapshot, Store, StoreUnavailable, recall_decision
from superarm.service.storage.snapshot import take_snapshot

log = logging.getLogger("superarm.coordinator")

SNAPSHOT_EVERY = 50_000
"""Events between two snapshots: folding as many takes about 3 seconds, so a start after a crash waits no longer."""

MAX_ATTEMPTS = 20

HEAVY_SUMS = 200_000
"""The counters of segments are added up in a thread if they are so many."""


class StepTaken(Exception):
    """Another worker wrote this step first: plan the event again."""


class Coordinator:
    """One process of the service, around a store."""

    def __init__(self, store: Store, queue_limit: int = 10_000, snapshot_every: int = SNAPSHOT_EVERY) -> None:
        self.store = store
        self._queue_limit = queue_limit
        self.locks = StreamLocks()
        self.rates = TokenBuckets()
        self.condition = Condition()
        self.applier = Applier(store, self.condition, snapshot_every if store.shards is None else sys.maxsize)
        self.ownership: AllProblems | OwnedProblems = AllProblems(self.applier)
        if store.shards is not None:
            self.ownership = OwnedProblems(store.shards, self.applier, self.condition, snapshot_every)
        self.follower = Follower(store, self.condition, self.applier.read_unapplied, self.applier.apply_reads)
        self.gates = self.applier.gates
        self.deadlines = self.applier.deadlines
        self.batcher = Batcher(self._submit, self._n_pending, self.gates, lambda: self.writer.is_writing)
        self.certifier = Certifier(self.gates)
        self.leaving: set[Key] = set()  # decisions that a compaction is about to remove from the log

    @property
    def ledger(self) -> Ledger:
        """The state of all problems and pending decisions."""
        return self.applier.ledger

    @property
    def position(self) -> Position:
        """How far the log of each worker was applied."""
        return self.applier.position

    @property
    def ready(self) -> bool:
        """Whether events are planned and given to the writer: between the start and the stop."""
        return self.condition.phase == "running"

    async def start(self, read_keys: Callable[[], None] = lambda: None) -> None:
        """Read the keys, the snapshot and the log, compile the kernels of all problems, and start the writer.

        As long as the database cannot be reached, this waits.
        """
        while True:
            try:
                await asyncio.to_thread(self.store.open)
                await asyncio.to_thread(read_keys)
                await asyncio.to_thread(self.applier.restore)
                break
            except StoreUnavailable as error:
                self.condition.enter("starting", str(error))
                await asyncio.sleep(RETRY_SECONDS)
        self.condition.enter("starting", "the kernels of the problems are being compiled or loaded")
        for key, record in self.ledger.pending.items():
            self.deadlines.watch(key, record, resumed=True)
        for kind in {kernel_kind(learner): learner for learner in self.ledger.problems.values()}.values():
            await asyncio.to_thread(compile_kernels, kind.as_created(kind.settings))
        self.writer = Writer(self.store, self.applier, self._queue_limit, self.batcher.go_on)
        self.applier.saver.save = lambda saved: self.writer.run(lambda: self.store.save(saved))
        if isinstance(self.ownership, OwnedProblems):
            self.ownership.writer = self.writer
        self.condition.enter("running")

    async def stop(self) -> None:
        """Write what is queued, save a snapshot, and close the store."""
        if self.condition.phase == "starting":
            await asyncio.to_thread(self.store.close)
            return
        self.condition.enter("stopping", "the service is stopping")
        try:
            await self.ownership.save_all()
        except Exception:
            log.exception("no snapshot could be written; the next owner reads more of the log")
        unsaved: list[SavedSnapshot] = []
        self.applier.saver.save = unsaved.append  # the writer takes no more jobs
        await self.writer.stop()  # its reports were queued on this loop before it ended, so all have been handled
        await self.applier.finish()
        if (unsaved or self.applier.since_snapshot) and self.condition.phase != "failed" and self.store.shards is None:
            try:
                await asyncio.to_thread(lambda: self.store.save(take_snapshot(self.ledger, self.position)))
            except Exception:
                log.exception("no snapshot could be written; the next start reads more of the log")
        await asyncio.to_thread(self.store.close)

    def lock(self, kind: str, key: Key) -> StreamLock:
        """The lock of a stream: while it is held, nobody else in this process plans or writes an event of it."""
        return self.locks.lock((kind, *key))

    async def write(self, entry: LogEntry, problem: str) -> None:
        """Write an event of a problem and apply it, or raise ``StepTaken`` or ``RequestError`` with status 503."""
        self._require_ready()
        done = asyncio.get_running_loop().create_future()
        if is_heavy_event(entry, self.ledger):
            self.batcher.post(await asyncio.to_thread(make_write, entry, problem, done, heavy=True))
        else:
            self.batcher.post(make_write(entry, problem, done, heavy=False if entry.kind == "decision" else None))
        if not await done:
            raise StepTaken

    def _submit(self, writes: list[WriteRequest]) -> None:
        self._require_ready()
        self.writer.submit(writes)

    def _require_ready(self) -> None:
        if not self.ready:
            raise overloaded(f"{self.condition.public_reason}; try again")

    def _n_pending(self, problem: Key) -> int:
        return self.ledger.n_pending.get(problem, 0)

    async def catch_up(self) -> None:
        """Apply what other workers wrote, and what this one wrote before: events of others may depend on both."""
        await self.follower.catch_up()

    def free_learner(self, tenant: str, name: str) -> ProblemState | None:
        """A problem that is in memory and that no thread works on; None if ``learner`` has to wait for it."""
        found = self.applier.ledger.problems.get((tenant, name))
        return None if found is None or self.gates.is_closed((tenant, name)) else found

    async def learner(self, tenant: str, name: str) -> ProblemState:
        """A problem that no thread works on, or 404: until the caller next waits, the state is the caller's own."""
        if (tenant, name) not in self.ledger.problems:
            await self.ownership.need((tenant, name))
            await self.catch_up()
        found = self.ledger.problems.get((tenant, name))
        if found is None:
            raise unknown("problem", name)
        if self.gates.is_closed((tenant, name)):
            await self.gates.wait((tenant, name))
        return found

    async def record(self, key: Key) -> DecisionRecord:
        """A decision, or 404, also if its problem is known to be deleted."""
        found = await self.find_record(key)
        problem = (key[0], found.asked.problem)
        here = problem in self.ledger.problems or problem in self.ledger.deleted
        if here and not self.ledger.serves(key[0], found):
            raise unknown("decision", key[1])
        return found

    async def find_record(self, key: Key) -> DecisionRecord:
        """A decision, also of a deleted problem, or 404; one that is not in memory is read from the log."""
        found = self.ledger.record(key)
        if found is None and "\0" in key[1]:
            raise unknown("decision", key[1])  # no id contains it, and PostgreSQL does not accept it in a query
        if found is None:
            await self.catch_up()
            found = self.ledger.record(key)
        if found is None and key in self.leaving:
            raise overloaded("the decision is being archived; try again")
        if found is None:
            remote = self.store.shared or self.store.shards is not None
            found = (
                await asyncio.to_thread(recall_decision, self.store, key)
                if remote
                else recall_decision(self.store, key)
            )
            if found is None:
                raise unknown("decision", key[1])
            if found.closed:
                self.ledger.remember(key, found)
        return found

    def free_decision(self, key: Key) -> tuple[DecisionRecord, ProblemState] | None:
        """A decision that is in memory, and its problem, if no thread works on it; None if there is a need to wait."""
        ledger = self.applier.ledger
        record = ledger.record(key)
        learner = None if record is None else self.free_learner(key[0], record.asked.problem)
        if record is None or learner is None or not ledger.serves(key[0], record):
            return None
        return record, learner

    async def learner_of(self, tenant: str, record: DecisionRecord) -> ProblemState:
        """The problem of a decision; 404 if it was deleted."""
        found = await self.learner(tenant, record.asked.problem)
        if not self.ledger.serves(tenant, record):
            raise unknown("decision", record.asked.id)
        return found

    async def decide(
        self,
        key: Key,
        plan: Callable[[DecisionRecord, ProblemState], Any],
        is_heavy: Callable[[DecisionRecord], bool] = lambda record: False,
    ) -> tuple[bool, DecisionRecord, Any]:
        """Write the event that ``plan`` makes of a decision, and return the decision as it is then.

        If another worker writes the same step first, the event is planned again. A heavy plan is made in a thread.
        """
        async with self.lock("decision", key):
            for _ in range(MAX_ATTEMPTS):
                known = self.free_decision(key)
                record = known[0] if known else await self.record(key)
                learner = known[1] if known else await self.learner_of(key[0], record)
                if is_heavy(record):
                    event = await self.in_thread((key[0], record.asked.problem), plan, record, learner)
                else:
                    event = plan(record, learner)
                if event is None:
                    return False, record, None
                try:
                    entry = LogEntry(key[0], "decision", key[1], record.step + 1, event)
                    await self.write(entry, record.asked.problem)
                except StepTaken:
                    await self._reload(key)
                    continue
                return True, self.ledger.record(key) or record, event
        raise overloaded("too many workers write to this decision at once; try again")

    async def _reload(self, key: Key) -> None:
        await self.catch_up()
        self.ledger.closed.pop(key, None)

    async def overall(self, problem: Key, learner: ProblemState) -> tuple[Tally, Floats]:
        """The counters and the pending pulls of each arm over all contexts; of many segments, added up in a thread."""
        if learner.contexts is None or learner.tally.total.size < HEAVY_SUMS:
            return learner.overall()
        return cast("tuple[Tally, Floats]", await self.in_thread(problem, learner.overall))

    async def in_thread(self, problem: Key, plan: Callable[..., Any], *given: Any) -> Any:
        """What ``plan`` makes in a thread, while nobody else uses the problem."""
        async with self.gates.close(problem):
            return await asyncio.to_thread(plan, *given)

    async def change(self, tenant: str, name: str, plan: Callable[[ProblemState], Any], *, heavy: bool = False) -> bool:
        """Write the event that ``plan`` makes of a problem; False if it makes none. A ``heavy`` one is in a thread."""
        async with self.lock("problem", (tenant, name)):
            for _ in range(MAX_ATTEMPTS):
                learner = await self.learner(tenant, name)
                heavy = heavy or is_heavy_problem(learner)
                event = await self.in_thread((tenant, name), plan, learner) if heavy else plan(learner)
                if event is None:
                    return False
                try:
                    await self.write(LogEntry(tenant, "problem", name, learner.step + 1, event), name)
                except StepTaken:
                    await self.catch_up()
                    continue
                return True
        raise overloaded("too many workers change this problem at once; try again")

    async def create(self, tenant: str, name: str, event: Created) -> bool:
        """Write the creation of a problem; False if another worker created it first."""
        async with self.lock("problem", (tenant, name)):
            step = self.ledger.deleted.get((tenant, name), -1) + 1
            try:
                await self.write(LogEntry(tenant, "problem", name, step, event), name)
            except StepTaken:
                await self.catch_up()
                return False
            return True
