"""Request ids: every answer has one, the caller's or a new one, and so has every line of the log about the request."""

import logging
import re
import time
from collections.abc import Awaitable
from contextvars import ContextVar
from typing import Any

from superarm.service.random_ids import RandomIds

log = logging.getLogger("superarm.access")

WHOLE_RESPONSE = "superarm.response"
"""The ASGI extension that writes a response at once: given its status, the lines of its headers, and its body."""

WHOLE_BODY = "superarm.body"
"""The ASGI extension that gives the body of a request, given its largest size; None if it is not complete yet."""

REQUEST_ID: ContextVar[str] = ContextVar("superarm_request_id", default="")

NO_EXTENSIONS: dict[str, Any] = {}
_ids = RandomIds(8, bytes.hex)
_ACCEPTED = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")


def choose_id(headers: list[tuple[bytes, bytes]]) -> str:
    """The caller's ``X-Request-Id``, if it is short and plain, or a new one.

    >>> choose_id([(b"x-request-id", b"abc-1")]), len(choose_id([(b"x-request-id", b"a b")]))
    ('abc-1', 16)
    """
    for name, value in headers:
        if name == b"x-request-id" and _ACCEPTED.fullmatch(value):
            return value.decode()
    return _ids.take()


class Exchange:
    """One request: gives its answer the request's id, and can write a line about it to the log.

    It is called as the ``send`` of ASGI.
    """

    def __init__(self, scope: Any, send: Any) -> None:
        self._scope, self._send = scope, send
        self._write = scope.get("extensions", NO_EXTENSIONS).get(WHOLE_RESPONSE)
        self._id = choose_id(scope["headers"])
        self._began = time.perf_counter()
        self._status = 0
        REQUEST_ID.set(self._id)

    def write(self, status: int, media: bytes, body: bytes) -> bool:
        """Write a whole answer, if the server can; False if it has to be sent by messages."""
        if self._write is None:
            return False
        self._status = status
        head = b"content-type: %b\r\ncontent-length: %d\r\nx-request-id: %b\r\n"
        written: bool = self._write(status, head % (media, len(body), self._id.encode()), body)
        return written

    def __call__(self, message: Any) -> Awaitable[None]:
        """Send a message of the answer, the first one with the id."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message = {**message, "headers": [*message["headers"], (b"x-request-id", self._id.encode())]}
        sent: Awaitable[None] = self._send(message)  # not a coroutine of its own around another one
        return sent

    def log(self) -> None:
        """Write one line: what was asked, by which address, how it ended and how long it took."""
        scope = self._scope
        client = scope.get("client")
        fields = {
            "method": scope["method"],
            "path": scope["path"],
            "status": self._status,
            "seconds": round(time.perf_counter() - self._began, 6),
            "client": client[0] if client else "",
        }
        log.info("request", extra={"fields": fields})
