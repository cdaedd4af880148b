"""A load on loopback: connections that each send their next request when the last is answered. uvloop, no parsing."""

import asyncio
import statistics
import time
from typing import Any, NamedTuple

import uvloop


class Load(NamedTuple):
    """What a load came to: requests a second, and quantiles of their latency in milliseconds."""

    rate: float
    p50: float
    p90: float
    p99: float
    longest: float
    n: int


def packed(method: str, path: str, body: bytes = b"") -> bytes:
    """A request as bytes."""
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


class _Connection(asyncio.Protocol):
    def __init__(self, request: bytes, times: list[float], end: float) -> None:
        self._request, self._times, self._end = request, times, end
        self.done = asyncio.get_running_loop().create_future()
        self._buffer, self._needed = b"", 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._began = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._needed:
            head = self._buffer.find(b"\r\n\r\n")
            if head < 0:
                return
            assert self._buffer[9:12] in (b"200", b"201"), self._buffer
            at = self._buffer.find(b"content-length: ") + 16
            self._needed = head + 4 + int(self._buffer[at : self._buffer.find(b"\r\n", at)])
        if len(self._buffer) < self._needed:
            return
        now = time.perf_counter()
        self._times.append(now - self._began)
        self._buffer, self._needed = b"", 0
        if now < self._end:
            self._send()
        else:
            self._transport.close()
            self.done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the server closed the connection"))


def load(port: int, path: str, body: bytes, connections: int, seconds: float) -> Load:
    """POST ``body`` for so long."""
    times = list[float]()

    async def run() -> None:
        loop, end = asyncio.get_running_loop(), time.perf_counter() + seconds
        request = packed("POST", path, body)
        made = [
            await loop.create_connection(lambda: _Connection(request, times, end), "127.0.0.1", port)
            for _ in range(connections)
        ]
        await asyncio.gather(*(protocol.done for _, protocol in made))

    uvloop.run(run())
    cuts = [1000.0 * cut for cut in (statistics.quantiles(times, n=100) if len(times) > 1 else times * 99)]
    return Load(len(times) / seconds, cuts[49], cuts[89], cuts[98], 1000.0 * max(times), len(times))
