"""Uvicorn's HTTP protocol with a limit on the time that the headers of a request may take, and a grace when it stops.

Uvicorn closes a connection that is idle after a response. It waits without end for the first byte of a connection, and
for the rest of headers that have begun. When it stops, it closes connections without a request at once, also one that
was accepted a moment ago and whose request is on its way: its client would see a failure. It writes the head of a
response and its body by two calls of the operating system; here they are written by one. Most bodies and responses of
the service are here as a whole: they are read and written without the messages of ASGI. Uvicorn starts a timer after
each response, for idle connections, and stops it at the next request; here one timer serves many responses. It keeps
what a client does not read for as long as the client likes, and all requests that a client sends ahead of the answers;
here such connections are dropped. It limits neither the size nor the number of headers, and its parser takes a time
that grows with the square of a header's size; here 431 is answered. It serves a request with two ``Host`` headers, or
none; RFC 9112 (3.2) asks for 400.
"""

import asyncio
import json
from collections.abc import Collection
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from superarm.service.http.request_id import WHOLE_BODY, WHOLE_RESPONSE

WITH_HTTPTOOLS = AutoHTTPProtocol.__name__ == "HttpToolsProtocol"
HEADER_SECONDS = 10.0
LAST_REQUEST_SECONDS = 1.0
"""How long a new connection may still send its first request, after the process was told to stop."""
UNREAD_SECONDS = 30.0
"""A connection is dropped if its client takes nothing of what waits for it for so long."""

MAX_PIPELINED = 100
"""A connection is dropped if more requests than these wait for the answers before them."""

MAX_HEADER_BYTES = 65_536
MAX_HEADERS = 200
"""Requests with larger headers, or with more of them, are answered with 431."""


class JoiningTransport:
    """A transport that keeps the head of a response until the first part of its body is written.

    Only of responses with a content length: their body follows without waiting for anything else to happen.
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._head = b""
        self.is_closing, self.resume_reading = transport.is_closing, transport.resume_reading  # called per request
        self.write_at_once = transport.write

    def write(self, data: bytes) -> None:
        if self.is_closing():  # the client has gone, and uvicorn is not told before the next turn of the event loop
            return
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(b"HTTP/1.1 ") and b"\r\ncontent-length: " in data:
            self._head = data
            return
        self._transport.write(data)

    def flush(self) -> None:
        """Write a head that has no body."""
        if self._head:
            self.write(b"")

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def take_body(cycle: Any, pipeline: Collection[Any], most: int) -> bytes | None:
    """The body of a request, as ``receive`` would give it; None if it is not complete, or above ``most`` bytes.

    While other requests wait in the ``pipeline``, no more are read.
    """
    if cycle.more_body or cycle.disconnected or cycle.response_complete or cycle.waiting_for_100_continue:
        return None
    if len(cycle.body) > most:
        return None
    if not pipeline:
        cycle.flow.resume_reading()
    cycle.message_event.clear()
    body, cycle.body = bytes(cycle.body), bytearray()
    return body


def write_response(cycle: Any, status: int, head: bytes, body: bytes) -> bool:
    """Write a whole response, as uvicorn's ``send`` does after two messages; False if it has to be sent by messages.

    ``head`` has the lines of the response's own headers, a content length among them.
    """
    if cycle.disconnected or cycle.response_started or cycle.flow.write_paused or cycle.access_log:
        return False
    if cycle.transport.is_closing():
        return False
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    lines = [_status_line(status)]
    for name, value in cycle.default_headers:
        lines += (name, b": ", value, b"\r\n")
    lines += (head, b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n")
    if cycle.scope["method"] != "HEAD":
        lines.append(body)
    cycle.transport.write_at_once(b"".join(lines))
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
    return True


@lru_cache
def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()


class RefusedHead(Exception):
    """The headers of a request are refused; raised to the parser, which stops there."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


TOO_LARGE = f"above {MAX_HEADER_BYTES} bytes of headers, or above {MAX_HEADERS} headers; send fewer"


def check_head(url: bytes, headers: list[tuple[bytes, bytes]], http_version: str) -> None:
    """Refuse headers that are too large or too many, and those that name no host or several."""
    size = len(url) + sum([len(name) + len(value) for name, value in headers])
    if len(headers) > MAX_HEADERS or size > MAX_HEADER_BYTES:
        raise RefusedHead(431, "too_large", TOO_LARGE)
    hosts = [name for name, _ in headers].count(b"host")
    if hosts > 1 or (hosts == 0 and http_version == "1.1"):
        raise RefusedHead(400, "malformed", f"{hosts} Host headers; send one")


class TimedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Closes a connection whose next request has no complete headers after ``HEADER_SECONDS``.

    A connection whose client reads nothing for ``UNREAD_SECONDS`` is dropped with what waits for it, and so is one with
    more than ``MAX_PIPELINED`` requests that wait for the answers before them. A process that stops answers the first
    request of a connection that it has accepted.
    """

    _timer: asyncio.TimerHandle | None = None
    _stopping = False
    _idle_since: float | None = None
    _unread: asyncio.TimerHandle | None = None
    _incomplete = 0
    """Bytes since the parser last completed headers or a part of a body: incomplete headers, or a body's trailers."""
    _refused: RefusedHead | None = None

    def shutdown(self) -> None:
        if self.cycle is None and not self._stopping:
            self._stopping = True
            asyncio.get_running_loop().call_later(LAST_REQUEST_SECONDS, self._expire)
        else:
            super().shutdown()

    def connection_made(self, transport: Any) -> None:
        super().connection_made(JoiningTransport(transport))
        self._start()

    def data_received(self, data: bytes) -> None:
        self._incomplete += len(data)
        super().data_received(data)
        if self._incomplete > MAX_HEADER_BYTES and WITH_HTTPTOOLS and not self.transport.is_closing():  # h11 has limits
            self._refuse(RefusedHead(431, "too_large", TOO_LARGE))
        if self._stopping and self.cycle is not None and not self.transport.is_closing():
            super().shutdown()  # after the response, the connection is closed
        if not self._awaits_headers():
            self._stop()
        elif self._timer is None:
            self._start()

    def on_headers_complete(self) -> None:
        pipeline = self.pipeline if WITH_HTTPTOOLS else ()
        if len(pipeline) >= MAX_PIPELINED:
            self.transport.abort()
            return
        self._incomplete = 0
        try:
            check_head(self.url, self.headers, self.parser.get_http_version())
        except RefusedHead as refused:
            self._refused = refused
            raise
        super().on_headers_complete()
        if self.cycle is not None:
            cycle = self.cycle
            self.scope["extensions"] = {
                WHOLE_BODY: partial(take_body, cycle, pipeline),
                WHOLE_RESPONSE: partial(write_response, cycle),
            }

    def on_body(self, body: bytes) -> None:
        self._incomplete = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._incomplete = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn when the parser stopped."""
        self._refuse(self._refused or RefusedHead(400, "malformed", "the request is not HTTP/1.1"))

    def _refuse(self, refused: RefusedHead) -> None:
        """Answer and close the connection."""
        body = json.dumps({"error": {"code": refused.code, "message": str(refused)}}).encode()
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write_at_once(_status_line(refused.status) + head + body)
        self.transport.close()

    def on_response_complete(self) -> None:
        self.transport.flush()
        if not WITH_HTTPTOOLS or self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            if WITH_HTTPTOOLS and self.pipeline:
                self.flow.pause_reading()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._watch_idle(self.timeout_keep_alive)

    def _watch_idle(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _unset_keepalive_if_required(self) -> None:
        """Called by uvicorn for every request: the timer goes on, and finds that the connection is not idle."""
        self._idle_since = None
        if not WITH_HTTPTOOLS:
            super()._unset_keepalive_if_required()

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        if WITH_HTTPTOOLS and self._idle_since is None:
            return  # the next response starts the timer again
        left = 0.0 if self._idle_since is None else self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0.0:
            self._watch_idle(left)
        else:
            super().timeout_keep_alive_handler()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_unread()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_unread()

    def _watch_unread(self) -> None:
        size = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(UNREAD_SECONDS, self._drop_unread, size)

    def _forget_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _drop_unread(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._watch_unread()
        else:
            self.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._stop()
        self._forget_unread()
        super().connection_lost(error)
        super()._unset_keepalive_if_required()

    def _awaits_headers(self) -> bool:
        """Whether no request is being answered: its headers are complete when its cycle begins."""
        return self.cycle is None or self.cycle.response_complete

    def _start(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(HEADER_SECONDS, self._expire)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        if self._awaits_headers() and not self.transport.is_closing():
            self.transport.close()
