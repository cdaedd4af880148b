"""Tables of one problem as CSV, in the words of its owner."""

import io
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from superarm.service.console.address import moment
from superarm.service.domain.intervals import known_means
from superarm.service.domain.lift import mean_interval
from superarm.service.domain.problem import ProblemState
from superarm.service.storage.tables import write_csv


def to_csv(rows: Iterable[Iterable[Any]]) -> bytes:
    """Rows as CSV; what is None is an empty cell."""
    text = io.StringIO()
    write_csv(text, rows)
    return text.getvalue().encode()


def list_arms(state: ProblemState) -> Iterable[list[Any]]:
    """Every arm: how often it was observed, how often it awaits feedback, and the mean of each item.

    The rows are made of copies, so that the problem need not be kept from others while they are written.
    """
    (tally, pending), items, names = state.overall(), state.items.all, list(state.arms.all)
    known = known_means(tally, state.problem.support, np.arange(state.problem.n_arms))
    means = np.where(known.seen > 0.0, known.mean, np.nan)
    pulls, awaiting, retired = tally.pulls[0].astype(int), pending.astype(int), state.retired.copy()
    heads = [state.words.one("arm"), "retired", "observed", "awaiting feedback", *(f"mean of {one}" for one in items)]
    rows = (
        [name, retired[j], pulls[j], awaiting[j], *(None if np.isnan(x) else x for x in means[j].tolist())]
        for j, name in enumerate(names)
    )
    return chain([heads], rows)


def list_rewards(state: ProblemState) -> Iterable[list[Any]]:
    """The curve of rewards, in total and by item, where that is known."""
    state.flush()
    words, needed = state.words, state.weighty_items
    unit = f" ({words.unit})" if words.unit else ""
    one, many = words.one("decision"), words.many("decision")
    rows = list[list[Any]]()
    rows.append([f"last {one} (UTC)", "shown", words.one("item"), many, f"mean reward{unit}", "95 % ±"])
    for stretch in state.history.stretches:
        for group, moments in (("superarm", stretch.policy), ("baseline", stretch.baseline)):
            parts = [("", mean_interval(moments, needed), moments.count)]
            for item in sorted({*moments.items, *moments.each}):
                own = moments.of_item(item)
                parts.append((state.items.all[item], mean_interval(own), own.n))
            rows += [[moment(stretch.at), group, name, n, *mean] for name, mean, n in parts if mean is not None]
    return rows
