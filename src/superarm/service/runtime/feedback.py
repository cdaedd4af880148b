"""Feedback, activation, the ends of windows, and erasure: the rules make an event of a request, and it is written.

An erased decision counts no longer, exactly as if it had never been made. An event of the problem says beforehand how
many there are, for the audit log. A compaction removes them from the disk.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from superarm.decisions import Erased, Expired, Reader, Reported, Told, activation, expiry, feedback, read_answer
from superarm.decisions.answers import HTTP
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.events import ErasureRequested
from superarm.service.domain.ledger import Key
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import digest_unit
from superarm.service.errors import RequestError
from superarm.service.replies import AppliedReply
from superarm.service.runtime.ask import arm_numbers
from superarm.service.runtime.coordinator import Coordinator, now_ms
from superarm.service.schemas import ActivateBody, TellBody
from superarm.service.storage.base import Store, StoreUnavailable, recall_decision

log = logging.getLogger("superarm.feedback")

MAX_EXPIRED_PER_SWEEP = 100


async def tell(coordinator: Coordinator, tenant: str, name: str, id: str, body: TellBody) -> AppliedReply:
    """Feedback of a decision."""

    def plan(state: ProblemState, record: DecisionRecord) -> Told | None:
        reader = Reader(state.problem, state.arms, state.items, state.triggered, remedies=HTTP)
        parts = None if body.totals is None else [(part.arms, part.total) for part in body.totals]
        rows = Reported(body.outcome, body.seen, body.arms, body.feedback)
        given = rows._replace(total=body.total, totals=parts, n=body.n, scores=body.scores)
        told = read_answer(reader, record, given)
        whole, learn_late = body.feedback is None, state.settings.late == "learn"
        return feedback(record, told, amend=body.amend, learn_late=learn_late, whole=whole, at=now_ms())

    size = len(body.feedback or ()) + sum(map(len, body.outcome or ())) + 20 * len(body.scores or ())
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
        return activation(record, shown, now_ms(), None if shown is None else learner.widths(shown))

    applied, record, _ = await coordinator.decide(tenant, name, id, plan)
    return AppliedReply(applied, False, record.state)


async def expire(coordinator: Coordinator) -> None:
    """End windows when they are over, as long as the process runs; what cannot be written is tried again."""
    while True:
        keys = coordinator.deadlines.due(MAX_EXPIRED_PER_SWEEP)
        await asyncio.gather(*(_expire_one(coordinator, key) for key in keys))
        await coordinator.deadlines.compact(coordinator.ledger.pending, len(coordinator.ledger.pending))
        await asyncio.sleep(0.0 if len(keys) == MAX_EXPIRED_PER_SWEEP else 0.05)


def _plan_expiry(state: ProblemState, record: DecisionRecord) -> Expired | None:
    fill = state.settings.at_window_end
    return expiry(record, None if fill == "ignore" else fill, now_ms())


async def _expire_one(coordinator: Coordinator, key: Key) -> None:
    try:
        if (known := coordinator.ledger.pending.get(key)) is not None:
            place = key[0], known.asked.problem, known.asked.id
            await coordinator.decide(*place, _plan_expiry)
    except (RequestError, StoreUnavailable):
        coordinator.deadlines.retry(key, 1.0)
    except Exception:
        log.exception("a window could not be ended")
        coordinator.deadlines.retry(key, 5.0)


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
