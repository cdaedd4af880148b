"""The contexts of a problem's decisions: encoded, stored in the log, read from it, and counted."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from superarm.context import EncodedContext, Frame
from superarm.context.encoding import hashed_words
from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.streams import Stream
from superarm.core.tally import Feedback, Tally
from superarm.learner import Learner
from superarm.learner.context_batch import choose_in_contexts
from superarm.learner.contexts import Contexts, DecisionContext
from superarm.policies.contextual import Refit
from superarm.service.domain.events import Asked, Framed, Refitted, StoredContext

STEPS_OF_INDEX = 30
"""What the index of an entry takes, in multiplications."""

MAX_CALL_STEPS, MAX_CALL_WEIGHTS = 2_000_000, 1_000_000
"""The most multiplications, and numbers in its answer, of one call that chooses several slates: a few milliseconds."""

Decided = tuple[Ints, DecisionContext]
"""The arms of a decision, and its context."""


class ChosenInContexts(NamedTuple):
    """Slates that were chosen together; ``pending`` is the precision of pending decisions with theirs."""

    slates: list[tuple[int, ...]]
    stored: list[StoredContext]
    pending: Floats


class DecisionContexts:
    """What the service does with contexts, around those of the library's learner.

    ``reserved`` are decisions on their way to the log, by round: they count as pending.
    """

    def __init__(self, learner: Learner, stored: str) -> None:
        self._learner, self._stored = learner, stored
        self.reserved: dict[int, Asked] = {}
        self._names: list[str] | None = None  # of the segments, which never change

    @property
    def _contexts(self) -> Contexts:
        assert self._learner.contexts is not None
        return self._learner.contexts

    def encode(self, given: Any, pairs: Mapping[str, Sequence[float]] | None) -> EncodedContext:
        """A context as callers give it; ``pairs`` are the features of pairs by the name of the arm, else 0."""
        return self._contexts.encode(self._learner.problem, given, self._pair_table(pairs))

    def _pair_table(self, pairs: Mapping[str, Sequence[float]] | None) -> Any:
        problem, n = self._learner.problem, self._contexts.context.pairs
        if not n or pairs is None:
            return np.zeros((problem.n_arms, n)) if n else pairs
        table = np.zeros((problem.n_arms, n))
        for arm, row in pairs.items():
            if len(row) != n:
                raise InvalidArgument("pairs", f"{len(row)} numbers for arm {arm!r}", f"give {n} for each arm")
            table[self._learner.arms.numbers([arm])] = row
        return table

    def store(self, action: Sequence[int], encoded: EncodedContext, given: Any) -> StoredContext:
        """What the log holds of the context of the last choice; ``action`` is what will be shown."""
        arms = np.array(action, np.int64)
        made = self._contexts.decide(self._learner, arms, encoded)
        rows = encoded.pairs.reshape(self._learner.problem.n_arms, -1)[arms] if encoded.pairs.size else encoded.pairs
        return StoredContext(
            made.t,
            encoded.segment,
            made.frame,
            tuple(encoded.x.tolist()),
            tuple(made.weights.tolist()),
            tuple(made.shifts.tolist()),
            tuple(rows.reshape(-1).tolist()),
            given if self._stored == "given" else None,
        )

    def choose_each(
        self, t: int, keys: Any, encoded: Sequence[EncodedContext], givens: Sequence[Any]
    ) -> ChosenInContexts:
        """Slates for round ``t`` and those after it, each pending for the next, with what is stored of each context.

        They are those of choices one by one; ``givens`` are the contexts as they were given.
        """
        queue, found = choose_in_contexts(self._learner, t, ~self._learner.retired, keys, encoded)
        frame = self._contexts.frames.frame.version
        slates = [tuple([j for j in row if j >= 0]) for row in found.arms.tolist()]
        rows = zip(
            *(part.tolist() for part in (queue.t, queue.segment, queue.x, found.weights, found.shifts, found.sizes)),
            self._pairs_of(queue.pairs, slates),
            givens if self._stored == "given" else [None] * len(slates),
            strict=True,
        )
        stored = [
            StoredContext(number, segment, frame, tuple(x), tuple(weights[:n]), tuple(shifts[:n]), pairs, given)
            for number, segment, x, weights, shifts, n, pairs, given in rows
        ]
        return ChosenInContexts(slates, stored, found.pending)

    def choose_one(self, t: int, eligible: Bools, key: Any, encoded: EncodedContext) -> list[int]:
        """The slate for round ``t`` out of the eligible arms; ``store`` gives what is stored of its context."""
        _, found = choose_in_contexts(self._learner, t, eligible, key, [encoded])
        return [j for j in found.arms[0].tolist() if j >= 0]

    def _pairs_of(self, pairs: Floats, slates: Sequence[tuple[int, ...]]) -> list[tuple[float, ...]]:
        """The features of the pairs of each slate, out of those of all arms."""
        if not pairs.size:
            return [()] * len(slates)
        tables = pairs.reshape(len(slates), self._learner.problem.n_arms, -1)
        return [tuple(table[[*arms]].reshape(-1).tolist()) for table, arms in zip(tables, slates, strict=True)]

    @property
    def n_together(self) -> int:
        """How many decisions are chosen by one call, so that it takes a few milliseconds."""
        problem, contexts = self._learner.problem, self._contexts
        d, (n_groups, size) = contexts.context.dimension(problem.n_items), contexts.pending_shape
        n_entries = problem.k * problem.n_items  # of a slate, at most
        n_changed = n_entries if n_groups > problem.n_arms else problem.k if n_groups > 1 else n_groups
        n_steps = n_changed * d**3 + problem.n_entries * max(d, STEPS_OF_INDEX) + n_groups * size
        return max(1, min(MAX_CALL_STEPS // n_steps, MAX_CALL_WEIGHTS // n_entries))

    @property
    def n_estimate_steps(self) -> int:
        """How many multiplications it takes to estimate all parameter vectors anew."""
        d = self._contexts.context.dimension(self._learner.problem.n_items)
        return self._contexts.pending_shape[0] * d**3

    def restore(self, asked: Asked) -> Decided:
        """The arms and the context of a decision in the log."""
        stored = asked.context
        assert stored is not None
        arms, pairs = np.array(asked.action, np.int64), np.array(stored.pairs, float)
        if pairs.size:
            table = np.zeros((self._learner.problem.n_arms, self._contexts.context.pairs))
            table[arms] = pairs.reshape(len(arms), -1)
            pairs = table.reshape(-1)
        encoded = EncodedContext(stored.segment, np.array(stored.x, float), pairs)
        weights, shifts = np.array(stored.weights, float), np.array(stored.shifts, float)
        return arms, DecisionContext(encoded, weights, stored.frame, stored.t, shifts)

    def words(self, asked: Asked) -> dict[str, list[str]] | None:
        """The words of the hashed features of a decision in the log, if it is stored as it was given."""
        given = None if asked.context is None else asked.context.given
        return None if given is None else hashed_words(self._contexts.context.features, given)

    def segment(self, asked: Asked) -> int | None:
        """The number of a decision's segment; None for a model without segments."""
        return asked.context.segment if asked.context is not None and self._contexts.design is None else None

    def segment_name(self, asked: Asked) -> str | None:
        """The name of a decision's segment; None for a model without segments."""
        number = self.segment(asked)
        return None if number is None else self._segment_names()[number]

    def _segment_names(self) -> list[str]:
        if self._names is None:
            self._names = self._contexts.context.segment_names
        return self._names

    def reserve(self, asked: Asked, *, counted: bool) -> None:
        """A decision is on its way to the log: until it is there, further ones see it as pending.

        ``counted`` says that its precision is part of the pending one already.
        """
        stored = asked.context
        assert stored is not None
        self.reserved[asked.t] = asked
        self.claim(stored.segment, max(int(self._contexts.claimed[stored.segment]), stored.t))
        if counted:
            self._learner.unpend(self._contexts.cells(self._learner, asked.action, stored.segment), -1.0)
        else:
            decided = self.restore(asked)
            self._contexts.take_back(self._learner, decided, decided[0], -1.0)

    def take_pending(self, pending: Floats) -> None:
        """Take on the precision of pending decisions."""
        self._contexts.take_pending(pending)

    def claim(self, segment: int, t: int) -> None:
        """Decision ``t`` of a segment is the last one that was made."""
        self._contexts.claimed[segment] = t

    def release(self, t: int) -> None:
        """The decision is in the log, or will never be."""
        asked = self.reserved.pop(t, None)
        if asked is not None:
            decided = self.restore(asked)
            self._contexts.take_back(self._learner, decided, decided[0], 1.0)

    def pend(self, asked: Asked) -> None:
        """A decision is in the log. If it was reserved, it counts as pending already, and is reserved no longer."""
        if self.reserved.get(asked.t) is asked:
            assert asked.context is not None
            del self.reserved[asked.t]
            self._contexts.pass_time(self._learner, asked.t, asked.context.segment, asked.context.t)
        else:
            arms, made = self.restore(asked)
            self._contexts.pend(self._learner, arms, asked.t, made)
        if asked.context is not None and asked.context.given is not None:
            self._contexts.frames.count(asked.context.given)

    def erase(self, asked: Asked) -> None:
        """Take the context of a decision that was erased out of the means of standardised features."""
        if asked.context is not None and asked.context.given is not None:
            self._contexts.frames.count(asked.context.given, -1)

    def move_pending(self, asked: Asked, before: Sequence[int], after: Sequence[int]) -> None:
        """Of a decision, other arms are pending than before."""
        if tuple(before) != tuple(after):
            decided = self.restore(asked)
            self._contexts.take_back(self._learner, decided, np.array(before, np.int64), 1.0)
            self._contexts.take_back(self._learner, decided, np.array(after, np.int64), -1.0)

    def place(self, asked: Asked, pending: Sequence[int]) -> None:
        """Count the pending precision of a decision from a snapshot; its pulls are counted already."""
        self._contexts.count_pending(self._learner, self.restore(asked), np.array(pending, np.int64), 1.0)

    def count(self, told: Feedback, asked: Asked, stream: Stream, sign: float, version: int) -> None:
        """Count feedback to a decision, or take it back."""
        self._contexts.apply(self._learner, told, self.restore(asked), stream, sign, version)

    def due(self) -> Frame | None:
        """The frame of standardised features that is due."""
        return self._contexts.frames.due()

    def apply(self, event: Any) -> None:
        """Standardise by another frame from now on, or take on a refit of this worker or of another one."""
        if isinstance(event, Framed):
            self._contexts.begin_frame(self._learner, Frame(event.version, dict(event.places)))
        elif isinstance(event, Refitted):
            points = np.array(event.points, float).reshape(len(event.groups), -1)
            groups, information = np.array(event.groups, np.int64), np.array(event.information, float)
            self._contexts.take_refit(self._learner, Refit(event.t, groups, points, information))

    def plan_refit(self, now: int) -> Refitted | None:
        """The event of the refit that is due, if one is."""
        refit = self._contexts.plan_refit(self._learner)
        if refit is None:
            return None
        groups, points = tuple(refit.groups.tolist()), tuple(refit.points.reshape(-1).tolist())
        return Refitted(now, refit.t, groups, points, tuple(refit.information.tolist()))

    @property
    def refit_due(self) -> bool:
        """Whether a refit is due."""
        return self._contexts.refit_due(self._learner)

    def unreserved(self) -> Floats:
        """The pending pulls without those of reserved decisions."""
        pending = self._learner.pending.copy()
        for asked in self.reserved.values():
            assert asked.context is not None
            arms = np.array(asked.action, np.int64)
            pending[self._contexts.cells(self._learner, arms, asked.context.segment)] -= 1.0
        return pending

    def overall(self, tally: Any) -> tuple[Tally, Floats]:
        """The counters and the pending pulls of each arm, over all contexts."""
        n = self._contexts.context.n_segments
        parts = [part.reshape(n, -1).sum(axis=0) if part.size else part for part in (*tally[:5], self.unreserved())]
        return Tally(*parts[:5], *(np.zeros(0) for _ in range(3))), parts[5]
