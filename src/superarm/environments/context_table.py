"""Environments with contexts: in every round a user comes, whose features change the means."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from superarm import arrays
from superarm._jit import component, kernel, lean
from superarm.arrays import Bools, Floats, Ints
from superarm.context import EncodedContext
from superarm.environments.base import flip, pick_context
from superarm.environments.cascade import Reader, read_list
from superarm.errors import InvalidArgument
from superarm.streams import Stream, integer, seek
from superarm.support import Support

_CONTEXT_INDEX = 1 << 40
"""The index of the random number that picks the context of a round; no arm has it."""


def _table(value: Any, name: str) -> Floats:
    return arrays.floats(value, name, low=-np.inf, high=np.inf)


def _numbers(value: Any, name: str) -> Ints:
    return np.array(value, np.int64)


@component
class ContextTable(NamedTuple):
    """A table of contexts, each with its means; every round one of them comes, and outcomes are binary.

    Use ``superarm.simulation.context_table`` to make one for a given problem.

    Parameters
    ----------
    contexts
        The user's vector of each context, as the model of the problem takes it, (n, d); of length 0 for segments.
    segments
        The segment of each context, (n,).
    p
        The true parameters in each context, (n, n_entries).
    best
        What the batch of the default oracle is worth in each context, (n,).
    replay
        Whether contexts come in the order of the table, over and over, as those of a log; at random otherwise.
    cascade
        Whether a batch is a list that is read up to the first 1: what comes below it is not seen.
    """

    contexts: Annotated[Any, _table]
    segments: Annotated[Any, _numbers]
    p: arrays.Probabilities
    best: Annotated[Any, _table]
    replay: bool = False
    cascade: bool = False

    def _check(self) -> None:
        lengths = {len(part) for part in self[:4]}
        if len(lengths) > 1 or not len(self.p):
            raise InvalidArgument("contexts", f"lengths {sorted(lengths)}", "give one row per context", "ContextTable")

    @property
    def partial(self) -> bool:
        return self.cascade

    @lean
    def pick_context(self, t: int, stream: Stream) -> int:
        """The row of the context of round ``t``."""
        if self.replay:
            return (t - 1) % len(self.p)
        seek(stream, t, _CONTEXT_INDEX)
        return integer(stream, len(self.p))

    def context(self, row: int) -> EncodedContext:
        """The context in a row of the table."""
        return EncodedContext(self.segments[row], self.contexts[row], np.zeros(0))

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        p = self.p[pick_context(self, t, stream)]
        if self.cascade:
            read_list(Reader(p, 1.0), support, action, t, stream, outcome, seen)
        else:
            flip(support, p, action, t, stream, outcome)

    def means(self, t: int) -> Floats:
        p: Floats = self.p
        return average_means(p, t, self.replay)


@kernel
def average_means(p: Floats, t: int, replay: bool) -> Floats:
    """The means of round ``t`` before its context is known: those of its row, or the average of all rows."""
    if replay:
        return p[(t - 1) % len(p)].copy()  # type: ignore[no-any-return]
    average = np.zeros(p.shape[1])
    for row in range(len(p)):
        average += p[row]
    average /= len(p)
    return average
