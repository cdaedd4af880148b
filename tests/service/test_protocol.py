"""Uvicorn's protocol with joined writes: the same bytes, in fewer calls of the operating system."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.server import ServerState

from superarm.service import protocol
from superarm.service.http.bodies import Bodies
from superarm.service.http.endpoint import Reply, send_reply, take_body
from superarm.service.http.request_id import Exchange
from superarm.service.protocol import JoiningTransport, TimedProtocol, write_response


class Written:
    """A transport that keeps what is written to it."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.parts.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def resume_reading(self) -> None:
        pass


CONTINUE = b"expect: 100-continue"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"


def test_a_head_with_a_length_waits_for_its_body():
    written = Written()
    transport = JoiningTransport(written)
    transport.write(HEAD)
    assert written.parts == []
    transport.write(b"bo")
    transport.write(b"dy")
    assert written.parts == [HEAD + b"bo", b"dy"]
    assert not transport.is_closing()


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"]
)
def test_a_head_without_a_length_is_written_at_once(head):
    written = Written()
    JoiningTransport(written).write(head)
    assert written.parts == [head]


@pytest.mark.parametrize("end", ["flush", "close"])
def test_a_head_without_a_body_is_written_at_the_end(end):
    written = Written()
    transport = JoiningTransport(written)
    transport.write(HEAD)
    getattr(transport, end)()
    transport.flush()
    assert (written.parts, written.closed) == ([HEAD], end == "close")


async def _app(scope: Any, receive: Any, send: Any) -> None:
    streams = scope["path"] == "/stream"
    headers = [] if streams else [(b"content-length", b"4")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if scope["path"] == "/fails":
        raise RuntimeError("after the head")
    if streams:
        await receive()
        await receive()  # until the client leaves
    await send({"type": "http.response.body", "body": b"body"})


async def _serve(app: Any, keep_alive: int = 1) -> tuple[asyncio.Server, ServerState]:
    """A server with the protocol on a free port, and what it knows of its connections."""
    config = Config(app, timeout_keep_alive=keep_alive, log_config=None, access_log=False)
    config.load()
    state = ServerState()

    def make():
        return TimedProtocol(config=config, server_state=state, app_state={})

    return await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0), state


async def _ask(request: bytes, until: bytes, app: Any = _app) -> bytes:
    server, _ = await _serve(app)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(request)
    received = await asyncio.wait_for(reader.readuntil(until) if until else reader.read(), 20.0)
    writer.close()
    server.close()
    return received


@pytest.mark.parametrize(
    ("request_line", "until"),
    [
        (b"GET / HTTP/1.1", b"\r\n\r\nbody"),
        (b"HEAD / HTTP/1.1", b"\r\n\r\n"),  # the connection stays open: the head must not wait for a body
        (b"GET /stream HTTP/1.1", b"\r\n\r\n"),  # the body comes much later
        (b"GET /fails HTTP/1.1", b""),  # the server closes the connection
    ],
)
def test_every_response_reaches_its_client(request_line, until):
    received = asyncio.run(_ask(request_line + b"\r\nhost: x\r\n\r\n", until))
    assert received.startswith(b"HTTP/1.1 200 OK\r\n")


class Answering:
    """An application that answers each path by one of the two ways of an endpoint, and notes which way it was."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def note(message: Any) -> None:
            self.messages.append(message["type"])
            await send(message)

        if scope["path"] == "/by-messages":
            scope["extensions"] = {}
        await receive()
        await send_reply(Exchange(scope, note), Reply(404, b'{"error":1}'))


@pytest.mark.parametrize("line", [b"GET /%s HTTP/1.1", b"HEAD /%s HTTP/1.1", b"GET /%s HTTP/1.0"])
@pytest.mark.parametrize("header", [b"connection: close", b"accept: */*", CONTINUE])
def test_a_response_written_at_once_is_the_one_sent_by_messages(line, header):
    received = []
    for path in (b"at-once", b"by-messages"):
        app = Answering()
        parts = [line % path, b"host: x", b"x-request-id: one", header, b"", b""]
        received.append(asyncio.run(_ask(b"\r\n".join(parts), b"", app)))
        assert bool(app.messages) == (path == b"by-messages")
    assert received[0] == received[1]
    assert b"404 Not Found\r\ncontent-type: application/json\r\ncontent-length: 11\r\nx-request-id: one" in received[0]


class Reading:
    """An application that answers with the body of a request, and notes how it was read."""

    def __init__(self) -> None:
        self.at_once: list[bool] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = take_body(scope, 1_000)
        self.at_once.append(body is not None)
        if body is None:
            body = await Bodies(10_000_000).read(receive, dict(scope["headers"]))
        waiting = asyncio.ensure_future(receive())  # until the client leaves, or the answer is complete
        await asyncio.sleep(0)
        assert not waiting.done()
        await send_reply(Exchange(scope, send), Reply(200, body))
        assert (await waiting)["type"] == "http.disconnect"


@pytest.mark.parametrize(
    ("size", "headers", "at_once"),
    [
        (0, b"", True),
        (1_000, b"", True),
        (1_001, b"", False),
        (200_000, b"", False),
        (5, b"expect: 100-continue", False),
    ],
)
def test_a_body_that_is_here_is_read_at_once(size, headers, at_once):
    app, body = Reading(), b"x" * size
    head = [b"POST / HTTP/1.1", b"host: x", b"connection: close", b"content-length: %d" % size, headers]
    received = asyncio.run(_ask(b"\r\n".join([line for line in head if line] + [b"", body]), b"", app))
    assert received.endswith(b"\r\n\r\n" + body)
    assert (b"100 Continue" in received, app.at_once) == (bool(headers), [at_once])


def test_pipelined_requests_are_answered_in_their_order():
    one = b"GET / HTTP/1.1\r\nhost: x\r\nx-request-id: %d\r\n\r\n"
    received = asyncio.run(_ask(b"".join(one % n for n in range(5)), b"", Answering()))
    assert [int(part.partition(b"\r\n")[0]) for part in received.split(b"x-request-id: ")[1:]] == list(range(5))


def test_a_connection_is_closed_when_it_is_idle_and_not_before():
    """With a limit of one second: requests come for longer than that, and the last answer is followed by the end."""

    async def ask_slowly() -> tuple[int, float]:
        loop = asyncio.get_running_loop()
        server, state = await _serve(Answering())
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        for _ in range(4):
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            await asyncio.wait_for(reader.readuntil(b'{"error":1}'), 20.0)
            await asyncio.sleep(0.4)
        answered = loop.time()
        assert await asyncio.wait_for(reader.read(), 20.0) == b""
        writer.close()
        server.close()
        return state.total_requests, loop.time() - answered

    n, waited = asyncio.run(ask_slowly())
    assert n == 4
    assert waited > 0.5


LARGE = 8_000_000
"""More bytes than the buffers of two sockets take."""


async def _send_large(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % LARGE)]})
    await send({"type": "http.response.body", "body": bytes(LARGE)})


async def _wait_unread() -> None:
    """Ask for the large response, read nothing, and wait until the server has ended the connection."""
    loop = asyncio.get_running_loop()
    server, state = await _serve(_send_large, keep_alive=60)
    with socket.socket() as client:
        client.setblocking(False)
        await loop.sock_connect(client, server.sockets[0].getsockname())
        await loop.sock_sendall(client, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        async with asyncio.timeout(60.0):
            while not state.connections:
                await asyncio.sleep(0.01)
            while state.connections:
                await asyncio.sleep(0.01)
    server.close()


def test_a_client_that_reads_nothing_is_dropped(monkeypatch):
    monkeypatch.setattr(protocol, "UNREAD_SECONDS", 0.05)
    asyncio.run(_wait_unread())


class Unread(Written):
    """A transport for which some bytes wait, and a clock that calls back when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting, self.aborted, self.calls = 100, False, list[Any]()

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def abort(self) -> None:
        self.aborted = True

    def call_later(self, seconds: float, call: Any, *args: Any) -> "Unread":
        assert seconds == protocol.UNREAD_SECONDS
        self.calls.append((call, args))
        return self

    def cancel(self) -> None:
        self.calls.clear()

    def let_time_pass(self, waiting: int) -> None:
        self.waiting = waiting
        call, args = self.calls.pop()
        call(*args)


def _slow_client() -> tuple[Any, Unread]:
    config = Config(_app, log_config=None)
    config.load()
    connection, unread = (
        TimedProtocol(config=config, server_state=ServerState(), app_state={}, _loop=object()),
        Unread(),
    )
    connection.transport, connection.loop, connection.flow = unread, unread, FlowControl(unread)
    connection.pause_writing()
    return connection, unread


def test_a_client_that_reads_slowly_is_waited_for_as_long_as_it_reads():
    _, unread = _slow_client()
    unread.let_time_pass(60)
    unread.let_time_pass(59)
    assert not unread.aborted
    unread.let_time_pass(59)
    assert unread.aborted


def test_nothing_is_waited_for_when_a_client_has_read():
    connection, unread = _slow_client()
    connection.resume_writing()
    assert not unread.calls
    assert not connection.flow.write_paused


class ClosedTransport:
    """A transport as uvloop's after the client has gone: it refuses to be written to."""

    def is_closing(self) -> bool:
        return True

    def resume_reading(self) -> None:
        pass

    def write(self, data: bytes) -> None:
        raise RuntimeError("the handler is closed")


def test_what_is_written_to_a_client_that_has_gone_is_dropped_without_an_error():
    """Each of 200 clients that left before their answers were written gave a traceback in the log."""
    transport = JoiningTransport(ClosedTransport())
    transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n")
    transport.write(b"{}")
    flow = SimpleNamespace(write_paused=False)
    cycle = SimpleNamespace(
        disconnected=False, response_started=False, access_log=False, flow=flow, transport=transport
    )
    assert write_response(cycle, 200, b"", b"{}") is False


async def _pipeline(n: int) -> tuple[int, int, bool]:
    """Send requests ahead of their answers: how many were answered, how many waited, and whether it was dropped."""
    longest, go_on = 0, asyncio.Event()

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        nonlocal longest
        longest = max(longest, *(len(each.pipeline) for each in state.connections), 0)
        await go_on.wait()
        await receive()
        await _app(scope, receive, send)

    server, state = await _serve(answer)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * n)
    received, dropped = b"", False
    async with asyncio.timeout(60.0):
        while not state.connections:
            await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.1, go_on.set)
        try:
            while received.count(b"\r\n\r\nbody") < n and (data := await reader.read(65_536)):
                received += data
        except ConnectionResetError:
            dropped = True
    writer.close()
    server.close()
    answered = received.count(b"\r\n\r\nbody")
    return answered, longest, dropped or answered < n


def test_requests_sent_ahead_of_the_answers_are_answered_up_to_a_limit():
    """200 clients that sent requests and read nothing made 6 GB of them wait."""
    most = protocol.MAX_PIPELINED
    assert asyncio.run(_pipeline(1 + most)) == (1 + most, most, False)
    answered, longest, dropped = asyncio.run(_pipeline(3_000))
    assert dropped
    assert answered == 0
    assert longest <= most
