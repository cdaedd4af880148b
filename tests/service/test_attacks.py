"""Extreme problems that are accepted, and hostile bytes: no 5xx, no markup, a sound log. ``make fuzz`` tries many.

The values are those with which an operator attacked the service; hypothesis combines them.
"""

import os
import re
import socket
import time
from collections import Counter
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from superarm.service.server import open_store
from superarm.service.storage.snapshot import verify

from .running import Server, invoke

pytestmark = pytest.mark.slow("fuzzing")

SECONDS = float(os.environ.get("SUPERARM_FUZZ", "0")) / 4
LIMITS = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=not SECONDS,
    phases=[Phase.generate],  # a case that failed is small already, and takes minutes to make smaller
    database=None,
)
counted = Counter()


def go_on(attack) -> None:
    """Attack for the time that there is, at least once."""
    ends = time.monotonic() + SECONDS
    attack()
    while time.monotonic() < ends:
        attack()


@pytest.fixture(scope="module", autouse=True)
def said_what_was_tried(request):
    yield
    request.config.get_terminal_writer().line(f"\n{dict(counted)}")


ARMS = ["a", "b", "c", "d"]
HOSTILE = ["<img src=x onerror=alert(1)>", "=cmd|' /C calc'!A0", "\u202e\u200b", "__proto__", "NaN", "-1", "😀" * 256]
SIZES = [0, 1, 5e-324, 1e12, 1e308]
POLICIES = ["bc_ucb", "kl_ucb", "cts", "pooled_thompson"]


def some(**optional):
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in optional.items()})


SETTINGS = some(
    policy=[{"name": name} for name in POLICIES]
    + [{"name": "kl_ucb", "window": n} for n in (1, 10**9)]
    + [{"name": "kl_ucb", "half_life": n} for n in (1, 10**9)]
    + [{"name": "bc_ucb", "parameters": {"rho": 1e308}}],
    window_s=[5e-324, 3.2e8, None],
    at_window_end=[0, 1, "ignore"],
    paused_until=[{"a": "9999-12-31T23:59:59-23:59", "b": "0001-01-01T00:00:00+23:59"}],
    propensity_draws=[0, 30],
    explore=[1e-300, 1.0],
    control=[0.5, 1.0],
    control_slate=["uniform", ["a", "b"]],
    guardrail=[1e-9],
    max_pending=[1, 100],
    max_per_second=[1e-320, 1e-6, 1e6],
    mode=["logging_only", "apprentice"],
    words=[{"arm": '<b>&"', "item": "{{797*797}}", "unit": "€<script>", "outcome": "%s%n"}],
)
NUMERIC = [{"age": bounds} for bounds in ([0, 100], [0, 5e-324], [-1e308, 1e308], [3, 3])]
CONTEXTS = st.builds(
    lambda model, categories, numeric: {
        "features": {"categorical": {"c": categories}} | ({"numeric": numeric} if model != "segments" else {}),
        "model": {"name": model},
    },
    st.sampled_from(["linear", "logistic", "segments"]),
    st.sampled_from([["n", "s"], HOSTILE[:2]]),
    st.sampled_from(NUMERIC),
)
PROBLEMS = st.fixed_dictionaries(
    {"arms": st.sampled_from([ARMS, ["a"], [*ARMS, *HOSTILE]]), "k": st.sampled_from([1, 2, 4]), "settings": SETTINGS},
    optional={
        "items": st.sampled_from([["x"], ["x", "y"], ["<script>alert(1)</script>", "+1+1"], "learn"]),
        "weights": st.lists(st.sampled_from(SIZES), min_size=1, max_size=2),
        "support": st.sampled_from([{}, {"a": ["x"]}]),
        "triggered": st.booleans(),
        "context": CONTEXTS,
        "reward": st.sampled_from([{"name": name} for name in ("linear", "coverage")]),
    },
)
VALUES = st.sampled_from([0, 1, 5e-324, 1 - 2**-53, 0.5])
MARKUP = ("<img src=x", "<script>alert", "<b>&", "635209")


def decision(n: int, spec: dict) -> dict:
    """The body of a decision of a problem."""
    body = {"id": f"d{n}", "unit": f"u{n % 3}"}
    if features := spec.get("context", {}).get("features"):
        numbers = {"age": [0, 1e-320, 50, 1e308, -1e308, int("1" + "0" * 400)][n % 6]}
        body["context"] = {"c": features["categorical"]["c"][n % 2]} | (numbers if "numeric" in features else {})
    if "mode" in spec["settings"] or "control" in spec["settings"]:
        body["baseline"] = ARMS[: spec["k"]]
    return body | [{}, {"deferred": True}, {"pinned": ["a"]}, {"excluded": ["a"]}, {"k": 1}][n % 5]


def live(http: httpx.Client, name: str, spec: dict, values: list[float]) -> list[str]:
    """All that can be done with a problem once; what was answered with 5xx, or shows markup."""
    wrong, path = list[str](), f"/v1/problems/{quote(name, safe='')}"

    def send(method: str, place: str, body=None) -> httpx.Response:
        reply = http.request(method, place, json=body)
        counted["requests"] += 1
        if reply.status_code >= 500:
            wrong.append(f"{method} {place} {body}: {reply.status_code} {reply.text[:200]}")
        return reply

    if send("PUT", path, spec).status_code not in (200, 201):
        counted["problems refused"] += 1
        return wrong
    counted["problems used"] += 1
    for n, value in enumerate(values):
        reply = send("POST", f"{path}/decisions", decision(n, spec))
        if reply.status_code not in (200, 201):
            continue
        told = {"feedback": [{"arm": arm, "value": value} for arm in reply.json()["arms"]]}
        send("POST", f"{path}/decisions/d{n}/feedback", told)
        send("POST", f"{path}/decisions/d{n}/feedback", told | {"amend": True})
        send("GET", f"{path}/decisions/d{n}/explanation?most=100")
        send("POST", f"{path}/decisions/d{n}/activate", {"shown": spec["arms"][: n % 2]})
    send("POST", f"{path}/erasures", {"unit": "u1"})
    for place, body in (("arms", {"retire": ["a"]}), ("arms", {"add": ["a", "new<b>"]}), ("items", {"add": ["it<b>"]})):
        send("POST", f"{path}/{place}", body)
    send("POST", f"{path}/outcomes", {"id": "o", "arms": ["a"], "outcomes": [[1]]})
    for place in ("items/learn", "versions/1/restore", "decisions"):
        send("POST", f"{path}/{place}", {} if place != "versions/1/restore" else None)
    send("PATCH", f"{path}/settings", {"policy": {"name": "cts"}})
    for place in ("", "/arms", "/items", "/versions", "/lift", "/lift?delta=1e-300", "/table"):
        send("GET", f"{path}{place}")
    for place in ("/", "/versions", "/export/arms.csv", "/export/rewards.csv"):
        page = send("GET", f"{place}?problem={quote(name, safe='')}").text
        if not place.startswith("/export") and (found := [one for one in MARKUP if one in page]):
            wrong.append(f"{place} shows {found}")
        if place.startswith("/export") and re.search(r'(^|,|\n)"?[=+@-](cmd|1\+)', page):
            wrong.append(f"{place} has a formula")
    return wrong


def test_problems_that_are_extreme(sqlite_file):
    with Server(sqlite_file, "--max-problems", "1000000") as server, httpx.Client(base_url=server.url) as http:
        http.timeout = 60.0

        @LIMITS
        @given(PROBLEMS, st.lists(VALUES, min_size=4, max_size=12))
        def attack(spec, values):
            counted["problems"] += 1
            name = f"p{counted['problems']}"
            assert live(http, name, spec, values) == []
            http.delete(f"/v1/problems/{name}")

        go_on(attack)
        assert http.get("/health").json() == {"status": "ok", "worker": ""}
    store = open_store(sqlite_file, serving=False)
    assert verify(store).faults == []
    store.close()


LINES = [b"POST /v1/problems/p/decisions HTTP/1.1", b"GET /health/live HTTP/1.1", b"GET /v1/problems/%0a HTTP/1.1"]
LINES += [b"GET http://evil.example/v1/problems HTTP/1.1", b"CONNECT 127.0.0.1:22 HTTP/1.1", b"GET /health"]
LINES += [b"PRI * HTTP/2.0"]
HEADS = [b"Host: 127.0.0.1", b"Host: evil.example", b"Content-Type: application/json"]
HEADS += [b"X: a\r\n b", b"X: a\0b", b"X: y\r\n" * 300]
HEADS += [b"Content-Length: " + n for n in (b"2", b"+2", b"-1", b"0x2", b"50", b"9" * 19, b"9" * 5000)]
HEADS += [b"Transfer-Encoding" + n for n in (b": chunked", b": xchunked", b": chunked, identity", b" : chunked")]
HEADS += [b"Authorization: Bearer " + n for n in (b"KEY", b"sa_", b"sa_*_*", b"' OR 1=1 --", b"\xff")]
BODIES = [b"", b"{}", b"2\r\n{}\r\n0\r\n\r\n", b"FFFFFFFFFFFFFFFFF\r\n{}\r\n", b"-2\r\n{}\r\n"]
BODIES += [b"\x16\x03\x01\x02\x00\x01" * 50]
SMUGGLED = b"GET /v1/problems HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


def answers(port: int, data: bytes) -> list[int]:
    """The statuses of all answers to some bytes."""
    said = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20.0) as one:
        try:
            one.sendall(data)
            one.shutdown(socket.SHUT_WR)
            while part := one.recv(65_536):
                said += part
        except OSError:
            pass
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", said)]


def test_hostile_bytes(sqlite_file):
    key = invoke("keys", "create", "--db", sqlite_file, "--scope", "decide").stdout.strip()
    with Server(sqlite_file) as server:

        @LIMITS
        @given(st.sampled_from(LINES), st.lists(st.sampled_from(HEADS), max_size=6), st.sampled_from(BODIES))
        def attack(line, heads, body):
            counted["hostile requests"] += 1
            data = b"\r\n".join([line, *heads, b"", b""]).replace(b"KEY", key.encode()) + body + SMUGGLED
            said = answers(server.port, data)
            assert all(status < 500 or status == 501 for status in said), (data, said)
            assert said.count(200) <= line.startswith(LINES[1]), (data, said)  # what follows needs a key
            assert httpx.get(f"{server.url}/health/live").status_code == 200

        go_on(attack)
