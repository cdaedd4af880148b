"""The service under wrk, a load generator that is not Python, against an echo of the same stack: by turns, on loopback.

    python -m benchmarks.wrk [--rounds 5] [--seconds 2] [--connections 128] [--postgres]

Echo is Starlette and msgspec on uvicorn; the service is ``superarm serve``. wrk has one thread and runs on the same
machine. Decisions are asked for by every policy that the documentation recommends; problems start with counters as 30
rounds over all arms leave them. Feedback is one call per decision, each with one value per arm, and the echo gets the
bodies of the decisions. With ``--postgres``, a new problem is served from SQLite, and from a PostgreSQL on this machine
by one worker and by two.
"""

import argparse
import contextlib
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchmarks.service import DURABLE, ECHO, LOOSE, POLICIES, Seen, call, made, sync_ms
from benchmarks.service import started as start_application
from benchmarks.service import stopped as stop
from benchmarks.soak import MAIN, wait

SQLITE, POSTGRES = 9106, 9107

POST = """
wrk.method, wrk.body = "POST", "{}"
wrk.headers["Content-Type"] = "application/json"
"""

EACH = """
local requests = {}
for line in io.lines(os.getenv("REQUESTS")) do
  local path, body = line:match("^(%S+) (.*)$")
  requests[#requests + 1] = wrk.format("POST", path, {["Content-Type"] = "application/json"}, body)
end
local n = 0
function request()
  n = n + 1
  if n > #requests then io.stderr:write("all requests were sent\\n") os.exit(1) end
  return requests[n]
end
"""
"""Sends the lines of a file, a path and a body each, one after the other."""


class Wrk:
    """Runs wrk with a script against a port of this machine."""

    def __init__(self, home: Path, connections: int, seconds: float) -> None:
        if shutil.which("wrk") is None:
            raise SystemExit("wrk is not installed: apt-get install wrk")
        self._home, self._connections, self.seconds = home, connections, seconds

    def rate(self, port: int, path: str, script: str = POST, **environment: str) -> float:
        """Requests per second, all answered by 200 or 201."""
        file = self._home / "script.lua"
        file.write_text(script)
        words = ["wrk", "-t1", f"-c{self._connections}", f"-d{self.seconds}s", "-s", str(file)]
        url = f"http://127.0.0.1:{port}{path}"
        given = {**os.environ, **environment}
        done = subprocess.run([*words, url], check=False, capture_output=True, text=True, env=given)
        found = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
        if done.returncode or found is None or "Non-2xx" in done.stdout:
            raise SystemExit(f"wrk failed: {done.stdout}{done.stderr}")
        return float(found.group(1))


def serve(db: str, port: int, *options: str) -> subprocess.Popen[bytes]:
    """``superarm serve`` in a process of its own."""
    words = [sys.executable, "-c", MAIN, "serve", "--db", db, "--port", str(port), *options]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    wait(port, process)
    return process


def prepare_feedback(file: Path, n: int) -> None:
    """Make ``n`` decisions, and write one request per line: feedback with one value per arm."""
    lines = []
    for _ in range(0, n, 2_000):
        body = msgspec.json.encode({"decisions": [{}] * 2_000})
        answer: Any = msgspec.json.decode(call(DURABLE, "POST", "/v1/problems/bc/decisions/bulk", body))
        for decision in answer["decisions"]:
            units = [{"arm": arm, "value": 0.0} for arm in decision["arms"]]
            told = msgspec.json.encode({"feedback": units}).decode()
            lines.append(f"/v1/decisions/{decision['id']}/feedback {told}\n")
    file.write_text("".join(lines))


def compare(home: Path, wrk: Wrk, options: argparse.Namespace) -> None:
    """Durable decisions, decisions that are not durable, and feedback, each against echo."""
    seen, requests = Seen(), home / "requests"
    for turn in range(options.rounds + 1):  # the first round only warms
        rates = {"echo": wrk.rate(ECHO, "/echo")}
        for policy in POLICIES:
            path = f"/v1/problems/{policy}/decisions"
            rates[f"durable {policy}"] = wrk.rate(DURABLE, path)
            rates[f"not durable {policy}"] = wrk.rate(LOOSE, path)
        prepare_feedback(requests, int(options.seconds * 10_000))
        rates["feedback"] = wrk.rate(DURABLE, "/", EACH, REQUESTS=str(requests))
        if turn:
            for name, rate in rates.items():
                seen.add(name, rate)
            seen.add("fdatasync", sync_ms(home))
    print(f"wrk, {options.connections} connections, L=100 M=20 K=5, {options.rounds} rounds: median, ratio by round")
    print(f"{'echo':24} {seen.middle('echo'):8.0f} /s; one fdatasync {seen.middle('fdatasync'):.2f} ms")
    for policy in POLICIES:
        for name in (f"durable {policy}", f"not durable {policy}"):
            print(f"{name:24} {seen.middle(name):8.0f} /s   {seen.ratio(name, 'echo')} of echo")
        print(f"{'durable / not':24} {seen.ratio(f'durable {policy}', f'not durable {policy}'):>24}")
    print(f"{'feedback, one by one':24} {seen.middle('feedback'):8.0f} /s   {seen.ratio('feedback', 'echo')} of echo")


@contextlib.contextmanager
def running(home: Path) -> Iterator[None]:
    """The echo, the service, and the service without durability."""
    made(home / "durable.db", list(POLICIES))
    made(home / "loose.db", list(POLICIES))
    loose = {"BENCH_DB": str(home / "loose.db"), "SYNCHRONOUS": "OFF"}
    with contextlib.ExitStack() as processes:
        processes.callback(stop, start_application("benchmarks.service:echo", ECHO))
        processes.callback(stop, serve(str(home / "durable.db"), DURABLE))
        processes.callback(stop, start_application("benchmarks.service:service", LOOSE, **loose))
        yield


class Spent(NamedTuple):
    """Seconds of processor time of what this benchmark has started: wrk, PostgreSQL, and all services."""

    client: float
    database: float
    service: float

    @staticmethod
    def so_far() -> "Spent":
        """What they have had until now; wrk has ended."""
        parents, names, times = dict[int, int](), dict[int, str](), dict[int, float]()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                name, _, rest = (process / "stat").read_text().partition("(")[2].rpartition(")")
                fields, pid = rest.split(), int(process.name)
                parents[pid], names[pid] = int(fields[1]), name
                times[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        wrk, found = resource.getrusage(resource.RUSAGE_CHILDREN), {True: 0.0, False: 0.0}
        for pid, seconds in times.items():
            above = parents[pid]
            while above not in (0, os.getpid()):
                above = parents.get(above, 0)
            if above:
                found[names[pid] == "postgres"] += seconds
        return Spent(wrk.ru_utime + wrk.ru_stime, found[True], found[False])

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(*(mine - yours for mine, yours in zip(self, other, strict=True)))


def compare_stores(home: Path, wrk: Wrk, rounds: int) -> None:
    """SQLite and PostgreSQL."""
    from tests.service.database import Database, fresh

    ports = {"SQLite": SQLITE, "PostgreSQL": POSTGRES}
    spec = {"arms": [f"a{n}" for n in range(100)], "items": [f"i{n}" for n in range(20)], "k": 5}
    spec["settings"] = {"max_pending": 10_000_000}
    seen, database = Seen(), Database()
    with contextlib.ExitStack() as processes:
        processes.callback(database.close)
        processes.callback(stop, serve(str(home / "stores.db"), SQLITE))
        processes.callback(stop, serve(fresh(database.address, "one"), POSTGRES))
        for port in ports.values():
            call(port, "PUT", "/v1/problems/new", msgspec.json.encode(spec))
        for turn in range(rounds + 1):
            for name, port in ports.items():
                before = Spent.so_far()
                rate = wrk.rate(port, "/v1/problems/new/decisions")
                if turn:
                    seen.add(name, rate)
                    for part, seconds in (Spent.so_far() - before)._asdict().items():
                        seen.add(f"{name} {part}", 1e6 * seconds / (rate * wrk.seconds))
    for name in ports:
        print(f"{name:24} {seen.middle(name):8.0f} decisions per second with the default policy")
        each = {part: seen.middle(f"{name} {part}") for part in Spent._fields}
        said = ", ".join(f"{part} {used:.0f}" for part, used in each.items())
        most = 1e6 * (os.cpu_count() or 1) / sum(each.values())
        print(f"{'':24} µs of processor time per decision: {said}; all cores busy with it: {most:.0f} per second")
    print(f"PostgreSQL / SQLite {seen.ratio('PostgreSQL', 'SQLite')}")
    print(
        f"two workers / one {seen.ratio('two workers', 'PostgreSQL')}: client, database and workers on the same cores"
    )


def main() -> None:
    """All measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--connections", type=int, default=128)
    parser.add_argument("--postgres", action="store_true", help="compare the stores, and not with echo")
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        wrk = Wrk(home, options.connections, options.seconds)
        if options.postgres:
            compare_stores(home, wrk, options.rounds)
            return
        with running(home):
            compare(home, wrk, options)


if __name__ == "__main__":
    main()
