"""Compaction of the log by the process that serves it.

A thread verifies the state and chooses the decisions that leave, by a connection of its own. They are then removed some
at a time, while requests for the problems wait. After every transaction the log can be served; what an interruption
leaves is removed by the next run.
"""

import asyncio
import contextlib
import logging
import time
from functools import partial
from itertools import islice

from superarm.core.errors import SuperarmError
from superarm.service.errors import RequestError
from superarm.service.runtime.coordinator import Coordinator
from superarm.service.storage.base import Position
from superarm.service.storage.compaction import OldDecisions, changed_since, plan_compaction, remove

log = logging.getLogger("superarm.compacting")

MAX_REMOVED_AT_ONCE = 1_000
"""How many decisions are removed by one transaction, which requests wait for."""

FIRST_SECONDS = 60.0
EVERY_SECONDS = 3_600.0
"""A service compacts its log so long after its start, and then every so often."""


async def compact_regularly(coordinator: Coordinator, days: float) -> None:
    """Compact the log every hour, as long as the process runs; a compaction that fails is tried again the next time."""
    await asyncio.sleep(FIRST_SECONDS)
    while True:
        try:
            n = await compact_served(coordinator, int((time.time() - 86_400 * days) * 1000))
            log.info("compacted the log", extra={"fields": {"removed": n}})
        except (SuperarmError, RequestError, OSError) as error:
            log.error("the log could not be compacted: %s", error)
        await asyncio.sleep(EVERY_SECONDS)


async def compact_served(coordinator: Coordinator, before: int) -> int:
    """Do what ``superarm compact`` does, while requests are answered: how many decisions were removed."""
    base = await coordinator.take_snapshot()
    with contextlib.closing(await asyncio.to_thread(coordinator.store.reader)) as reader:
        old, position = await asyncio.to_thread(plan_compaction, reader, base, before)
    n, rest = 0, iter(old.items())
    while part := dict(islice(rest, MAX_REMOVED_AT_ONCE)):
        async with coordinator.lock_all():
            n += await coordinator.writer.run(partial(_remove, coordinator, part, position))
    return n


def _remove(coordinator: Coordinator, part: OldDecisions, position: Position) -> int:
    """Remove decisions, but for those that have changed since a position; nobody else uses the state."""
    for key in changed_since(coordinator.store, position):
        part.pop(key, None)
    for key in part:
        coordinator.ledger.closed.pop(key, None)
    remove(coordinator.store, coordinator.ledger, coordinator.position, part)
    return len(part)
