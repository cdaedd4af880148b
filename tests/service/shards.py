"""Sharded workers behind a real nginx, under load, with kills, lost sessions and stopped processes.

    python -m tests.service.shards --rounds 20

Every round does something to one worker: it is killed and started again; its session in PostgreSQL is ended; or it is
stopped (SIGSTOP), its session is ended, and it is continued when others have taken its problems. After each, every
problem has to be served again. In the end the log is read behind the workers' backs: every acknowledged event of every
problem is there exactly once, and what the workers report equals sums made from the log alone.
"""

import argparse
import asyncio
import os
import random
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

import httpx
import psycopg

from superarm.service.server import open_store
from superarm.service.storage.snapshot import verify

from .crash import create
from .crash_audit import audit, compare
from .crash_load import Acknowledged, Client, Subject
from .database import Database, fresh
from .proxy import Nginx
from .running import Server

PROBLEMS = [f"p{n}" for n in range(6)]
PATIENCE_SECONDS = 120.0
"""No fault may keep a problem from being served for longer; far above what it takes on an idle machine."""


class Fleet:
    """Workers on one database, each with a port of its own, behind nginx."""

    def __init__(self, db: str, home: Path, n_workers: int, rng: random.Random) -> None:
        self.db, self._rng = db, rng
        self.workers = [self._start() for _ in range(n_workers)]
        self.nginx = Nginx(home, [worker.port for worker in self.workers])
        self.url = self.nginx.url

    def _start(self, port: int | None = None) -> Server:
        return Server(self.db, "--snapshot-every", str(self._rng.randint(5, 40)), port=port)

    def kill(self, n: int) -> None:
        """kill -9 one worker."""
        self.workers[n].kill()

    def restart(self, n: int) -> None:
        """Start a worker that was killed, at its port."""
        self.workers[n] = self._start(self.workers[n].port)

    def send(self, n: int, number: int) -> None:
        """A signal to a worker's process group."""
        os.killpg(self.workers[n].process.pid, number)

    def name(self, n: int) -> str:
        """The name of a worker."""
        return str(httpx.get(f"{self.workers[n].url}/health", timeout=30.0).json()["worker"])

    def end_session(self, name: str) -> None:
        """End the session in which a worker holds its locks, as PostgreSQL does when it is silent for too long."""
        with psycopg.connect(self.db, autocommit=True) as connection:
            query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = %s"
            assert connection.execute(query, (f"superarm {name}",)).fetchone()[0] == 1

    def close(self) -> None:
        """Stop everything; what the workers leave is in the log."""
        self.nginx.stop()
        for worker in self.workers:
            worker.kill()
            worker.log.unlink(missing_ok=True)


def subject(name: str) -> Subject:
    """A problem by its name: the last one learns its items."""
    return Subject(name, learns=name == PROBLEMS[-1])


async def attack(fleet: Fleet, books: dict[str, Acknowledged], rng: random.Random, rounds: int, tell) -> Counter:
    """All rounds; what was done, how often."""
    over, done = asyncio.Event(), Counter()
    limits = httpx.Limits(max_connections=2 * len(books), max_keepalive_connections=2 * len(books))
    async with httpx.AsyncClient(base_url=fleet.url, timeout=30.0, limits=limits) as http:
        subjects = [(book, subject(name)) for name, book in books.items() for _ in range(2)]
        clients = [Client(http, book, rng, over, subject) for book, subject in subjects]
        load = asyncio.gather(*(client.run() for client in clients))
        try:
            for n in range(rounds):
                await progress(books, load)
                await asyncio.sleep(rng.uniform(0.1, 1.0))
                fault = (kill, lose, stop)[n % 3]
                took = await fault(fleet, books, rng, load)
                done[fault.__name__] += 1
                tell(f"round {n + 1}: {fault.__name__}, all problems served again after {took:.1f} s")
        finally:
            over.set()
            await load
    return done


async def progress(books: dict[str, Acknowledged], load: asyncio.Future) -> float:
    """Wait until a decision of every problem was acknowledged: how long it took."""
    before, began = {name: len(book.asked) for name, book in books.items()}, time.monotonic()
    while any(len(books[name].asked) == n for name, n in before.items()):
        if load.done():
            load.result()
        waiting = [name for name, n in before.items() if len(books[name].asked) == n]
        assert time.monotonic() < began + PATIENCE_SECONDS, f"not served: {waiting}"
        await asyncio.sleep(0.02)
    return time.monotonic() - began


async def kill(fleet: Fleet, books: dict[str, Acknowledged], rng: random.Random, load: asyncio.Future) -> float:
    n = rng.randrange(len(fleet.workers))
    await asyncio.to_thread(fleet.kill, n)
    took = await progress(books, load)
    await asyncio.to_thread(fleet.restart, n)
    return took


async def lose(fleet: Fleet, books: dict[str, Acknowledged], rng: random.Random, load: asyncio.Future) -> float:
    name = await asyncio.to_thread(fleet.name, rng.randrange(len(fleet.workers)))
    await asyncio.to_thread(fleet.end_session, name)
    return await progress(books, load)


async def stop(fleet: Fleet, books: dict[str, Acknowledged], rng: random.Random, load: asyncio.Future) -> float:
    """A worker sleeps while its session ends and others take its problems, and then goes on as if nothing had been."""
    n = rng.randrange(len(fleet.workers))
    name = await asyncio.to_thread(fleet.name, n)
    fleet.send(n, signal.SIGSTOP)
    try:
        await asyncio.to_thread(fleet.end_session, name)
        return await progress(books, load)
    finally:
        fleet.send(n, signal.SIGCONT)


def trial(database: Database, home: Path, rounds: int, seed: int, tell=lambda line: None) -> Counter:
    """Rounds on a database of their own; an ``AssertionError`` says what was lost or counted twice."""
    rng, db = random.Random(seed), fresh(database.address, "shards")
    books = {name: Acknowledged() for name in PROBLEMS}
    fleet = Fleet(db, home, 3, rng)
    try:
        for name in books:
            create(fleet.url, subject(name))
        done = asyncio.run(attack(fleet, books, rng, rounds, tell))
    finally:
        fleet.close()
    sums = {name: audit(db, book, name) for name, book in books.items()}
    with Server(db) as server:
        for name in books:
            compare(server.url, sums[name], name)
    store = open_store(db, serving=False)
    report = verify(store)
    store.close()
    assert not report.faults, report.faults
    assert report.snapshots, "no snapshot was taken while the workers ran"
    totals = sum((book.seen for book in books.values()), Counter())
    totals["decisions"] = sum(len(book.asked) for book in books.values())
    totals["feedback"] = sum(len(book.told) for book in books.values())
    return done + totals


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    database = Database()
    try:
        with tempfile.TemporaryDirectory() as home:
            done = trial(database, Path(home), options.rounds, options.seed, lambda line: print(line, flush=True))
    finally:
        database.close()
    print(f"{options.rounds} rounds, no difference: {dict(done)}")


if __name__ == "__main__":
    main()
