import itertools
from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component
from superarm.arrays import Bools, Floats, Ints, floats
from superarm.errors import InvalidArgument
from superarm.streams import Stream, integer, seek
from superarm.support import Support, item, span

_ITEMS = (1 << 62) + 1
"""The first index, in the stream of a round, of the numbers that belong to items."""


class _CohortFields(NamedTuple):
    table: Floats
    first: Ints
    average: Floats


@component
class Cohorts(_CohortFields):
    """Outcomes of recorded people: every round draws one person of each group, whose outcomes all arms share.

    What one person did with several arms keeps its real dependence; the persons of different groups are drawn
    independently. The true means are the averages over the groups.

    Parameters
    ----------
    table
        What each person did with each arm, in [0, 1], (n_people, n_arms); the people of a group are adjacent.
    first
        The first person of each group (item), and the number of people: n_items + 1 numbers in ascending order.
    """

    __slots__ = ()

    def __new__(cls, table: Any, first: Any) -> "Cohorts":
        recorded, start = floats(table, "table", low=0.0, high=1.0), np.asarray(first, np.int64)
        ordered = start.ndim == 1 and len(start) > 1 and bool((np.diff(start) > 0).all())
        if recorded.ndim != 2 or not ordered or start[0] != 0 or start[-1] != len(recorded):
            raise InvalidArgument(
                "first", f"{start.tolist()} for {recorded.shape}", "give 0, the starts of groups, n_people", "Cohorts"
            )
        means = [recorded[a:b].mean(axis=0) for a, b in itertools.pairwise(start)]
        return super().__new__(cls, recorded, start, np.ascontiguousarray(np.array(means).T))

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        at = 0
        for j in action:
            begin, end = span(support, j)
            for o in range(end - begin):
                i = item(support, begin, o)
                seek(stream, t, _ITEMS + i)
                outcome[at] = self.table[self.first[i] + integer(stream, self.first[i + 1] - self.first[i]), j]
                at += 1

    def means(self, t: int) -> Floats:
        return self.average
