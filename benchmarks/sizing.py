"""What a decision takes: bytes on the disk, memory while it is pending, and time to read it at a start.

    python -m benchmarks.sizing [--decisions 5000] [--items 20] [--k 5]

A log of decisions, half of them with feedback on every entry, is written to a temporary SQLite file without a service.
"""

import argparse
import tempfile
import time
import tracemalloc
from pathlib import Path

from superarm.service.domain.event_lines import encode
from superarm.service.domain.events import ALL, Asked, Created, Told
from superarm.service.domain.spec import PolicySpec, ProblemSpec, Settings
from superarm.service.storage.base import LogLine
from superarm.service.storage.compaction import compact
from superarm.service.storage.snapshot import restore_ledger
from superarm.service.storage.sqlite import Sqlite

LATER = 10**15


def write(store: Sqlite, n: int, n_items: int, k: int) -> None:
    """A problem with 100 arms and ``n`` decisions, every second of which has its feedback."""
    settings = Settings(policy=PolicySpec("cucb"), max_pending=n)
    items = [f"item-{i}" for i in range(n_items)]
    spec = ProblemSpec(arms=[f"arm-{j}" for j in range(100)], items=items, k=k, settings=settings)
    store.commit([LogLine("t", "problem", "p", 0, encode(Created(0, spec, "key")), "p")])
    lines = []
    for t in range(1, n + 1):
        action = tuple((t + j) % 100 for j in range(k))
        asked = Asked(t, "p", f"decision-{t:012}", "0" * 32, t, action, n_items, 1, propensities=(1.0,) * k)
        lines.append(LogLine("t", "decision", asked.id, 0, encode(asked), "p"))
        if t % 2:
            told = Told(t, [(arm, ALL, 1.0) for arm in action])
            lines.append(LogLine("t", "decision", asked.id, 1, encode(told), "p"))
    for begin in range(0, len(lines), 128):
        store.commit(lines[begin : begin + 128])


def measure(n: int, n_items: int, k: int) -> None:
    """Write a log and print what it takes, before and after a compaction."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "log.db"
        store = Sqlite(path)
        write(store, n, n_items, k)
        store.close()
        print(f"{n} decisions of {k} arms and {n_items} items, half of them with feedback")
        print(f"log: {path.stat().st_size / n:.0f} bytes per decision")
        store = Sqlite(path)
        restore_ledger(store)  # compiles what it needs
        began = time.process_time()
        _, _, n_read = restore_ledger(store)
        print(f"start: {(time.process_time() - began) / n_read * 1e6:.0f} us of processor time per event that is read")
        tracemalloc.start()
        ledger, _, _ = restore_ledger(store)
        current, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(f"memory: {current / n:.0f} bytes per decision, pending or lately closed ({len(ledger.pending)} pending)")
        compact(store, None, LATER)
        _, _, n_read = restore_ledger(store)
        store.close()
        print(f"after a compaction: {path.stat().st_size / n:.0f} bytes per decision, {n_read} events read at a start")


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=5_000)
    parser.add_argument("--items", type=int, default=20)
    parser.add_argument("--k", type=int, default=5)
    given = parser.parse_args()
    measure(given.decisions, given.items, given.k)


if __name__ == "__main__":
    main()
