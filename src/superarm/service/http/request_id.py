"""Request ids: every answer has one, the caller's or a new one, and so has every line of the log about the request."""

import logging
import re
import secrets
import time
from contextvars import ContextVar
from typing import Any

log = logging.getLogger("superarm.access")

REQUEST_ID: ContextVar[str] = ContextVar("superarm_request_id", default="")

_ACCEPTED = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")


def choose_id(headers: list[tuple[bytes, bytes]]) -> str:
    """The caller's ``X-Request-Id``, if it is short and plain, or a new one.

    >>> choose_id([(b"x-request-id", b"abc-1")]), len(choose_id([(b"x-request-id", b"a b")]))
    ('abc-1', 16)
    """
    for name, value in headers:
        if name == b"x-request-id" and _ACCEPTED.fullmatch(value):
            return value.decode()
    return secrets.token_hex(8)


class Exchange:
    """One request: gives its answer the request's id, and can write a line about it to the log.

    It is called as the ``send`` of ASGI.
    """

    def __init__(self, scope: Any, send: Any) -> None:
        self._scope, self._send = scope, send
        self._id = choose_id(scope["headers"])
        self._began = time.perf_counter()
        self._status = 0
        REQUEST_ID.set(self._id)

    async def __call__(self, message: Any) -> None:
        """Send a message of the answer, the first one with the id."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message = {**message, "headers": [*message["headers"], (b"x-request-id", self._id.encode())]}
        await self._send(message)

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
