"""Erasure: decisions of a unit, or single ones, count no longer, exactly as if they had never been made.

Each is erased by an event of its own, so that workers apply it after the decision's other events. An event of the
problem says beforehand how many there are, for the audit log. A compaction removes them from the disk.
"""

import asyncio

from superarm.service.domain.control import digest_unit
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.events import Erased, ErasureRequested
from superarm.service.domain.problem import ProblemState
from superarm.service.errors import RequestError
from superarm.service.runtime.coordinator import Coordinator, now_ms
from superarm.service.storage.base import DecisionSpan
from superarm.service.storage.search import END_OF_TIME, DecisionFilter, read_decisions

MAX_ERASED_AT_ONCE = 100
"""How many decisions are erased at the same time."""


async def erase_unit(coordinator: Coordinator, tenant: str, name: str, unit: str, by: str) -> int:
    """Erase all decisions of a problem that were made for a unit: how many there were."""
    learner = await coordinator.find(tenant, name)
    wanted = DecisionFilter(learner.born, unit=digest_unit(learner, unit))
    span = DecisionSpan(tenant, name, 0, (END_OF_TIME, ""), END_OF_TIME)
    ids = await asyncio.to_thread(_find, coordinator, span, wanted)
    await _erase(coordinator, tenant, name, ids, by, unit=True)
    return len(ids)


def _find(coordinator: Coordinator, span: DecisionSpan, wanted: DecisionFilter) -> list[str]:
    found = read_decisions(coordinator.store, span)
    return [record.asked.id for record in found if wanted.accepts(record)]


async def erase_decision(coordinator: Coordinator, tenant: str, id: str, by: str) -> str:
    """Erase one decision, or 404: the name of its problem."""
    record = await coordinator.record((tenant, id))
    await coordinator.problem_of(tenant, record)
    await _erase(coordinator, tenant, record.asked.problem, [id], by, unit=False)
    return record.asked.problem


async def _erase(coordinator: Coordinator, tenant: str, name: str, ids: list[str], by: str, *, unit: bool) -> None:
    if not ids:
        return
    await coordinator.change(tenant, name, lambda learner: ErasureRequested(now_ms(), len(ids), unit, by))
    for n in range(0, len(ids), MAX_ERASED_AT_ONCE):
        part = ids[n : n + MAX_ERASED_AT_ONCE]
        await asyncio.gather(*(_erase_one(coordinator, tenant, id) for id in part))


async def _erase_one(coordinator: Coordinator, tenant: str, id: str) -> None:
    def plan(learner: ProblemState, record: DecisionRecord) -> Erased:
        return Erased(now_ms())

    try:
        await coordinator.decide((tenant, id), plan)
    except RequestError as error:
        if error.status != 404:  # somebody else has erased it meanwhile
            raise
