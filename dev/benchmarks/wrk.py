"""The service under wrk, a load generator that is not Python, on loopback: ``python -m dev.benchmarks.wrk``.

Asks for durable decisions and tells single feedbacks, of 100 arms, 20 items and slates of five, over 128 connections,
and prints requests per second and the median and the 99th percentile of the time that a client waits:

- at saturation, where every connection sends the next request as soon as it has an answer, so that most of the time is
  spent in the queue: with n connections and r answers per second, the mean is n / r;
- at a fixed rate, 2,000 decisions or 1,500 feedbacks per second, evenly spaced over the same connections.

wrk (Debian: ``apt-get install wrk``) has one thread and runs on the same machine, so measure while the machine does
nothing else. ``--postgres`` serves from a PostgreSQL of its own instead of SQLite.
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
from typing import Any, NamedTuple

from dev.benchmarks.soak import MAIN, wait

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

PACED = """
local ffi = require("ffi")
ffi.cdef("typedef struct { long s; long ns; } moment; int clock_gettime(int clock, moment *at);")
local at, step, slot = ffi.new("moment"), 1000 / tonumber(os.getenv("RATE")), nil
function delay()
  ffi.C.clock_gettime(1, at)
  local now = tonumber(at.s) * 1000 + tonumber(at.ns) / 1e6
  slot = math.max(math.min((slot or now) + step, now + tonumber(os.getenv("CONNECTIONS")) * step), now - 100)
  return math.max(0, slot - now)
end
"""
"""Gives every request the next moment of an even schedule, which all connections share.

wrk has no option for a rate. After a delay, at most 100 ms of the schedule are caught up with. It is never further
ahead than one request of each connection: wrk asks for a moment, too, when it connects again.
"""

RATES = {"decisions": 2_000, "feedback": 1_500}


class Measured(NamedTuple):
    """Requests per second, how long clients wait, in milliseconds (median and 99th percentile), and what went wrong."""

    rate: float
    median: float
    tail: float
    errors: str


def call(port: int, method: str, path: str, body: Any = None) -> Any:
    """The answer to one request."""
    head = {"content-type": "application/json"}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", None if body is None else json.dumps(body).encode(), head, method=method
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def run_wrk(script: str, url: str, options: argparse.Namespace, **environment: str) -> Measured:
    """Send requests for some seconds; all have to be answered with success."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        words = ["wrk", "-t1", f"-c{options.connections}", f"-d{options.seconds}s", "--latency", "-s", file.name, url]
        done = subprocess.run(words, check=False, capture_output=True, text=True, env={**os.environ, **environment})
    rate = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
    waits = dict(re.findall(r"(50|99)%\s+([\d.]+(?:us|ms|s))", done.stdout))
    if done.returncode or rate is None or len(waits) < 2 or "Non-2xx" in done.stdout:
        raise SystemExit(f"wrk failed: {done.stdout}{done.stderr}")
    errors = re.search(r"Socket errors: (.*)", done.stdout)
    return Measured(float(rate[1]), to_ms(waits["50"]), to_ms(waits["99"]), errors[1] if errors else "")


def to_ms(text: str) -> float:
    """A time of wrk in milliseconds.

    >>> to_ms("1.50s"), to_ms("250.00us")
    (1500.0, 0.25)
    """
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()  # type: ignore[union-attr]
    return float(number) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]


def write_feedback(port: int, problem: str, file: Path, n: int) -> None:
    """Make ``n`` decisions, and write one request per line: feedback with one value per arm."""
    with file.open("w") as lines:
        for _ in range(0, n, 1_000):
            made = call(port, "POST", f"/v1/problems/{problem}/decisions/bulk", {"decisions": [{}] * 1_000})
            for decision in made["decisions"]:
                told = {"feedback": [{"arm": arm, "value": 0.0} for arm in decision["arms"]]}
                lines.write(f"/v1/problems/{problem}/decisions/{decision['id']}/feedback {json.dumps(told)}\n")


def measure(port: int, home: Path, options: argparse.Namespace) -> None:
    """Both kinds of requests, by every policy, after a short warm-up."""
    arms, items, requests = [f"a{n}" for n in range(100)], [f"i{n}" for n in range(20)], home / "requests"
    for policy in options.policies:
        settings = {"policy": {"name": policy}, "max_pending": 10_000_000}
        call(port, "PUT", f"/v1/problems/{policy}", {"arms": arms, "items": items, "k": 5, "settings": settings})
        url = f"http://127.0.0.1:{port}/v1/problems/{policy}/decisions"
        run_wrk(POST, url, options)
        for name, pace in (("decisions", ""), ("decisions", PACED), ("feedback", ""), ("feedback", PACED)):
            found = []
            for _ in range(options.rounds):
                if name == "feedback":
                    write_feedback(port, policy, requests, int(options.seconds * 6_000))
                script, to = (POST, url) if name == "decisions" else (EACH, f"http://127.0.0.1:{port}/")
                environment = {"REQUESTS": str(requests), "RATE": str(RATES[name])}
                environment["CONNECTIONS"] = str(options.connections)
                found.append(run_wrk(script + pace, to, options, **environment))
            rates, medians, tails = (", ".join(f"{one[n]:.0f}" for one in found) for n in range(3))
            done = f"{rates} per second" + (f" of {RATES[name]:,}" if pace else "")
            behind = pace and min(one.rate for one in found) < 0.95 * RATES[name]
            faults = [*(one.errors for one in found if one.errors), *(["the rate was not reached"] if behind else [])]
            how = "at a fixed rate" if pace else "at saturation"
            said = f"{done}; 50 % within {medians} ms, 99 % within {tails} ms"
            print("; ".join([f"{policy:18} {name:10} {how:16} {said}", *faults]), flush=True)


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
