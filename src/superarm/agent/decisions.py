"""Decisions by id: which are pending, and which were told what."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from superarm.arrays import Ints
from superarm.errors import UnknownDecision
from superarm.learner import Learner
from superarm.learner.contexts import DecisionContext, decision_from_plain, decision_to_plain
from superarm.streams import Stream
from superarm.tally import Feedback


@dataclass(frozen=True)
class Decision:
    """A batch to play: ``action`` holds arm numbers in the order of picking, ``arms`` their names."""

    id: str
    t: int
    action: Ints
    arms: tuple[str, ...]


class DecisionEntry(NamedTuple):
    """A decision, how many items there were when it was made, by which version of the policy, and its context.

    ``words`` are those of the context's hashed features, if it has any; explanations name them.
    """

    decision: Decision
    n_items: int
    version: int
    context: DecisionContext | None = None
    words: dict[str, list[str]] | None = None


class Decisions:
    """Decisions by id: ``pending`` ones were not told their outcome yet, ``told`` ones are kept with a digest of it.

    Of told decisions the last ``remember`` are kept, to recognise repeated feedback.
    """

    def __init__(self, remember: int) -> None:
        self.remember = remember
        self.pending: dict[str, DecisionEntry] = {}
        self.told: OrderedDict[str, tuple[str, DecisionEntry]] = OrderedDict()

    def add(
        self,
        name: str,
        t: int,
        action: Ints,
        learner: Learner,
        context: DecisionContext | None = None,
        words: dict[str, list[str]] | None = None,
    ) -> Decision:
        """A new decision, which is pending; its action can no longer be written to."""
        decision = _decision(name, t, action, learner.arms.all)
        self.pending[name] = DecisionEntry(decision, learner.problem.n_items, learner.version, context, words)
        return decision

    def find(self, name: str) -> DecisionEntry | None:
        """The decision of that id, pending or told."""
        return self.pending[name] if name in self.pending else self.told.get(name, ("", None))[1]

    def find_pending(self, name: str) -> DecisionEntry:
        """The pending decision of that id; an error if there is none."""
        if name not in self.pending:
            raise UnknownDecision(f"decision {name!r} is not pending")
        return self.pending[name]

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
            self.told.popitem(last=False)

    def reopen(self, name: str) -> None:
        """What a decision was told is taken back."""
        self.pending[name] = self.told.pop(name)[1]

    def to_plain(self) -> dict[str, Any]:
        """All decisions as plain data."""
        return {
            "remember": self.remember,
            "open": [_to_plain(entry) for entry in self.pending.values()],
            "told": [[digest, _to_plain(entry)] for digest, entry in self.told.values()],
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any], arms: list[str]) -> "Decisions":
        """The decisions that ``to_plain`` described; ``arms`` are the names of all arms."""
        decisions = cls(plain["remember"])
        decisions.pending = {one["id"]: _from_plain(one, arms) for one in plain["open"]}
        decisions.told = OrderedDict((one["id"], (digest, _from_plain(one, arms))) for digest, one in plain["told"])
        return decisions


def apply_feedback(learner: Learner, made: DecisionEntry, feedback: Feedback, stream: Stream, sign: float) -> None:
    """Record feedback to a decision, which is then pending no longer, or take it back (``sign=-1.0``)."""
    unpend(learner, made, sign)
    if learner.contexts is None or made.context is None:
        learner.apply(feedback, stream, sign, made.version)
    else:
        decided = made.decision.action, made.context
        learner.contexts.apply(learner, feedback, decided, stream, sign, made.version)


def unpend(learner: Learner, made: DecisionEntry, sign: float) -> None:
    """Take a decision out of the pending ones; ``sign=-1.0`` puts it back."""
    if learner.contexts is None or made.context is None:
        learner.unpend(made.decision.action, sign)
    else:
        action = made.decision.action
        learner.contexts.take_back(learner, (action, made.context), action, sign)


def _decision(name: str, t: int, action: Ints, arms: list[str]) -> Decision:
    action.flags.writeable = False
    return Decision(name, t, action, tuple([arms[j] for j in action.tolist()]))


def _from_plain(plain: dict[str, Any], arms: list[str]) -> DecisionEntry:
    decision = _decision(plain["id"], plain["t"], np.array(plain["action"], np.int64), arms)
    context = decision_from_plain(plain["context"]) if "context" in plain else None
    return DecisionEntry(decision, plain["n_items"], plain.get("version", 0), context, plain.get("words"))


def _to_plain(entry: DecisionEntry) -> dict[str, Any]:
    decision = entry.decision
    plain: dict[str, Any] = {
        "id": decision.id,
        "t": decision.t,
        "action": decision.action.tolist(),
        "n_items": entry.n_items,
    }
    if entry.context is not None:
        plain["context"] = decision_to_plain(entry.context)
    if entry.words:
        plain["words"] = entry.words
    return plain | ({"version": entry.version} if entry.version else {})
