"""Feedback of many decisions in one request: what is at hand is planned at once, and written together.

Each line stands for itself and is answered as a request of its own would be; a task and a future a line would cost as
much as the feedback itself.
"""

import asyncio
from typing import NamedTuple

from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.events import Told
from superarm.service.domain.ledger import Key, LogEntry
from superarm.service.errors import RequestError, overloaded
from superarm.service.runtime import feedback as telling
from superarm.service.runtime.coordinator import Coordinator
from superarm.service.runtime.locks import StreamKey
from superarm.service.runtime.writer import make_write
from superarm.service.schemas import AppliedReply, BulkLine

Outcome = AppliedReply | RequestError


async def tell_all(coordinator: Coordinator, tenant: str, lines: list[BulkLine]) -> list[Outcome]:
    """The answers to feedback, in its order. Of two lines for one decision the first comes first."""
    written, left = _Written(), list[int]()
    outcomes, under_way = dict[int, Outcome](), dict[int, _Step]()
    try:
        for n, body in enumerate(lines):
            step = _step(coordinator, (tenant, body.decision), body, written)
            if isinstance(step, _Step):
                under_way[n] = step
            elif step is None:
                left.append(n)
            else:
                outcomes[n] = step
        await written.all()
    finally:
        for step in under_way.values():
            coordinator.locks.leave(step.place)
    for n, step in under_way.items():
        if step.slip.error is not None:
            outcomes[n] = step.slip.error
        elif step.slip.kept:
            outcomes[n] = telling.reply(True, coordinator.ledger.record(step.key) or step.before, step.event)
        else:  # another worker wrote this step first
            left.append(n)
    answers = await asyncio.gather(*(_by_itself(coordinator, tenant, lines[n]) for n in left))
    outcomes.update(zip(left, answers, strict=True))
    return [outcomes[n] for n in range(len(lines))]


class _Step(NamedTuple):
    """The next event of a decision, on its way to the log."""

    key: Key
    place: StreamKey
    before: DecisionRecord
    event: Told
    slip: "_Slip"


def _step(coordinator: Coordinator, key: Key, body: BulkLine, written: "_Written") -> "_Step | Outcome | None":
    """Send the line's event on its way, or answer it; None if it has to wait for something."""
    record = coordinator.ledger.record(key)
    learner = None if record is None else coordinator.ledger.problems.get((key[0], record.asked.problem))
    place = ("decision", *key)
    if record is None or learner is None or not coordinator.ready or coordinator.locks.busy(place):
        return None
    try:
        event = telling.plan_feedback(record, learner, body)
    except RequestError as refusal:
        return refusal
    if event is None:
        return telling.reply(False, record, None)
    coordinator.locks.take(place)
    slip = written.slip()
    coordinator.batcher.post(make_write(LogEntry(key[0], "decision", key[1], record.step + 1, event), slip))
    return _Step(key, place, record, event, slip)


async def _by_itself(coordinator: Coordinator, tenant: str, body: BulkLine) -> Outcome:
    try:
        return await telling.tell(coordinator, (tenant, body.decision), body)
    except RequestError as refusal:
        return refusal


class _Written:
    """Waits until the writer has spoken of every slip."""

    def __init__(self) -> None:
        self._open = 1  # not done before all slips are made, even if the writer speaks of the first at once
        self._none_open = asyncio.get_running_loop().create_future()

    def slip(self) -> "_Slip":
        """One more to wait for."""
        self._open += 1
        return _Slip(self)

    def told(self) -> None:
        """One less."""
        self._open -= 1
        if not self._open and not self._none_open.done():
            self._none_open.set_result(None)

    async def all(self) -> None:
        """Wait for all of them; no more are made."""
        self.told()
        await self._none_open


class _Slip:
    """Where the writer notes what became of one event."""

    __slots__ = ("_written", "error", "kept")

    def __init__(self, written: _Written) -> None:
        self._written = written
        self.kept = False
        self.error: RequestError | None = None

    def done(self) -> bool:
        return False

    def set_result(self, kept: bool) -> None:
        self.kept = kept
        self._written.told()

    def set_exception(self, error: Exception) -> None:
        self.error = error if isinstance(error, RequestError) else overloaded(str(error))
        self._written.told()
