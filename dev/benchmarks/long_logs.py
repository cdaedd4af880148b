"""What a long log costs, in SQLite: ``python -m dev.benchmarks.long_logs --events 1000000``.

Writes a log of decisions with feedback, half of the events each, for a problem of 50 arms, and prints seconds of the
clock and of the processor: of a first start, of one from a snapshot, of ``superarm verify`` and of a compaction; then
how long four clients waited for decisions before and during a backup. With ``--from-snapshot``, the state of the first
thousand events stands for that of all, so that only a start from a snapshot is measured, and quickly.
"""

import argparse
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from dev.benchmarks.soak import MAIN, wait
from superarm.decisions import Told
from superarm.service.client import connect
from superarm.service.domain.events import Asked, Created, encode
from superarm.service.domain.spec import PolicySpec, ProblemSpec, Settings
from superarm.service.storage import snapshot as snapshots
from superarm.service.storage.base import LogLine
from superarm.service.storage.sqlite import Sqlite

ARMS, K, AT_ONCE = 50, 3, 20_000


def write(path: Path, n_events: int) -> None:
    """A log of so many events and one: the creation of the problem."""
    store, lines = Sqlite(path), events(n_events // 2)
    while batch := list(islice(lines, AT_ONCE)):
        store.commit(batch)
    store.close()


def events(n: int) -> Iterator[LogLine]:
    """The creation of a problem, then decisions, each with its feedback after it."""
    rng, settings = random.Random(0), Settings(policy=PolicySpec("kl_ucb"))
    spec = ProblemSpec(arms=[f"arm-{j}" for j in range(ARMS)], k=K, settings=settings)
    yield LogLine("default", "problem", "p", 0, encode(Created(0, spec, "key")), "p")
    for t in range(1, n + 1):
        id, slate = f"{rng.getrandbits(120):030x}", tuple(sorted(rng.sample(range(ARMS), K)))
        chances, units = (1.0,) * K, [(arm, -1, float(rng.random() < 0.1)) for arm in slate]
        asked = Asked(t, "p", id, f"{t:032x}", t, slate, 1, 1, 86_400_000, propensities=chances, seen={"": t})
        yield LogLine("default", "decision", f"p/{id}", 0, encode(asked), "p")
        yield LogLine("default", "decision", f"p/{id}", 1, encode(Told(t, units, last=True)), "p")


def timed(what: str, work: Callable[[], Any]) -> Any:
    """The result of some work, whose seconds are printed as a row, with the most memory that was used up to its end."""
    began, used = time.monotonic(), time.process_time()
    result = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"| {what} | {time.monotonic() - began:.1f} | {time.process_time() - used:.1f} | {peak:,} |", flush=True)
    return result


def start(path: Path) -> Any:
    """What a start reads."""
    store = Sqlite(path)
    try:
        return snapshots.restore_ledger(store)[:2]
    finally:
        store.close()


def save(path: Path, saved: Any) -> None:
    """Save a snapshot."""
    store = Sqlite(path)
    store.save(saved)
    store.close()


def forge(path: Path, home: Path, n_events: int) -> None:
    """Save the state of a short log as that of a long one."""
    write(home / "short.db", 1_000)
    state = snapshots.copy_state(*start(home / "short.db"))
    save(path, snapshots.pack_snapshot(replace(state, position={"": n_events + 1})))


def compact(home: Path, path: Path) -> None:
    """Compact a copy, of which all decisions go."""
    shutil.copy(path, home / "compacted.db")
    store = Sqlite(home / "compacted.db")
    assert snapshots.compact(store, 10**15)
    store.close()


def wait_in_load(url: str, seconds: float, meanwhile: Callable[[], Any]) -> list[float]:
    """How long four clients waited for decisions while something was done, at least for so many seconds."""
    waits, stop = list[float](), threading.Event()

    def ask() -> None:
        problem = connect(url).problem("p")
        while not stop.is_set():
            began = time.perf_counter()
            problem.ask()
            waits.append(1000 * (time.perf_counter() - began))

    clients = [threading.Thread(target=ask) for _ in range(4)]
    for client in clients:
        client.start()
    began = time.monotonic()
    meanwhile()
    time.sleep(max(0.0, seconds - (time.monotonic() - began)))
    stop.set()
    for client in clients:
        client.join()
    return waits


def back_up(path: Path, port: int) -> None:
    """Two lines: waits in milliseconds without and with a backup."""
    command = [sys.executable, "-c", MAIN]
    copy = [*command, "backup", "--db", str(path), f"{path}.copy"]
    server = subprocess.Popen([*command, "serve", "--db", str(path), "--port", str(port)], stderr=subprocess.DEVNULL)
    try:
        wait(port, server)
        wait_in_load(f"http://127.0.0.1:{port}", 2.0, lambda: None)
        for what, work in (("alone", lambda: None), ("during a backup", lambda: subprocess.run(copy, check=True))):
            waits = wait_in_load(f"http://127.0.0.1:{port}", 5.0, work)
            p99 = statistics.quantiles(waits, n=100)[98]
            print(f"\n{len(waits)} decisions {what}: median {statistics.median(waits):.0f} ms, p99 {p99:.0f} ms")
    finally:
        server.terminate()
        server.wait(60)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--from-snapshot", action="store_true")
    parser.add_argument("--port", type=int, default=8766)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="superarm-long-") as directory:
        home, path = Path(directory), Path(directory) / "log.db"
        write(path, options.events)
        print(f"{options.events:,} events, {path.stat().st_size / 2**20:,.0f} MB\n")
        print("| | s | cpu s | MB |\n|---|---|---|---|")
        if options.from_snapshot:
            forge(path, home, options.events)
            timed("start from a snapshot", lambda: start(path))
            return
        save(path, snapshots.take_snapshot(*timed("first start", lambda: start(path))))
        timed("start from a snapshot", lambda: start(path))
        store = Sqlite(path)
        report = timed("verify", lambda: snapshots.verify(store))
        assert not report.faults, report.faults
        store.close()
        timed("compact", lambda: compact(home, path))
        back_up(path, options.port)


if __name__ == "__main__":
    main()
