"""The service under wrk, a load generator that is not Python, on loopback: ``python -m benchmarks.wrk``.

Asks for durable decisions and tells single feedbacks, of 100 arms, 20 items and slates of five, and prints requests per
second and the 99th percentile of the time that a client waits. wrk has one thread and runs on the same machine, so
measure while the machine does nothing else. ``--postgres`` serves from a PostgreSQL of its own instead of SQLite.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.soak import MAIN, wait

POST = 'wrk.method, wrk.body = "POST", "{}"\nwrk.headers["Content-Type"] = "application/json"\n'
EACH = """
local requests, head = {}, {["Host"] = "127.0.0.1", ["Content-Type"] = "application/json"}
for line in io.lines(os.getenv("REQUESTS")) do
  local path, body = line:match("^(%S+) (.*)$")
  requests[#requests + 1] = wrk.format("POST", path, head, body)
end
local n = 0
function request()
  n = n + 1
  if n > #requests then io.stderr:write("all requests were sent\\n") os.exit(1) end
  return requests[n]
end
"""
"""Sends the lines of a file, a path and a body each, one after the other."""


def call(port: int, method: str, path: str, body: Any = None) -> Any:
    """The answer to one request."""
    head = {"content-type": "application/json"}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", None if body is None else json.dumps(body).encode(), head, method=method
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def run_wrk(script: str, url: str, options: argparse.Namespace, **environment: str) -> tuple[float, float]:
    """Requests per second, all answered with success, and the 99th percentile of the latency in milliseconds."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        words = ["wrk", "-t1", f"-c{options.connections}", f"-d{options.seconds}s", "--latency", "-s", file.name, url]
        done = subprocess.run(words, check=False, capture_output=True, text=True, env={**os.environ, **environment})
    rate = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
    tail = re.search(r"99%\s+([\d.]+)(us|ms|s)", done.stdout)
    if done.returncode or rate is None or tail is None or "Non-2xx" in done.stdout:
        raise SystemExit(f"wrk failed: {done.stdout}{done.stderr}")
    return float(rate[1]), float(tail[1]) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[tail[2]]


def write_feedback(port: int, problem: str, file: Path, n: int) -> None:
    """Make ``n`` decisions, and write one request per line: feedback with one value per arm."""
    with file.open("w") as lines:
        for _ in range(0, n, 1_000):
            made = call(port, "POST", f"/v1/problems/{problem}/decisions/bulk", {"decisions": [{}] * 1_000})
            for decision in made["decisions"]:
                told = {"feedback": [{"arm": arm, "value": 0.0} for arm in decision["arms"]]}
                lines.write(f"/v1/decisions/{decision['id']}/feedback {json.dumps(told)}\n")


def measure(port: int, home: Path, options: argparse.Namespace) -> None:
    """Both kinds of requests, by every policy, after a short warm-up."""
    arms, items = [f"a{n}" for n in range(100)], [f"i{n}" for n in range(20)]
    for policy in options.policies:
        settings = {"policy": {"name": policy}, "max_pending": 10_000_000}
        call(port, "PUT", f"/v1/problems/{policy}", {"arms": arms, "items": items, "k": 5, "settings": settings})
        url = f"http://127.0.0.1:{port}/v1/problems/{policy}/decisions"
        run_wrk(POST, url, options)
        decisions = [run_wrk(POST, url, options) for _ in range(options.rounds)]
        told = []
        for _ in range(options.rounds):
            write_feedback(port, policy, home / "requests", int(options.seconds * 6_000))
            told.append(run_wrk(EACH, f"http://127.0.0.1:{port}/", options, REQUESTS=str(home / "requests")))
        for name, found in (("decisions", decisions), ("feedback", told)):
            rates, tails = (", ".join(f"{one:.0f}" for one in part) for part in zip(*found, strict=True))
            print(f"{policy:22} {name:10} {rates} per second; 99 % within {tails} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=128)
    parser.add_argument("--port", type=int, default=9106)
    parser.add_argument("--policies", nargs="+", default=["pooled_thompson", "kl_ucb", "kl_moss"])
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed: apt-get install wrk")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, {options.connections} connections")
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as open_things:
        address = str(Path(name) / "superarm.db")
        if options.postgres:
            from tests.service.database import Database, fresh

            database = Database()
            open_things.callback(database.close)
            address = fresh(database.address, "wrk")
        words = [sys.executable, "-c", MAIN, "serve", "--db", address, "--port", str(options.port)]
        server = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        open_things.callback(server.wait)
        open_things.callback(server.terminate)
        wait(options.port, server)
        measure(options.port, Path(name), options)


if __name__ == "__main__":
    main()
