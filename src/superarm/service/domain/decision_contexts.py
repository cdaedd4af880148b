"""The contexts of a problem's decisions: encoded, stored in the log, and read from it."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from superarm.agent import Learner
from superarm.context import EncodedContext, Frame
from superarm.context.encoding import hashed_words
from superarm.contextual import ContextHistory, DecisionContext
from superarm.core.errors import InvalidArgument
from superarm.core.tally import View
from superarm.service.domain.events import Asked, Framed, StoredContext


class DecisionContexts:
    """What the service does with contexts, around those of the library's learner.

    ``view`` is that of the last choice, which fixes the weights of a decision's observations.
    """

    def __init__(self, learner: Learner, stored: str) -> None:
        self._learner, self._stored = learner, stored
        self.view: View | None = None

    @property
    def _contexts(self) -> ContextHistory:
        return self._learner.contexts

    @property
    def _context(self) -> Any:
        return self._learner.problem.context

    def encode(self, given: Any, pairs: Mapping[str, Sequence[float]] | None) -> EncodedContext:
        """A context as callers give it; ``pairs`` are the features of pairs by the name of the arm, else 0."""
        if given is None and self._context.features.size:
            raise InvalidArgument("context", "missing", f"give {self._context.features.names}, as far as known")
        return self._contexts.encode(given, self._pair_table(pairs))

    def _pair_table(self, pairs: Mapping[str, Sequence[float]] | None) -> Any:
        n_arms, n = self._learner.problem.n_arms, self._context.pairs
        if not n or pairs is None:
            return np.zeros((n_arms, n)) if n else pairs
        table = np.zeros((n_arms, n))
        for arm, row in pairs.items():
            if len(row) != n:
                raise InvalidArgument("pairs", f"{len(row)} numbers for arm {arm!r}", f"give {n} for each arm")
            table[self._learner.arms.numbers([arm])] = row
        return table

    def store(self, action: Sequence[int], encoded: EncodedContext, given: Any) -> StoredContext:
        """What the log holds of the context of the last choice; ``action`` is what will be shown."""
        assert self.view is not None
        arms = np.array(action, np.int64)
        made: DecisionContext = self._learner.weigh(self.view, arms, encoded)
        rows = encoded.pairs.reshape(self._learner.problem.n_arms, -1)[arms] if encoded.pairs.size else encoded.pairs
        return StoredContext(
            made.t,
            int(encoded.segment),
            made.frame,
            tuple(encoded.x.tolist()),
            tuple(made.weights.tolist()),
            tuple(made.shifts.tolist()),
            tuple(rows.reshape(-1).tolist()),
            given if self._stored == "given" else None,
        )

    def restore(self, asked: Asked) -> DecisionContext:
        """The context of a decision in the log."""
        stored = asked.context
        assert stored is not None
        pairs = np.array(stored.pairs, float)
        if pairs.size:
            table = np.zeros((self._learner.problem.n_arms, self._context.pairs))
            table[np.array(asked.action, np.int64)] = pairs.reshape(len(asked.action), -1)
            pairs = table.reshape(-1)
        encoded = EncodedContext(stored.segment, np.array(stored.x, float), pairs)
        weights, shifts = np.array(stored.weights, float), np.array(stored.shifts, float)
        return DecisionContext(encoded, weights, stored.frame, stored.t, shifts)

    def words(self, asked: Asked) -> dict[str, list[str]] | None:
        """The words of the hashed features of a decision in the log, if it is stored as it was given."""
        given = None if asked.context is None else asked.context.given
        return None if given is None else hashed_words(self._context.features, given)

    @cached_property
    def segments(self) -> list[str]:
        """The names of the segments, which never change; none for a model without segments."""
        return [] if self._context.dimension(self._learner.problem.n_items) else self._context.segment_names

    def segment(self, asked: Asked) -> int | None:
        """The number of a decision's segment; None for a model without segments."""
        return asked.context.segment if asked.context is not None and self.segments else None

    def apply(self, event: Any) -> None:
        """Standardise by another frame from now on."""
        if isinstance(event, Framed):
            self._contexts.begin_frame(self._learner.memory, Frame(event.version, dict(event.places)))

    def plan_frame(self, now: int) -> Framed | None:
        """The event of the frame of standardised features that is due, if one is."""
        frame = self._contexts.frames.due()
        return None if frame is None else Framed(now, frame.version, dict(frame.places))
