"""Decisions by id: which are pending, and which were told what."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from superarm.core.arrays import Ints
from superarm.core.errors import UnknownDecision


@dataclass(frozen=True)
class Decision:
    """A batch to play: ``action`` holds arm numbers in the order of picking, ``arms`` their names."""

    id: str
    t: int
    action: Ints
    arms: tuple[str, ...]


class DecisionEntry(NamedTuple):
    """A decision, how many items there were when it was made, by which version of the policy, and its context.

    ``context`` is a ``contextual.DecisionContext``, None if the problem has no context; ``words`` are those of its
    hashed features, if it has any: explanations name them. ``items`` are the numbers of the items that it is about;
    None: all.
    """

    decision: Decision
    n_items: int
    version: int
    context: Any = None
    words: dict[str, list[str]] | None = None
    items: tuple[int, ...] | None = None


class Decisions:
    """Decisions by id: ``pending`` ones were not told their outcome yet, ``told`` ones are kept with a digest of it.

    Of told decisions the last ``remember`` are kept, to recognise repeated feedback.
    """

    def __init__(self, remember: int) -> None:
        self.remember = remember
        self.pending: dict[str, DecisionEntry] = {}
        self.told: dict[str, tuple[str, DecisionEntry]] = {}

    def find(self, name: str) -> DecisionEntry | None:
        """The decision of that id, pending or told."""
        entry = self.pending.get(name)
        if entry is None and name in self.told:
            entry = self.told[name][1]
        return entry

    def known(self, name: str) -> DecisionEntry:
        """The decision of that id, pending or told; an error if there is none."""
        entry = self.find(name)
        if entry is None:
            raise UnknownDecision(f"decision {name!r} was never asked for, was cancelled, or is long forgotten")
        return entry

    def close(self, name: str, digest: str) -> None:
        """A pending decision was told."""
        self.told[name] = digest, self.pending.pop(name)
        while len(self.told) > self.remember:
            del self.told[next(iter(self.told))]

    def reopen(self, name: str) -> None:
        """What a decision was told is taken back."""
        self.pending[name] = self.told.pop(name)[1]
