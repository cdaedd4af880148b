"""Which work is so large that a thread does it, and pauses in work that stays on the event loop."""

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.events import ALL, Armed, Asked, Created, Deleted, Told, Warmed
from superarm.service.domain.ledger import Ledger, LogEntry
from superarm.service.domain.problem import ProblemState
from superarm.service.schemas import AskBody

Result = TypeVar("Result")

HEAVY_ENTRIES = 20_000
"""A problem with so many entries is heavy: choosing from it, or changing it, may take more than a few milliseconds."""

HEAVY_VALUES = 10_000
"""Feedback of so many values, or a list of so many names, is heavy."""

HEAVY_PRODUCTS = 1_000_000
"""A decision whose features take so many multiplications to be added to a regression is heavy."""

HEAVY_ESTIMATE = 10_000_000
"""A problem whose parameter vectors take so many multiplications to be estimated anew is heavy to choose from."""

FEW_TOGETHER = 4
"""If one call chooses fewer slates in some milliseconds, a slate takes so long that it is chosen in a thread."""

HEAVY_CHOICE = 100_000
"""A slate of so many arms times arms to choose from is heavy: each place may look at all of them."""

MAX_LOOP_NAMES = 10_000
"""A request that names so many arms is heavy."""

SLICE_SECONDS = 0.01
"""Work on the event loop pauses after so long."""


class _Turns:
    """Turns of an event loop: in each, one of those who work in slices goes on, and a slice is the same for all.

    If everybody went on in each turn, the slices of many large requests would add up, and a turn would last seconds.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._began: float | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._ends = False

    def elapsed(self) -> float:
        """How long it has been since somebody first asked in this turn."""
        now = time.perf_counter()
        if self._began is None:
            self._began = now
            self._schedule_end()
        return now - self._began

    def wait(self) -> "asyncio.Future[None]":
        """Done when it is the caller's turn to go on, in the order in which they wait."""
        mine = self.loop.create_future()
        self._waiting.append(mine)
        self._schedule_end()
        return mine

    def _schedule_end(self) -> None:
        if not self._ends:
            self._ends = True
            self.loop.call_soon(self._end)

    def _end(self) -> None:
        self._began, self._ends = None, False
        while self._waiting:
            first = self._waiting.popleft()
            if not first.done():  # it is if its request was given up
                first.set_result(None)
                break
        if self._waiting:
            self._schedule_end()


_turns: list[_Turns] = []
"""The turns of the event loop that was asked for last."""


def _turns_of_loop() -> _Turns:
    loop = asyncio.get_running_loop()
    found = next((turns for turns in _turns if turns.loop is loop), None)
    if found is None:
        found = _Turns(loop)
        _turns[:] = [found]
    return found


class Slices:
    """Pauses in long work on the event loop, so that others are served in between."""

    def __init__(self) -> None:
        self._turns = _turns_of_loop()
        self.pauses = 0

    @property
    def due(self) -> bool:
        """Whether this slice of the work, and what others did in slices in this turn, has lasted long enough."""
        return self._turns.elapsed() > SLICE_SECONDS

    async def pause(self) -> None:
        """Let others run."""
        self.pauses += 1
        await self._turns.wait()

    async def pause_if_due(self) -> None:
        """Let others run, if this slice of the work has lasted long enough."""
        if self.due:
            await self.pause()


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


async def run_all(parts: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines until the first error, which is raised, or a cancellation; all of them have ended afterwards.

    ``asyncio.gather`` would return from a cancellation while some of them are still at work.
    """
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            if not task.cancelling():  # gather has cancelled them already if it was cancelled itself
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_to_end(work: Callable[..., Result], *given: Any) -> Result:
    """The result of work in a thread. A cancellation waits for its end: what it uses may be closed afterwards.

    SQLite crashes the process if a connection is closed while another thread reads from it.
    """
    running = asyncio.ensure_future(asyncio.to_thread(work, *given))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with contextlib.suppress(asyncio.CancelledError):  # however often
                await asyncio.wait([running])
        raise


def is_heavy_problem(learner: ProblemState) -> bool:
    """Whether choosing from a problem may take long: it has many entries, or a regression of many coordinates."""
    contexts = learner.learner.contexts
    size = 0 if contexts is None else math.prod(contexts.pending_shape)
    return max(learner.problem.n_entries, size) >= HEAVY_ENTRIES


def chooses_slowly(learner: ProblemState) -> bool:
    """Whether decisions are planned in a thread: large problems and slates, and slates drawn to count chances."""
    if learner.settings.propensity_draws > 0 or learner.problem.n_entries >= HEAVY_ENTRIES:
        return True
    contexts = learner.contexts
    if contexts is not None and (contexts.n_together < FEW_TOGETHER or contexts.n_estimate_steps >= HEAVY_ESTIMATE):
        return True
    return learner.k * learner.problem.n_arms >= HEAVY_CHOICE


def is_heavy_ask(body: AskBody) -> bool:
    """Whether a request for a decision names so many arms that reading it takes long."""
    named = len(body.eligible or ()) + len(body.excluded)
    return named + sum(len(slot.excluded) for slot in body.slots or ()) >= MAX_LOOP_NAMES


def is_heavy_event(entry: LogEntry, ledger: Ledger) -> bool:
    """Whether applying an event may take long."""
    event: Any = entry.event
    if entry.kind == "problem":
        return _is_heavy_change(entry, ledger)
    if isinstance(event, Asked):
        return event.context is not None and _regresses_slowly(entry.tenant, event, ledger)
    record = ledger.record((entry.tenant, entry.stream))
    if isinstance(event, Told) and (event.rows or record is None):
        return bool(event.rows) or len(event.units) >= HEAVY_VALUES
    return record is None or _is_heavy_step(entry, record, ledger)


def _is_heavy_step(entry: LogEntry, record: DecisionRecord, ledger: Ledger) -> bool:
    """Whether an event of a decision that was made before may take long."""
    event, asked = entry.event, record.asked
    if asked.context is not None and _regresses_slowly(entry.tenant, asked, ledger):
        return True
    if not isinstance(event, Told):
        return len(record.action) * asked.n_items >= HEAVY_VALUES
    n_units = len(event.units)
    if n_units * asked.n_items < HEAVY_VALUES:
        return False
    return n_units >= HEAVY_VALUES or any(item == ALL for _, item, _ in event.units)


def _regresses_slowly(tenant: str, asked: Asked, ledger: Ledger) -> bool:
    """Whether adding the features of a decision to the regression of its problem takes many multiplications."""
    learner = ledger.problems.get((tenant, asked.problem))
    contexts = None if learner is None else learner.learner.contexts
    if contexts is None or contexts.design is None:
        return False
    per_entry = contexts.pending_shape[1]
    return len(asked.action) * asked.n_items * per_entry >= HEAVY_PRODUCTS


def _is_heavy_change(entry: LogEntry, ledger: Ledger) -> bool:
    """Whether an event of a problem may take long."""
    event: Any = entry.event
    learner = ledger.problems.get((entry.tenant, entry.stream))
    if isinstance(event, Created):
        return event.spec.context is not None or len(event.spec.arms) * len(event.spec.items) >= HEAVY_ENTRIES
    if isinstance(event, Deleted):
        return len(ledger.pending) + len(ledger.closed) >= HEAVY_VALUES
    if learner is not None and is_heavy_problem(learner):
        return True
    if isinstance(event, Warmed):
        return sum(map(len, event.rows)) >= HEAVY_VALUES
    if isinstance(event, Armed):
        return event.features is not None or len(event.add) + len(event.retire) >= HEAVY_VALUES
    return False
