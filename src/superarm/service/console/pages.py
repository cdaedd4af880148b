"""What each page shows, as plain data for its template. No page asks a policy: looking changes no later decision."""

import asyncio
import math
import time
from functools import partial
from typing import Any

import msgspec

from superarm.core.errors import InvalidArgument
from superarm.decisions import DEFAULTED, PENDING, blank_row
from superarm.service.console import address, arms, charts, verdicts
from superarm.service.console.address import PageView
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.ledger import Key
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.warnings import list_warnings
from superarm.service.errors import RequestError
from superarm.service.http import views
from superarm.service.http.service import Principal, Service, permit
from superarm.service.runtime.coordinator import THREAD_SIZE
from superarm.service.storage.base import StoreUnavailable

MAX_SHOWN_PROBLEMS, MANY_ARMS, FRESH_S = 200, 2_000, 10.0
"""Policies of problems with more arms are not asked for their estimates, of others not more often."""

MAX_ITEMS_SHOWN, MAX_SHOWN_VERSIONS, MAX_SHOWN_CHANGES, FEATURES_SHOWN = 40, 50, 20, 3
Data = dict[str, Any]


Page = tuple[str, Data]
"""A template, and what it is filled with."""


class Pages:
    """Makes the pages; each method takes who asks and the query of the address."""

    def __init__(self, service: Service) -> None:
        self._service, self._coordinator = service, service.coordinator
        self._known: dict[Key, tuple[float, tuple[tuple[int, ...], list[float]] | None]] = {}

    async def home(self, who: Principal, query: bytes) -> Page:
        """One problem: that of the address, or the busiest."""
        view = address.view_of(query)
        key, names = await self._enter(who, view.problem)
        if not key[1]:
            return ("notice.html", self._frame(who, "", []) | {"kind": "nothing", "again": True})
        view = view._replace(problem=key[1])
        state = await self._coordinator.find(*key)
        stratum = state.strata.get(view.item) if view.item else None
        found = await self._find_decision((*key, view.decision), state) if view.decision else {}

        adds = await self._adds(key, state) if stratum is None else None

        def read(state: ProblemState) -> Data:
            state.flush()
            health = self._health(self._coordinator.ledger.n_pending.get(key, 0))
            return _problem_data(state, view, stratum, health, adds)

        shown = await self._coordinator.read(*key, read, THREAD_SIZE)
        return ("problem.html", self._frame(who, key[1], names, view=view) | shown | {"found": found})

    async def _adds(self, key: Key, state: ProblemState) -> tuple[tuple[int, ...], list[float]] | None:
        """What the arms of the last slate add by the policy's estimates, which are asked for now and then.

        What those of the list that it lacks are worth alone follows, where that is known.
        """
        if (last := state.history.last) is None or state.problem.n_arms > MANY_ARMS:
            return None
        at, known = self._known.get(key, (-math.inf, None))
        if time.monotonic() - at > FRESH_S or known is None or known[0] != last.action:
            try:
                every = last.action + tuple(j for j in arms.list_now(state) if j not in last.action)
                found = (await views.explain(self._coordinator, *key, last.id, 0, every)).arms
                weights, n = state.problem.weights, len(last.action)
                alone = [float(one.estimate @ weights) for one in found[n:] if one.estimate.shape == weights.shape]
                known = last.action, [one.estimated_gain for one in found[:n]] + alone
            except (RequestError, StoreUnavailable, InvalidArgument):  # erased, or chosen in another way
                known = None
            self._known[key] = time.monotonic(), known
        return known

    async def problems(self, who: Principal, query: bytes) -> Page:
        """All problems: what each gained, and what is wrong."""
        permit(who, "read")
        rows, names = [], await self._coordinator.ownership.names(who.tenant)
        for name in names[:MAX_SHOWN_PROBLEMS]:
            try:
                await self._coordinator.ownership.enter((who.tenant, name), creates=False)
                rows.append(await self._coordinator.read(who.tenant, name, partial(_row, name), THREAD_SIZE))
            except (RequestError, StoreUnavailable) as error:
                rows.append({"name": name, "wrong": str(error)})
        return ("problems.html", self._frame(who, "", names) | {"rows": rows, "total": len(names)})

    async def versions(self, who: Principal, query: bytes) -> Page:
        """The versions of a problem's settings, and the changes of the problem."""
        key, names = await self.open_problem(who, query)
        made = await asyncio.to_thread(views.read_audit, self._service.store, *key)
        born = next((n for n, entry in enumerate(made) if entry.what == "created"), len(made))
        made = made[: born + 1]  # another problem may have had this name before
        starts = {one.details.get("version", 1): one for one in made if one.what in ("created", "settings")}

        def read(state: ProblemState) -> Data:
            last = len(state.versions)
            shown = range(last, max(0, last - MAX_SHOWN_VERSIONS), -1)
            known = {"words": state.words, "arms": state.arms.all, "items": state.items.all, "last": last}
            return known | {"rows": [_version_row(state, n, starts.get(n)) for n in shown]}

        shown = await self._coordinator.read(*key, read)
        shown_changes = made[:MAX_SHOWN_CHANGES] if may_change(who) else []
        return ("versions.html", self._frame(who, key[1], names) | shown | {"changes": shown_changes})

    async def open_problem(self, who: Principal, query: bytes) -> tuple[Key, list[str]]:
        """The problem that the address asks for, and the names of all."""
        permit(who, "read")
        key, names = await self._enter(who, address.parse(query).get("problem", ""))
        if not key[1]:
            raise RequestError(404, "unknown", "there is no problem yet")
        await self._coordinator.find(*key)
        return key, names

    async def _enter(self, who: Principal, name: str) -> tuple[Key, list[str]]:
        """The problem of this name, or the busiest, ready to be read; and the names of all."""
        names = await self._coordinator.ownership.names(who.tenant)
        if not name and names:
            name = max(names, key=lambda one: self._activity((who.tenant, one)))
        if name:
            await self._coordinator.ownership.enter((who.tenant, name), creates=False)
        return (who.tenant, name), names

    def _activity(self, key: Key) -> tuple[int, int]:
        """The last day on which decisions finished, and how many decisions there are: the busiest has most."""
        state = self._coordinator.ledger.problems.get(key)
        if state is None:
            return -1, 0
        return max((one.at for one in state.history.stretches), default=0) // address.DAY_MS, state.decisions

    def _frame(self, who: Principal, chosen: str, names: list[str], view: PageView | None = None) -> Data:
        """What every page has around its own data."""
        rights = {"keyed": bool(who.key), "admin": may_change(who)}
        return {"problem": chosen, "names": names, "view": view or PageView(chosen), **rights}

    def _health(self, pending: int) -> verdicts.Health:
        condition, writer = self._coordinator.condition, self._coordinator.writer
        return verdicts.Health(condition.status, condition.reason or writer.overload() or "", pending)

    async def _find_decision(self, place: tuple[str, str, str], state: ProblemState) -> Data:
        try:
            record = await self._coordinator.record(*place)
        except (RequestError, StoreUnavailable) as error:
            return {"wrong": str(error)}
        shown = _decision_data(record, state)
        try:
            reasons = await views.explain(self._coordinator, *place, FEATURES_SHOWN)
            return shown | {"reasons": reasons.arms}
        except (RequestError, StoreUnavailable, InvalidArgument) as error:
            return shown | {"unexplained": error.wrong if isinstance(error, InvalidArgument) else str(error)}


def may_change(who: Principal) -> bool:
    """Whether who looks may change the problem."""
    return "admin" in who.scopes


def _row(name: str, state: ProblemState) -> Data:
    state.flush()
    last = max((one.at for one in state.history.stretches), default=0)
    about = {"decisions": state.decisions, "last": last, "warnings": list_warnings(state)}
    return {"name": name, "wrong": "", "tile": verdicts.judge_lift(state, None), "words": state.words, **about}


def _problem_data(
    state: ProblemState, view: PageView, stratum: int | None, health: verdicts.Health, adds: Any = None
) -> Data:
    history, settings, gone = state.history, state.settings, state.learner.retired_items
    dates = address.days(view)
    points = charts.reward_points(history, state.weighty_items, stratum, dates)
    shown = [(name, points[name]) for name in ("baseline", "policy") if any(p.value is not None for p in points[name])]
    table, last = arms.list_arms(state, view, stratum), history.last
    finished = history.complete + history.expired
    about = {"words": state.words, "k": state.problem.k, "settings": settings, "version": len(state.versions)}
    named = {name: number for name, number in state.strata.items() if number not in gone}
    about |= {"stratum": None if stratum is None else view.item, "by_item": stratum is not None and stratum >= 0}
    items = [] if state.problem.thresholds is not None else [name for name in named if named[name] >= 0]
    about |= {"items": items, "usual": _control_slate(state)}
    about |= {"segments": [name for name in named if named[name] < 0]}
    about |= {"warnings": list_warnings(state), "paused": settings.paused, "totals": state.problem.reward.totals}
    curve = {"charts": charts.draw(shown), "curves": [name for name, _ in shown], "finished": finished}
    curve["between"] = charts.means_between(history, state.weighty_items, stratum, dates) if any(dates) else {}
    gains = adds[1] if adds and last is not None and adds[0] == last.action else None
    feedback = {"history": history, "pending": health.pending, "learnt": views.items(state)}
    return {
        "tiles": verdicts.list_tiles(state, stratum, health),
        "table": table,
        "heat": arms.heat_map(state, table["numbers"], view.items),
        "slate": None if last is None else arms.worth(state, last.action, stratum, gains),
        **(about | curve | feedback),
    }


def _control_slate(state: ProblemState) -> str:
    slate, words = state.settings.control_slate, state.words
    if isinstance(slate, list):
        return ", ".join(slate)
    if slate == "uniform":
        return f"{words.many('arm')} drawn at random"
    ranking = list(state.settings.policy.baseline or ())[: state.problem.k]
    if ranking:
        return f"the baseline of its request, or else of the policy: {', '.join(ranking)}"
    return "the baseline that its request names; a request without one is refused"


def _version_row(state: ProblemState, version: int, start: views.AuditEntry | None) -> Data:
    before = state.versions[version - 2] if version > 1 else None
    said = ["created"] if before is None else list_changes(before, state.versions[version - 1]) or ["nothing"]
    return {"version": version, "current": version == len(state.versions), "start": start, "said": said}


def list_changes(before: Any, after: Any) -> list[str]:
    """What differs between two settings, in words.

    >>> from superarm.service.domain.spec import Settings
    >>> list_changes(Settings(), Settings(explore=0.1))
    ['explore: 0.0 → 0.1']
    """
    old, new = (msgspec.to_builtins(settings) for settings in (before, after))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return [f"{name}: {_said(old.get(name))} → {_said(new.get(name))}" for name in names]


def _said(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _decision_data(record: DecisionRecord, state: ProblemState) -> Data:
    asked, names = record.asked, state.arms.all
    chances = asked.propensities if record.action == asked.action else None
    items = list(asked.items or range(asked.n_items))[:MAX_ITEMS_SHOWN]
    rows = []
    for place, (arm, row) in enumerate(zip(record.action, record.rows, strict=True)):
        own = state.items_of(arm)
        values = row or blank_row(record, asked.n_items if own is None else len(own))
        by_item = dict(enumerate(values) if own is None else zip(own.tolist(), values, strict=True))
        rows.append((names[arm], chances[place] if chances else None, [by_item.get(i) for i in items]))
    instead = [names[j] for j in asked.policy_action or ()]
    if state.problem.thresholds is not None:
        scores = dict(record.scores)
        rows = [(name, chance, [scores.get(arm)]) for arm, (name, chance, _) in zip(record.action, rows, strict=True)]
        return {"record": record, "items": ["score"], "rows": rows, "instead": instead, "pending": None, "filled": None}
    codes = {"pending": PENDING, "filled": DEFAULTED}
    return {"record": record, "items": [state.items.all[i] for i in items], "rows": rows, "instead": instead} | codes
