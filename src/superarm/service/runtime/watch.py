"""Looks after the process: whether the log can be written again, and whether a commit has stalled."""

import asyncio

from superarm.service.runtime.coordinator import Coordinator

WATCH_SECONDS = 1.0
IDLE_PROBES = 5
"""With several workers, the connection is tried every so many rounds even if nothing seems wrong."""


async def watch(coordinator: Coordinator) -> None:
    """Try to write every second while the log cannot be written, as long as the process runs."""
    rounds = 0
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        rounds += 1
        look(coordinator, idle=coordinator.store.shared and rounds % IDLE_PROBES == 0)


def look(coordinator: Coordinator, *, idle: bool = False) -> None:
    """Report a stalled writer; with ``idle``, or if the log could not be written, try to write."""
    condition, writer = coordinator.condition, coordinator.writer
    overload = writer.overload()
    if overload is not None:
        condition.report("write", overload)
    elif idle or condition.has("write"):
        writer.probe()
