"""kill -9 at random moments under load, with a ledger of acknowledgements that the service knows nothing of.

    python -m tests.service.crash --rounds 200 --store sqlite
    python -m tests.service.crash --rounds 200 --store postgres --workers 2

Every round starts the service, loads it with decisions, feedback, new and retired arms, changes of settings and windows
that end, and kills it. On PostgreSQL, every third round kills the database first, and sometimes a worker while the
database is away; both have to come back by themselves. Then the log is read behind the service's back: every
acknowledged event is there exactly once, nothing is there that was not sent, and after the restart the statistics that
the service reports equal sums made with fractions from the log alone. Snapshots are taken after every few events, so
that every round restarts from one that was taken while the service ran.
"""

import argparse
import asyncio
import contextlib
import os
import random
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import httpx

from superarm.service.server import open_store
from superarm.service.storage.verify import verify

from .crash_audit import audit, compare
from .crash_load import ARMS, ITEMS, POLICIES, Acknowledged, K, load
from .database import Database, fresh
from .running import Server

SNAPSHOT_EVERY = (3, 24)
LEAST_TOLD = 4
"""Decisions with acknowledged feedback before each kill, so that every round has something to lose."""


class Trial(NamedTuple):
    """How to run the rounds: the database server only if it may be killed."""

    db: str
    rounds: int
    seed: int
    workers: int = 1
    database: Database | None = None


def crash(trial: Trial, tell=lambda line: None) -> Acknowledged:
    """All rounds; an ``AssertionError`` says what was lost."""
    rng, book, sums = random.Random(trial.seed), Acknowledged(), None
    for n in range(trial.rounds):
        options = ["--snapshot-every", str(rng.randint(*SNAPSHOT_EVERY))]
        if trial.workers > 1:
            options += ["--workers", str(trial.workers)]
        server = Server(trial.db, *options)
        try:
            if sums is None:
                compile_ahead(server)
                create(server.url)
            else:
                compare(server.url, sums)
            asyncio.run(attack(server, book, rng, trial.database if n % 3 == 1 else None))
        finally:
            server.kill()
            server.log.unlink(missing_ok=True)
        sums = audit(trial.db, book)
        tell(f"round {n + 1}: {len(book.asked)} decisions, {len(book.told)} feedbacks, {dict(book.seen)}")
    store = open_store(trial.db, serving=False)
    report = verify(store)
    store.close()
    assert not report.faults, report.faults
    assert report.snapshots, "no snapshot was taken while the service ran"
    return book


SPEC = {"arms": [f"a{j}" for j in range(ARMS)], "items": [f"i{i}" for i in range(ITEMS)], "k": K}
SETTINGS = {"window_s": 0.5, "at_window_end": 0.0, "policy": {"name": "bc_ucb"}}


def compile_ahead(server: Server) -> None:
    """Compile what changes of the policy will need: on a busy machine that takes longer than a round."""
    for policy in POLICIES:
        body = {**SPEC, "settings": {**SETTINGS, "policy": {"name": policy}}}
        httpx.put(f"{server.url}/v1/problems/with-{policy}", json=body, timeout=300.0).raise_for_status()


def create(url: str, name: str = "p") -> None:
    """The problem that all rounds are about."""
    httpx.put(f"{url}/v1/problems/{name}", json={**SPEC, "settings": SETTINGS}, timeout=60.0).raise_for_status()


async def attack(server: Server, book: Acknowledged, rng: random.Random, database: Database | None) -> None:
    """Load the service for a moment and kill it; with ``database``, kill that first, and see both come back."""
    over, refused = asyncio.Event(), book.refused
    loading = asyncio.create_task(load(server.url, book, random.Random(rng.random()), over))
    try:
        await _progress(book, loading, server)
        await asyncio.sleep(rng.uniform(0.05, 0.7))
        if database is not None:
            await _outage(server, book, rng, database)
            await _progress(book, loading, server)
            await asyncio.sleep(rng.uniform(0.05, 0.7))
        else:
            assert book.refused == refused, "503 without an outage"
    finally:
        server.kill()
        over.set()
        await loading


async def _progress(book: Acknowledged, loading: asyncio.Task, server: Server) -> None:
    """Wait until the feedback of a few further decisions was acknowledged: on a busy machine that may take a while."""
    enough, limit = len(book.told) + LEAST_TOLD, time.monotonic() + 300.0
    while len(book.told) < enough and not loading.done():
        assert time.monotonic() < limit, server.log.read_text()[-4000:]
        await asyncio.sleep(0.02)


async def _outage(server: Server, book: Acknowledged, rng: random.Random, database: Database) -> None:
    await asyncio.to_thread(database.kill)
    refused = book.refused
    if rng.random() < 0.5:
        _kill_a_worker(server, rng)
        book.seen["workers killed while the database was away"] += 1
    while book.refused == refused:
        assert server.process.poll() is None, server.log.read_text()[-4000:]
        await asyncio.sleep(0.02)
    await asyncio.sleep(rng.uniform(0.1, 1.5))
    await asyncio.to_thread(database.start)
    book.seen["outages of the database"] += 1
    text = server.log.read_text()
    assert "Traceback" not in text, text[-4000:]


def _kill_a_worker(server: Server, rng: random.Random) -> None:
    pid = server.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    workers = [int(child) for child in children if b"spawn_main" in _command(child)]
    if workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(rng.choice(workers), signal.SIGKILL)


def _command(pid: str) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.store == "sqlite":
        with tempfile.TemporaryDirectory() as home:
            book = crash(Trial(str(Path(home) / "log.db"), options.rounds, options.seed), print)
    else:
        database = Database()
        try:
            url = fresh(database.address, "crash")
            book = crash(Trial(url, options.rounds, options.seed, options.workers, database), print)
        finally:
            if database.server.poll() is not None:
                database.start()
            database.close()
    print(f"{options.rounds} rounds, no difference: {Counter(book.seen)}")


if __name__ == "__main__":
    main()
