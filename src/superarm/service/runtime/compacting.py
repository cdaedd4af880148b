"""Compaction of the log by the process that serves it, without holding up requests.

Threads verify the state, choose the decisions that leave, and write the archive, by a connection of their own. The
writer then lets the log begin with the base, and removes a few decisions per transaction, so that others are committed
in between. After every transaction the log can be served; what an interruption leaves is removed by the next run.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from functools import partial
from pathlib import Path

from superarm.core.errors import SuperarmError
from superarm.service.domain.events import Compacted
from superarm.service.domain.ledger import Key
from superarm.service.errors import RequestError
from superarm.service.runtime.coordinator import Coordinator, now_ms
from superarm.service.storage.base import Compactor
from superarm.service.storage.compaction import (
    CompactionReport,
    OldDecision,
    PlannedCompaction,
    archive_old,
    changed_since,
    plan_compaction,
    report,
)

log = logging.getLogger("superarm.compacting")

MAX_REMOVED_AT_ONCE = 100
"""How many decisions are removed by one transaction of the writer, which others' events wait for."""

FIRST_SECONDS = 60.0
EVERY_SECONDS = 3_600.0
"""A service compacts its log so long after its start, and then every so often."""


async def compact_regularly(coordinator: Coordinator, directory: Path | None, days: float) -> None:
    """Compact the log every hour, as long as the process runs; a compaction that fails is tried again the next time."""
    await asyncio.sleep(FIRST_SECONDS)
    while True:
        try:
            done = await compact_served(coordinator, directory, int((time.time() - 86_400 * days) * 1000))
            log.info("compacted the log", extra={"fields": {"archived": done.archived, "removed": done.removed}})
        except (SuperarmError, RequestError, OSError) as error:
            log.error("the log could not be compacted: %s", error)
        await asyncio.sleep(EVERY_SECONDS)


async def compact_served(coordinator: Coordinator, directory: Path | None, before: int) -> CompactionReport:
    """Do what ``superarm compact`` does, while requests are answered.

    Until it is removed, a decision that leaves is answered with 503, and afterwards with 404.
    """
    compactor = coordinator.store.compactor
    assert compactor is not None
    base = await coordinator.take_snapshot()
    with contextlib.closing(await asyncio.to_thread(compactor.reader)) as reader:
        plan = await asyncio.to_thread(plan_compaction, reader, base, before)
        try:
            await _leave(coordinator, plan.old)
            for key in await asyncio.to_thread(changed_since, reader, plan.position):
                plan.old.pop(key, None)
            if not plan.old:
                return CompactionReport(0, 0, None)
            archive = await asyncio.to_thread(archive_old, reader, directory, plan.old)
            await _remove(coordinator, compactor, plan, archive)
            return report(plan.old, archive)
        finally:
            coordinator.leaving.clear()


async def _leave(coordinator: Coordinator, old: dict[Key, OldDecision]) -> None:
    """See that no more events of decisions are planned; those that are planned already are written first."""
    for problem in {one.problem for one in old.values()}:
        async with coordinator.lock(problem):
            keys = [key for key, one in old.items() if one.problem == problem]
            coordinator.leaving.update(keys)
            for key in keys:
                coordinator.ledger.closed.pop(key, None)


async def _remove(
    coordinator: Coordinator, compactor: Compactor, plan: PlannedCompaction, archive: Path | None
) -> None:
    name = "" if archive is None else archive.name
    for problem, n in Counter(one.problem for one in plan.old.values()).items():
        await _note(coordinator, problem, Compacted(now_ms(), n, name))
    (position,) = plan.position.values()
    await coordinator.writer.run(lambda: compactor.begin_with(plan.base, position, name))
    keys = list(plan.old)
    for begin in range(0, len(keys), MAX_REMOVED_AT_ONCE):
        part = keys[begin : begin + MAX_REMOVED_AT_ONCE]
        await coordinator.writer.run(partial(compactor.remove, part, position))
        coordinator.leaving.difference_update(part)


async def _note(coordinator: Coordinator, problem: Key, event: Compacted) -> None:
    """Write an event of a problem, which may be deleted."""
    await coordinator.submit(problem, "", lambda state, _: event)
