"""Batches what arrives in one turn of the event loop: one kernel call chooses all slates, one commit writes it all."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from superarm.service.domain.ledger import Key, LogEntry
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import certain
from superarm.service.errors import RequestError
from superarm.service.runtime.clock import now_ms
from superarm.service.runtime.planning import plan_decision
from superarm.service.runtime.writer import WriteRequest, fail_all, make_write
from superarm.service.schemas import AskBody

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
    def plain(self) -> bool:
        """Whether the policy alone decides the slate, so that asks like this one can be chosen together."""
        body, settings = self.body, self.learner.settings
        asks_nothing = body.eligible is None and body.k is None and body.slots is None
        asks_nothing = asks_nothing and not body.excluded and not body.pinned
        return asks_nothing and settings.explore == 0.0 and settings.mode == "online"


class Batcher:
    """Collects asks and events until the event loop comes round again, or until there are ``MAX_COMMIT_EVENTS``.

    So a burst goes to the log in several commits: while one runs, the rest is read, and the first answers are sent.
    ``submit`` passes events to the writer, or raises ``RequestError``; ``n_pending`` counts the pending decisions of a
    problem.
    """

    def __init__(self, submit: Callable[[list[WriteRequest]], None], n_pending: Callable[[Key], int]) -> None:
        self._submit, self._n_pending = submit, n_pending
        self._asks: list[QueuedAsk] = []
        self._writes: list[WriteRequest] = []
        self._due = False

    def add(self, ask: QueuedAsk) -> None:
        """Queue a request: its decision is planned and written."""
        self._asks.append(ask)
        self._schedule(len(self._asks))

    def post(self, event: WriteRequest) -> None:
        """Queue an event to be written."""
        self._writes.append(event)
        self._schedule(len(self._writes))

    def _schedule(self, n: int) -> None:
        if n >= MAX_COMMIT_EVENTS:
            self._flush()
        elif not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._due = False
        asks, self._asks = [ask for ask in self._asks if not ask.done.done()], []
        writes, self._writes = self._writes, []
        for (_, plain), group in groupby(asks, lambda ask: (id(ask.learner), ask.plain)):
            together = list(group)
            for some in [together] if plain else [[ask] for ask in together]:
                writes += self._plan(some, plain)
        if not writes:
            return
        try:
            self._submit(writes)
        except RequestError as error:
            fail_all(writes, error)

    def _plan(self, asks: list[QueuedAsk], plain: bool) -> list[WriteRequest]:
        """The events of asks of one problem; several only if they are ``plain``."""
        learner = asks[0].learner
        allowed = self._n_allowed(asks[0])
        for ask in asks[allowed:]:
            ask.done.set_exception(_too_many_pending(ask))
        asks = asks[:allowed]
        eligible = ~learner.retired
        slates = learner.choose([ask.id for ask in asks], eligible) if plain and asks and eligible.any() else []
        writes = []
        for n, ask in enumerate(asks):
            try:
                slate = certain(learner, tuple(slates[n])) if slates and slates[n] else None
                asked = plan_decision(learner, ask.name, ask.id, ask.body, ask.digest, now_ms(), slate)
            except Exception as error:
                ask.done.set_exception(error)
                continue
            learner.reserve(asked.t, asked.action)
            entry = LogEntry(ask.tenant, "decision", ask.id, 0, asked)
            writes.append(make_write(entry, ask.done, partial(learner.release, asked.t)))
        return writes

    def _n_allowed(self, ask: QueuedAsk) -> int:
        """How many more decisions of the problem may be pending."""
        pending = self._n_pending((ask.tenant, ask.name)) + len(ask.learner.reserved)
        return max(0, ask.learner.settings.max_pending - pending)


def _too_many_pending(ask: QueuedAsk) -> RequestError:
    limit = ask.learner.settings.max_pending
    return RequestError(
        429, "too_many_pending", f"problem {ask.name!r} has {limit} decisions without feedback, its max_pending", 5
    )
