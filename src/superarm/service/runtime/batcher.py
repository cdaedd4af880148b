"""What arrives in one turn of the event loop: asks chosen by one call of the kernel, events written by one commit."""

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
"""As many as are worth a commit of their own."""


@dataclass(slots=True, eq=False)
class QueuedAsk:
    """A request for a decision; ``done`` tells whether its event took its place in the log."""

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
        self._commands: list[WriteRequest] = []
        self._due = False

    def add(self, ask: QueuedAsk) -> None:
        """Have a decision planned and written."""
        self._asks.append(ask)
        self._later(len(self._asks))

    def post(self, event: WriteRequest) -> None:
        """Have an event written."""
        self._commands.append(event)
        self._later(len(self._commands))

    def _later(self, n: int) -> None:
        if n >= MAX_COMMIT_EVENTS:
            self._end()
        elif not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        self._due = False
        asks, self._asks = [ask for ask in self._asks if not ask.done.done()], []
        commands, self._commands = self._commands, []
        for (_, plain), group in groupby(asks, lambda ask: (id(ask.learner), ask.plain)):
            together = list(group)
            for some in [together] if plain else [[ask] for ask in together]:
                commands += self._planned(some, plain)
        if not commands:
            return
        try:
            self._submit(commands)
        except RequestError as refusal:
            fail_all(commands, refusal)

    def _planned(self, asks: list[QueuedAsk], plain: bool) -> list[WriteRequest]:
        """The events of asks of one problem; several only if they are ``plain``."""
        learner = asks[0].learner
        room = self._room(asks[0])
        for ask in asks[room:]:
            ask.done.set_exception(_full(ask))
        asks = asks[:room]
        free = ~learner.retired
        slates = learner.choose([ask.id for ask in asks], free) if plain and asks and free.any() else []
        commands = []
        for n, ask in enumerate(asks):
            try:
                slate = certain(learner, tuple(slates[n])) if slates and slates[n] else None
                asked = plan_decision(learner, ask.name, ask.id, ask.body, ask.digest, now_ms(), slate)
            except Exception as error:
                ask.done.set_exception(error)
                continue
            learner.reserve(asked.t, asked.action)
            entry = LogEntry(ask.tenant, "decision", ask.id, 0, asked)
            commands.append(make_write(entry, ask.done, partial(learner.release, asked.t)))
        return commands

    def _room(self, ask: QueuedAsk) -> int:
        """How many more decisions of the problem may wait for feedback."""
        waiting = self._n_pending((ask.tenant, ask.name)) + len(ask.learner.reserved)
        return max(0, ask.learner.settings.max_pending - waiting)


def _full(ask: QueuedAsk) -> RequestError:
    limit = ask.learner.settings.max_pending
    return RequestError(
        429, "too_many_pending", f"problem {ask.name!r} has {limit} decisions without feedback, its max_pending", 5
    )
