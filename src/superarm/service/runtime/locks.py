"""Streams held one at a time: who comes while one is held waits, and an event to wait on is made only then."""

import asyncio

StreamKey = tuple[str, str, str]
"""Kind, tenant, and the name of a problem or the id of a decision."""


class StreamLocks:
    """The streams that are held now, each with what those who wait for it wait on."""

    def __init__(self) -> None:
        self._held: dict[StreamKey, asyncio.Event | None] = {}

    def held(self, place: StreamKey) -> "StreamLock":
        """``async with`` it to hold the stream."""
        return StreamLock(self, place)

    def busy(self, place: StreamKey) -> bool:
        """Whether somebody holds the stream."""
        return place in self._held

    def take(self, place: StreamKey) -> None:
        """Hold a stream that is not busy."""
        self._held[place] = None

    def leave(self, place: StreamKey) -> None:
        """Hold it no longer."""
        free = self._held.pop(place)
        if free is not None:
            free.set()

    async def freed(self, place: StreamKey) -> None:
        """Wait until who holds the stream leaves it."""
        free = self._held[place]
        if free is None:
            free = self._held[place] = asyncio.Event()
        await free.wait()


class StreamLock:
    """A stream while it is held."""

    __slots__ = ("_place", "_streams")

    def __init__(self, streams: StreamLocks, place: StreamKey) -> None:
        self._streams, self._place = streams, place

    async def __aenter__(self) -> None:
        while self._streams.busy(self._place):
            await self._streams.freed(self._place)
        self._streams.take(self._place)

    async def __aexit__(self, *_: object) -> None:
        self._streams.leave(self._place)
