"""The longest time for which the service answers nobody while it works on its largest legal requests.

    python -m dev.benchmarks.responsiveness [--group NAME] [--db ADDRESS] [--at-most MS]

A thread asks for ``/health/live`` every 10 ms while one large request after the other is sent (those of
``tests/service/large_requests.py``). Printed for each: how long the request took, its status, and the longest time
between two answers of health, less the 10 ms; then the longest of these times less what the kernel says that the event
loop and the asking thread have waited for a processor meanwhile, which is the service's part of it on a busy machine.
"idle" is the same without any request. With ``--at-most``, the exit status is 1 if a gap of the last column was longer.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection, ResponseNotReady
from pathlib import Path

from tests.service.large_requests import GROUPS, LargeRequest

PORT = 9111
PERIOD = 0.01
START = "from superarm.cli import main; main(prog_name='superarm')"


def call(method: str, path: str, body: bytes = b"", timeout: float = 300.0) -> tuple[int, bytes]:
    """One request on a connection of its own; status 0 if it was reset before its answer could be read.

    A body above its limit is refused before it was read: the connection may then be reset while it is being sent.
    """
    connection = HTTPConnection("127.0.0.1", PORT, timeout=timeout)
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (ConnectionError, ResponseNotReady):
        return 0, b"the connection was reset"
    finally:
        connection.close()


def waited(process: int, thread: int) -> float:
    """How many seconds a thread was ready to run and had no processor, if the kernel counts it."""
    try:
        return int(Path(f"/proc/{process}/task/{thread}/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


class Watch:
    """Asks for health every 10 ms; ``longest`` is the longest time between two answers, less the 10 ms.

    ``longest_own`` is the longest of them less the time for which the event loop or this thread had no processor.
    """

    def __init__(self, server: int) -> None:
        self.longest, self.longest_own, self._stop, self._server = 0.0, 0.0, False, server
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        connection = HTTPConnection("127.0.0.1", PORT, timeout=300.0)
        last, waited_before, this = None, 0.0, (os.getpid(), threading.get_native_id())
        while not self._stop:
            connection.request("GET", "/health/live")
            connection.getresponse().read()
            now, waited_now = time.perf_counter(), waited(self._server, self._server) + waited(*this)
            if last is not None:
                gap = now - last - PERIOD
                self.longest = max(self.longest, gap)
                self.longest_own = max(self.longest_own, gap - (waited_now - waited_before))
            last, waited_before = now, waited_now
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


def wait(server: subprocess.Popen[bytes]) -> None:
    """Wait until the service is ready."""
    for _ in range(600):
        assert server.poll() is None, "the service has ended"
        if call("GET", "/health")[0] == 200:
            return
        time.sleep(0.1)
    raise AssertionError("the service is not ready after a minute")


def describe(what: str, status: str, seconds: float, watch: Watch) -> float:
    """Print what was seen; the longest gap that was the service's own, in milliseconds."""
    own = 1000 * watch.longest_own
    print(f"{what:45} {status:>6} {seconds:8.2f} {1000 * watch.longest:16.0f} {own:16.0f}", flush=True)
    return own


def measure(request: LargeRequest, server: int) -> float:
    """Send one request while health is asked for, print and return the longest gap in milliseconds."""
    content = request.content
    with Watch(server) as watch:
        began = time.perf_counter()
        status, answer = call(request.method, request.path, content)
        seconds = time.perf_counter() - began
    gap = describe(request.what, str(status), seconds, watch)
    if status != request.status:
        print("    expected", request.status, answer[:300])
    return gap


def run(groups: list[str], server: int) -> float:
    """Send the requests of some groups; the longest gap of all."""
    longest = 0.0
    print(f"{'request':45} {'status':>6} {'seconds':>8} {'longest gap, ms':>16} {'of the service':>16}")
    with Watch(server) as watch:
        time.sleep(3.0)
    describe("idle", "", 3.0, watch)
    for group in groups:
        for request in GROUPS[group](lambda n: n):
            longest = max(longest, measure(request, server))
    return longest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--group", choices=GROUPS, action="append")
    parser.add_argument("--db", help="a PostgreSQL database; a new SQLite file without it")
    parser.add_argument("--at-most", type=float, metavar="MS")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        db = options.db or str(Path(home) / "log.db")
        words = ["serve", "--db", db, "--port", str(PORT), "--snapshot-every", "20000"]
        server = subprocess.Popen([sys.executable, "-c", START, *words], stderr=(Path(home) / "err").open("w"))
        try:
            wait(server)
            longest = run(options.group or list(GROUPS), server.pid)
        finally:
            server.kill()
            server.wait()
    if options.at_most is not None and longest > options.at_most:
        sys.exit(f"a gap of {longest:.0f} ms, more than {options.at_most:g}")


if __name__ == "__main__":
    main()
