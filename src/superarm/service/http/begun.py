"""Awaiting only what has to wait: most requests are here as a whole when their body is read."""

from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class Begun(Generic[Result]):
    """An awaitable that was run up to its first wait.

    ``waits`` is False if it ended without one; awaiting it then costs nothing. Otherwise it goes on where it stopped.

    >>> import asyncio
    >>> async def read(): return b"body"
    >>> async def look():
    ...     begun = Begun(read())
    ...     return begun.waits, await begun
    >>> asyncio.run(look())
    (False, b'body')
    """

    __slots__ = ("_first", "_result", "_steps", "waits")

    def __init__(self, awaitable: Awaitable[Result]) -> None:
        self._steps: Any = awaitable.__await__()
        self.waits = True
        try:
            self._first = self._steps.send(None)
        except StopIteration as end:
            self.waits, self._result = False, end.value

    def __await__(self) -> Generator[Any, Any, Result]:
        if not self.waits:
            return self._result  # type: ignore[no-any-return]
        awaited = self._first
        while True:
            try:
                sent = yield awaited
            except BaseException as error:
                step, value = self._steps.throw, error
            else:
                step, value = self._steps.send, sent
            try:
                awaited = step(value)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
