"""Batches what arrives in one turn of the event loop: one kernel call chooses all slates, one commit writes it all."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise

from superarm.service.domain.control import shows_control
from superarm.service.domain.events import Asked
from superarm.service.domain.ledger import Key, LogEntry
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import plain_slate
from superarm.service.errors import RequestError
from superarm.service.runtime.clock import now_ms
from superarm.service.runtime.context_planning import ContextRequest, plan_in_contexts
from superarm.service.runtime.gates import Gates
from superarm.service.runtime.heavy import SLICE_SECONDS, chooses_slowly, is_heavy_ask
from superarm.service.runtime.planning import plan_alike, plan_decision
from superarm.service.runtime.writer import WriteRequest, fail_all, make_write
from superarm.service.schemas import PLAIN_ASK, AskBody

MAX_COMMIT_EVENTS = 64
"""A batch is sent to the writer when it has so many events, even within a turn of the event loop."""


@dataclass(slots=True, eq=False)
class QueuedAsk:
    """A request for a decision; ``done`` gets True when its event is in the log, False if its step was taken."""

    tenant: str
    name: str
    id: str
    body: AskBody
    digest: str
    learner: ProblemState
    done: "asyncio.Future[bool]"

    @property
    def problem(self) -> Key:
        """The problem's key."""
        return self.tenant, self.name

    def kind(self) -> tuple[int, bool, bool]:
        """What asks that are planned together have in common: the problem, whether they are plain, and heavy."""
        plain = self.plain
        return id(self.learner), plain, not plain and is_heavy_ask(self.body)

    @property
    def plain(self) -> bool:
        """Whether the policy alone decides the slate, so that asks like this one can be chosen together."""
        body, settings, in_context = self.body, self.learner.settings, self.learner.contexts is not None
        if settings.explore != 0.0 or settings.mode != "online":
            return False
        if body is PLAIN_ASK and not in_context and settings.control == 0.0:
            return True
        asks_nothing = body.eligible is None and body.k is None and body.slots is None
        asks_nothing = asks_nothing and not body.excluded and not body.pinned
        if in_context:
            return asks_nothing and body.items is None and settings.control == 0.0 and settings.propensity_draws == 0
        complete = settings.control == 0.0 or settings.control_slate != "baseline" or body.baseline is not None
        return asks_nothing and complete and body.context is None and body.pairs is None


class Batcher:
    """Collects asks and events until the event loop comes round again, or until there are ``MAX_COMMIT_EVENTS``.

    So a burst goes to the log in several commits: while one runs, the rest is read, and the first answers are sent.
    While a commit runs (``is_writing``), fewer are kept until its end, when ``go_on`` is called: they could not be
    written sooner, and what a batch costs besides its events is paid less often. Planning stops after
    ``SLICE_SECONDS`` and goes on in the next turn of the event loop; slates of a large problem are planned in a thread.
    ``submit`` passes events to the writer, or raises ``RequestError``; ``n_pending`` counts the pending decisions of a
    problem.
    """

    def __init__(
        self,
        submit: Callable[[list[WriteRequest]], None],
        n_pending: Callable[[Key], int],
        gates: Gates,
        is_writing: Callable[[], bool],
    ) -> None:
        self._submit, self._n_pending, self._gates, self._is_writing = submit, n_pending, gates, is_writing
        self._asks: list[QueuedAsk] = []
        self._parked: list[QueuedAsk] = []  # a thread works on their problem
        self._writes: list[WriteRequest] = []
        self._due = False
        self._tired = False  # this turn of the event loop has had its share of planning
        self._threads: set[asyncio.Task[None]] = set()
        gates.on_open = self._unpark

    def add(self, ask: QueuedAsk) -> None:
        """Queue a request: its decision is planned and written."""
        self._asks.append(ask)
        self._schedule(len(self._asks))

    def post(self, event: WriteRequest) -> None:
        """Queue an event to be written."""
        self._writes.append(event)
        self._schedule(len(self._writes))

    def _schedule(self, n: int) -> None:
        if n >= MAX_COMMIT_EVENTS and not self._tired:
            self._flush()
        elif not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._begin_turn)

    def _unpark(self) -> None:
        self._asks, self._parked = self._parked + self._asks, []
        if self._asks:
            self._schedule(0)

    def _begin_turn(self) -> None:
        self._due = self._tired = False
        if max(len(self._asks), len(self._writes)) >= MAX_COMMIT_EVENTS or not self._is_writing():
            self._flush()

    def go_on(self) -> None:
        """A commit has ended: plan and write what was kept meanwhile, unless the next commit runs."""
        if (self._asks or self._writes) and not self._due:
            self._begin_turn()

    def _flush(self) -> None:
        asks, self._asks = [ask for ask in self._asks if not ask.done.done()], []
        writes, self._writes = self._writes, []
        end, planned = time.perf_counter() + SLICE_SECONDS, 0
        for (_, plain, heavy), group in groupby(asks, QueuedAsk.kind):
            together = list(group)
            if self._gates.is_closed(together[0].problem):
                self._parked += together  # they are planned when the gate opens
            elif heavy or chooses_slowly(together[0].learner):
                self._start_thread(together[:MAX_COMMIT_EVENTS], plain)
                self._parked += together[MAX_COMMIT_EVENTS:]
            else:
                for some in _split(together, plain):
                    if not planned or time.perf_counter() < end:
                        planned += 1
                        writes += self._finish(self._try_to_plan(some, plain))
                    else:
                        self._asks += some
        if time.perf_counter() >= end:
            self._tired = True
            if self._asks:
                self._schedule(0)
        self._write(writes)

    def _write(self, writes: list[WriteRequest]) -> None:
        if not writes:
            return
        try:
            self._submit(writes)
        except RequestError as error:
            fail_all(writes, error)

    def _start_thread(self, asks: list[QueuedAsk], plain: bool) -> None:
        task = asyncio.get_running_loop().create_task(self._plan_in_thread(asks, plain))
        self._threads.add(task)
        task.add_done_callback(self._threads.discard)

    async def _plan_in_thread(self, asks: list[QueuedAsk], plain: bool) -> None:
        planned = []
        async with self._gates.close(asks[0].problem):
            for some in _split(asks, plain):
                planned += await asyncio.to_thread(self._try_to_plan, some, plain)
        self._write(self._finish(planned))

    def _finish(self, planned: list[tuple[QueuedAsk, Asked | Exception]]) -> list[WriteRequest]:
        """The events to write; asks that are refused get their error."""
        writes = []
        for ask, asked in planned:
            if isinstance(asked, Asked):
                entry = LogEntry(ask.tenant, "decision", ask.id, 0, asked)
                writes.append(make_write(entry, ask.name, ask.done, partial(ask.learner.release, asked.t)))
            elif not ask.done.done():
                ask.done.set_exception(asked)
        return writes

    def _try_to_plan(self, asks: list[QueuedAsk], plain: bool) -> list[tuple[QueuedAsk, Asked | Exception]]:
        try:
            return self._plan(asks, plain)
        except Exception as error:
            return [(ask, error) for ask in asks]

    def _plan(self, asks: list[QueuedAsk], plain: bool) -> list[tuple[QueuedAsk, Asked | Exception]]:
        """The events of asks of one problem, or why they are refused; several asks only if they are ``plain``."""
        learner = asks[0].learner
        allowed = self._n_allowed(asks[0])
        planned: list[tuple[QueuedAsk, Asked | Exception]] = []
        if plain and allowed and learner.contexts is not None:
            events = _plan_in_contexts(asks[:allowed])
            if events is not None:
                return events + [(ask, _too_many_pending(ask)) for ask in asks[allowed:]]
        eligible, plain = ~learner.retired, plain and learner.contexts is None
        slates = (
            learner.choose([ask.id for ask in asks[:allowed]], eligible) if plain and allowed and eligible.any() else []
        )
        if slates and len(asks) == len(slates) and _are_alike(asks) and all(slates):
            return _plan_alike(asks, slates)
        for n, ask in enumerate(asks[:allowed]):
            try:
                slate = plain_slate(learner, ask.id, tuple(slates[n])) if slates and slates[n] else None
                asked = plan_decision(learner, ask.name, ask.id, ask.body, ask.digest, now_ms(), slate)
            except Exception as error:
                planned.append((ask, error))
                continue
            learner.reserve(asked)
            planned.append((ask, asked))
        return planned + [(ask, _too_many_pending(ask)) for ask in asks[allowed:]]

    def _n_allowed(self, ask: QueuedAsk) -> int:
        """How many more decisions of the problem may be pending."""
        pending = self._n_pending((ask.tenant, ask.name)) + len(ask.learner.reserved)
        return max(0, ask.learner.settings.max_pending - pending)


def _are_alike(asks: list[QueuedAsk]) -> bool:
    """Whether plain asks of one problem differ in their ids only, and the policy chooses without chance."""
    learner = asks[0].learner
    certain = learner.settings.control == 0.0 and not learner.is_random
    return certain and all(ask.body is PLAIN_ASK for ask in asks)


def _plan_alike(asks: list[QueuedAsk], slates: list[list[int]]) -> list[tuple[QueuedAsk, Asked | Exception]]:
    """The events of asks that differ in their ids only, for which the policy has chosen slates."""
    one = asks[0]
    chosen = [(ask.id, tuple(arms)) for ask, arms in zip(asks, slates, strict=True)]
    events = plan_alike(one.learner, one.name, one.digest, now_ms(), chosen)
    for event in events:
        one.learner.reserve(event)
    return list(zip(asks, events, strict=True))


def _plan_in_contexts(asks: list[QueuedAsk]) -> list[tuple[QueuedAsk, Asked | Exception]] | None:
    """The events of plain asks with contexts, or why they are refused; None if they have to be planned one by one."""
    requests = [ContextRequest(ask.id, ask.body, ask.digest) for ask in asks]
    events = plan_in_contexts(asks[0].learner, asks[0].name, requests, now_ms())
    return None if events is None else list(zip(asks, events, strict=True))


def _split(asks: list[QueuedAsk], plain: bool) -> list[list[QueuedAsk]]:
    """Asks of one problem in parts that can be chosen together.

    Each part ends with the first ask that may show the control slate: what comes after it sees that as pending. Parts
    with contexts are so small that choosing takes a few milliseconds.
    """
    if not plain:
        return [[ask] for ask in asks]
    contexts = asks[0].learner.contexts
    if contexts is not None:
        size = contexts.n_together
        return [asks[n : n + size] for n in range(0, len(asks), size)]
    ends = shows_control(asks[0].learner, ((ask.id, ask.body.unit) for ask in asks))
    cuts = [0, *(n + 1 for n, end in enumerate(ends[:-1]) if end), len(asks)]
    return [asks[a:b] for a, b in pairwise(cuts)]


def _too_many_pending(ask: QueuedAsk) -> RequestError:
    limit = ask.learner.settings.max_pending
    return RequestError(
        429, "too_many_pending", f"problem {ask.name!r} has {limit} decisions without feedback, its max_pending", 5
    )
