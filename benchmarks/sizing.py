"""What a service needs: memory per problem and per decision, bytes on the disk and time of a start per event.

    python -m benchmarks.sizing [--decisions 5000] [--items 20] [--k 5]

Logs are written to temporary SQLite files without a service. Problems are created in a service within this process,
and asked for one slate each, with the default policy; their memory is what the process has grown by. Prints a table in
Markdown.
"""

import argparse
import asyncio
import os
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import httpx

from superarm.service.application import application
from superarm.service.domain.event_lines import encode
from superarm.service.domain.events import ALL, Asked, Created, Told
from superarm.service.domain.spec import PolicySpec, ProblemSpec, Settings
from superarm.service.storage.base import LogLine
from superarm.service.storage.compaction import compact
from superarm.service.storage.snapshot import restore_ledger, take_snapshot
from superarm.service.storage.sqlite import Sqlite

LATER = 10**15
PROBLEMS = ((100, 20, 40), (1_000, 100, 10), (10_000, 100, 4))
"""Arms, items, and how many problems of this size are created."""

Row = tuple[str, str]


def make_lines(n: int, n_items: int, k: int) -> tuple[list[LogLine], list[LogLine], list[LogLine]]:
    """A problem with 100 arms, ``n`` decisions of it, and feedback on all entries of each."""
    settings = Settings(policy=PolicySpec("cucb"), max_pending=n)
    items = [f"item-{i}" for i in range(n_items)]
    spec = ProblemSpec(arms=[f"arm-{j}" for j in range(100)], items=items, k=k, settings=settings)
    created = LogLine("t", "problem", "p", 0, encode(Created(0, spec, "key")), "p")
    asks, tells = [], []
    for t in range(1, n + 1):
        action = tuple((t + j) % 100 for j in range(k))
        asked = Asked(t, "p", f"decision-{t:012}", "0" * 32, t, action, n_items, 1, propensities=(1.0,) * k)
        told = Told(t, [(arm, ALL, float(t % 2)) for arm in action])
        asks.append(LogLine("t", "decision", asked.id, 0, encode(asked), "p"))
        tells.append(LogLine("t", "decision", asked.id, 1, encode(told), "p"))
    return [created], asks, tells


def grow(path: Path, lines: list[LogLine]) -> int:
    """Append lines to a log, and return by how many bytes its file has grown."""
    before = path.stat().st_size if path.exists() else 0
    store = Sqlite(path)
    for begin in range(0, len(lines), 128):
        store.commit(lines[begin : begin + 128])
    store.close()
    return path.stat().st_size - before


def measure_state(path: Path, n: int) -> tuple[float, float]:
    """Bytes of memory per decision of a log, and microseconds of processor time per event that a start reads."""
    store = Sqlite(path)
    restore_ledger(store)  # compiles what it needs
    began = time.process_time()
    _, _, n_read = restore_ledger(store)
    took = (time.process_time() - began) / max(1, n_read) * 1e6
    tracemalloc.start()
    kept = restore_ledger(store)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    store.close()
    return held / n, took


def measure_log(n: int, n_items: int, k: int) -> Iterator[Row]:
    """What decisions take, pending ones first, then with their feedback, then compacted."""
    created, asks, tells = make_lines(n, n_items, k)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "log.db"
        grow(path, created)
        yield "disk, an event that is a decision", f"{grow(path, asks) / n:.0f} bytes"
        memory, start = measure_state(path, n)
        yield "memory, a pending decision", f"{memory / 1000:.1f} kB"
        yield "start, an event that is a decision", f"{start:.0f} µs"
        store = Sqlite(path)
        saved = take_snapshot(*restore_ledger(store)[:2])
        store.save(saved)
        began = time.process_time()
        restore_ledger(store)
        took = (time.process_time() - began) / n * 1e6
        store.close()
        yield "disk, a pending decision in a snapshot", f"{len(saved.body) / n:.0f} bytes"
        yield "start, a pending decision in a snapshot", f"{took:.0f} µs"
        yield "disk, an event that is feedback on all entries", f"{grow(path, tells) / n:.0f} bytes"
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "log.db"
        grow(path, [*created, *asks, *tells])
        memory, start = measure_state(path, n)
        yield "memory, a decision that ended, of which the last 20,000 are kept", f"{memory / 1000:.1f} kB"
        yield "start, an event, decisions and feedback together", f"{start:.0f} µs"
        store = Sqlite(path)
        began = time.process_time()
        compact(store, None, LATER)
        took = (time.process_time() - began) / (2 * n) * 1e6
        store.close()
        yield "`superarm compact`, an event", f"{took:.0f} µs"


def resident() -> int:
    """The resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def measure_problems() -> list[Row]:
    """Memory per problem of several sizes, and of a service without any."""
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        app = application(Sqlite(Path(directory) / "log.db"))
        await app.service.coordinator.start()
        await asyncio.to_thread(app.service.keyring.read)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=600.0) as http:

            async def create(name: str, n_arms: int, n_items: int) -> None:
                spec = {"arms": [f"arm-{j}" for j in range(n_arms)], "items": [f"i{i}" for i in range(n_items)], "k": 5}
                (await http.put(f"/v1/problems/{name}", json=spec)).raise_for_status()
                (await http.post(f"/v1/problems/{name}/decisions", json={})).raise_for_status()
                for part in app.service.coordinator.ledger.problems["default", name].tally:
                    part[:] += 0.0  # zeros take memory when they are first written to, as feedback does

            for n_arms, n_items, n in PROBLEMS:
                await create(f"first-{n_arms}", n_arms, n_items)  # loads the kernels
                before = resident()
                for number in range(n):
                    await create(f"{n_arms}-{number}", n_arms, n_items)
                size = (resident() - before) / n / 1e6
                rows.append((f"memory, a problem with {n_arms:,} arms and {n_items} items", f"{size:.1f} MB"))
        await app.service.coordinator.stop()
    return rows


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=5_000)
    parser.add_argument("--items", type=int, default=20)
    parser.add_argument("--k", type=int, default=5)
    given = parser.parse_args()
    print(f"| slates of {given.k} arms, {given.items} items, a log of {given.decisions:,} decisions | |\n|---|---|")
    for what, takes in [*asyncio.run(measure_problems()), *measure_log(given.decisions, given.items, given.k)]:
        print(f"| {what} | {takes} |", flush=True)


if __name__ == "__main__":
    main()
