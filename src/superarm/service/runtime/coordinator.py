"""Coordinator: plans events, appends them to the log, and applies them to the state after the commit.

Every problem has one lock. Whoever holds it plans what was queued for the problem, has it written in one transaction,
applies it, and answers. Work above a size runs in a thread, under the same lock.
"""

import asyncio
import contextlib
import logging
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from superarm.core import ops
from superarm.core.errors import InvalidArgument
from superarm.service.domain.decision import DecisionRecord, advance_record
from superarm.service.domain.events import Armed, Asked, Changed, Created, Itemed, Summed, Warmed, encode
from superarm.service.domain.ledger import Key, Ledger, LogEntry, decision_key
from superarm.service.domain.problem import ProblemState, rehearse
from superarm.service.domain.slate import plans_due
from superarm.service.errors import RequestError, overloaded, refused, unknown
from superarm.service.runtime.condition import Condition, Deadlines, TokenBuckets
from superarm.service.runtime.ownership import AllProblems, OwnedProblems
from superarm.service.runtime.writer import Writer, resolve
from superarm.service.storage import base
from superarm.service.storage.base import LogLine, Store, StoreUnavailable
from superarm.service.storage.snapshot import copy_state, pack_snapshot, restore_ledger

log = logging.getLogger("superarm.coordinator")

SNAPSHOT_EVERY = 50_000
"""Events between two snapshots: folding as many takes some seconds, so a start after a crash waits no longer."""

RETRY_SECONDS = 1.0
"""How long a worker waits before it tries again to reach the database."""

MAX_BATCH = 64
"""So many requests of a problem are planned together at most, and written by one transaction."""

MOVED = "the problem has moved to another worker; try again"

THREAD_SIZE = 20_000
"""Work on so many numbers, entries of a problem or values of a request, runs in a thread."""

Result = TypeVar("Result")


def now_ms() -> int:
    """Wall-clock milliseconds. Events carry them for people who read the log; no effect of an event depends on it."""
    return time.time_ns() // 1_000_000


class Written(NamedTuple):
    """What became of a request: the event that was written (None: nothing was), and the decision after it."""

    event: Any = None
    record: DecisionRecord | None = None


class Work(NamedTuple):
    """A request to write an event: ``plan`` makes it of the problem and the decision, or raises ``RequestError``.

    ``stream`` is a decision's id, or "" for an event of the problem itself; ``size`` is how many numbers it has. What
    is ``new``, a problem or a decision, need not be known, and is not looked for in the log.
    """

    stream: str
    plan: Callable[[Any, Any], Any]
    size: int
    new: bool
    done: "asyncio.Future[Written]"


class Planned(NamedTuple):
    """A request with its event, and the decision before it."""

    work: Work
    entry: LogEntry
    line: LogLine
    before: DecisionRecord | None = None


class Coordinator:
    """One process of the service, around a store."""

    def __init__(
        self, store: Store, queue_limit: int = 10_000, snapshot_every: int = SNAPSHOT_EVERY, compiled: bool = False
    ) -> None:
        self.store, self._compiled = store, compiled
        self._queue_limit, self._snapshot_every = queue_limit, snapshot_every
        self.ledger: Ledger = Ledger()
        self.position: base.Position = {}
        self.writer: Writer
        self.rates = TokenBuckets()
        self.condition = Condition()
        self.deadlines = Deadlines()
        self.on_failed: Callable[[], None] = lambda: None
        self.locks: defaultdict[Key, asyncio.Lock] = defaultdict(asyncio.Lock)  # each keeps everybody from a problem
        self._creating, self._saving = asyncio.Lock(), asyncio.Lock()
        self._queues: dict[Key, deque[Work]] = {}
        self._uncertain: dict[Key, list[Planned]] = {}  # of problems, what may or may not be in the log
        self._tasks: set[asyncio.Task[None]] = set()
        self.unsaved = 0  # how many events were applied since the last snapshot of all problems
        self.ownership: AllProblems | OwnedProblems = AllProblems(self)
        if store.shards is not None:
            self.ownership = OwnedProblems(self, store.shards, snapshot_every)

    @property
    def ready(self) -> bool:
        """Whether events are planned and given to the writer: between the start and the stop."""
        return self.condition.phase == "running"

    # --- start and stop ---

    async def start(self, read_keys: Callable[[], None] = lambda: None) -> None:
        """Read the keys, the snapshot and the log, and start the writer; waits until the database can be reached."""
        while True:
            try:
                await asyncio.to_thread(self.store.open)
                await asyncio.to_thread(read_keys)
                if self.store.shards is None:
                    ledger, position, self.unsaved = await asyncio.to_thread(restore_ledger, self.store)
                    await self.rehearse(*(one.as_created(one.settings) for one in ledger.problems.values()))
                    self.include(ledger, position)
                break
            except StoreUnavailable as error:
                self.condition.enter("starting", str(error))
                await asyncio.sleep(RETRY_SECONDS)
        self.writer = Writer(self.store, self._queue_limit, self.note_writing)
        self.condition.enter("running")

    async def rehearse(self, *created: Created) -> None:
        """Compile the kernels that problems need, in a thread, before a request needs them."""
        if self._compiled:
            await asyncio.to_thread(lambda: (ops.load(), *map(rehearse, created)))

    def note_writing(self, wrong: str) -> None:
        """Note why the log cannot be written; empty if it can."""
        self.condition.note(f"the log cannot be written: {wrong}" if wrong else "")

    def include(self, ledger: Ledger, position: base.Position) -> None:
        """Take on problems that were read, with their pending decisions."""
        if self.ledger.problems or self.ledger.broken:
            self.ledger.include(ledger)
        else:
            self.ledger = ledger
        self._report_broken(ledger.broken)
        for state in ledger.problems.values():
            state.seen = dict(position)
        self.position.update(position)
        for key, record in ledger.pending.items():
            self.deadlines.watch(key, record, resumed=True)

    async def stop(self) -> None:
        """Write what is queued, save a snapshot, and close the store."""
        if self.condition.phase == "starting":
            await asyncio.to_thread(self.store.close)
            return
        self.condition.enter("stopping", "the service is stopping")
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self.condition.phase != "failed":
            try:
                await self.ownership.save_all()
            except Exception:
                log.exception("no snapshot could be written; the next start reads more of the log")
        await self.writer.stop()
        await asyncio.to_thread(self.store.close)

    def in_background(self, work: Any) -> None:
        """Run a coroutine that nobody waits for; the process waits for it before it stops."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- problems and decisions ---

    @contextlib.asynccontextmanager
    async def lock_all(self) -> AsyncIterator[None]:
        """Keep everybody else from all problems, when all events that were planned are in the state."""
        async with contextlib.AsyncExitStack() as held:
            await held.enter_async_context(self._creating)
            for problem in sorted({*self.ledger.problems, *self._uncertain, *self._queues}):
                await held.enter_async_context(self.locks[problem])
            for problem in list(self._uncertain):
                await self._resolve_uncertain(problem)
            yield

    async def find(self, tenant: str, name: str) -> ProblemState:
        """A problem, or 404; its names and settings can be read, everything else only with its lock."""
        found = self.ledger.problems.get((tenant, name))
        if found is None:
            raise self._absent((tenant, name))
        return found

    def _absent(self, problem: Key) -> RequestError:
        """Why a request does not find its problem: 404, unless it is closed, or moved to another worker meanwhile."""
        if (error := self.ledger.broken.get(problem)) is not None:
            what = f"{type(error).__name__}: {error}"
            return overloaded(f"problem {problem[1]!r} is closed, since its log cannot be applied ({what})", 60)
        moved = self.store.shards is not None and problem not in self.ledger.deleted
        return overloaded(MOVED) if moved else unknown("problem", problem[1])

    async def read(self, tenant: str, name: str, read: Callable[[ProblemState], Result], size: int = 0) -> Result:
        """What ``read`` makes of a problem, while nobody else uses it; in a thread if it is large."""
        await self.find(tenant, name)
        async with self.locks[tenant, name]:
            state = await self.find(tenant, name)
            if max(size, state.work_size) >= THREAD_SIZE:
                return await asyncio.to_thread(read, state)
            return read(state)

    async def record(self, tenant: str, name: str, id: str) -> DecisionRecord:
        """A decision of a problem, or 404."""
        await self.find(tenant, name)
        found = await self.find_record(tenant, name, id)
        await self.find(tenant, name)  # it may have moved meanwhile
        if not self.ledger.serves(tenant, found):
            raise unknown("decision", id)
        return found

    async def find_record(self, tenant: str, name: str, id: str) -> DecisionRecord:
        """A decision, also of a deleted problem, or 404; one that is not in memory is read from the log."""
        key = decision_key(tenant, name, id)
        found = self.ledger.record(key)
        if found is not None:
            return found
        if "\0" in id:
            raise unknown("decision", id)  # no id contains it, and PostgreSQL does not accept it in a query
        found = await asyncio.to_thread(base.recall_decision, self.store, key)
        if found is None:
            raise unknown("decision", id)
        return self.ledger.record(key) or found

    # --- events ---

    async def decide(
        self, tenant: str, name: str, id: str, plan: Callable[[ProblemState, DecisionRecord], Any], size: int = 0
    ) -> tuple[bool, DecisionRecord, Any]:
        """Write the event that ``plan`` makes of a decision, and return the decision as it is then."""
        record = await self.record(tenant, name, id)
        if self.ledger.record(decision_key(tenant, name, id)) is None:
            size = THREAD_SIZE  # planning reads it from the log again
        done = await self.submit((tenant, name), id, plan, max(size, len(record.action) * record.asked.n_items))
        return done.event is not None, done.record or record, done.event

    async def change(self, tenant: str, name: str, plan: Callable[[ProblemState], Any], size: int = 0) -> bool:
        """Write the event that ``plan`` makes of a problem; False if it makes none."""
        await self.find(tenant, name)
        return (await self.submit((tenant, name), "", lambda state, _: plan(state), size)).event is not None

    async def create(self, tenant: str, name: str, event: Created) -> bool:
        """Write the creation of a problem; False if it has been created meanwhile."""
        async with self._creating:
            plan: Callable[[Any, Any], Any] = lambda state, _: event if state is None else None  # noqa: E731
            return (await self.submit((tenant, name), "", plan, THREAD_SIZE, new=True)).event is not None

    async def submit(
        self, problem: Key, stream: str, plan: Callable[[Any, Any], Any], size: int = 0, *, new: bool = False
    ) -> Written:
        """Have an event planned, written and applied, with others of the problem that come meanwhile."""
        if not self.ready:
            raise overloaded(f"{self.condition.public_reason}; try again")
        done: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
        queue = self._queues.get(problem)
        if queue is None:
            queue = self._queues[problem] = deque()
            self.in_background(self._serve(problem, queue))
        queue.append(Work(stream, plan, size, new, done))
        return await done

    async def _serve(self, problem: Key, queue: deque[Work]) -> None:
        """Do what is queued for a problem, a batch at a time, until there is no more."""
        while queue:
            async with self.locks[problem]:
                batch = _take_batch(queue)
                try:
                    await self._write_batch(problem, batch)
                except Exception as error:
                    refused = self._refuse(problem, error)
                    for work in batch:
                        resolve(work.done, refused)
        del self._queues[problem]

    async def _write_batch(self, problem: Key, batch: list[Work]) -> None:
        await self._resolve_uncertain(problem)
        state = self.ledger.problems.get(problem)
        size = sum(work.size for work in batch)
        if state is not None:
            size += state.work_size * (1 + sum(work.new for work in batch) // 8)
        planned, answers = await self._do(size, self._plan, problem, batch)
        for work, answer in answers:
            resolve(work.done, answer)
        if not planned:
            return
        try:
            numbers = await self.writer.commit([one.line for one in planned])
        except RequestError:
            self._uncertain[problem] = planned
            raise
        finally:
            if state is not None:
                state.settle()
        written = await self._do(size, self._apply_all, planned, numbers)
        self._report_broken({problem})
        for one, seq in zip(planned, numbers, strict=True):
            self._answer(one, seq)
        if any(isinstance(one.entry.event, Asked) for one in written):
            with contextlib.suppress(RequestError):  # the decisions stand even if this cannot be written now
                await self._write_due(problem, written)
        self.unsaved += len(written)
        if self.unsaved >= self._snapshot_every and self.store.shards is None:
            self.unsaved = 0
            self.in_background(self.save_snapshot())

    async def _do(self, size: int, work: Callable[..., Result], *given: Any) -> Result:
        return await asyncio.to_thread(work, *given) if size >= THREAD_SIZE else work(*given)

    def _plan(self, problem: Key, batch: list[Work]) -> tuple[list[Planned], list[tuple[Work, Written | Exception]]]:
        """The events of requests, and the answers to those that need none or are refused."""
        planned, answers = list[Planned](), list[tuple[Work, Written | Exception]]()
        for work in batch:
            try:
                one = self._plan_one(problem, work)
            except Exception as error:
                answers.append((work, refused(error)))
                continue
            if isinstance(one, Planned):
                planned.append(one)
            else:
                answers.append((work, one))
        return planned, answers

    def _plan_one(self, problem: Key, work: Work) -> Planned | Written:
        state, key = self.ledger.problems.get(problem), decision_key(*problem, work.stream)
        if state is None and (work.stream or not work.new or problem in self.ledger.broken):
            raise self._absent(problem)
        record = self.ledger.record(key) if work.stream else None
        if work.stream and not work.new:
            record = record or base.recall_decision(self.store, key)
            if record is None or not self.ledger.serves(problem[0], record):
                raise unknown("decision", work.stream)
        event = work.plan(state, record)
        if event is None:
            return Written(None, record)
        body = encode(event)
        if isinstance(event, Asked) and state is not None:
            state.plan(event)
        elif not work.stream:
            _rehearse(state, event)
        kind, stream, last = ("decision", key[1], record) if work.stream else ("problem", problem[1], state)
        step = 1 + (last.step if last is not None else -1 if work.stream else self.ledger.deleted.get(problem, -1))
        entry = LogEntry(problem[0], kind, stream, step, event)
        return Planned(work, entry, LogLine(*entry[:4], body, problem[1]), record)

    def _apply_all(self, planned: list[Planned], numbers: list[int]) -> list[Planned]:
        """Apply what is in the log now, in its order; what could not be written is left out."""
        written = [(one, seq) for one, seq in zip(planned, numbers, strict=True) if seq > 0]
        logs = self.store.logs_of([one.line for one, _ in written])
        for (one, seq), name in zip(written, logs, strict=True):
            self._apply(one, name, seq)
        return [one for one, _ in written]

    def _apply(self, one: Planned, name: str, seq: int) -> None:
        entry = one.entry
        if one.before is None:
            self.ledger.apply(entry)
        else:
            after = advance_record(one.before, entry.event)
            self.ledger.adopt((entry.tenant, entry.stream), one.before, after)
        self.position[name] = max(seq, self.position.get(name, 0))
        state = self.ledger.problems.get((entry.tenant, one.line.problem))
        if state is not None:
            state.seen[name] = seq
        if isinstance(entry.event, Asked):
            record = self.ledger.record((entry.tenant, entry.stream))
            if record is not None and not record.closed:
                self.deadlines.watch((entry.tenant, entry.stream), record)

    def forget(self, problem: Key, log: str) -> None:
        """Drop what is in memory of a problem."""
        self.position.pop(log, None)
        self._uncertain.pop(problem, None)
        self.ledger.remove(problem)

    def _answer(self, one: Planned, seq: int) -> None:
        answer: Written | RequestError = Written()  # another event has its place in the log
        if seq == base.MOVED:
            answer = overloaded(MOVED)
        elif (problem := (one.entry.tenant, one.line.problem)) in self.ledger.broken:
            answer = self._absent(problem)
        elif seq > 0:
            record = self.ledger.record((one.entry.tenant, one.entry.stream)) if one.work.stream else None
            answer = Written(one.entry.event, record)
        resolve(one.work.done, answer)

    async def _write_due(self, problem: Key, written: list[Planned]) -> None:
        """Write what decisions have made due: another frame of features, a refit, a change of the guardrail.

        They have been answered; the next ones wait, so that decisions are a function of the events before them.
        """
        state = self.ledger.problems.get(problem)
        if state is None:
            return
        asked = [one.entry.event for one in written if isinstance(one.entry.event, Asked)]
        for plan in plans_due(state, asked):
            try:
                event = await asyncio.to_thread(plan, now_ms())
                body = b"" if event is None else encode(event)
            except Exception:
                log.exception(
                    "what decisions of problem %r made due cannot be computed; it goes on without", problem[1]
                )
                continue
            if event is None:
                continue
            entry = LogEntry(problem[0], "problem", problem[1], state.step + 1, event)
            one = Planned(written[0].work, entry, LogLine(*entry[:4], body, problem[1]))
            try:
                numbers = await self.writer.commit([one.line])
            except RequestError:
                self._uncertain[problem] = [one]
                raise
            await asyncio.to_thread(self._apply_all, [one], numbers)

    async def _resolve_uncertain(self, problem: Key) -> None:
        """After a commit that failed: apply what did reach the log although it was never acknowledged."""
        if problem not in self._uncertain:
            return
        planned = self._uncertain[problem]
        numbers = await self.writer.run(lambda: self.store.find([one.line for one in planned]))
        del self._uncertain[problem]
        if problem in self.ledger.problems or isinstance(planned[0].entry.event, Created):
            self._apply_all(planned, numbers)

    def _refuse(self, problem: Key, error: Exception) -> RequestError:
        """What callers are told. After an event that cannot be applied, the problem is not what its log says."""
        if isinstance(error, RequestError):
            return error
        if isinstance(error, StoreUnavailable):
            self.note_writing(str(error))
            return overloaded(self.condition.public_reason, 2)
        self.ledger.close(problem, error)
        self._report_broken({problem})
        return self._absent(problem)

    def _report_broken(self, problems: Iterable[Key]) -> None:
        """Log why problems are closed, if they are."""
        for problem in self.ledger.broken.keys() & problems:
            log.error(
                "problem %r of %r is closed: its log cannot be applied; all others go on",
                *problem[::-1],
                exc_info=self.ledger.broken[problem],
            )

    async def watch(self) -> None:
        """Look every second whether the log can be written."""
        while True:
            await asyncio.sleep(RETRY_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Report a stalled writer; if the log could not be written, try to write."""
        overload = self.writer.overload()
        if overload is not None:
            self.condition.note(overload)
        elif self.condition.fault:
            await self.writer.probe()

    # --- snapshots ---

    async def save_snapshot(self) -> None:
        """Save a snapshot of all problems; others wait only while the state is copied.

        Without a problem that is closed, it would hide what the log says of it, so none is saved.
        """
        try:
            async with self._saving:  # one after the other, so that the newest is saved last
                async with self.lock_all():
                    if self.ledger.broken:  # also by a change that these locks have waited for
                        return
                    self.unsaved = 0
                    state = await asyncio.to_thread(copy_state, self.ledger, self.position)
                saved = await asyncio.to_thread(pack_snapshot, state)
                await self.writer.run(lambda: self.store.save(saved))
        except (StoreUnavailable, RequestError) as error:
            log.warning("a snapshot could not be written: %s", error)
        except Exception:
            log.exception("a snapshot could not be written")


def _rehearse(state: ProblemState | None, event: Any) -> None:
    """Refuse a change that a problem cannot take, before it is in the log."""
    try:
        if isinstance(event, Created):
            ProblemState(event)
        elif isinstance(event, Changed | Armed | Itemed | Summed | Warmed) and state is not None:
            state.rehearse(event)
    except InvalidArgument:
        raise
    except Exception as error:
        log.exception("a change was refused, since it cannot be applied")
        said = f"the change cannot be applied ({type(error).__name__}: {error}); nothing was changed"
        raise RequestError(422, "invalid", said) from None


def _take_batch(queue: deque[Work]) -> list[Work]:
    """The next requests that can be planned together: one event of a stream, and events of the problem alone."""
    batch, streams = [queue.popleft()], {""}
    while batch[-1].stream not in streams and queue and len(batch) < MAX_BATCH:
        streams.add(batch[-1].stream)
        if queue[0].stream not in streams:
            batch.append(queue.popleft())
    return batch
