"""Downloads of what the console shows, as CSV."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import UnsetType

from superarm.core.arrays import Floats
from superarm.core.tally import Tally
from superarm.service.console.times import moment
from superarm.service.domain.history import mean_interval
from superarm.service.domain.problem import ProblemState
from superarm.service.http import views

CELLS_PER_PART = 20_000
"""A large table is made in parts of so many cells, and other requests are answered in between."""

FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")


def safe(text: str) -> str:
    """A name in a cell: a spreadsheet must not take it for a formula.

    >>> safe("=1+1"), safe("ad-1")
    ("'=1+1", 'ad-1')
    """
    return f"'{text}" if text.startswith(FORMULA_SIGNS) else text


def to_csv(rows: Iterable[Sequence[Any]]) -> bytes:
    """Rows as CSV; what is None is an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(
        [safe(cell) if isinstance(cell, str) else cell for cell in row] for row in rows
    )
    return text.getvalue().encode()


def arm_parts(learner: ProblemState) -> Iterator[tuple[int, int]]:
    """Ranges of arms, each of a part of the table."""
    size = max(1, CELLS_PER_PART // (learner.problem.n_items + 4))
    return ((start, min(start + size, learner.problem.n_arms)) for start in range(0, learner.problem.n_arms, size))


def arms_csv(learner: ProblemState, counters: tuple[Tally, Floats], part: tuple[int, int]) -> bytes:
    """Some arms: pulls, pending pulls, and the mean of each item. Reads only; may run in a thread."""
    items, rows = learner.items.all, list[Sequence[Any]]()
    if part[0] == 0:
        rows.append(["arm", "retired", "pulls", "pending", *(f"mean of {item}" for item in items)])
    places = {item: n for n, item in enumerate(items)}
    for arm in range(*part):
        row = views.arm(learner, counters, arm)
        means: list[float | None] = list(row.mean)
        if not isinstance(row.items, UnsetType):
            means = [None] * len(items)
            for item, mean in zip(row.items, row.mean, strict=True):
                means[places[item]] = mean
        rows.append([row.arm, row.retired, row.pulls, row.pending, *means])
    return to_csv(rows)


def rewards_csv(learner: ProblemState, needed: frozenset[int]) -> bytes:
    """The curve of rewards: stretch by stretch."""
    rows: list[Sequence[Any]] = [["rounds up to", "last decision (UTC)", "group", "finished", "mean reward", "95 % ±"]]
    length = learner.history.length
    for n, stretch in enumerate(learner.history.stretches):
        for group, moments in (("policy", stretch.policy), ("baseline", stretch.baseline)):
            mean = mean_interval(moments, needed)
            if mean is not None:
                rows.append([(n + 1) * length, moment(stretch.at), group, moments.count, mean.value, mean.reach])
    return to_csv(rows)


def decisions_csv(found: Iterable[Any], *, first: bool) -> bytes:
    """Decisions as the search finds them: one row per arm of a slate; with ``first``, after the names of columns."""
    heads = ["decision", "made (UTC)", "state", "group", "version", "place", "arm", "values"]
    rows: list[Sequence[Any]] = [heads] if first else []
    for one in found:
        for place, (arm, values) in enumerate(zip(one.arms, one.values, strict=True)):
            known = " ".join("" if x is None else f"{x:g}" for x in values or ())
            rows.append([one.id, moment(one.at), one.state, one.group, one.version, place + 1, arm, known])
    return to_csv(rows)
