"""Reading what other workers write."""

import asyncio
from collections.abc import Awaitable, Callable

from superarm.service.runtime.condition import Condition
from superarm.service.runtime.outage import RETRY_SECONDS
from superarm.service.storage.base import ReadEntry, Store, StoreUnavailable

FOLLOW_SECONDS = 0.05
"""How often a worker reads what other workers wrote."""

REFRESH_SECONDS = 1.0
"""How long a request that only reads waits for the events of other workers."""


class Follower:
    """Reads the events of other workers in a thread, and applies them on the event loop, one reading at a time."""

    def __init__(
        self,
        store: Store,
        condition: Condition,
        read: Callable[[], list[ReadEntry]],
        apply: Callable[[list[ReadEntry]], Awaitable[None]],
    ) -> None:
        self._store, self._condition, self._read, self._apply = store, condition, read, apply
        self._lock = asyncio.Lock()
        self._since: float | None = None

    async def catch_up(self) -> None:
        """Apply everything that is in the log now, or raise ``StoreUnavailable``."""
        if not self._store.shared:
            return
        async with self._lock:
            self._since = asyncio.get_running_loop().time()
            try:
                reads = await asyncio.to_thread(self._read)
            except StoreUnavailable as error:
                self._condition.report("read", f"the log cannot be read: {error}")
                raise
            finally:
                self._since = None
            self._condition.clear("read")
            await self._apply(reads)

    async def refresh(self) -> None:
        """As ``catch_up``, for requests that only read: if that fails or takes long, they see what is known."""
        if not self._store.shared:
            return
        now = asyncio.get_running_loop().time()
        if self._since is not None and now - self._since > REFRESH_SECONDS:
            return  # the database does not answer: one thread that waits for it is enough
        task = asyncio.ensure_future(self.catch_up())
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait([task], timeout=REFRESH_SECONDS)

    async def follow(self) -> None:
        """Catch up, again and again, as long as the process runs."""
        while self._store.shared:
            try:
                await self.catch_up()
            except StoreUnavailable:
                await asyncio.sleep(RETRY_SECONDS)
            await asyncio.sleep(FOLLOW_SECONDS)
