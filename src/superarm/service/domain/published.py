"""Published tables of a problem, and the sums that come back: integers that are added exactly, and taken back exactly.

A table is an event, so that a replay never chooses again. Sums are kept by their ids, so that corrected ones replace
them.
"""

import math
from collections import Counter
from copy import copy
from typing import Any, Self

import numpy as np
from msgspec import UNSET

from superarm import tables, warehouse
from superarm.agent.publishing import publish
from superarm.core.arrays import Ints
from superarm.core.tally import Tally, round_to_grid
from superarm.service.domain import events
from superarm.service.domain.events import Published, Summed
from superarm.service.domain.intervals import values_each
from superarm.service.domain.lift import check_guard
from superarm.service.errors import invalid
from superarm.tables import Pattern, Table
from superarm.warehouse import Sum

KEPT_SUMS, KEPT_TABLES = 400, 50
"""So many sums can be replaced, and of so many tables patterns are counted."""


class Copied:
    """Dicts of values that never change: a copy shares the values."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = copy(self)
        vars(new).update({name: copy(value) for name, value in vars(self).items()})
        return new


class PublishedTables(Copied):
    """The newest tables, by version; ``due`` if what they are made for has changed since the last one.

    Those up to version ``compared_before`` are of comparisons that have ended.
    """

    def __init__(self) -> None:
        self.all: dict[int, Published] = {}
        self.due = True
        self.served = Counter[int]()
        self.compared_before = 0

    @property
    def newest(self) -> Published | None:
        """The table that is in force."""
        return next(reversed(self.all.values()), None)

    def follow(self, event: Any) -> None:
        """An event of the problem: a table, or a change that needs another one."""
        if isinstance(event, Published):
            self.all[event.table.version], self.due = event, False
            for version in list(self.all)[:-KEPT_TABLES]:
                del self.all[version]
        elif isinstance(event, events.Changed | events.Armed | events.Itemed | events.Guarded):
            self.due = True

    def compare_anew(self) -> None:
        """Another comparison begins, in which the tables so far do not count: rounds do not always tell them apart."""
        self.compared_before = 0 if self.newest is None else self.newest.table.version

    def table(self, version: int) -> Table:
        """A table by its version, if patterns of it are still counted."""
        if version not in self.all:
            remedy = f"send sums instead: the last {KEPT_TABLES} tables are kept"
            raise invalid("patterns", f"no table has version {version}", remedy)
        return self.all[version].table

    def warn(self) -> list[str]:
        """What is wrong with how long the newest tables served, a sentence each."""
        said = (self.all[version].table.stale(n) for version, n in self.served.items() if version in self.all)
        return [f"table {one}" for one in said if one is not None][-1:]


def table_due(state: Any, now: int) -> bool:
    """Whether a table is due: the first, one after a change or a pause, after its lifetime, or before it expires."""
    last = state.published.newest
    if last is None or state.published.due:
        return True
    half = 500.0 * (state.settings.table_expires_s or math.inf)
    if any(last.at < end <= now for _, end in _pauses(state)):
        return True
    return bool(now >= last.at + half or _decisions(state) - last.decisions >= tables.lifetime(last.decisions))


def _decisions(state: Any) -> int:
    """How many decisions were learnt from."""
    return int(state.tally.pulls.sum()) // int(state.problem.k)


def plan_table(state: Any, name: str, now: int, expires: str | None) -> Published | None:
    """The event of a table, if one is due: without the arms that are paused, and under control as decisions are."""
    if not table_due(state, now):
        return None
    last = state.published.newest
    if state.learnt is not None:
        raise invalid("settings.serve", "the items of this problem are learnt", "ask for each decision")
    settings = state.settings
    if settings.control and settings.control_slate == "uniform":
        remedy = "name the arms of the slate, which tables can hold"
        raise invalid("settings.control_slate", "uniform", remedy)
    paused = [arm for arm, end in _pauses(state) if end > now]
    learner = state.learner.without(paused)
    present = _present(state, learner)
    control = 0.0 if present is None and settings.mode == "online" else _control_share(state)
    version = 1 if last is None else last.table.version + 1
    said: dict[str, Any] = {"problem": name, "version": version, "lifetime": None, "expires": expires}
    key = state.word("table", str(version))
    table = publish(learner, key, settings.table_rows, **said, present=present or [], control=control)
    return Published(now, table, state.t, _decisions(state))


def _pauses(state: Any) -> list[tuple[str, float]]:
    """The arms that are or were paused, and until when."""
    until = state.settings.paused_until
    return [] if until is UNSET else [(arm, 1000.0 * end.timestamp()) for arm, end in until.items()]


def _present(state: Any, learner: Any) -> list[str] | None:
    """The control slate, in which others stand in for arms that may not be shown; None if there are too few."""
    from superarm.service.domain.slate import fixed_slate

    settings, problem = state.settings, state.problem
    named = settings.control_slate if isinstance(settings.control_slate, list) else None
    names = list(settings.policy.baseline or ())[: problem.k] if named is None else named
    slate = fixed_slate(state, names, learner.playable())
    fits = len(slate) == len(names) and (not names or problem.actions.includes(np.array(slate), problem.n_arms))
    return [state.arms.all[j] for j in slate] if fits else None


def _control_share(state: Any) -> float:
    """The share of the control slate: all, unless the guardrail lets the policy serve for the lifetime of a table."""
    settings = state.settings
    if settings.mode != "online":
        return 1.0
    if settings.guardrail is not None:
        state.flush()
        ahead = tables.lifetime(_decisions(state))
        if not check_guard(state.history.lift, settings.guardrail, ahead).holds:
            return 1.0
    return float(settings.control)


class Sums(Copied):
    """The sums that were given, by their ids: the newest can be replaced."""

    def __init__(self) -> None:
        self.digests: dict[str, str] = {}
        self.kept: dict[str, Summed] = {}

    def apply(self, event: Summed, state: Any) -> None:
        """Add the sums of an event; those of an earlier one with its id are taken back."""
        before = self.kept.pop(event.id, None)
        if before is not None:
            _count_rewards(state, before, -1)
            state.learner.memory.warm(tally_of(state, before), before.t, -1.0)
        _count_rewards(state, event, 1)
        state.learner.warm_start(tally_of(state, event), event.t)
        self.digests[event.id], self.kept[event.id] = event.body, event
        for id in list(self.kept)[:-KEPT_SUMS]:
            del self.kept[id]


def tally_of(state: Any, event: Summed) -> Tally:
    """The sums of an event, for the problem as it is now."""
    context = state.problem.context
    names = [""] if context is None else context.segment_names
    whole = warehouse.tally(state.problem, [Sum(names[row[0]], *row[1:]) for row in event.rows])
    by_version: dict[int, list[Pattern]] = {}
    for one in event.patterns:
        by_version.setdefault(one.version, []).append(one)
    for version, patterns in by_version.items():
        found = state.published.table(version).count(patterns)
        whole.add(found if found.support == whole.support else found.grown(state.problem))
    whole.ours = True
    return whole


def claims_of(state: Any, patterns: list[Pattern]) -> list[float]:
    """What the estimates say now that a decision of each pattern is worth; 0 for visitors of no known segment."""
    found, (known, slates, sizes) = [0.0] * len(patterns), _counted(state, patterns)
    if known:
        number = warehouse.segment_numbers(state.problem)
        segments = [number(patterns[n].segment) for n in known]
        means = state.estimate_rows(np.concatenate(slates), np.repeat(segments, sizes))
        for n, claim in zip(known, values_each(state.problem, np.array(means, float), sizes).tolist(), strict=True):
            found[n] = float(round_to_grid(claim))
    return found


def _counted(state: Any, patterns: list[Pattern]) -> tuple[list[int], list[list[int]], Ints]:
    """Which patterns are of a known segment, their slates and how many arms these have."""
    table = state.published.table
    segments = {version: set(table(version).segments) for version in {one.version for one in patterns}}
    known = [n for n, one in enumerate(patterns) if one.segment in segments[one.version]]
    slates = [table(patterns[n].version).slate(patterns[n]) for n in known]
    return known, slates, np.array([len(slate) for slate in slates], np.int64)


def _count_rewards(state: Any, event: Summed, sign: int) -> None:
    """Count the rewards of decisions from tables: realised, beside what was claimed at first, and in the lift."""
    known, _, sizes = _counted(state, event.patterns)
    if not known:
        return
    patterns, claims = [event.patterns[n] for n in known], event.claims or claims_of(state, event.patterns)
    clicks = [[one.mask >> place & 1] for one, n in zip(patterns, sizes.tolist(), strict=True) for place in range(n)]
    rewards = values_each(state.problem, np.array(clicks, float), sizes).tolist()
    rewarded: dict[str, list[tuple[float, int, int]]] = {}
    number = warehouse.segment_numbers(state.problem)
    for one, value, claim in zip(patterns, rewards, [claims[n] for n in known], strict=True):
        made, n, group = state.published.all[one.version], sign * one.n, "control" if one.row < 0 else "policy"
        stratum = 0 if state.problem.context is None else -1 - number(one.segment)
        state.published.served[one.version] += n
        state.history.count_served(made, group, n, (value, value - claim), stratum)
        if one.version > state.published.compared_before and made.table.control.share:
            rewarded.setdefault(group, []).append((value, n, stratum))
    for group, own in rewarded.items():
        state.history.lift.add_served(group, own, state.problem)
