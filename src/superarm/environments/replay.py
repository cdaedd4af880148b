from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component
from superarm.arrays import Bools, Floats, Ints, floats
from superarm.errors import InvalidArgument
from superarm.streams import Stream
from superarm.support import Support, span


class _Recording(NamedTuple):
    table: Floats
    average: Floats


@component
class Replay(_Recording):
    """Outcomes from a recorded table: those of round ``t`` are ``table[(t - 1) % n_rounds]``.

    The true means are the averages over the table.

    Parameters
    ----------
    table
        Outcomes in [0, 1], (n_rounds, n_arms, n_items), or (n_rounds, n_entries) for a sparse problem.
    """

    __slots__ = ()

    def __new__(cls, table: Any) -> "Replay":
        recorded = floats(table, "table", low=0.0, high=1.0)
        if recorded.ndim not in (2, 3) or len(recorded) == 0:
            raise InvalidArgument(
                "table", f"shape {recorded.shape}", "give (n_rounds, n_arms, n_items) with at least one round", "Replay"
            )
        return super().__new__(cls, recorded, np.ascontiguousarray(recorded.mean(axis=0)))

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        recorded = self.table[(t - 1) % len(self.table)].reshape(-1)
        at = 0
        for j in action:
            first, last = span(support, j)
            for e in range(first, last):
                outcome[at] = recorded[e]
                at += 1

    def means(self, t: int) -> Floats:
        return self.average
