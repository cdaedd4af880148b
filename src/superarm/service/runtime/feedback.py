"""Feedback, activation, the ends of windows, and erasure: the rules make an event of a request, and it is written.

An erased decision counts no longer, exactly as if it had never been made. An event of the problem says beforehand how
many there are, for the audit log. A compaction removes them from the disk.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import numpy as np

from superarm.core.arrays import Floats
from superarm.service.domain import decision as decisions
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.events import ALL, UNKNOWN, UNSEEN, Erased, ErasureRequested, Told, Unit
from superarm.service.domain.ledger import Key
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import digest_unit
from superarm.service.errors import RequestError, invalid
from superarm.service.replies import AppliedReply
from superarm.service.runtime.ask import arm_numbers
from superarm.service.runtime.coordinator import Coordinator, now_ms
from superarm.service.schemas import ActivateBody, TellBody, UnitBody
from superarm.service.storage.base import Store, StoreUnavailable, recall_decision

log = logging.getLogger("superarm.feedback")

MAX_EXPIRED_PER_SWEEP = 100

MANY_VALUES = 1_000
"""Feedback with so many values is stored as whole rows of arms."""


Parsed = tuple[list[Unit], decisions.Others, decisions.Rows]
"""Units, the arms outside of the slate that they are about, and whole rows of arms of which nothing is known."""


async def tell(coordinator: Coordinator, tenant: str, name: str, id: str, body: TellBody) -> AppliedReply:
    """Feedback of a decision."""

    def plan(learner: ProblemState, record: DecisionRecord) -> Told | None:
        units, others, rows = parse_feedback(record, learner, body)
        return decisions.feedback(record, units, body.amend, learner.settings, now_ms(), others, rows)

    size = len(body.feedback or ()) + sum(map(len, body.outcome or ()))
    return reply(*await coordinator.decide(tenant, name, id, plan, size))


def reply(applied: bool, record: DecisionRecord, event: Told | None) -> AppliedReply:
    """What became of feedback: ``record`` is the decision after it."""
    late = event.late if event is not None else record.closed == "expired"
    learnt = event is not None and applied and (event.learn or not event.late)
    return AppliedReply(learnt, late, record.state)


async def activate(coordinator: Coordinator, tenant: str, name: str, id: str, body: ActivateBody) -> AppliedReply:
    """A decision was shown, as given or otherwise."""

    def plan(learner: ProblemState, record: DecisionRecord) -> object:
        shown = None if body.shown is None else tuple(arm_numbers(learner.arms, body.shown, "shown"))
        return decisions.activation(record, shown, now_ms(), None if shown is None else learner.widths(shown))

    applied, record, _ = await coordinator.decide(tenant, name, id, plan)
    return AppliedReply(applied, False, record.state)


async def expire(coordinator: Coordinator) -> None:
    """End windows when they are over, as long as the process runs; what cannot be written is tried again."""
    while True:
        keys = coordinator.deadlines.due(MAX_EXPIRED_PER_SWEEP)
        await asyncio.gather(*(_expire_one(coordinator, key) for key in keys))
        await coordinator.deadlines.compact(coordinator.ledger.pending, len(coordinator.ledger.pending))
        await asyncio.sleep(0.0 if len(keys) == MAX_EXPIRED_PER_SWEEP else 0.05)


async def _expire_one(coordinator: Coordinator, key: Key) -> None:
    try:
        if (known := coordinator.ledger.pending.get(key)) is not None:
            place = key[0], known.asked.problem, known.asked.id
            await coordinator.decide(*place, lambda state, record: decisions.expiry(record, state.settings, now_ms()))
    except (RequestError, StoreUnavailable):
        coordinator.deadlines.retry(key, 1.0)
    except Exception:
        log.exception("a window could not be ended")
        coordinator.deadlines.retry(key, 5.0)


def parse_feedback(record: DecisionRecord, learner: ProblemState, body: TellBody) -> Parsed:
    """Feedback as numbers: of units by name, or of a matrix in slate order."""
    if (body.feedback is None) == (body.outcome is None):
        raise invalid("feedback", "give feedback or outcome, and not both", "feedback is a list of units")
    slate = frozenset(record.action)
    if body.feedback is not None and (body.seen is not None or body.arms is not None):
        field = "seen" if body.seen is not None else "arms"
        raise invalid(field, "goes with outcome", "a unit of feedback names its arm, and says seen: false")
    units, rows = _told(record, slate, learner, body)
    return units, _others(record, slate, learner, units), rows


def _others(
    record: DecisionRecord, slate: frozenset[int], learner: ProblemState, units: list[Unit]
) -> decisions.Others:
    """The arms outside of the slate that feedback is about, each with how many items it has."""
    if not learner.triggered:
        return ()
    arms = tuple(dict.fromkeys(arm for arm, _, _ in units if arm not in slate))
    return tuple(zip(arms, learner.widths(arms) or (record.asked.n_items,) * len(arms), strict=True))


def _unit(record: DecisionRecord, slate: frozenset[int], learner: ProblemState, unit: UnitBody) -> Unit:
    if (unit.value is None) == unit.seen:
        raise invalid("feedback.value", "a unit needs a value, or seen: false", "give exactly one of the two")
    arm = _arm(slate, learner, unit.arm, "feedback.arm")
    item = ALL if unit.item is None else learner.items.number(unit.item)
    if item is None:
        raise invalid("feedback.item", f"unknown {unit.item!r}", "report only items of the problem")
    if item >= record.asked.n_items:
        raise invalid("feedback.item", f"{unit.item!r} was added after this decision", "it takes only older items")
    about = record.asked.items
    if about is not None and item != ALL and item not in about:
        raise invalid("feedback.item", f"the decision is not about {unit.item!r}", "report only items that it named")
    own = learner.items_of(arm)
    if own is not None and item != ALL:
        place = int(np.searchsorted(own, item))
        if place == len(own) or own[place] != item:
            raise invalid("feedback.item", f"{unit.arm!r} cannot touch {unit.item!r}", "report items of its support")
        item = place
    return arm, item, UNSEEN if unit.value is None else unit.value


def _arm(slate: frozenset[int], learner: ProblemState, name: str, field: str) -> int:
    arm = learner.arms.number(name)
    if arm is None or (arm not in slate and not learner.triggered):
        raise invalid(field, f"{name!r} is not in the slate", "report only arms that were shown")
    return arm


def _told(
    record: DecisionRecord, slate: frozenset[int], learner: ProblemState, body: TellBody
) -> tuple[list[Unit], decisions.Rows]:
    if body.feedback is not None:
        return [_unit(record, slate, learner, unit) for unit in body.feedback], ()
    outcome, seen = body.outcome or [], body.seen
    arms = record.action if body.arms is None else [_arm(slate, learner, name, "arms") for name in body.arms]
    if len(set(arms)) < len(arms):
        raise invalid("arms", "an arm appears twice", "give one row per arm")
    about = record.asked.items
    widths = learner.widths(arms) or (record.asked.n_items if about is None else len(about),) * len(arms)
    if tuple(len(row) for row in outcome) != widths:
        raise invalid("outcome", "wrong shape", _shape(widths))
    if seen is not None and tuple(len(row) for row in seen) != widths:
        raise invalid("seen", "wrong shape", _shape(widths))
    heavy = sum(widths) >= MANY_VALUES and record.closed in ("", "complete") and about is None
    known = dict(zip(record.action, record.rows, strict=True)) if heavy else {}
    units, rows = list[Unit](), list[tuple[int, tuple[float, ...]]]()
    for place, (arm, row) in enumerate(zip(arms, outcome, strict=True)):
        marks = None if seen is None else seen[place]
        if row and arm in known:
            values = _merge_row(record, arm, known[arm], _whole_row(row, marks), body.amend)
            rows += [] if values is None else [(arm, tuple(values.tolist()))]
        else:
            units += _units_of_row(arm, row, marks, about)
    return units, tuple(rows)


def _whole_row(row: list[float | None], marks: list[bool] | None) -> Floats:
    """The row of an arm; null stays pending."""
    values = np.array(row, float)
    values[np.isnan(values)] = UNKNOWN
    if marks is not None:
        values[~np.array(marks, bool)] = UNSEEN
    return values


def _merge_row(
    record: DecisionRecord, arm: int, known: tuple[float, ...] | None, values: Floats, amend: bool
) -> Floats | None:
    """What is known of an arm after a row of feedback; None if that is what was known before."""
    before = np.full(len(values), UNKNOWN) if known is None else np.array(known)
    changed = (values != UNKNOWN) & (values != before)
    contradicts = changed & (before != UNKNOWN) & ~((before >= 0.0) & (values > before))
    if contradicts.any() and not amend:
        raise decisions.contradiction(record, arm, int(contradicts.argmax()))
    return np.where(changed, values, before) if changed.any() else None


def _units_of_row(
    arm: int, row: list[float | None], marks: list[bool] | None, about: tuple[int, ...] | None
) -> list[Unit]:
    if not row:  # an arm without items
        return [(arm, ALL, UNSEEN)]
    units = list[Unit]()
    for item, value, mark in zip(about or range(len(row)), row, marks or [True] * len(row), strict=True):
        if not mark:
            units.append((arm, item, UNSEEN))
        elif value is not None:
            units.append((arm, item, value))
    return units


def _shape(widths: tuple[int, ...]) -> str:
    if len(set(widths)) == 1:
        return f"give {len(widths)} rows of {widths[0]}, one row per arm in slate order"
    return f"give rows of {', '.join(map(str, widths[:20]))}: one value per item of each arm, in slate order"


AT_ONCE = 256
"""So many parts of one request are planned together; others' requests have a turn in between."""

Part = TypeVar("Part")
Result = TypeVar("Result")


async def run_all(parts: Sequence[Part], run: Callable[[Part], Awaitable[Result]]) -> list[Result]:
    """The results of all parts, in their order."""
    results: list[Result] = []
    for n in range(0, len(parts), AT_ONCE):
        results += await asyncio.gather(*map(run, parts[n : n + AT_ONCE]))
    return results


MAX_ERASED_AT_ONCE = 100
"""How many decisions are erased at the same time."""


async def erase_unit(coordinator: Coordinator, tenant: str, name: str, unit: str, by: str) -> int:
    """Erase all decisions of a problem that were made for a unit: how many there were."""
    learner = await coordinator.find(tenant, name)
    ids = await asyncio.to_thread(_find, coordinator.store, (tenant, name, learner.born), digest_unit(learner, unit))
    await _erase(coordinator, tenant, name, ids, by, unit=True)
    return len(ids)


def _find(store: Store, problem: tuple[str, str, int], unit: str) -> list[str]:
    """The decisions of a tenant's problem that were made for a unit, without those that were erased."""
    found = []
    for entry in store.made_for(unit):
        if (entry.tenant, entry.event.problem, entry.event.born) == problem:
            record = recall_decision(store, (entry.tenant, entry.stream))
            if record is not None and record.closed != "erased":
                found.append(record.asked.id)
    return found


async def erase_decision(coordinator: Coordinator, tenant: str, name: str, id: str, by: str) -> None:
    """Erase one decision, or 404."""
    await coordinator.record(tenant, name, id)
    await _erase(coordinator, tenant, name, [id], by, unit=False)


async def _erase(coordinator: Coordinator, tenant: str, name: str, ids: list[str], by: str, *, unit: bool) -> None:
    if not ids:
        return
    await coordinator.change(tenant, name, lambda learner: ErasureRequested(now_ms(), len(ids), unit, by))
    for n in range(0, len(ids), MAX_ERASED_AT_ONCE):
        await asyncio.gather(*(_erase_one(coordinator, tenant, name, id) for id in ids[n : n + MAX_ERASED_AT_ONCE]))


async def _erase_one(coordinator: Coordinator, tenant: str, name: str, id: str) -> None:
    try:
        await coordinator.decide(tenant, name, id, lambda state, record: Erased(now_ms()))
    except RequestError as error:
        if error.status != 404:  # somebody else has erased it meanwhile
            raise
