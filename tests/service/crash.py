"""kill -9 at random moments under load, with a ledger of acknowledgements that the service knows nothing of.

    python -m tests.service.crash --rounds 200

Every round starts the service, loads three problems, one with contexts and one that learns its items, with decisions
about all items or one, feedback, new and retired arms, changes of settings, versions of items and windows that end, and
kills it. Then the log is read behind the service's back: every acknowledged event is there exactly once, nothing is
there that was not sent, and after the restart the statistics that the service reports equal sums made with fractions
from the log alone. Snapshots are taken after every few events, so that every round restarts from one that was taken
while the service ran. ``tests.service.shards`` does the same to workers on PostgreSQL.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

import httpx

from superarm.service.server import open_store
from superarm.service.storage.snapshot import verify

from .crash_audit import audit, compare
from .crash_load import ARMS, SUBJECTS, Acknowledged, K, Subject, load
from .running import Server

SNAPSHOT_EVERY = (3, 24)
LEAST_TOLD = 4
"""Decisions with acknowledged feedback before each kill, so that every round has something to lose."""


Books = dict[str, Acknowledged]
"""What was acknowledged, by the name of the problem."""


def crash(db: str, rounds: int, seed: int, tell=lambda line: None) -> Books:
    """All rounds; an ``AssertionError`` says what was lost."""
    rng, sums = random.Random(seed), None
    books = {subject.name: Acknowledged() for subject in SUBJECTS}
    for n in range(rounds):
        options = ["--snapshot-every", str(rng.randint(*SNAPSHOT_EVERY))]
        server = Server(db, *options)
        try:
            if sums is None:
                for subject in SUBJECTS:
                    create(server.url, subject)
            else:
                for name, found in sums.items():
                    compare(server.url, found, name)
            asyncio.run(attack(server, books, rng))
        finally:
            server.kill()
            server.log.unlink(missing_ok=True)
        sums = {name: audit(db, book, name) for name, book in books.items()}
        tell(f"round {n + 1}: {describe(books)}")
    store = open_store(db, serving=False)
    report = verify(store)
    store.close()
    assert not report.faults, report.faults
    assert report.snapshots, "no snapshot was taken while the service ran"
    return books


def describe(books: Books) -> dict[str, int]:
    """What was acknowledged of all problems together, and what was seen."""
    asked, told = (sum(len(getattr(book, what)) for book in books.values()) for what in ("asked", "told"))
    return {"decisions": asked, "feedback": told, **sum((book.seen for book in books.values()), Counter())}


SPEC = {"arms": [f"a{j}" for j in range(ARMS)], "k": K}
SETTINGS = {"window_s": 0.5, "at_window_end": 0.0}


def create(url: str, subject: Subject) -> None:
    """Create the problem that clients use, with its first policy."""
    body = {**SPEC, "settings": {**SETTINGS, "policy": {"name": subject.policies[0]}}, "context": subject.context}
    body["items"] = "learn" if subject.learns else subject.items
    httpx.put(f"{url}/v1/problems/{subject.name}", json=body, timeout=300.0).raise_for_status()


async def attack(server: Server, books: Books, rng: random.Random) -> None:
    """Load the service for a moment and kill it."""
    over, refused = asyncio.Event(), _refused(books)
    loading = asyncio.create_task(load(server.url, books, random.Random(rng.random()), over))
    try:
        await _progress(books, loading, server)
        await asyncio.sleep(rng.uniform(0.05, 0.7))
        assert _refused(books) == refused, f"503 without an outage: {_refused(books) - refused}"
    finally:
        server.kill()
        over.set()
        await loading


def _refused(books: Books) -> Counter[str]:
    """How many requests were answered with 503, by its words."""
    return sum((book.refused for book in books.values()), Counter())


async def _progress(books: Books, loading: asyncio.Task, server: Server) -> None:
    """Wait until the feedback of a few further decisions was acknowledged: on a busy machine that may take a while."""
    enough, limit = {name: len(book.told) + LEAST_TOLD for name, book in books.items()}, time.monotonic() + 300.0
    while any(len(books[name].told) < n for name, n in enough.items()) and not loading.done():
        assert time.monotonic() < limit, server.log.read_text()[-4000:]
        await asyncio.sleep(0.02)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        db = str(Path(home) / "log.db")
        books = crash(db, options.rounds, options.seed, lambda line: print(line, flush=True))
    print(f"{options.rounds} rounds, no difference: {describe(books)}")


if __name__ == "__main__":
    main()
