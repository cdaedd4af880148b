"""The service against a bare echo of the same stack: medians of interleaved rounds, on loopback.

    python -m benchmarks.service [--rounds 7] [--seconds 2] [--connections 128] [--events 1000000]   (0: without)

The echo is Starlette and msgspec on uvicorn, with the service's flags and its settings of the interpreter;
"not durable" is the service with SQLite's ``synchronous=OFF``. Problems start with counters as 30 rounds over all arms
leave them, so that indices are not all 1.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.load import Load, load

ECHO, DURABLE, LOOSE = 9101, 9102, 9103
PULLS = 30
PROBLEMS = {
    "bc": ("bc_ucb", 100, 20, 5),
    "kl": ("kl_ucb", 100, 20, 5),
    "moss": ("kl_moss", 100, 20, 5),
    "directional": ("directional_kl_moss", 100, 20, 5),
    "large-bc": ("bc_ucb", 10_000, 100, 10),
    "large-kl": ("kl_ucb", 10_000, 100, 10),
}
POLICIES = ("bc", "kl", "moss", "directional")
"""The paper's policy, and those that the documentation recommends."""


def echo() -> Any:
    """Starlette and msgspec, and nothing behind them."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route
    from superarm.service.interpreter import tune_interpreter

    async def answer(request: Request) -> Response:
        body = msgspec.json.decode(await request.body())
        return Response(msgspec.json.encode(body), media_type="application/json")

    tune_interpreter()
    return Starlette(routes=[Route("/echo", answer, methods=["POST"])])


def service() -> Any:
    """The service on a file; ``SYNCHRONOUS=OFF`` takes durability away, to see what it costs."""
    from superarm.service.interpreter import collect_regularly, tune_interpreter

    from superarm.service.application import application
    from superarm.service.http.service import ServiceLimits
    from superarm.service.runtime.coordinator import SNAPSHOT_EVERY
    from superarm.service.storage.sqlite import Sqlite

    store = Sqlite(Path(os.environ["BENCH_DB"]))
    store._writer.execute(f"PRAGMA synchronous = {os.environ.get('SYNCHRONOUS', 'FULL')}")
    limits = ServiceLimits(snapshot_every=int(os.environ.get("SNAPSHOT_EVERY", SNAPSHOT_EVERY)))

    def begin() -> None:
        tune_interpreter()
        collect_regularly()

    return application(store, limits, begin)


def made(path: Path, names: list[str], **settings: Any) -> None:
    """A log with problems, and a snapshot of counters as ``PULLS`` rounds over all arms leave them."""
    from superarm.service.domain.event_lines import encode

    from superarm.core.streams import new_stream
    from superarm.core.tally import Feedback
    from superarm.service.domain.events import Created
    from superarm.service.domain.ledger import Ledger, LogEntry
    from superarm.service.domain.spec import PolicySpec, ProblemSpec, Settings
    from superarm.service.storage.base import LogLine
    from superarm.service.storage.snapshot import take_snapshot
    from superarm.service.storage.sqlite import Sqlite

    no_coins = new_stream(np.random.SeedSequence(0))  # outcomes are recorded as they are
    store, ledger, rng = Sqlite(path), Ledger(), np.random.default_rng(0)
    for name in names:
        policy, n_arms, n_items, k = PROBLEMS[name]
        arms, items = [f"a{n}" for n in range(n_arms)], [f"i{n}" for n in range(n_items)]
        wanted = Settings(policy=PolicySpec(policy), **{"max_pending": 10_000_000, **settings})  # type: ignore[arg-type]
        created = Created(0, ProblemSpec(arms=arms, items=items, k=k, settings=wanted), "key")
        store.commit([LogLine("default", "problem", name, 0, encode(created))])
        ledger.apply(LogEntry("default", "problem", name, 0, created))
        learner = ledger.problems["default", name].learner
        rates = rng.uniform(0.0, 0.2, n_arms * n_items)
        for n in range(PULLS):  # outcomes, and not only their sums: some policies keep moments of them
            outcome = (rng.random(len(rates)) < rates).astype(float)
            learner.apply(Feedback(n + 1, np.arange(n_arms), outcome, np.ones(len(rates), bool)), no_coins)
        learner.asked = PULLS * n_arms // k
    store.save(take_snapshot(ledger, {"": store.last()}))
    store.close()


def started(app: str, port: int, **env: str) -> subprocess.Popen[bytes]:
    """An ASGI application in a process of its own."""
    words = [sys.executable, "-m", "uvicorn", "--factory", app, "--port", str(port), "--log-level", "warning"]
    if app.endswith(":service"):
        words += ["--http", "superarm.service.protocol:TimedProtocol"]  # as superarm serve does
    process = subprocess.Popen([*words, "--no-access-log"], env={**os.environ, **env})
    for _ in range(6_000):
        try:
            call(port, "GET", "/health")
            return process
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"{app} did not start")


def call(port: int, method: str, path: str, body: bytes = b"") -> Any:
    """One request on a connection of its own; its answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(method, path, body, {"content-type": "application/json"})
    answer = connection.getresponse().read()
    connection.close()
    return answer


def stopped(process: subprocess.Popen[bytes]) -> None:
    """End it, and wait."""
    process.terminate()
    process.wait(60)


def sync_ms(home: Path) -> float:
    """The median time of appending a page and its fdatasync, which is what a commit of SQLite waits for."""
    times = []
    with (home / "sync").open("ab", buffering=0) as file:
        for _ in range(100):
            begun = time.perf_counter()
            file.write(b"x" * 4096)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begun)
    return 1000.0 * statistics.median(times)


def processor(pid: int) -> float:
    """Seconds of processor time that a process' first thread, the event loop's, has had."""
    fields = Path(f"/proc/{pid}/task/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(process: subprocess.Popen[bytes], *what: Any) -> tuple[Load, float]:
    """A load, and the event loop's processor time a request in microseconds: it hardly sees what else is running."""
    before = processor(process.pid)
    found = load(*what)
    return found, 1e6 * (processor(process.pid) - before) / max(found.n, 1)


def written(port: int) -> tuple[float, float]:
    """How many events a service has written, and by how many commits."""
    lines = dict(line.split(" ", 1) for line in call(port, "GET", "/metrics").decode().splitlines() if line[:1] != "#")
    return float(lines["superarm_events_total"]), float(lines["superarm_commit_seconds_count"])


class Seen:
    """Measurements by name, and how they are told."""

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = {}

    def add(self, name: str, value: float) -> None:
        """One more."""
        self._values.setdefault(name, []).append(value)

    def ratio(self, name: str, other: str) -> str:
        """The ratio of two, round by round: its median and its range."""
        ratios = [a / b for a, b in zip(self._values[name], self._values[other], strict=True)]
        return f"{statistics.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}]"

    def middle(self, name: str) -> float:
        """The median."""
        return statistics.median(self._values[name])


def decisions(home: Path, options: argparse.Namespace, processes: list[subprocess.Popen[bytes]]) -> None:
    """Durable decisions against echo and against the same without durability; latency at one connection."""
    seen, c, s = Seen(), options.connections, options.seconds
    echo, durable, loose = processes
    runs = [("echo", echo, ECHO, "/echo")]
    for policy in POLICIES:
        path = f"/v1/problems/{policy}/decisions"
        runs += [(f"durable {policy}", durable, DURABLE, path), (f"not durable {policy}", loose, LOOSE, path)]
    for turn in range(options.rounds + 1):  # the first round only warms
        for name, process, port, path in runs:
            before = written(port) if port != ECHO else (0.0, 0.0)
            found, busy = measured(process, port, path, b"{}", c, s)
            after = written(port) if port != ECHO else (0.0, 1.0)
            if turn:
                seen.add(name, found.rate)
                seen.add(f"{name} busy", busy)
                seen.add(f"{name} together", (after[0] - before[0]) / (after[1] - before[1]))
        if turn:
            seen.add("fdatasync", sync_ms(home))
            seen.add("p50 at one", load(DURABLE, "/v1/problems/bc/decisions", b"{}", 1, s / 2).p50)
    print(f"{c} connections, L=100 M=20 K=5, {options.rounds} interleaved rounds: median, ratio by round [range]")
    print(f"{'echo':24} {seen.middle('echo'):8.0f} /s; its loop is busy {seen.middle('echo busy'):.0f} us a request")
    for policy in POLICIES:
        for name in (f"durable {policy}", f"not durable {policy}"):
            busy = f"{seen.middle(f'{name} busy'):.0f} us, echo's is {seen.ratio('echo busy', f'{name} busy')} of it"
            print(f"{name:24} {seen.middle(name):8.0f} /s   {seen.ratio(name, 'echo')} of echo; loop busy {busy}")
            print(f"{'':24} {seen.middle(f'{name} together'):8.0f} events per commit")
        print(f"durable / not            {seen.ratio(f'durable {policy}', f'not durable {policy}')}")
    print(f"one connection: p50 {seen.middle('p50 at one'):.2f} ms; one fdatasync {seen.middle('fdatasync'):.2f} ms")


def large(options: argparse.Namespace, process: subprocess.Popen[bytes]) -> None:
    """Decisions among ten thousand arms."""
    for name in ("large-bc", "large-kl"):
        load(DURABLE, f"/v1/problems/{name}/decisions", b"{}", 1, 1.0)
        path = f"/v1/problems/{name}/decisions"
        found, busy = measured(process, DURABLE, path, b"{}", 1, 2.0 * options.seconds)
        times = f"p50 {found.p50:.2f} ms, p90 {found.p90:.2f} ms, longest {found.longest:.2f} ms"
        times += f"; loop busy {busy / 1000:.2f} ms on average"
        print(f"L=10000 M=100 K=10, {PROBLEMS[name][0]}: {times}")


def feedback(n: int = 400) -> None:
    """Feedback a second, one call each and in bulk, at one connection."""
    answer = call(DURABLE, "POST", "/v1/problems/bc/decisions/bulk", msgspec.json.encode({"decisions": [{}] * (2 * n)}))
    units = [
        (made["id"], [{"arm": arm, "value": 0.0} for arm in made["arms"]])
        for made in msgspec.json.decode(answer)["decisions"]
    ]
    connection = HTTPConnection("127.0.0.1", DURABLE)
    begun = time.perf_counter()
    for id, unit in units[:n]:
        body = msgspec.json.encode({"feedback": unit})
        connection.request("POST", f"/v1/decisions/{id}/feedback", body, {"content-type": "application/json"})
        assert b'"applied":true' in connection.getresponse().read()
    single = n / (time.perf_counter() - begun)
    lines = b"\n".join(msgspec.json.encode({"decision": id, "feedback": unit}) for id, unit in units[n:])
    begun = time.perf_counter()
    assert call(DURABLE, "POST", "/v1/feedback/bulk", lines).count(b'"applied":true') == n
    bulk = n / (time.perf_counter() - begun)
    print(f"feedback: one call each {single:.0f} /s, bulk {bulk:.0f} /s: {bulk / single:.1f} times")


def main() -> None:
    """All measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--connections", type=int, default=128)
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        made(home / "durable.db", list(PROBLEMS))
        made(home / "loose.db", list(POLICIES))
        processes = [
            started("benchmarks.service:echo", ECHO),
            started("benchmarks.service:service", DURABLE, BENCH_DB=str(home / "durable.db")),
            started("benchmarks.service:service", LOOSE, BENCH_DB=str(home / "loose.db"), SYNCHRONOUS="OFF"),
        ]
        parts: list[Callable[[], None]] = [
            lambda: decisions(home, options, processes),
            lambda: large(options, processes[1]),
            feedback,
        ]
        try:
            for part in parts:
                part()
        finally:
            for process in processes:
                stopped(process)
        if options.events:
            from benchmarks.starting import flood, start_up

            start_up(home, options.events)
            flood(home)


if __name__ == "__main__":
    main()
