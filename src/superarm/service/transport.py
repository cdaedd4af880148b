"""JSON over HTTP with the standard library: a few connections, with retries, as all calls are idempotent."""

import http.client
import random
import socket
import ssl
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import msgspec

from superarm.core.errors import InvalidArgument, SuperarmError

RETRIED_STATUSES = (429, 502, 503, 504)
MAX_WAIT_SECONDS = 10.0
MAX_CONNECTIONS = 32
"""How many calls are made at the same time at most; further ones wait."""


class ServiceError(SuperarmError):
    """The service refused, or could not be reached: ``status`` (0 if there was no answer), ``code``, message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Transport:
    """Calls to one service, from any number of threads: each takes a connection that is idle, or makes a new one.

    Every call is idempotent, so one without an answer is made again, ``retries`` times.
    """

    def __init__(self, url: str, key: str | None, timeout: float, retries: int) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidArgument("url", f"{url!r}", "give http://host:port or https://host")
        self._parts, self._timeout, self._retries = parts, timeout, retries
        self.address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self._headers = {"content-type": "application/json"}
        if key:
            self._headers["authorization"] = f"Bearer {key}"
        self._idle: list[http.client.HTTPConnection] = []
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The answer, decoded; ``ServiceError`` for a refusal."""
        data = b"" if body is None else msgspec.json.encode(body)
        for attempt in range(self._retries + 1):
            status, wait, answer = self._try(method, path, data)
            if status not in (0, *RETRIED_STATUSES) or attempt == self._retries:
                break
            time.sleep(min(MAX_WAIT_SECONDS, wait or 0.05 * 2**attempt) * random.uniform(0.5, 1.0))
        if status in (200, 201):
            return msgspec.json.decode(answer)
        raise _error(status, answer)

    def _try(self, method: str, path: str, data: bytes) -> tuple[int, float, bytes]:
        with self._places:
            connection: http.client.HTTPConnection | None = None
            try:
                connection = self._idle.pop() if self._idle else self._connect()
                connection.request(method, self._parts.path.rstrip("/") + path, data, self._headers)
                response = connection.getresponse()
                answer = response.status, float(response.headers.get("retry-after") or 0), response.read()
            except (OSError, http.client.HTTPException) as error:
                if connection is not None:
                    connection.close()
                return 0, 0.0, str(error).encode()
            self._idle.append(connection)
            return answer

    def _connect(self) -> http.client.HTTPConnection:
        host, port = str(self._parts.hostname), self._parts.port
        connection: http.client.HTTPConnection
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(host, port, timeout=self._timeout, context=context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self._timeout)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def close(self) -> None:
        """Close the connections that are idle."""
        while self._idle:
            self._idle.pop().close()


def _error(status: int, answer: bytes) -> ServiceError:
    if status == 0:
        return ServiceError(0, "unreachable", f"the service did not answer: {answer.decode(errors='replace')}")
    try:
        error = msgspec.json.decode(answer)["error"]
        return ServiceError(status, error["code"], error["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return ServiceError(status, "unknown", f"the service answered {status}")
