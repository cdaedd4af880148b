"""What 1, 10 and 100 workers carry: a model, and the constants for it, measured on this machine.

    python -m benchmarks.fleet

Measured is processor time, so that other programs on the machine matter little: of a worker and of PostgreSQL per pair
of a decision and its feedback (with several problems, behind nginx), of nginx per pair, and of a worker per event that
it reads of another worker. The model adds them up: a worker has one core, the database and nginx as many as given.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.soak import MAIN, Caller, open_callers, wait
from tests.service.database import Database, fresh
from tests.service.proxy import Nginx

TICKS = os.sysconf("SC_CLK_TCK")
PROBLEMS = [f"p{n}" for n in range(8)]
CONNECTIONS = 64


class Constants(NamedTuple):
    """Processor time in microseconds."""

    pair: float  # of the worker that serves a pair
    database: float  # of PostgreSQL for a pair
    proxy: float  # of nginx for a pair
    event: float  # of a worker, to read and apply an event of another


def processor_time(pid: int) -> float:
    """Seconds that a process and its children have used."""
    total = 0.0
    for each in [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]:
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / TICKS
    return total


def start(db: str, port: int, *options: str) -> subprocess.Popen[bytes]:
    """A worker at a port."""
    words = [sys.executable, "-c", MAIN, "serve", "--db", db, "--port", str(port), *options]
    server = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    wait(port, server)
    return server


async def pairs(port: int, n: int) -> None:
    """So many pairs, over all problems."""
    callers = await open_callers(port, CONNECTIONS, PROBLEMS, [])
    left = iter(range(n))

    async def run(caller: Caller) -> None:
        for k in left:
            await caller.pair(PROBLEMS[k % len(PROBLEMS)])

    await asyncio.gather(*(run(caller) for caller in callers))


def measure_owner(database: Database, home: Path, n: int) -> tuple[float, float, float]:
    """Microseconds per pair: of a sharded worker, of PostgreSQL and of nginx."""
    server = start(fresh(database.address, "fleet"), 9131, "--sharded")
    nginx = Nginx(home, [9131])
    try:
        asyncio.run(pairs(9131, n // 4))  # kernels are compiled and loaded, which nginx would not wait for
        pids = [server.pid, database.server.pid, nginx.pid]
        before = [processor_time(pid) for pid in pids]
        asyncio.run(pairs(nginx.port, n))
        used = [1e6 * (processor_time(pid) - b) / n for pid, b in zip(pids, before, strict=True)]
    finally:
        nginx.stop()
        server.terminate()
        server.wait(60)
    return used[0], used[1], used[2]


def measure_follower(database: Database, n: int) -> float:
    """Microseconds of a worker per event of another: two workers share a log, and one of them gets all requests."""
    db = fresh(database.address, "followers")
    servers = [start(db, port) for port in (9132, 9133)]
    try:
        asyncio.run(pairs(9132, n // 4))
        before = processor_time(servers[1].pid)
        asyncio.run(pairs(9132, n))
        return 1e6 * (processor_time(servers[1].pid) - before) / (2 * n)
    finally:
        for server in servers:
            server.terminate()
            server.wait(60)


def shared(c: Constants, workers: int) -> float:
    """Pairs per second of workers that read all events of each other: none has more than one core."""
    return 1e6 / (c.pair / workers + (1.0 - 1.0 / workers) * 2.0 * c.event)


def sharded(c: Constants, workers: int, cores: int) -> tuple[float, str]:
    """Pairs per second of workers that own problems, and what is the limit."""
    limits = {"workers": workers * 1e6 / c.pair, "PostgreSQL": cores * 1e6 / c.database, "nginx": cores * 1e6 / c.proxy}
    least = min(limits, key=lambda name: limits[name])
    return limits[least], least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=8_000)
    options = parser.parse_args()
    database = Database()
    try:
        with tempfile.TemporaryDirectory() as home:
            owner = measure_owner(database, Path(home), options.pairs)
        c = Constants(*owner, measure_follower(database, options.pairs))
    finally:
        database.close()
    print(f"microseconds of processor time: {', '.join(f'{k} {v:.0f}' for k, v in c._asdict().items())}")
    print(f"{'workers':>8} {'sharing a log':>14} " + " ".join(f"{f'sharded, {n} cores':>26}" for n in (8, 32)))
    for workers in (1, 2, 4, 10, 100):
        cells = [f"{rate:.0f} ({limit})" for rate, limit in (sharded(c, workers, n) for n in (8, 32))]
        print(f"{workers:8} {shared(c, workers):14.0f} " + " ".join(f"{cell:>26}" for cell in cells))


if __name__ == "__main__":
    main()
