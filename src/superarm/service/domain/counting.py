"""Rows of outcomes as the library's feedback and tallies."""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from superarm.core.arrays import Floats
from superarm.core.problem import Problem
from superarm.core.support import Sparse
from superarm.core.tally import Feedback, Tally
from superarm.service.domain.decision import Row
from superarm.service.domain.events import UNSEEN

MAX_UNCOUNTED_VALUES = 50_000
"""The most values that wait to be counted, and the most that one call counts, in a few milliseconds."""


def past(problem: Problem, arms: list[int], rows: list[list[float]]) -> Tally:
    """The tally of past outcomes, one row per arm; ``UNSEEN`` where nothing was seen, also of items added since."""
    if isinstance(problem.support, Sparse):
        seen = [[value != UNSEEN for value in row] for row in rows]
        return problem.past(arms, [[max(value, 0.0) for value in row] for row in rows], seen)
    wide = np.full((len(rows), problem.n_items), UNSEEN)
    for values, row in zip(wide, rows, strict=True):  # row by row: one call for all would keep others waiting
        values[: len(row)] = row
    return problem.past(arms, np.where(wide != UNSEEN, wide, 0.0), wide != UNSEEN)


class UncountedRows:
    """Rows of feedback that wait until they are counted by one call, by sign and by round.

    Added first, then taken back: policies cannot read counts that are negative in between.
    """

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._rows: dict[float, dict[int, list[tuple[int, Row]]]] = {1.0: {}, -1.0: {}}
        self.n = 0

    def add(self, sign: float, t: int, rows: list[tuple[int, Row]], n_items: int) -> bool:
        """Let rows wait; True if that are now so many that they have to be counted."""
        self._rows[sign].setdefault(t, []).extend(rows)
        self.n += len(rows)
        return self.n >= self._max_rows or self.n * n_items >= MAX_UNCOUNTED_VALUES

    def take(self, n_items: int) -> Iterator[tuple[float, Feedback]]:
        """All rows, in parts that one call counts; none waits after that."""
        self.n = 0
        rows, self._rows = self._rows, {1.0: {}, -1.0: {}}
        for sign, by_round in rows.items():
            for t, some in by_round.items():
                for part in batch_rows(some, n_items):
                    yield sign, join_rows(t, part)


def batch_rows(rows: list[tuple[int, Row]], n_items: int) -> list[list[tuple[int, Row]]]:
    """The rows in parts, each with at most ``MAX_UNCOUNTED_VALUES`` values, or one row.

    >>> [len(part) for part in batch_rows([(0, ())] * 7, 20_000)]
    [2, 2, 2, 1]
    """
    size = max(1, MAX_UNCOUNTED_VALUES // max(1, n_items))
    return [rows[n : n + size] for n in range(0, len(rows), size)]


def flatten_rows(rows: Sequence[Row]) -> Floats:
    """The values of all rows, one after the other; a row that occurs many times is converted once.

    >>> flatten_rows([(0.5, 1.0)] * 2 + [(0.0,)])
    array([0.5, 1. , 0.5, 1. , 0. ])
    """
    distinct = {id(row): row for row in rows}
    if 4 * len(distinct) > len(rows) or len({len(row) for row in distinct.values()}) > 1:
        return np.fromiter(chain.from_iterable(rows), float)
    places = {key: place for place, key in enumerate(distinct)}
    table = np.array(list(distinct.values()), float)
    return table[[places[id(row)] for row in rows]].reshape(-1)


def join_rows(t: int, rows: list[tuple[int, Row]]) -> Feedback:
    values = flatten_rows([row for _, row in rows])
    seen = values != UNSEEN
    return Feedback(t, np.array([arm for arm, _ in rows], np.int64), np.where(seen, values, 0.0), seen)
