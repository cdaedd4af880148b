"""Arms with their estimates, the heat map of arms and items, and what a slate is worth: data for tables and bars.

Everything here only reads; it may run in a thread.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.tally import Tally
from superarm.core.totals import TotalTally
from superarm.service.console.address import PageView
from superarm.service.domain import intervals
from superarm.service.domain.intervals import Band
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import fixed_slate

ARMS_PER_PAGE, ITEMS_PER_PAGE = 20, 12
HEAT_LEVELS = 9


def list_arms(state: ProblemState, view: PageView, stratum: int | None) -> dict[str, Any]:
    """Arms whose names contain ``view.find``, sorted, a page of them; retired ones last.

    An arm is worth what a slate of it alone is, at the estimates, in one segment or over all; for one item, its
    estimated mean; where only totals are told, it is the arm's effect on them. The ``bar`` of a row places the interval
    and the estimate on a line of 100.
    """
    (tally, pending), item = state.overall(stratum), _item(stratum)
    word, names, sorts = view.find.casefold(), state.arms.all, {"observed": tally.pulls[0], "awaiting": pending}
    found = np.array([j for j, name in enumerate(names) if word in name.casefold()], np.int64)
    first = sorts.get(view.sort, np.zeros(len(names)))[found]
    if view.sort == "value":
        first = _means(state, tally, found, item)
    order = found[np.lexsort((found, -first, state.retired[found]))]
    last = max(0, (len(order) - 1) // ARMS_PER_PAGE)
    page = min(view.page, last)
    shown = order[page * ARMS_PER_PAGE : (page + 1) * ARMS_PER_PAGE]
    band, seen = _worths(state, tally, shown, item)
    start, floor = float(band.low.min(initial=0.0)), state.problem.floor if item is None else 0.0
    unit, rows = 100.0 / ((float(band.high.max(initial=0.0)) - start) or 1.0), []
    for n, j in enumerate(shown.tolist()):
        low, value, high = (float(part[n]) for part in band)
        row = {"name": names[j], "retired": bool(state.retired[j]), "value": floor + value if seen[n] else None}
        row |= {"low": floor + low, "high": floor + high, "observed": int(seen[n]), "awaiting": int(pending[j])}
        rows.append(row | {"bar": (unit * (low - start), max(0.5, unit * (high - low)), unit * (value - start))})
    return {"rows": rows, "numbers": shown, "total": len(order), "page": page, "last": last}


def _item(stratum: int | None) -> int | None:
    """The item of a stratum; None for all items, as in a segment."""
    return None if stratum is None or stratum < 0 else stratum


def _means(state: ProblemState, tally: Tally, arms: Ints, item: int | None) -> Floats:
    """What each of some arms is worth, at the estimates."""
    if isinstance(tally, TotalTally):
        return intervals.effects(tally, arms).mean
    if item is None:
        return intervals.mean_alone(state.problem, tally, arms)
    return intervals.known_means(tally, state.problem.support, arms).mean[:, item]


def _worths(state: ProblemState, tally: Tally, arms: Ints, item: int | None) -> tuple[Band, Floats]:
    """What arms are worth with their intervals, and how often they were observed."""
    if not len(arms):
        return Band(*[np.zeros(0)] * 3), np.zeros(0)
    if isinstance(tally, TotalTally):
        return intervals.effects(tally, arms), tally.pulls[0, arms]
    entries = intervals.time_uniform(tally, state.problem.support, arms)
    if item is None:
        worths = (intervals.gains_each(state.problem, part, np.ones(len(arms), np.int64))[0] for part in entries)
        return Band(*worths), tally.pulls[0, arms]
    seen = np.nan_to_num(intervals.known_means(tally, state.problem.support, arms).seen[:, item])
    return Band(*(part[:, item] for part in entries)), seen


def heat_map(state: ProblemState, arms: Ints, page: int) -> dict[str, Any]:
    """Estimated means of some arms, for a page of items by weight; levels from 0 to 9, None where nothing is known.

    Where groups of visitors were learnt, they are the items; where one item has segments of users, these are.
    """
    own, gone = state.chooser, state.learner.retired_items
    n, context = len(own.tally), own.problem.context
    segments = context.segment_names if context is not None and n > 1 == own.problem.n_items else []
    tallies = [own.tally.take([s]) for s in range(n)] if segments else [own.tally if n == 1 else state.overall()[0]]
    by_weight = [int(i) for i in np.argsort(-own.problem.weights, kind="stable") if int(i) not in gone]
    items = list(range(len(segments))) or by_weight
    last = max(0, (len(items) - 1) // ITEMS_PER_PAGE)
    page = min(page, last)
    shown = items[page * ITEMS_PER_PAGE : (page + 1) * ITEMS_PER_PAGE]
    means = [intervals.known_means(tally, own.problem.support, arms) for tally in tallies]
    mean, known = np.hstack([one.mean for one in means]), np.hstack([one.seen != 0.0 for one in means])
    most = float(mean[:, shown].max(initial=0.0, where=known[:, shown])) or 1.0
    rows = []
    for n, j in enumerate(arms.tolist()):
        cells = [float(mean[n, i]) if known[n, i] else None for i in shown]
        rows.append((state.arms.all[j], [(None if x is None else round(HEAT_LEVELS * x / most), x) for x in cells]))
    names = [(segments or state.items.all)[i] if own is state.learner else f"group {items.index(i) + 1}" for i in shown]
    table = {"items": names, "rows": rows, "most": most, "segments": bool(segments)}
    return table | {"page": page, "last": last, "total": len(items)}


def list_now(state: ProblemState) -> list[int]:
    """The slate that is shown without a policy, the next arms standing in for retired ones; empty if unknown."""
    named, settings = state.settings.control_slate, state.settings
    names = named if isinstance(named, list) else list(settings.policy.baseline or ())[: state.problem.k]
    return list(fixed_slate(state, names, ~state.retired)) if names else []


def came_and_left(state: ProblemState, arms: Sequence[int], stratum: int | None) -> dict[str, Any]:
    """What of a slate is not in the list, what of the list it lacks, and what each arm was seen to do so far."""
    listed, (tally, _), item = list_now(state), state.overall(stratum), _item(stratum)
    left = [j for j in listed if j not in arms]
    every = np.array([*arms, *left], np.int64)
    seen, means = tally.pulls[0, every], _means(state, tally, every, item)
    brought = np.full(len(every), np.nan)
    if not isinstance(tally, TotalTally) and state.problem.thresholds is None:
        totals = intervals.known_means(tally, state.problem.support, every).total
        brought = totals @ state.problem.weights if item is None else totals[:, item]
    facts = list(zip(means.tolist(), seen.astype(int).tolist(), brought.tolist(), strict=True))
    new = {state.arms.all[j] for j in arms if listed and j not in listed}
    gone = [(state.arms.all[j], *fact) for j, fact in zip(left, facts[len(arms) :], strict=True)]
    return {"facts": facts, "new": new, "gone": gone}


def worth(
    state: ProblemState, arms: Sequence[int], stratum: int | None, adds: list[float] | None = None
) -> dict[str, Any]:
    """The value of a slate at the estimates, with its interval, in total, by one item or in one segment.

    Its rows are what the arms add to those before them, as bars on a line of 100: at the policy's estimates, where it
    ``adds``, otherwise at the means. For groups of visitors that were learnt, no interval is known.
    """
    problem, slate, learnt = state.chooser.problem, np.array(arms, np.int64), state.chooser is not state.learner
    if isinstance(state.tally, TotalTally):
        shares, (value, low, high) = state.tally.model.shares(len(slate))[0, slate], state.tally.model.worth(slate)
        shown = {"rows": _bars(state, arms, shares.tolist(), 0.0, value), "value": value, "range": (low, high)}
        return shown | {"decided": False, "alone": []} | came_and_left(state, arms, stratum)
    if learnt:
        entries = Band(*[intervals.known_means(state.chooser.tally, problem.support, slate).mean] * 3)
    else:
        entries = intervals.time_uniform(state.overall(stratum)[0], problem.support, slate)
    item = None if learnt else _item(stratum)
    weights = None if item is None else problem.weights[item : item + 1]
    parts = entries if item is None else Band(*(part[:, item : item + 1] for part in entries))
    found = [intervals.gains_each(problem, part, np.array([len(slate)], np.int64), weights) for part in parts]
    low, value, high = (float(nothing + added.sum()) for added, nothing in found)
    gains = found[1][0].tolist() if adds is None else adds[: len(arms)]
    rows = _bars(state, arms, gains, found[1][1], value if adds is None else sum(gains))
    low, value, high = ((problem.floor if item is None else 0.0) + part for part in (low, value, high))
    shown = {"rows": rows, "value": value, "range": None if learnt else (low, high), "decided": bool(adds)}
    shown["alone"] = (adds or [])[len(arms) :]
    return shown | came_and_left(state, arms, stratum)


def _bars(state: ProblemState, arms: Sequence[int], gains: list[float], start: float, value: float) -> list[Any]:
    """What arms add to those before them: name, gain, and where its bar begins and how long it is."""
    ends = np.cumsum([start, *gains])
    least, rows = float(min(ends.min(), 0.0)), []
    most = max(value, float(ends.max()) - least, 1e-12)
    for j, gain, before, after in zip(arms, gains, ends, ends[1:], strict=False):
        rows.append((state.arms.all[j], gain, 100.0 * (min(before, after) - least) / most, 100.0 * abs(gain) / most))
    return rows


def export_arms(state: ProblemState) -> Iterable[list[Any]]:
    """Every arm: how often it was observed, how often it awaits feedback, and the mean of each item.

    The rows are made of copies, so that the problem need not be kept from others while they are written.
    """
    (tally, pending), items, names = state.overall(), state.items.all, list(state.arms.all)
    known = intervals.known_means(tally, state.problem.support, np.arange(state.problem.n_arms))
    means = np.where(known.seen > 0.0, known.mean, np.nan)
    columns = [f"mean of {one}" for one in items]
    if isinstance(tally, TotalTally):
        effect, variance = (part[0].T for part in tally.known_estimates())
        means, columns = np.hstack([effect, np.sqrt(variance)]), ["effect", "deviation"]
    pulls, awaiting, retired = tally.pulls[0].astype(int), pending.astype(int), state.retired.copy()
    heads = [state.words.one("arm"), "retired", "observed", "awaiting feedback", *columns]
    rows = (
        [name, retired[j], pulls[j], awaiting[j], *(None if np.isnan(x) else x for x in means[j].tolist())]
        for j, name in enumerate(names)
    )
    return chain([heads], rows)
