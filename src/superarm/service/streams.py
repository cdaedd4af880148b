"""Streams held one at a time: who comes while one is held waits, and an event to wait on is made only then."""

import asyncio

Place = tuple[str, str, str]
"""Kind, tenant, and the name of a problem or the id of a decision."""


class Streams:
    """The streams that are held now, each with what those who wait for it wait on."""

    def __init__(self) -> None:
        self._held: dict[Place, asyncio.Event | None] = {}

    def held(self, place: Place) -> "Held":
        """``async with`` it to hold the stream."""
        return Held(self._held, place)


class Held:
    """A stream while it is held."""

    __slots__ = ("_all", "_place")

    def __init__(self, held: dict[Place, asyncio.Event | None], place: Place) -> None:
        self._all, self._place = held, place

    async def __aenter__(self) -> None:
        while self._place in self._all:
            free = self._all[self._place]
            if free is None:
                free = self._all[self._place] = asyncio.Event()
            await free.wait()
        self._all[self._place] = None

    async def __aexit__(self, *_: object) -> None:
        free = self._all.pop(self._place)
        if free is not None:
            free.set()
