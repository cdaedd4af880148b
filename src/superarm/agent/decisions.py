"""Decisions of an agent by id: which are pending, and which were told what."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from superarm.core.arrays import Ints
from superarm.core.errors import UnknownDecision
from superarm.decisions import DecisionRecord


@dataclass(frozen=True)
class Decision:
    """A batch to play: ``action`` holds arm numbers in the order of picking, ``arms`` their names."""

    id: str
    t: int
    action: Ints
    arms: tuple[str, ...]


class MadeDecision(NamedTuple):
    """A decision with what was known when it was made, as ``decisions.record.Made`` wants it.

    ``version`` is that of the policy, ``context`` a ``contextual.DecisionContext``, None if the problem has no context;
    ``words`` are those of its hashed features, if it has any: explanations name them. ``joint``: totals are told.
    """

    decision: Decision
    action: tuple[int, ...]
    n_items: int
    version: int
    widths: tuple[int, ...] | None = None
    items: tuple[int, ...] | None = None
    silence: float | None = None
    context: Any = None
    words: dict[str, list[str]] | None = None
    joint: bool = False
    deferred: bool = False
    learns: bool = True

    @property
    def id(self) -> str:
        return self.decision.id

    @property
    def t(self) -> int:
        return self.decision.t


Record = DecisionRecord[MadeDecision]


class Decisions:
    """Records of decisions by id: ``pending`` ones wait for feedback, of the others the last ``remember`` are kept."""

    def __init__(self, remember: int) -> None:
        self.remember = remember
        self.pending: dict[str, Record] = {}
        self.told: dict[str, Record] = {}

    def find(self, name: str) -> Record | None:
        """The decision of that id, pending or told."""
        return self.pending.get(name) or self.told.get(name)

    def known(self, name: str) -> Record:
        """The decision of that id, pending or told; an error if there is none."""
        record = self.find(name)
        if record is None:
            raise UnknownDecision(f"decision {name!r} was never asked for, was cancelled, or is long forgotten")
        return record

    def put(self, record: Record) -> None:
        """Keep a decision as it is now."""
        name = record.asked.id
        if not record.closed:
            self.told.pop(name, None)
            self.pending[name] = record
            return
        self.pending.pop(name, None)
        self.told[name] = record
        while len(self.told) > self.remember:
            del self.told[next(iter(self.told))]
