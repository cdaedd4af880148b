"""Reading the body of a request: in bounded time, and with bounded memory for all bodies that are not complete."""

import asyncio
from typing import Any

from superarm.service.errors import RequestError, overloaded

BODY_SECONDS = 60.0
"""A body that is not complete after so many seconds is refused."""

MAX_UNFINISHED_BODIES = 8
"""All bodies that are not complete yet may together have so many times the size of the largest allowed one."""


class Bodies:
    """Reads bodies of at most ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.unfinished_bytes = 0

    async def read(self, receive: Any, headers: dict[bytes, bytes], limit: int | None = None) -> bytes:
        """The body of a request; 413 if it is too large, 408 if it does not come in time, 503 if too many are coming.

        ``limit`` is another size for this body.
        """
        most = self.limit if limit is None else limit
        announced = headers.get(b"content-length", b"0")
        if not announced.isdigit() or int(announced) > most:
            raise _too_large(most)
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await self._collect(receive, most)
        except TimeoutError:
            raise RequestError(408, "timeout", f"the body was not complete after {BODY_SECONDS:g} s") from None

    async def _collect(self, receive: Any, most: int) -> bytes:
        body = bytearray()
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestError(400, "gone", "the client closed the connection")
                chunk = message.get("body", b"")
                body += chunk
                self.unfinished_bytes += len(chunk)
                if len(body) > most:
                    raise _too_large(most)
                if not message.get("more_body", False):
                    return bytes(body)
                if self.unfinished_bytes > MAX_UNFINISHED_BODIES * self.limit:
                    raise overloaded("too many large bodies are being sent; try again")
        finally:
            self.unfinished_bytes -= len(body)


def _too_large(most: int) -> RequestError:
    return RequestError(413, "too_large", f"the body is above {most} bytes")
