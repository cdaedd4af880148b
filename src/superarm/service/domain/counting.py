"""Rows of outcomes as the library's feedback and tallies."""

from collections.abc import Iterable, Sequence

import numpy as np

from superarm.agent.outcomes import to_rows
from superarm.core.arrays import Floats, Ints
from superarm.core.problem import Problem
from superarm.core.support import AnySupport, Dense
from superarm.core.tally import Feedback, Tally
from superarm.service.domain.decision import Row
from superarm.service.domain.events import UNSEEN


def past(problem: Problem, arms: list[int], rows: list[list[float]]) -> Tally:
    """The tally of past outcomes, one row per arm; ``UNSEEN`` where nothing was seen, also of items added since."""
    if not isinstance(problem.support, Dense):
        seen = [[value != UNSEEN for value in row] for row in rows]
        return problem.past(arms, [[max(value, 0.0) for value in row] for row in rows], seen)
    wide = np.full((len(rows), problem.n_items), UNSEEN)
    for values, row in zip(wide, rows, strict=True):
        values[: len(row)] = row
    return problem.past(arms, np.where(wide != UNSEEN, wide, 0.0), wide != UNSEEN)


def feedback_of(support: AnySupport, t: int, rows: dict[int, Row]) -> Feedback:
    """Feedback of round ``t``: a row for each arm, ``UNSEEN`` where nothing was seen.

    >>> feedback_of(Dense(2, 3), 1, {2: (0.5, UNSEEN)}).seen.tolist()
    [[[True, False]]]
    """
    arms = np.array(list(rows), np.int64)
    table = pad_rows(support, arms, list(rows.values()))[None]
    seen = table != UNSEEN
    entries = seen.size if isinstance(support, Dense) else support.widths[arms].sum()
    return Feedback(t, arms[None], np.where(seen, table, 0.0), None if seen.sum() == entries else seen)


def pad_rows(support: AnySupport, arms: Ints, rows: Sequence[Iterable[float]]) -> Floats:
    """Rows of arms, (n, widest), with ``UNSEEN`` for items that are not in a row: added later, or none of the arm's."""
    if not isinstance(support, Dense):
        flat = np.array([value for row in rows for value in row], float)
        return to_rows(support, arms, flat, UNSEEN)  # type: ignore[no-any-return]
    table = np.array(rows, float)
    missing = support.n_items - table.shape[1] if table.ndim == 2 else 0
    return np.pad(table, ((0, 0), (0, missing)), constant_values=UNSEEN) if missing else table
