"""Which work is so large that a thread does it, and pauses in work that stays on the event loop."""

import asyncio
import time
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from superarm.service.domain.events import Armed, Asked, Created, Expired, Told, Warmed
from superarm.service.domain.ledger import Ledger, LogEntry
from superarm.service.domain.problem import ProblemState

Result = TypeVar("Result")

HEAVY_ENTRIES = 20_000
"""A problem with so many entries is heavy: choosing from it, or changing it, may take more than a few milliseconds."""

HEAVY_VALUES = 10_000
"""Feedback of so many values, or a list of so many names, is heavy."""

SLICE_SECONDS = 0.01
"""Work on the event loop pauses after so long."""


class Slices:
    """Pauses in long work on the event loop, so that others are served in between."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self.pauses = 0

    async def pause_if_due(self) -> None:
        """Let others run, if this slice of the work has lasted long enough."""
        if time.perf_counter() - self._began > SLICE_SECONDS:
            self.pauses += 1
            await asyncio.sleep(0)
            self._began = time.perf_counter()


TASKS_PER_TURN = 32
"""How many tasks of one request begin within one turn of the event loop."""


async def gather_in_slices(parts: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """The results of many coroutines, which begin a few at a time, so that others are served in between."""
    tasks = []
    for n, part in enumerate(parts, 1):
        tasks.append(asyncio.ensure_future(part))
        if n % TASKS_PER_TURN == 0:
            await asyncio.sleep(0)
    return list(await asyncio.gather(*tasks))


def is_heavy_problem(learner: ProblemState) -> bool:
    """Whether choosing from a problem may take long."""
    return learner.problem.n_entries >= HEAVY_ENTRIES


def chooses_slowly(learner: ProblemState) -> bool:
    """Whether decisions are planned in a thread: in a large problem, or where slates are drawn to count chances."""
    return is_heavy_problem(learner) or learner.settings.propensity_draws > 0


def is_heavy_event(entry: LogEntry, ledger: Ledger) -> bool:
    """Whether applying an event may take long."""
    event: Any = entry.event
    if isinstance(event, Asked):
        return False
    if isinstance(event, Told):
        return bool(event.rows) or len(event.units) >= HEAVY_VALUES
    if isinstance(event, Expired):
        record = ledger.record((entry.tenant, entry.stream))
        return record is None or len(record.action) * record.asked.n_items >= HEAVY_VALUES
    return _is_heavy_change(entry, ledger)


def _is_heavy_change(entry: LogEntry, ledger: Ledger) -> bool:
    """Whether an event of a problem may take long."""
    event: Any = entry.event
    learner = ledger.problems.get((entry.tenant, entry.stream))
    if isinstance(event, Created):
        return len(event.spec.arms) * len(event.spec.items) >= HEAVY_ENTRIES
    if learner is not None and is_heavy_problem(learner):
        return True
    if isinstance(event, Warmed):
        return sum(map(len, event.rows)) >= HEAVY_VALUES
    return isinstance(event, Armed) and len(event.add) + len(event.retire) >= HEAVY_VALUES
