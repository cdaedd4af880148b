"""The longest time for which the service answers nobody while it works on its largest legal requests.

    python -m benchmarks.responsiveness [--case NAME]

A thread asks for ``/health/live`` every 10 ms while one large request after the other is sent. Printed for each: how
long the request took, its status, and the longest time between two answers of health, less the 10 ms. "idle" is the
same without any request: what the machine itself adds.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

PORT = 9111
PERIOD = 0.01


def call(method: str, path: str, body: bytes = b"", timeout: float = 300.0) -> tuple[int, bytes]:
    """One request on a connection of its own."""
    connection = HTTPConnection("127.0.0.1", PORT, timeout=timeout)
    connection.request(method, path, body, {"content-type": "application/json"})
    answer = connection.getresponse()
    result = answer.status, answer.read()
    connection.close()
    return result


class Watch:
    """Asks for health every 10 ms; ``longest`` is the longest time between two answers, less the 10 ms."""

    def __init__(self) -> None:
        self.longest, self._stop = 0.0, False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        connection = HTTPConnection("127.0.0.1", PORT, timeout=300.0)
        last = None
        while not self._stop:
            connection.request("GET", "/health/live")
            connection.getresponse().read()
            now = time.perf_counter()
            if last is not None:
                self.longest = max(self.longest, now - last - PERIOD)
            last = now
            time.sleep(PERIOD)
        connection.close()

    def __enter__(self) -> "Watch":
        self._thread.start()
        time.sleep(5 * PERIOD)
        return self

    def __exit__(self, *_: object) -> None:
        time.sleep(20 * PERIOD)  # also what follows the answer
        self._stop = True
        self._thread.join()


def names(letter: str, first: int, last: int) -> list[str]:
    """Names of arms or items."""
    return [f"{letter}{n}" for n in range(first, last)]


def put(name: str, n_arms: int, n_items: int, k: int, policy: str = "kl_ucb") -> tuple[str, str, bytes]:
    """The request that creates a problem."""
    settings = {"policy": {"name": policy}, "max_pending": 10_000_000}
    spec = {"arms": names("a", 0, n_arms), "items": names("i", 0, n_items), "k": k, "settings": settings}
    return "PUT", f"/v1/problems/{name}", encoded(spec)


def encoded(body: Any) -> bytes:
    """A body as JSON."""
    return json.dumps(body).encode()


def ask(name: str, id: str) -> None:
    """A decision that feedback is then sent for."""
    status, answer = call("POST", f"/v1/problems/{name}/decisions", encoded({"id": id}))
    assert status == 201, answer


Case = Callable[[], Iterator[tuple[str, str, str, bytes]]]


def creations() -> Iterator[tuple[str, str, str, bytes]]:
    yield "create 5,000 x 1,000", *put("wide", 5_000, 1_000, 10)
    yield "create 100,000 x 50", *put("long", 100_000, 50, 10)
    yield "a decision of 5,000 x 1,000", "POST", "/v1/problems/wide/decisions", b"{}"
    yield "the page of 5,000 x 1,000", "GET", "/?problem=wide", b""
    yield "1,000 arms of 5,000 x 1,000", "GET", "/v1/problems/wide/arms?limit=1000", b""


def growth() -> Iterator[tuple[str, str, str, bytes]]:
    call(*put("growing", 25_000, 10, 10))
    added = encoded({"add": names("b", 0, 25_000)})
    yield "add 25,000 arms to 25,000", "POST", "/v1/problems/growing/arms", added
    retired = encoded({"retire": names("a", 0, 25_000)})
    yield "retire 25,000 arms", "POST", "/v1/problems/growing/arms", retired
    items = encoded({"add": names("j", 0, 50)})
    yield "add 50 items to 50,000 x 10", "POST", "/v1/problems/growing/items", items


def decisions() -> Iterator[tuple[str, str, str, bytes]]:
    call(*put("large", 10_000, 100, 10))
    for n in range(3):
        ask("large", f"first-{n}")
    excluded = encoded({"decisions": [{"excluded": [f"a{n % 100}"]} for n in range(2_000)]})
    yield "bulk of 2,000 with excluded, 10,000 x 100", "POST", "/v1/problems/large/decisions/bulk", excluded
    plain = encoded({"decisions": [{}] * 2_000})
    yield "bulk of 2,000, 10,000 x 100", "POST", "/v1/problems/large/decisions/bulk", plain
    yield "the page of 10,000 x 100", "GET", "/?problem=large", b""


def outcomes() -> Iterator[tuple[str, str, str, bytes]]:
    call(*put("square", 1_000, 1_000, 1_000))
    ask("square", "whole")
    matrix = [[0.5] * 1_000] * 1_000
    yield "outcome 1,000 x 1,000", "POST", "/v1/decisions/whole/feedback", encoded({"outcome": matrix})
    past = encoded({"id": "past", "arms": names("a", 0, 1_000), "outcomes": matrix})
    yield "past outcomes 1,000 x 1,000", "POST", "/v1/problems/square/outcomes", past


def feedback() -> Iterator[tuple[str, str, str, bytes]]:
    call(*put("many", 100, 20, 5))
    asked = encoded({"decisions": [{"id": f"m{n}"} for n in range(10_000)]})
    yield "bulk of 10,000, 100 x 20", "POST", "/v1/problems/many/decisions/bulk", asked
    answer = json.loads(call("POST", "/v1/problems/many/decisions/bulk", asked)[1])["decisions"]
    lines = [{"decision": d["id"], "feedback": [{"arm": arm, "value": 1} for arm in d["arms"]]} for d in answer]
    told = b"\n".join(encoded(line) for line in lines)
    yield "feedback of 10,000 lines", "POST", "/v1/feedback/bulk", told


CASES: dict[str, Case] = {
    "creations": creations,
    "growth": growth,
    "decisions": decisions,
    "outcomes": outcomes,
    "feedback": feedback,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=CASES, action="append")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        start = "from superarm.cli import main; main(prog_name='superarm')"
        words = ["serve", "--db", str(Path(home) / "log.db"), "--port", str(PORT), "--snapshot-every", "20000"]
        server = subprocess.Popen([sys.executable, "-c", start, *words], stderr=(Path(home) / "err").open("w"))
        try:
            wait(server)
            print(f"{'request':45} {'status':>6} {'seconds':>8} {'longest gap, ms':>16}")
            with Watch() as watch:
                time.sleep(3.0)
            print(f"{'idle':45} {'':6} {3.0:8.2f} {1000 * watch.longest:16.0f}", flush=True)
            for case in options.case or CASES:
                for words in CASES[case]():
                    measure(*words)
        finally:
            server.kill()
            server.wait()


def wait(server: subprocess.Popen[bytes]) -> None:
    """Wait until the service is ready."""
    for _ in range(600):
        assert server.poll() is None, "the service has ended"
        try:
            if call("GET", "/health")[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise AssertionError("the service is not ready after a minute")


def measure(what: str, method: str, path: str, body: bytes) -> None:
    """Send one request while health is asked for, and print the longest gap."""
    with Watch() as watch:
        began = time.perf_counter()
        status, answer = call(method, path, body)
        seconds = time.perf_counter() - began
    print(f"{what:45} {status:6} {seconds:8.2f} {1000 * watch.longest:16.0f}", flush=True)
    if status >= 400:
        print("   ", answer[:300])


if __name__ == "__main__":
    main()
