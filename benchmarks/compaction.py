"""What a compaction of a log that is being served costs its requests, and what a start then takes.

    python -m benchmarks.compaction [--decisions 50000] [--pending 1000]

A log of decisions that ended, with some pending ones, is written to a temporary SQLite file. One client asks for
decisions, one after the other, for some seconds; then it does so while the log is compacted. The event loop wakes up
every 2 ms meanwhile; the longest time between two wakings and the times of the requests are printed. Starts before and
after the compaction are measured in processes of their own: the time until the state has been read, and the memory.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.certificate import longest_gap
from superarm.service.application import application
from superarm.service.domain.event_lines import encode
from superarm.service.domain.events import ALL, Asked, Created, Told
from superarm.service.domain.spec import PolicySpec, ProblemSpec, Settings
from superarm.service.interpreter import collect_regularly, tune_interpreter
from superarm.service.runtime.compacting import compact_served
from superarm.service.storage.base import LogLine
from superarm.service.storage.snapshot import restore_ledger, take_snapshot
from superarm.service.storage.sqlite import Sqlite
from superarm.service.storage.tables import import_arrow

ASK = "/v1/problems/p/decisions"
LATER = 10**15
QUIET_SECONDS = 5.0

START = """
import resource, sys, time
from pathlib import Path
from superarm.service.storage.snapshot import restore_ledger
from superarm.service.storage.sqlite import Sqlite
before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
store = Sqlite(Path(sys.argv[1]))
ledger, _, n_read = restore_ledger(store)
took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
store.close()
print(f"{took:.2f} s, {(after - before) / 1024:.0f} MB, {n_read} events read, {len(ledger.pending)} pending")
"""


def write(path: Path, n: int, n_pending: int) -> None:
    """A problem with 100 arms and 20 items, ``n`` decisions that ended, ``n_pending`` that did not, and a snapshot."""
    store = Sqlite(path)
    settings = Settings(policy=PolicySpec("cucb"), max_pending=10_000_000)
    names = [f"arm-{j}" for j in range(100)]
    spec = ProblemSpec(arms=names, items=[f"item-{i}" for i in range(20)], k=5, settings=settings)
    lines = [LogLine("default", "problem", "p", 0, encode(Created(0, spec, "key")), "p")]
    for t in range(1, n + n_pending + 1):
        action = tuple((t + j) % 100 for j in range(5))
        asked = Asked(t, "p", f"decision-{t:012}", "0" * 32, t, action, 20, 1, propensities=(1.0,) * 5)
        lines.append(LogLine("default", "decision", asked.id, 0, encode(asked), "p"))
        if t <= n:
            told = Told(t, [(arm, ALL, float(t % 2)) for arm in action])
            lines.append(LogLine("default", "decision", asked.id, 1, encode(told), "p"))
    for begin in range(0, len(lines), 1_000):
        store.commit(lines[begin : begin + 1_000])
    ledger, position, _ = restore_ledger(store)
    store.save(take_snapshot(ledger, position))
    store.close()


async def ask(app: Any) -> None:
    """Ask for a decision, by the interface between server and application: a client would leave garbage here."""
    sent = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    place = {"type": "http", "method": "POST", "path": ASK, "query_string": b"", "scheme": "http"}
    await app({**place, "headers": headers, "client": ("127.0.0.1", 1), "root_path": ""}, receive, send)
    assert sent[0]["status"] == 201, sent


async def ask_until(app: Any, stop: asyncio.Event) -> list[float]:
    """The times of decisions, in milliseconds."""
    times = []
    while not stop.is_set():
        began = time.perf_counter()
        await ask(app)
        times.append(1000.0 * (time.perf_counter() - began))
        await asyncio.sleep(0.002)
    return times


async def observe(app: Any, work: Awaitable[object], what: str) -> None:
    """Print what requests and the event loop met while a coroutine ran."""
    stop = asyncio.Event()
    client, watch = asyncio.create_task(ask_until(app, stop)), asyncio.create_task(longest_gap(stop))
    began = time.perf_counter()
    await work
    took = time.perf_counter() - began
    stop.set()
    times, gap = await client, await watch
    median, late, most = np.percentile(times, [50, 99, 100])
    said = f"{len(times)} decisions, median {median:.1f} ms, 99 % {late:.1f} ms, longest {most:.1f} ms"
    print(f"{what}: {took:.1f} s, longest gap of the event loop {gap:.1f} ms; {said}", flush=True)


def start(path: Path, what: str) -> None:
    """Print what reading the state takes, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", START, str(path)], check=True, capture_output=True, text=True)
    print(f"start {what}: {path.stat().st_size / 1e6:.0f} MB on disk, {done.stdout.strip()}", flush=True)


async def serve(path: Path) -> None:
    """Serve the log, and compact it."""
    app = application(Sqlite(path))
    coordinator = app.service.coordinator
    await coordinator.start()
    await asyncio.to_thread(app.service.keyring.read)
    collect_regularly()  # as the service does
    for _ in range(100):
        await ask(app)
    await observe(app, asyncio.sleep(QUIET_SECONDS), "before")
    await observe(app, compact_served(coordinator, path.parent / "archive", LATER), "while compacting")
    await coordinator.stop()


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=50_000)
    parser.add_argument("--pending", type=int, default=1_000)
    given = parser.parse_args()
    tune_interpreter()
    import_arrow()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "log.db"
        write(path, given.decisions, given.pending)
        start(path, f"with {given.decisions} decisions that ended, from a snapshot")
        asyncio.run(serve(path))
        start(path, "after the compaction")


if __name__ == "__main__":
    main()
