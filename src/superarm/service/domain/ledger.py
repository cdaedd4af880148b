"""The ledger: the state of all problems and pending decisions, made from the events of the log.

Folding the whole log gives the same ledger, bit for bit, as living through it: sums are exact, so neither the
order of feedback nor its partition over workers matters.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from superarm.decisions import open_record
from superarm.service.domain.decision import DecisionRecord, advance_record
from superarm.service.domain.events import Asked, Created, Deleted
from superarm.service.domain.problem import ProblemState

MAX_REMEMBERED_DECISIONS = 20_000
"""How many closed decisions stay in memory; older ones are read from the log when they are needed again."""


class LogEntry(NamedTuple):
    """An event with its place: ``stream`` is a problem's name, or that of a decision's problem, a slash and its id."""

    tenant: str
    kind: str  # "problem" or "decision"
    stream: str
    step: int
    event: Any


Key = tuple[str, str]
"""Tenant, and the stream of a problem or of a decision."""


def decision_key(tenant: str, problem: str, id: str) -> Key:
    """The key of a decision. A problem's name has no slash, so that different decisions have different keys.

    >>> decision_key("shop", "ads", "visit/1")
    ('shop', 'ads/visit/1')
    """
    return tenant, f"{problem}/{id}"


Recall = Callable[[Key, int], DecisionRecord | None]
"""A decision as it was before a step."""


class Ledger:
    """All problems and decisions; ``recall`` reads a decision that is not in memory, as it was before a step.

    ``remembered`` closed decisions stay in memory.
    """

    def __init__(self, recall: Recall | None = None, remembered: int = MAX_REMEMBERED_DECISIONS) -> None:
        self._recall, self._remembered = recall, remembered
        self.problems: dict[Key, ProblemState] = {}
        self.pending: dict[Key, DecisionRecord] = {}
        self.closed: OrderedDict[Key, DecisionRecord] = OrderedDict()
        self.n_pending: dict[Key, int] = {}
        self.deleted: dict[Key, int] = {}  # of problems that were deleted, the step of their streams
        self.broken: dict[Key, Exception] = {}  # of problems that are not what the log says, what went wrong

    def record(self, key: Key) -> DecisionRecord | None:
        """A decision that is in memory."""
        return self.pending.get(key) or self.closed.get(key)

    def remember(self, key: Key, record: DecisionRecord) -> None:
        """Keep a closed decision in memory."""
        self.closed[key] = record
        self.closed.move_to_end(key)
        while len(self.closed) > self._remembered:
            self.closed.popitem(last=False)

    def apply(self, entry: LogEntry) -> None:
        """Apply one event."""
        key, event = (entry.tenant, entry.stream), entry.event
        if entry.kind == "decision":
            before = None if isinstance(event, Asked) else self._before(key, entry.step)
            self.adopt(key, before, open_record(event) if before is None else advance_record(before, event))
        elif isinstance(event, Deleted):
            self.remove(key)
            self.broken.pop(key, None)
            self.deleted[key] = entry.step
        elif key in self.deleted and not isinstance(event, Created):
            self.deleted[key] = entry.step  # of a problem that is gone, only compactions are noted
        else:
            self.attempt(key, lambda: self._change(key, entry))

    def _change(self, key: Key, entry: LogEntry) -> None:
        """Apply an event of a problem."""
        if isinstance(entry.event, Created):
            self.deleted.pop(key, None)
            self.problems[key] = ProblemState(entry.event, entry.step)
        else:
            self.problems[key].apply(entry.event)

    def attempt(self, problem: Key, change: Callable[[], None]) -> bool:
        """Change a problem that is not broken; one for which that fails is closed alone, and all others go on."""
        if problem not in self.broken:
            try:
                change()
            except Exception as error:
                self.close(problem, error)
        return problem not in self.broken

    def close(self, problem: Key, error: Exception) -> None:
        """Keep of a problem only why it is closed."""
        self.remove(problem)
        self.broken[problem] = error

    def _before(self, key: Key, step: int) -> DecisionRecord:
        record = self.record(key)
        if (record is None or record.step != step - 1) and self._recall is not None:
            record = self._recall(key, step)
        if record is None or record.step != step - 1:
            raise KeyError(f"the log holds step {step} of decision {key[1]!r} without the one before it")
        return record

    def serves(self, tenant: str, record: DecisionRecord) -> bool:
        """Whether a decision is there for others: it was not erased, and its problem was not deleted."""
        learner = self.problems.get((tenant, record.asked.problem))  # or a later one of the same name
        return learner is not None and learner.born == record.asked.born and record.closed != "erased"

    def adopt(self, key: Key, before: DecisionRecord | None, after: DecisionRecord) -> None:
        """Update counters, pending and remembered decisions for a decision that changed."""
        problem = (key[0], after.asked.problem)
        learner = self.problems.get(problem)
        there = learner is not None and learner.born == after.asked.born
        if learner is None or not there or not self.attempt(problem, lambda: learner.move(before, after)):
            self.remember(key, after)  # its problem is gone: it counts nowhere, and its next event finds it here
            return
        was, is_ = before is not None and not before.closed, not after.closed
        self.n_pending[problem] = self.n_pending.get(problem, 0) + is_ - was
        newest = self.record(key)
        if newest is not None and newest.step > after.step:
            return  # another worker's later event was applied first; its record stays
        if is_:
            self.pending[key] = after
        else:
            self.pending.pop(key, None)
            self.remember(key, after)

    def include(self, other: "Ledger") -> None:
        """Take on the problems of another ledger, with their pending decisions."""
        self.problems.update(other.problems)
        self.pending.update(other.pending)
        self.n_pending.update(other.n_pending)
        self.deleted.update(other.deleted)
        self.broken.update(other.broken)

    def remove(self, problem: Key) -> None:
        """Forget a problem and its decisions."""
        self.problems.pop(problem, None)
        self.deleted.pop(problem, None)
        self.n_pending.pop(problem, None)
        for records in (self.pending, self.closed):
            every = list(records.items())  # in one step: threads add decisions of other problems
            gone = [key for key, record in every if (key[0], record.asked.problem) == problem]
            for key in gone:
                del records[key]

    def place(self, tenant: str, record: DecisionRecord) -> None:
        """Add a pending decision from a snapshot, whose effect is in the counters already."""
        problem = (tenant, record.asked.problem)
        if self.attempt(problem, lambda: self.problems[problem].place(record)):
            self.pending[decision_key(*problem, record.asked.id)] = record
            self.n_pending[problem] = self.n_pending.get(problem, 0) + 1
