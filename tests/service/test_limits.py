"""Rates, slow and unfinished requests, and what a tenant's key may see of the process."""

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from superarm.decisions import open_record
from superarm.service.application import MAX_HEADER_BYTES, MAX_HEADERS, application
from superarm.service.domain.events import Asked
from superarm.service.errors import RequestError
from superarm.service.http import service as bodies
from superarm.service.http.service import Bodies, RateLimits, ServiceLimits, make_key
from superarm.service.runtime import condition as rates
from superarm.service.runtime.condition import Deadlines

from .inprocess import serving
from .memory_store import MemoryStore
from .running import NDJSON, Server

SPEC = {"arms": ["a", "b"], "k": 1, "settings": {"policy": {"name": "bc_ucb"}, "window_s": None}}


class Keyed(MemoryStore):
    """A store with keys."""

    def __init__(self, *tenants: tuple[str, tuple[str, ...]]) -> None:
        super().__init__()
        made = [make_key(tenant, scopes) for tenant, scopes in tenants]
        self.headers = [{"authorization": f"Bearer {key}"} for key, _ in made]
        self.rows = [row for _, row in made]

    def key_rows(self) -> list:
        return self.rows


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    """A clock that stands still until it is moved."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(rates, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_wrong_keys_are_limited_by_address_and_right_ones_go_on(clock):
    """Wrong keys could be tried without a limit."""
    store = Keyed(("shop", ("read",)))

    async def live() -> None:
        async with serving(application(store)) as http:
            wrong = {"authorization": "Bearer sa_x_y"}
            codes = [(await http.get("/v1/problems", headers=wrong)).status_code for _ in range(101)]
            assert codes == [401] * 100 + [429]
            assert (await http.get("/", headers={"cookie": "superarm_key=sa_x_y"})).status_code == 429
            assert (await http.get("/v1/problems", headers=store.headers[0])).status_code == 200
            clock.now += 1.0
            assert (await http.get("/v1/problems", headers=wrong)).status_code == 401

    asyncio.run(live())


def test_buckets_of_those_who_stay_away_are_dropped(clock, monkeypatch):
    monkeypatch.setattr(rates, "MAX_BUCKETS", 10)
    limits = RateLimits(1.0)
    for n in range(50):
        limits.take(f"address {n}")
        clock.now += 1.0
    assert len(limits._buckets._buckets) <= 12


def test_ends_of_windows_are_forgotten_with_their_decisions():
    """Also those that are added while they are sorted out."""
    asked = [Asked(0, "p", f"d{n}", "", n, (0,), 1, 1, window_ms=1_000 * n) for n in range(2_000)]
    deadlines, keys = Deadlines(), [("t", one.id) for one in asked]

    async def live() -> None:
        for key, one in zip(keys[:1_500], asked[:1_500], strict=True):
            deadlines.watch(key, open_record(one))
        compacting = asyncio.ensure_future(deadlines.compact(set(keys[::3]), 200))
        await asyncio.sleep(0)
        for key, one in zip(keys[1_500:], asked[1_500:], strict=True):
            deadlines.watch(key, open_record(one))
        await compacting

    asyncio.run(live())
    left = [key for _, key in sorted(deadlines._heap)]
    assert left == keys[:1_500:3] + keys[1_500:]


def test_a_bulk_of_n_counts_n(clock):
    """A bulk of 10,000 cost one token of the rate."""
    lines = b'{"decision": "x", "feedback": []}\n' * 25

    async def live() -> None:
        async with serving(application(MemoryStore(), ServiceLimits(rate=10.0))) as http:
            assert (await http.put("/v1/problems/p", json=SPEC)).status_code == 201
            many = await http.post("/v1/problems/p/decisions/bulk", json={"decisions": [{}] * 98})
            assert many.status_code == 200  # 20 tokens, less 1, less 98: a debt of 79
            refused = await http.get("/v1/problems")
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "8")
            clock.now += 7.9
            assert (await http.get("/v1/problems")).status_code == 429
            clock.now += 0.2
            told = await http.post("/v1/problems/p/feedback/bulk", content=lines, headers=NDJSON)
            assert told.status_code == 200
            clock.now += 2.0
            assert (await http.get("/v1/problems")).status_code == 429
            clock.now += 0.5
            assert (await http.get("/v1/problems")).status_code == 200

    asyncio.run(live())


def chunks(*parts: bytes, complete: bool = True):
    """A receive that gives these parts, and then nothing more."""
    rest = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    rest[-1]["more_body"] = not complete

    async def receive():
        return rest.pop(0) if rest else await asyncio.Event().wait()

    return receive


async def sent(app, receive, path: str, **headers: str) -> list[dict]:
    """What the application sends for a request whose body comes in parts."""
    answers = []

    async def send(message) -> None:
        answers.append(message)

    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": path, "headers": given, "query_string": b"", "client": ("c", 1)}
    await app(scope, receive, send)
    return answers


def test_a_body_that_never_ends_is_answered_and_the_connection_closed(monkeypatch):
    """A body had no time limit."""
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.05)

    async def live() -> None:
        app = application(MemoryStore())
        async with serving(app):
            never = chunks(b'{"id":', complete=False)
            start, _ = await sent(app, never, "/v1/problems/p/decisions", transfer_encoding="chunked")
            assert start["status"] == 408
            assert (b"connection", b"close") in start["headers"]
            assert app.service.bodies.unfinished_bytes == 0

    asyncio.run(live())


def test_unfinished_bodies_share_bounded_memory():
    """Forty unfinished bodies took 300 MB."""

    async def live() -> None:
        reader = Bodies(1000)
        waiting = [asyncio.create_task(reader.read(chunks(b"x" * 900, complete=False), {})) for _ in range(20)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        held = [task for task in waiting if not task.done()]
        refused = [task.exception() for task in waiting if task.done()]
        assert (len(held), reader.unfinished_bytes) == (8, 7200)
        assert all(isinstance(error, RequestError) and error.status == 503 for error in refused)
        assert await reader.read(chunks(b"small"), {}) == b"small"
        for task in held:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)
        assert reader.unfinished_bytes == 0
        with pytest.raises(RequestError, match="above 1000 bytes"):
            await reader.read(chunks(b"x" * 600, b"x" * 600), {})

    asyncio.run(live())


def test_a_key_may_come_in_parts_and_no_longer_than_it_can_be():
    store = Keyed(("shop", ("read",)))
    key = store.headers[0]["authorization"].removeprefix("Bearer ").encode()

    async def live() -> None:
        app = application(store)
        async with serving(app):
            start, _ = await sent(app, chunks(b"key=" + key[:9], key[9:]), "/login")
            assert start["status"] == 303
            start, _ = await sent(app, chunks(b"key=" + b"x" * 5000), "/login")
            assert start["status"] == 413

    asyncio.run(live())


def test_only_an_operators_key_sees_metrics():
    """The key of one tenant saw the metrics of all."""
    scopes = ("read", "decide", "feedback", "admin")
    store = Keyed(("one", scopes), ("two", scopes), ("ops", ("metrics",)))

    async def live() -> None:
        async with serving(application(store)) as http:
            one, two, operator = store.headers
            for tenant, n in ((one, 2), (two, 5)):
                assert (await http.put("/v1/problems/p", json=SPEC, headers=tenant)).status_code == 201
                for _ in range(n):
                    assert (await http.post("/v1/problems/p/decisions", json={}, headers=tenant)).status_code == 201
            assert (await http.get("/metrics", headers=one)).status_code == 403
            text = (await http.get("/metrics", headers=operator)).text
            asked = (
                'superarm_requests_total{method="POST",path="/v1/problems/{name}/decisions",status="201",tenant="one"} '
            )
            assert asked + "2.0" in text
            assert "superarm_open_decisions 7.0" in text
            assert (await http.get("/v1/problems", headers=operator)).status_code == 403

    asyncio.run(live())


# --- Headers that are too large, too many, without an end, or without one host: refused by a real server, on loopback.


LINE = b"GET /health/live HTTP/1.1\r\n"
HOST = b"host: x\r\n"
POST = b"POST /none HTTP/1.1\r\nhost: localhost\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(str(Path(tmp_path_factory.mktemp("heads")) / "log.db")) as server:
        yield server


def send(server: Server, data: bytes) -> tuple[list[int], bytes]:
    """Send bytes, and read until the server closes: the statuses of its answers, and the body of the last one.

    All tests send as many bytes as the server reads before it closes: it would otherwise reset the connection, and the
    answer could be lost.
    """
    with socket.create_connection(("127.0.0.1", server.port), timeout=60.0) as client:
        client.sendall(data)
        received = b""
        while part := client.recv(65_536):
            received += part
    heads = [part for part in received.split(b"HTTP/1.1 ") if part]
    return [int(head[:3]) for head in heads], received.rpartition(b"\r\n\r\n")[2]


def without_end(begin: bytes) -> bytes:
    """A header without an end, up to the first byte that is too much."""
    return begin + b"a" * (MAX_HEADER_BYTES + 1 - len(begin))


@pytest.mark.parametrize(
    ("data", "statuses"),
    [
        (without_end(LINE + HOST + b"x: "), [400]),
        (LINE + HOST + b"x: " + b"a" * MAX_HEADER_BYTES + b"\r\n\r\n", [431]),
        (b"GET /" + b"a" * MAX_HEADER_BYTES + b" HTTP/1.1\r\n" + HOST + b"\r\n", [431]),
        (LINE + HOST + b"x: y\r\n" * MAX_HEADERS + b"\r\n", [431]),
        (LINE + HOST + b"x: y\r\n" * (MAX_HEADERS - 2) + b"connection: close\r\n\r\n", [200]),
        (LINE + HOST + b"x: " + b"a" * 60_000 + b"\r\nconnection: close\r\n\r\n", [200]),
        (LINE + HOST * 2 + b"\r\n", [400]),
        (LINE + b"\r\n", [400]),
        (b"GET /health/live HTTP/1.0\r\n\r\n", [200]),
        (b"no request\r\n\r\n", [400]),
        (POST + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n" + LINE + HOST + b"\r\n", [400]),
        (POST + b"transfer-encoding: chunked\r\n\r\n1\r\n", [404]),
        (POST + b"content-length: 9\r\n\r\n", [404]),
        (POST.replace(b"/none", b"/v1/problems/p/erasures") + b"content-length: 99999999\r\n\r\n", [413]),
    ],
)
def test_heads_are_limited(server, data, statuses):
    """53 MB of one header, sent without a key, kept the service busy for nine seconds.

    After a refusal, a body without an end was read for ever, and what followed an ambiguous length was a request.
    """
    found, body = send(server, data)
    assert found == statuses
    if statuses == [431]:
        assert json.loads(body)["error"]["message"]
    assert httpx.get(f"{server.url}/health").status_code == 200


def test_a_large_body_is_not_limited_as_headers_are(server):
    large = httpx.put(f"{server.url}/v1/problems/p", json={"arms": [f"arm {n}" for n in range(30_000)], "k": 0})
    assert (large.status_code, "k" in large.text) == (422, True)


@pytest.mark.slow("many connections")
def test_others_are_answered_while_headers_without_an_end_come(server):
    """Each of some connections sends as much as it may; a request beside them is answered, and they go on."""
    with httpx.Client(base_url=server.url) as http:
        clients = [socket.create_connection(("127.0.0.1", server.port), timeout=60.0) for _ in range(5)]
        for client in clients:
            client.sendall(without_end(LINE + HOST + b"x: ")[:-1])
            assert http.get("/health").status_code == 200
        for client in clients:
            client.sendall(b"a")
            assert client.recv(65_536).startswith(b"HTTP/1.1 400 ")
            client.close()
        assert http.get("/health").status_code == 200
