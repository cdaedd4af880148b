"""Tables of one problem as CSV, in parts."""

import io
from collections.abc import AsyncIterator, Iterable, Sequence
from functools import partial
from typing import Any

from msgspec import UnsetType

from superarm.service.console.address import moment
from superarm.service.domain.ledger import Key
from superarm.service.domain.lift import mean_interval
from superarm.service.domain.problem import ProblemState
from superarm.service.http import views
from superarm.service.runtime.coordinator import Coordinator
from superarm.service.storage.tables import write_csv

CELLS_PER_PART = 20_000
"""A large table is made in parts of so many cells, and other requests are answered in between."""


def to_csv(rows: Iterable[Sequence[Any]]) -> bytes:
    """Rows as CSV; what is None is an empty cell."""
    text = io.StringIO()
    write_csv(text, rows)
    return text.getvalue().encode()


async def export_arms(coordinator: Coordinator, key: Key, state: ProblemState) -> AsyncIterator[bytes]:
    """All arms, part by part."""
    n_arms, size = state.problem.n_arms, max(1, CELLS_PER_PART // (state.problem.n_items + 4))
    for start in range(0, n_arms, size):
        yield await coordinator.read(*key, partial(_arms, range(start, min(start + size, n_arms))))


def _arms(arms: range, state: ProblemState) -> bytes:
    """Some arms: how often they were observed, how often they await feedback, and the mean of each item."""
    items, words, rows = state.items.all, state.words, list[Sequence[Any]]()
    if arms.start == 0:
        rows.append(
            [words.one("arm"), "retired", "observed", "awaiting feedback", *(f"mean of {name}" for name in items)]
        )
    counters = state.overall()
    for arm in arms:
        row = views.arm(state, counters, arm)
        means = dict(zip(items if isinstance(row.items, UnsetType) else row.items, row.mean, strict=True))
        rows.append([row.arm, row.retired, row.pulls, row.pending, *(means.get(item) for item in items)])
    return to_csv(rows)


def rewards_csv(state: ProblemState) -> bytes:
    """The curve of rewards, in total and by item, where that is known."""
    state.flush()
    words, needed, rows = state.words, state.weighty_items, list[Sequence[Any]]()
    unit = f" ({words.unit})" if words.unit else ""
    many = words.many("decision")
    rows.append(
        [f"last {words.one('decision')} (UTC)", "shown", words.one("item"), many, f"mean reward{unit}", "95 % ±"]
    )
    for stretch in state.history.stretches:
        for group, moments in (("superarm", stretch.policy), ("baseline", stretch.baseline)):
            parts = [("", mean_interval(moments, needed), moments.count)]
            for item in sorted({*moments.items, *moments.each}):
                one = moments.of_item(item)
                parts.append((state.items.all[item], mean_interval(one), one.n))
            rows += [[moment(stretch.at), group, name, n, *mean] for name, mean, n in parts if mean is not None]
    return to_csv(rows)


def decisions_csv(found: Iterable[Any], state: ProblemState, *, first: bool) -> bytes:
    """Decisions as the search finds them: one row per arm of a slate; with ``first``, after the names of columns."""
    words = state.words
    heads = [words.one("decision"), "made (UTC)", "state", "group", "version", "place", words.one("arm")]
    rows: list[Sequence[Any]] = [[*heads, words.many("outcome")]] if first else []
    for one in found:
        for place, (arm, values) in enumerate(zip(one.arms, one.values, strict=True)):
            known = " ".join("" if x is None else f"{x:g}" for x in values or ())
            rows.append([one.id, moment(one.at), one.state, one.group, one.version, place + 1, arm, known])
    return to_csv(rows)
