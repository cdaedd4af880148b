"""Saves snapshots: a large state is encoded in a thread, while everything goes on."""

import asyncio
from collections.abc import Callable

from superarm.service.storage.base import SavedSnapshot
from superarm.service.storage.snapshot import StateCopy, encode_state

HEAVY_SNAPSHOT = 2_000
"""A copy with so many entries and pending decisions is encoded in a thread: that takes some milliseconds."""


class Saver:
    """Encodes copies of the state, one after the other, and gives them to ``save``."""

    def __init__(self) -> None:
        self.save: Callable[[SavedSnapshot], None] = lambda saved: None
        self._last: asyncio.Task[None] | None = None

    def put(self, copied: StateCopy) -> None:
        """Encode a copy of the state and save it."""
        size = sum(counters.tally.total.size for counters in copied.counters) + len(copied.pending)
        if size < HEAVY_SNAPSHOT and (self._last is None or self._last.done()):
            self.save(encode_state(copied))
        else:
            self._last = asyncio.get_running_loop().create_task(self._encode(copied, self._last))

    async def _encode(self, copied: StateCopy, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        self.save(await asyncio.to_thread(encode_state, copied, rests=True))

    async def finish(self) -> None:
        """Wait until every copy has been given to ``save``."""
        if self._last is not None:
            await asyncio.wait([self._last])
