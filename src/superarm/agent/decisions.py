"""Book: which decisions wait for their outcome, and which were told what."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from superarm.arrays import Ints
from superarm.errors import UnknownDecision


@dataclass(frozen=True)
class Decision:
    """A batch to play: ``action`` holds arm numbers in the order of picking, ``arms`` their names."""

    id: str
    t: int
    action: Ints
    arms: tuple[str, ...]


class Entry(NamedTuple):
    """A decision, and how many items there were when it was made."""

    decision: Decision
    n_items: int


class Book:
    """Decisions by id: ``open`` ones wait for their outcome, ``told`` ones are kept with a digest of it.

    Of told decisions the last ``remember`` are kept, to recognise repeated feedback.
    """

    def __init__(self, remember: int) -> None:
        self.remember = remember
        self.open: dict[str, Entry] = {}
        self.told: OrderedDict[str, tuple[str, Entry]] = OrderedDict()

    def find(self, name: str) -> Entry | None:
        """The decision of that id, open or told."""
        return self.open[name] if name in self.open else self.told.get(name, ("", None))[1]

    def waiting(self, name: str) -> Entry:
        """The open decision of that id."""
        if name not in self.open:
            raise UnknownDecision(f"decision {name!r} does not wait for an outcome")
        return self.open[name]

    def known(self, name: str) -> Entry:
        """The decision of that id, open or told; an error if there is none."""
        entry = self.find(name)
        if entry is None:
            raise UnknownDecision(f"decision {name!r} was never asked for, was cancelled, or is long forgotten")
        return entry

    def close(self, name: str, digest: str) -> None:
        """An open decision was told."""
        self.told[name] = digest, self.open.pop(name)
        while len(self.told) > self.remember:
            self.told.popitem(last=False)

    def reopen(self, name: str) -> None:
        """What a decision was told is taken back."""
        self.open[name] = self.told.pop(name)[1]

    def to_plain(self) -> dict[str, Any]:
        """The book as plain data."""
        return {
            "remember": self.remember,
            "open": [_plain(entry) for entry in self.open.values()],
            "told": [[digest, _plain(entry)] for digest, entry in self.told.values()],
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any], arms: list[str]) -> "Book":
        """The book that ``to_plain`` described; ``arms`` are the names of all arms."""
        book = cls(plain["remember"])
        book.open = {one["id"]: _entry(one, arms) for one in plain["open"]}
        book.told = OrderedDict((one["id"], (digest, _entry(one, arms))) for digest, one in plain["told"])
        return book


def entry(name: str, t: int, action: Ints, n_items: int, arms: list[str]) -> Entry:
    """The entry of a new decision; its action can no longer be written to."""
    action.flags.writeable = False
    return Entry(Decision(name, t, action, tuple(arms[j] for j in action)), n_items)


def _entry(plain: dict[str, Any], arms: list[str]) -> Entry:
    return entry(plain["id"], plain["t"], np.array(plain["action"], np.int64), plain["n_items"], arms)


def _plain(entry: Entry) -> dict[str, Any]:
    decision = entry.decision
    return {"id": decision.id, "t": decision.t, "action": decision.action.tolist(), "n_items": entry.n_items}
