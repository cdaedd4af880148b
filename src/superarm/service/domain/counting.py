"""Rows of outcomes as the library's feedback and tallies."""

from itertools import chain

import numpy as np

from superarm.problem import Problem
from superarm.service.domain.decision import Row
from superarm.service.domain.events import UNSEEN
from superarm.support import Sparse
from superarm.tally import Feedback, Tally

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


def batch_rows(rows: list[tuple[int, Row]], n_items: int) -> list[list[tuple[int, Row]]]:
    """The rows in parts, each with at most ``MAX_UNCOUNTED_VALUES`` values, or one row.

    >>> [len(part) for part in batch_rows([(0, ())] * 7, 20_000)]
    [2, 2, 2, 1]
    """
    size = max(1, MAX_UNCOUNTED_VALUES // max(1, n_items))
    return [rows[n : n + size] for n in range(0, len(rows), size)]


def join_rows(t: int, rows: list[tuple[int, Row]]) -> Feedback:
    values = np.fromiter(chain.from_iterable([row for _, row in rows]), float)
    seen = values != UNSEEN
    return Feedback(t, np.array([arm for arm, _ in rows], np.int64), np.where(seen, values, 0.0), seen)
