"""Decisions of the service: the library's records of what was asked, and past outcomes without a decision."""

from typing import Any

import numpy as np

from superarm import decisions
from superarm.core.support import Dense
from superarm.core.tally import Tally
from superarm.decisions import UNSEEN, Erased, without_effect
from superarm.problem import Problem
from superarm.service.domain.events import Asked, Warmed

DecisionRecord = decisions.DecisionRecord[Asked]
"""The record of a decision of the service."""


def advance_record(record: DecisionRecord, event: Any) -> DecisionRecord:
    """The record after one more of its events; of one that is erased its id, its problem and its round are left."""
    if not isinstance(event, Erased):
        return decisions.advance_record(record, event)
    asked = record.asked
    left = Asked(asked.at, asked.problem, asked.id, "", asked.t, (), asked.n_items, asked.version, born=asked.born)
    return without_effect(record, left)


def past_of(problem: Problem, event: Warmed) -> Tally:
    """The tally of past outcomes, or of past totals."""
    if problem.reward.totals:
        sets, totals, n = zip(*event.totals, strict=True)
        return problem.past(sets=sets, totals=totals, n=n)
    return past(problem, event.arms, event.rows, event.segments)


def past(problem: Problem, arms: list[int], rows: list[list[float]], segments: Any = None) -> Tally:
    """The tally of past outcomes, one row per arm; ``UNSEEN`` where nothing was seen, also of items added since."""
    if not isinstance(problem.support, Dense):
        seen = [[value != UNSEEN for value in row] for row in rows]
        return problem.past(arms, [[max(value, 0.0) for value in row] for row in rows], seen, segments)
    wide = np.full((len(rows), problem.n_items), UNSEEN)
    for values, row in zip(wide, rows, strict=True):
        values[: len(row)] = row
    return problem.past(arms, np.where(wide != UNSEEN, wide, 0.0), wide != UNSEEN, segments)
