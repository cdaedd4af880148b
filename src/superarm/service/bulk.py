"""Feedback of many decisions in one request: what is at hand is planned at once, and written together.

Each line stands for itself and is answered as a request of its own would be; a task and a future a line would cost as
much as the feedback itself.
"""

import asyncio
from typing import NamedTuple

from superarm.service import telling
from superarm.service.desk import Desk
from superarm.service.events import Told
from superarm.service.ledger import Entry, Key
from superarm.service.record import Record
from superarm.service.refusal import Refusal, overloaded
from superarm.service.streams import Place
from superarm.service.wire import AppliedReply, BulkLine
from superarm.service.writer import command

Outcome = AppliedReply | Refusal


async def tell_all(desk: Desk, tenant: str, lines: list[BulkLine]) -> list[Outcome]:
    """The answers to feedback, in its order. Of two lines for one decision the first comes first."""
    written, left = _Written(), list[int]()
    outcomes, under_way = dict[int, Outcome](), dict[int, _Step]()
    try:
        for n, body in enumerate(lines):
            step = _step(desk, (tenant, body.decision), body, written)
            if isinstance(step, _Step):
                under_way[n] = step
            elif step is None:
                left.append(n)
            else:
                outcomes[n] = step
        await written.all()
    finally:
        for step in under_way.values():
            desk.streams.leave(step.place)
    for n, step in under_way.items():
        if step.slip.error is not None:
            outcomes[n] = step.slip.error
        elif step.slip.kept:
            outcomes[n] = telling.reply(True, desk.ledger.record(step.key) or step.before, step.event)
        else:  # another worker wrote this step first
            left.append(n)
    answers = await asyncio.gather(*(_by_itself(desk, tenant, lines[n]) for n in left))
    outcomes.update(zip(left, answers, strict=True))
    return [outcomes[n] for n in range(len(lines))]


class _Step(NamedTuple):
    """The next event of a decision, on its way to the log."""

    key: Key
    place: Place
    before: Record
    event: Told
    slip: "_Slip"


def _step(desk: Desk, key: Key, body: BulkLine, written: "_Written") -> "_Step | Outcome | None":
    """Send the line's event on its way, or answer it; None if it has to wait for something."""
    record = desk.ledger.record(key)
    learner = None if record is None else desk.ledger.problems.get((key[0], record.asked.problem))
    place = ("decision", *key)
    if record is None or learner is None or not desk.ready or desk.streams.busy(place):
        return None
    try:
        event = telling.planned(record, learner, body)
    except Refusal as refusal:
        return refusal
    if event is None:
        return telling.reply(False, record, None)
    desk.streams.take(place)
    slip = written.slip()
    desk.turn.post(command(Entry(key[0], "decision", key[1], record.step + 1, event), slip))
    return _Step(key, place, record, event, slip)


async def _by_itself(desk: Desk, tenant: str, body: BulkLine) -> Outcome:
    try:
        return await telling.tell(desk, (tenant, body.decision), body)
    except Refusal as refusal:
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
        self.error: Refusal | None = None

    def done(self) -> bool:
        return False

    def set_result(self, kept: bool) -> None:
        self.kept = kept
        self._written.told()

    def set_exception(self, error: Exception) -> None:
        self.error = error if isinstance(error, Refusal) else overloaded(str(error))
        self._written.told()
