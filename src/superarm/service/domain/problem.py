"""One problem of the service: the library's learner, with versions of settings, decisions by id, and a history.

The random numbers of a decision are a function of the problem's key and the decision's id, so that feedback can come in
any order and be taken back exactly.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from superarm import learner as library
from superarm.context import EncodedContext
from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.problem import Problem
from superarm.core.streams import Stream
from superarm.core.support import Sparse
from superarm.core.tally import Tally
from superarm.intake import Exact
from superarm.learner.names import Names
from superarm.policies import Policy, PolicyState
from superarm.service.domain.action_sets import SlotsSpec
from superarm.service.domain.components import POLICIES
from superarm.service.domain.counting import UncountedRows, join_rows, past
from superarm.service.domain.decision import DecisionRecord, Row, counted_rows, pending_arms, tells_everything
from superarm.service.domain.decision_contexts import DecisionContexts
from superarm.service.domain.erasure import erase_from_history
from superarm.service.domain.events import UNSEEN, Armed, Asked, Changed, Created, Guarded, Itemed, Warmed
from superarm.service.domain.growth import enlarge
from superarm.service.domain.history import History
from superarm.service.domain.spec import Settings, to_policy, to_problem

MAX_UNCOUNTED_ROWS = 4_096
"""After this many rows of feedback, all rows that wait are counted by one call."""


class ProblemState:
    """The state of one problem; changed only by ``apply`` and ``move``."""

    def __init__(self, created: Created, max_uncounted_rows: int = MAX_UNCOUNTED_ROWS, born: int = 0) -> None:
        spec = created.spec
        self.created, self.born = created, born
        self.actions = spec.actions
        self.learner = library.Learner(to_problem(spec), to_policy(spec.settings.policy), spec.arms, spec.items)
        self.contexts = None if spec.context is None else DecisionContexts(self.learner, spec.context.stored)
        self.versions: list[Settings] = [spec.settings]
        self._policies = [0]  # for each version of the settings, the learner's version of the policy
        self.warmed: dict[str, str] = {}
        self.step = born
        self.reserved: dict[int, tuple[int, ...]] = {}
        self.claimed = 0
        self.seen: dict[str, int] = {}  # of each worker, the number of the last event that the state holds
        self.history = History(decisions=0)
        self.guarded = False  # whether the guardrail lets the control slate be shown
        self._uncounted = UncountedRows(max_uncounted_rows)

    @property
    def arms(self) -> Names:
        """The names of all arms, retired ones included."""
        return self.learner.arms

    @property
    def items(self) -> Names:
        """The names of all items, retired ones included."""
        return self.learner.items

    @property
    def problem(self) -> Problem:
        return self.learner.problem

    @property
    def policy(self) -> Policy:
        """The policy in force, made ready for the problem."""
        return self.learner.fitted

    @property
    def k(self) -> int:
        """The size of the largest slate."""
        return self.learner.problem.k

    @property
    def retired(self) -> Bools:
        """Which arms are retired."""
        return self.learner.retired

    @property
    def pending(self) -> Floats:
        """How many pulls of each arm are pending, segment after segment where there are segments."""
        return self.learner.pending if self.contexts is None else self.contexts.unreserved()

    @property
    def asked(self) -> int:
        """The last round that a decision was made for: a refused decision may use up a round, two may share one."""
        return self.learner.asked

    @property
    def decisions(self) -> int:
        """How many decisions were made, without those that were erased."""
        return self.history.decisions

    @property
    def triggered(self) -> bool:
        """Whether feedback may be about arms outside of the slate."""
        return self.created.spec.triggered

    @property
    def is_random(self) -> bool:
        """Whether the policy draws slates in a way of its own, apart from the exploration share."""
        return POLICIES[self.settings.policy.name].random

    def as_created(self, settings: Settings) -> Created:
        """The event of the problem's creation, with other settings."""
        return replace(self.created, spec=replace(self.created.spec, settings=settings))

    @property
    def slot_names(self) -> list[str]:
        """The names of the slots, where these are the action set."""
        return list(self.actions.parameters.slots) if isinstance(self.actions, SlotsSpec) else []

    def items_of(self, arm: int) -> Ints | None:
        """The items that an arm can touch, in ascending order; None if these are all items."""
        support = self.problem.support
        return support.items[slice(*support.span(arm))] if isinstance(support, Sparse) else None

    def widths(self, arms: Sequence[int]) -> tuple[int, ...] | None:
        """How many items each of some arms can touch; None if that is all items."""
        support = self.problem.support
        start = support.start if isinstance(support, Sparse) else None
        return None if start is None else tuple(int(start[j + 1] - start[j]) for j in arms)

    @property
    def flushed(self) -> library.Learner:
        """The library's learner, with everything counted that is due."""
        self.flush()
        return self.learner

    @property
    def tally(self) -> Tally:
        """The counters, with everything counted that is due."""
        return self.flushed.tally

    def overall(self) -> tuple[Tally, Floats]:
        """The counters and the pending pulls of each arm, over all contexts."""
        return (self.tally, self.pending) if self.contexts is None else self.contexts.overall(self.tally)

    @property
    def state(self) -> PolicyState | None:
        """What the policy keeps beside the counters; None for most policies."""
        return self.flushed.state

    @property
    def settings(self) -> Settings:
        return self.versions[-1]

    @property
    def t(self) -> int:
        """The round that the next decision belongs to."""
        return max(self.learner.t, self.claimed) + 1

    def choose(self, ids: Sequence[str], eligible: Bools) -> list[list[int]]:
        """The policy's slates for decisions made one after the other, each in the order of picking."""
        self.flush()
        keys = np.array([self.word("mind", id) for id in ids], np.uint64)
        return self.learner.choose_each(self.t, eligible, keys, self.reserved_arms())

    def choose_around(self, id: str, eligible: Bools, actions: Any, context: EncodedContext | None = None) -> list[int]:
        """The policy's slate for a decision with an action set of its own (None: the problem's), or with a context."""
        self.flush()
        stream = self.stream("mind", id)
        if self.contexts is not None and context is not None and actions is None:
            return self.contexts.choose_one(self.t, eligible, stream.key, context)
        return [int(j) for j in self.learner.choose(self.t, eligible, stream, actions, self.reserved_arms(), context)]

    def reserved_arms(self) -> list[int]:
        """The arms of decisions that are on their way to the log."""
        return [j for action in self.reserved.values() for j in action]

    def reserve(self, asked: Asked, *, counted: bool = False) -> None:
        """A decision is on its way to the log: further ones see it as pending (``counted``: they see its precision)."""
        self.claimed = max(self.claimed, asked.t)
        self.reserved[asked.t] = asked.action
        if self.contexts is not None:
            self.contexts.reserve(asked, counted=counted)

    def release(self, t: int) -> None:
        """Stop counting a reserved decision: it is in the log, or will never be. A second call changes nothing."""
        if self.reserved.pop(t, None) is not None and self.contexts is not None:
            self.contexts.release(t)

    def stream(self, stream: str, id: str) -> Stream:
        """The stream of random numbers that belongs to a decision."""
        word = np.array([self.word(stream, id)], np.uint64)
        return Stream(word, word.copy())

    def word(self, stream: str, id: str) -> int:
        """64 random bits that belong to a decision."""
        return int.from_bytes(hashlib.sha256(f"{self.created.key}/{stream}/{id}".encode()).digest()[:8], "little")

    def apply(self, event: Any) -> None:
        """Apply one event of the problem's stream."""
        self.flush()
        self.step += 1
        if isinstance(event, Changed):
            self._change(event)
        elif isinstance(event, Armed):
            self._grow(event)
        elif isinstance(event, Itemed):
            if event.add:
                self.learner.grow_items(event.add, event.weights)
            if event.retire:
                self.learner.retire_items(event.retire)
            self.history.lift.restart(self.t - 1)
        elif isinstance(event, Guarded):
            self.guarded = event.fallback
        elif isinstance(event, Warmed):
            self.warmed[event.id] = event.body
            self.learner.warm_start(past(self.problem, event.arms, event.rows), event.t)
        elif self.contexts is not None:
            self.contexts.apply(event)

    def _grow(self, event: Armed) -> None:
        if event.add:
            more = enlarge(self.learner, event.add, event.actions, event.support)
            self.learner.grow_arms(event.add, *more, event.features)
            self.actions = event.actions or self.actions
        self.learner.restore_arms(event.restore)
        self.learner.retire_arms(event.retire)

    def _change(self, event: Changed) -> None:
        if event.settings.policy != self.settings.policy:
            self.learner.change_policy(to_policy(event.settings.policy), event.t)
        if event.settings.control_slate != self.settings.control_slate:
            self.history.lift.restart(event.t)
        self.guarded = self.guarded and event.settings.guardrail is not None
        self.versions.append(event.settings)
        self._policies.append(self.learner.version)

    def move(self, before: DecisionRecord | None, after: DecisionRecord) -> None:
        """Update the counters exactly for a decision that changed from ``before`` to ``after``."""
        if before is None:
            self.learner.pend(after.action, after.asked.t) if self.contexts is None else self.contexts.pend(after.asked)
            self.history.count_decision(after.asked, self.versions[after.asked.version - 1].explore)
            self.history.remember_slate(after.asked)
            return
        if self.contexts is None and tells_everything(before, after):  # what the lines below do, sooner
            self.history.finish(after, self.problem)
            self.learner.unpend(after.action)
            self._count(after, counted_rows(after), 1.0)
            return
        if after.closed == "erased":
            erase_from_history(self.history, before, self.problem, self.versions[before.asked.version - 1].explore)
        else:
            self.history.follow(before, after, self.problem)
        if self.contexts is not None and after.closed == "erased":
            self.contexts.erase(before.asked)
        self.change_pending(before.asked, pending_arms(before), pending_arms(after))
        old, new = counted_rows(before), counted_rows(after)
        self._count(before, {arm: row for arm, row in old.items() if new.get(arm) != row}, -1.0)
        self._count(after, {arm: row for arm, row in new.items() if old.get(arm) != row} if old else new, 1.0)

    def change_pending(self, asked: Asked, before: tuple[int, ...], after: tuple[int, ...]) -> None:
        """Of a decision, other arms are pending than before."""
        if self.contexts is None:
            self.learner.unpend(before)
            self.learner.unpend(after, -1.0)
        else:
            self.contexts.move_pending(asked, before, after)

    def _count(self, decision: DecisionRecord, rows: dict[int, Row], sign: float) -> None:
        if not rows:
            return
        learner, asked = self.learner, decision.asked
        n_new = self.problem.n_items - asked.n_items  # items added since: of this pull they were not seen
        wide = [(arm, row + (UNSEEN,) * n_new) for arm, row in rows.items()] if n_new else list(rows.items())
        version = self._policies[asked.version - 1]
        if self.contexts is not None:
            stream = self.stream("coin", asked.id)
            return self.contexts.count(join_rows(asked.t, wide), asked, stream, sign, version)
        exact = isinstance(learner.roundings[version], Exact) and isinstance(learner.roundings[-1], Exact)
        if exact and version >= learner.moments_since:
            # Sums are exact: the rows of many decisions are counted by one call, of one round each if rounds matter.
            t = learner.counted_rounds.round_of(learner, asked.t, version) if learner.forgets else 0
            if self._uncounted.add(sign, t, wide, self.problem.n_items):
                self.flush()
        else:
            learner.apply(join_rows(asked.t, wide), self.stream("coin", asked.id), sign, version)

    def flush(self) -> None:
        """Count everything that is due."""
        if self._uncounted.n:
            for sign, rows in self._uncounted.take(self.problem.n_items):
                self.learner.apply(rows, self.stream("coin", ""), sign)

    def place(self, record: DecisionRecord) -> None:
        """A decision of a snapshot is pending; its pulls are in the counters already."""
        if self.contexts is not None:
            self.contexts.place(record.asked, pending_arms(record))

    def restore(
        self, tally: Tally, pending: Floats, asked: int, history: History, state: PolicyState | None = None
    ) -> None:
        """Restore the counters from a snapshot, and what the policy keeps besides them."""
        self.learner.restore(tally, pending, asked, state)
        self.history = history
