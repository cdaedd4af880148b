"""Feedback of many decisions in one request: decisions in memory are planned at once and written together.

Each line is answered as a request of its own would be. One task and one future per line would cost as much as the
feedback itself: hence the latch.
"""

import asyncio
from typing import NamedTuple

from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.events import Told
from superarm.service.domain.ledger import Key, LogEntry
from superarm.service.errors import NOT_NOW, RequestError, overloaded
from superarm.service.replies import AppliedReply
from superarm.service.runtime import feedback
from superarm.service.runtime.coordinator import Coordinator
from superarm.service.runtime.heavy import Slices, gather_in_slices, is_heavy_event
from superarm.service.runtime.locks import StreamKey
from superarm.service.runtime.writer import make_write
from superarm.service.schemas import BulkLine

Outcome = AppliedReply | RequestError


async def tell_all(coordinator: Coordinator, tenant: str, lines: list[BulkLine]) -> list[Outcome]:
    """The answers to feedback, in its order. Two lines about one decision are applied in their order."""
    latch, remaining, slices = _Latch(), list[int](), Slices()
    outcomes, planned = dict[int, Outcome](), dict[int, _PlannedWrite]()
    try:
        for n, body in enumerate(lines):
            if slices.due:
                await slices.pause()
            step = _plan_line(coordinator, (tenant, body.decision), body, latch)
            if isinstance(step, _PlannedWrite):
                planned[n] = step
            elif step is None:
                remaining.append(n)
            else:
                outcomes[n] = step
        await latch.wait()
    finally:
        for step in planned.values():
            coordinator.locks.release(step.lock)
    for n, step in planned.items():
        if slices.due:
            await slices.pause()
        if step.result.error is not None:
            outcomes[n] = step.result.error
        elif step.result.written:
            outcomes[n] = feedback.reply(True, coordinator.ledger.record(step.key) or step.before, step.event)
        else:  # another worker wrote this step first
            remaining.append(n)
    answers = await gather_in_slices(_tell_one(coordinator, tenant, lines[n]) for n in remaining)
    outcomes.update(zip(remaining, answers, strict=True))
    return [outcomes[n] for n in range(len(lines))]


class _PlannedWrite(NamedTuple):
    """The next event of a decision, given to the batcher."""

    key: Key
    lock: StreamKey
    before: DecisionRecord
    event: Told
    result: "_WriteResult"


def _plan_line(coordinator: Coordinator, key: Key, body: BulkLine, latch: "_Latch") -> "_PlannedWrite | Outcome | None":
    """Give the event of a line to the batcher, or answer the line; None if it has to wait for something."""
    lock = ("decision", *key)
    known = coordinator.free_decision(key)
    if known is None or not coordinator.ready or coordinator.locks.is_held(lock):
        return None
    if feedback.is_heavy_body(body, known[0].asked.n_items):
        return None
    record, learner = known
    try:
        event = feedback.plan_feedback(record, learner, body)
    except RequestError as error:
        return error
    if event is None:
        return feedback.reply(False, record, None)
    coordinator.locks.acquire(lock)
    result = latch.new_write()
    entry = LogEntry(key[0], "decision", key[1], record.step + 1, event)
    heavy = is_heavy_event(entry, coordinator.ledger)
    coordinator.batcher.post(make_write(entry, record.asked.problem, result, heavy=heavy))
    return _PlannedWrite(key, lock, record, event, result)


async def _tell_one(coordinator: Coordinator, tenant: str, body: BulkLine) -> Outcome:
    try:
        return await feedback.tell(coordinator, (tenant, body.decision), body)
    except RequestError as error:
        return error


class _Latch:
    """Counts down until every write has been committed or has failed."""

    def __init__(self) -> None:
        self._n_left = 1  # not done before all writes are queued, even if the first is reported at once
        self._finished = asyncio.get_running_loop().create_future()

    def new_write(self) -> "_WriteResult":
        """One more write to wait for."""
        self._n_left += 1
        return _WriteResult(self)

    def count_down(self) -> None:
        """One write less to wait for."""
        self._n_left -= 1
        if not self._n_left and not self._finished.done():
            self._finished.set_result(None)

    async def wait(self) -> None:
        """Wait for all of them; no more are added."""
        self.count_down()
        await self._finished


class _WriteResult:
    """The result of writing one event, reported by the writer."""

    __slots__ = ("_latch", "error", "written")

    def __init__(self, latch: _Latch) -> None:
        self._latch = latch
        self.written = False
        self.error: RequestError | None = None

    def done(self) -> bool:
        return False

    def set_result(self, written: bool) -> None:
        self.written = written
        self._latch.count_down()

    def set_exception(self, error: Exception) -> None:
        self.error = error if isinstance(error, RequestError) else overloaded(NOT_NOW)
        self._latch.count_down()
