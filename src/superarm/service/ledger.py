"""Events in, state out: problems and their open decisions. No I/O, no clock.

``fold`` of the whole log gives the same ledger, bit for bit, as living through it: sums are exact, so neither the
order of feedback nor its partition over workers matters.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from superarm.service.events import Asked, Created
from superarm.service.learner import Learner
from superarm.service.record import Record, advanced, opened

REMEMBERED = 20_000
"""How many closed decisions stay in memory; older ones are read from the log when they are spoken of again."""


class Entry(NamedTuple):
    """An event with its place: ``stream`` is a problem's name or a decision's id."""

    tenant: str
    kind: str  # "problem" or "decision"
    stream: str
    step: int
    event: Any


Key = tuple[str, str]
"""Tenant, and the name of a problem or the id of a decision."""

Recall = Callable[[Key, int], Record | None]
"""A decision as it was before a step."""


class Ledger:
    """The state of everything; ``recall`` reads a decision that memory lost, as it was before a step."""

    def __init__(self, recall: Recall | None = None) -> None:
        self._recall = recall
        self.problems: dict[Key, Learner] = {}
        self.open: dict[Key, Record] = {}
        self.closed: OrderedDict[Key, Record] = OrderedDict()
        self.waiting: dict[Key, int] = {}

    def record(self, key: Key) -> Record | None:
        """A decision that is in memory."""
        return self.open.get(key) or self.closed.get(key)

    def remember(self, key: Key, record: Record) -> None:
        """Keep a closed decision at hand."""
        self.closed[key] = record
        self.closed.move_to_end(key)
        while len(self.closed) > REMEMBERED:
            self.closed.popitem(last=False)

    def apply(self, entry: Entry) -> None:
        """Take in one event."""
        key, event = (entry.tenant, entry.stream), entry.event
        if entry.kind == "decision":
            before = None if isinstance(event, Asked) else self._before(key, entry.step)
            after = opened(event) if before is None else advanced(before, event)
            self.adopt(key, before, after)
        elif isinstance(event, Created):
            self.problems[key] = Learner(event)
        else:
            self.problems[key].apply(event)

    def _before(self, key: Key, step: int) -> Record:
        record = self.record(key)
        if (record is None or record.step != step - 1) and self._recall is not None:
            record = self._recall(key, step)
        if record is None or record.step != step - 1:
            raise KeyError(f"the log speaks of step {step} of decision {key[1]!r}, but not of the one before")
        return record

    def adopt(self, key: Key, before: Record | None, after: Record) -> None:
        """A decision moved on: counters, open decisions and memory follow."""
        problem = (key[0], after.asked.problem)
        self.problems[problem].move(before, after)
        if before is None:
            self.problems[problem].history.chosen(after.asked)
        was, is_ = before is not None and not before.closed, not after.closed
        self.waiting[problem] = self.waiting.get(problem, 0) + is_ - was
        newest = self.record(key)
        if newest is not None and newest.step > after.step:
            return  # another worker's later event was applied first; its record stands
        if is_:
            self.open[key] = after
        else:
            self.open.pop(key, None)
            self.remember(key, after)

    def place(self, key: Key, record: Record) -> None:
        """Hold an open decision whose effect is in the counters already."""
        self.open[key] = record
        problem = (key[0], record.asked.problem)
        self.waiting[problem] = self.waiting.get(problem, 0) + 1


def fold(entries: Iterable[Entry], recall: Recall | None = None) -> Ledger:
    """The ledger of a whole log."""
    ledger = Ledger(recall)
    for entry in entries:
        ledger.apply(entry)
    return ledger
