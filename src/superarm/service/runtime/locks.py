"""One asyncio lock per stream of events; an event to wait on is created only under contention."""

import asyncio

StreamKey = tuple[str, str, str]
"""Kind, tenant, and the name of a problem or the id of a decision."""


class StreamLocks:
    """The locks that are held now, each with the event that those who wait for it wait on, if there are any."""

    def __init__(self) -> None:
        self._held: dict[StreamKey, asyncio.Event | None] = {}

    def lock(self, key: StreamKey) -> "StreamLock":
        """The lock of a stream, for ``async with``."""
        return StreamLock(self, key)

    def is_held(self, key: StreamKey) -> bool:
        """Whether somebody holds the lock."""
        return key in self._held

    def acquire(self, key: StreamKey) -> None:
        """Hold a lock that is free."""
        self._held[key] = None

    def release(self, key: StreamKey) -> None:
        """Let go of a lock, and wake those who wait for it."""
        free = self._held.pop(key)
        if free is not None:
            free.set()

    async def wait(self, key: StreamKey) -> None:
        """Wait until a lock that is held is released."""
        free = self._held[key]
        if free is None:
            free = self._held[key] = asyncio.Event()
        await free.wait()


class StreamLock:
    """The lock of one stream as a context manager."""

    __slots__ = ("_key", "_locks")

    def __init__(self, locks: StreamLocks, key: StreamKey) -> None:
        self._locks, self._key = locks, key

    async def __aenter__(self) -> None:
        while self._locks.is_held(self._key):
            await self._locks.wait(self._key)
        self._locks.acquire(self._key)

    async def __aexit__(self, *_: object) -> None:
        self._locks.release(self._key)
