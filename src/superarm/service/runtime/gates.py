"""Problems that a thread works on: while it does, nobody else uses their state.

The state belongs to the event loop. Work on it that takes long runs in a thread, so that other requests are answered
meanwhile; requests about the same problem wait.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from superarm.service.domain.ledger import Key


class Gates:
    """One gate per problem, which is closed while a thread works on the problem, and one for all of them."""

    def __init__(self) -> None:
        self._closed: set[Key] = set()
        self._all_closed = False
        self._n_waiting_for_all = 0
        self._opened = asyncio.Event()
        self.on_open: Callable[[], None] = lambda: None

    def is_closed(self, problem: Key) -> bool:
        """Whether a thread works on the problem."""
        return self._all_closed or problem in self._closed

    async def wait(self, problem: Key) -> None:
        """Wait until no thread works on the problem."""
        while self.is_closed(problem):
            await self._opened.wait()

    @contextlib.asynccontextmanager
    async def close(self, problem: Key) -> AsyncIterator[None]:
        """Keep everybody else from a problem; whoever waits for all of them comes first."""
        while self.is_closed(problem) or self._n_waiting_for_all:
            await self._opened.wait()
        self._closed.add(problem)
        try:
            yield
        finally:
            self._closed.discard(problem)
            self._wake()

    @contextlib.asynccontextmanager
    async def close_all(self) -> AsyncIterator[None]:
        """Keep everybody else from all problems."""
        self._n_waiting_for_all += 1
        try:
            while self._closed or self._all_closed:
                await self._opened.wait()
        finally:
            self._n_waiting_for_all -= 1
        self._all_closed = True
        try:
            yield
        finally:
            self._all_closed = False
            self._wake()

    def _wake(self) -> None:
        opened, self._opened = self._opened, asyncio.Event()
        opened.set()
        self.on_open()
