"""Headers that are too large, too many, without an end, or without one host: refused by a real server, on loopback.

What h11 itself refuses is answered with 400, and what the application refuses with 431.
"""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from superarm.service.application import MAX_HEADER_BYTES, MAX_HEADERS

from .running import Server

LINE = b"GET /health/live HTTP/1.1\r\n"
HOST = b"host: x\r\n"


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
    ],
)
def test_heads_are_limited(server, data, statuses):
    """53 MB of one header, sent without a key, kept the service busy for nine seconds."""
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
