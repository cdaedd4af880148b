"""Parts of ``python -m benchmarks.service``: how long a start takes, and how much memory pending decisions take."""

import time
from pathlib import Path

import msgspec

from benchmarks.service import call, made, started, stopped


def start_up(home: Path, n_events: int) -> None:
    """From the process' start to its first decision, on a log of so many events; with and without snapshots."""
    from superarm.service.domain.event_lines import encode
    from superarm.service.domain.events import ALL, Asked, Told
    from superarm.service.storage.base import LogLine
    from superarm.service.storage.sqlite import Sqlite

    path = home / "million.db"
    made(path, ["bc"])
    store, body = Sqlite(path), encode(Told(0, [(j, ALL, 1.0) for j in range(5)]))
    for first in range(0, n_events // 2, 10_000):
        lines = []
        for n in range(first, first + 10_000):
            asked = Asked(0, "bc", f"d{n}", "", n + 1, (0, 1, 2, 3, 4), 20, 1)
            lines += [
                LogLine("default", "decision", f"d{n}", 0, encode(asked)),
                LogLine("default", "decision", f"d{n}", 1, body),
            ]
        store.commit(lines)
    store.close()

    def begin() -> float:
        begun = time.perf_counter()
        process = started("benchmarks.service:service", 9104, BENCH_DB=str(path))
        assert b'"created":true' in call(9104, "POST", "/v1/problems/bc/decisions", b"{}")
        took = time.perf_counter() - begun
        stopped(process)  # leaves a snapshot
        return took

    whole = begin()
    print(f"start-up from {n_events} events: all of them read {whole:.1f} s, from a snapshot {begin():.1f} s")


def flood(home: Path) -> None:
    """Memory while decisions are asked for and feedback never comes, at the default limit of 100,000."""
    made(home / "flood.db", ["bc"], max_pending=100_000)
    process = started("benchmarks.service:service", 9105, BENCH_DB=str(home / "flood.db"))

    def resident() -> float:
        words = Path(f"/proc/{process.pid}/status").read_text().split("VmRSS:")[1].split()
        return int(words[0]) / 1024.0

    sizes, body = [resident()], msgspec.json.encode({"decisions": [{}] * 10_000})
    for _ in range(20):
        answer = call(9105, "POST", "/v1/problems/bc/decisions/bulk", body)
        sizes.append(resident())
    assert b"too_many_pending" in answer
    stopped(process)
    print(
        f"flood: {sizes[0]:.0f} MB at first, {sizes[10]:.0f} MB with 100,000 pending, {sizes[-1]:.0f} MB after as many"
    )
