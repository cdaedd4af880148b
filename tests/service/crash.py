"""kill -9 at random moments under load, with a ledger of acknowledgements that the service knows nothing of.

    python -m tests.service.crash --rounds 200 --store sqlite
    python -m tests.service.crash --rounds 200 --store postgres --workers 2

Every round starts the service, loads it, kills it, reads the log behind its back and compares: every acknowledged
event is there exactly once, nothing is there that was not sent, and after the restart the statistics that the
service reports equal sums made here, with fractions, from the log alone.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import httpx

from superarm.service.domain.events import Asked, Told
from superarm.service.server import open_store
from superarm.service.storage.verify import verify

from .database import fresh, started
from .running import Server

ARMS, ITEMS, K = 6, 2, 2
VALUES = (0.0, 0.25, 0.5, 1.0)
SNAPSHOT_EVERY = 24
"""Small, so that every round restarts from snapshots that were taken while the service ran."""


class Acknowledged:
    """What was sent, and what was answered."""

    def __init__(self) -> None:
        self.sent: set[str] = set()
        self.asked: dict[str, list[str]] = {}
        self.told: dict[str, list[tuple[str, str, float]]] = {}
        self.repeats = 0


async def load(url: str, book: Acknowledged, seconds: float, rng: random.Random, clients: int = 6) -> list:
    """Ask and tell until the server is gone; how each client ended."""
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx.AsyncClient(base_url=url, timeout=30.0, limits=limits) as http:
        end = time.monotonic() + seconds + 2.0
        return await asyncio.gather(*(one(http, book, rng, end) for _ in range(clients)), return_exceptions=True)


async def one(http: httpx.AsyncClient, book: Acknowledged, rng: random.Random, end: float) -> None:
    while time.monotonic() < end:
        id = f"d{rng.getrandbits(60):x}"
        book.sent.add(id)
        reply = await http.post("/v1/problems/p/decisions", json={"id": id})
        assert reply.status_code == 201, reply.text
        arms = book.asked[id] = reply.json()["arms"]
        units = [(arm, f"i{i}", rng.choice(VALUES)) for arm in arms for i in range(ITEMS)]
        body = {"feedback": [{"arm": a, "item": i, "value": v} for a, i, v in units]}
        for _ in range(rng.choice((1, 1, 2))):  # sometimes twice: it must count once
            reply = await http.post(f"/v1/decisions/{id}/feedback", json=body)
            assert reply.status_code == 200, reply.text
            book.repeats += id in book.told
            book.told[id] = units


class Sums(NamedTuple):
    """What the log comes to, arm by arm."""

    values: dict[str, list[Fraction]]
    pulls: Counter
    pending: Counter


def audit(db: str, book: Acknowledged) -> Sums:
    """Read the log behind the service's back; the sums and counts that it comes to."""
    store = open_store(db, serving=False)
    asked, told = Counter(), Counter()
    names = {}
    sums = Sums({}, Counter(), Counter())
    reads = sorted(store.tail({}), key=lambda read: read.entry.step)
    store.close()
    for read in reads:
        id, event = read.entry.stream, read.entry.event
        if isinstance(event, Asked):
            asked[id] += 1
            names[id] = [f"a{j}" for j in event.action]
            sums.pending.update(names[id])
        elif isinstance(event, Told):
            told[id] += 1
            for arm in {arm for arm, _, _ in event.units}:
                sums.pulls[f"a{arm}"] += 1
                sums.pending[f"a{arm}"] -= 1
            for arm, item, value in event.units:
                sums.values.setdefault(f"a{arm}", [Fraction(0)] * ITEMS)[item] += Fraction(value)
    assert set(asked) <= book.sent
    for id, arms in book.asked.items():
        assert asked[id] == 1, f"acknowledged decision {id} is in the log {asked[id]} times"
        assert names[id] == arms
    for id in book.told:
        assert told[id] == 1, f"acknowledged feedback of {id} is in the log {told[id]} times"
    return sums


def compare(url: str, sums: Sums) -> None:
    """What the restarted service reports, against the sums."""
    rows = httpx.get(f"{url}/v1/problems/p/arms", timeout=30.0).json()["arms"]
    for row in rows:
        n = sums.pulls[row["arm"]]
        assert row["pulls"] == n, (row, n)
        assert row["pending"] == sums.pending[row["arm"]], (row, sums.pending)
        if n:
            assert row["mean"] == [float(total / n) for total in sums.values[row["arm"]]]


def crash(
    db: str, rounds: int, seed: int, workers: int = 1, snapshot_every: int = SNAPSHOT_EVERY, tell=lambda line: None
) -> Acknowledged:
    """All rounds; an ``AssertionError`` says what was lost."""
    rng, book = random.Random(seed), Acknowledged()
    sums = Sums({}, Counter(), Counter())
    options = ["--snapshot-every", str(snapshot_every)]
    if workers > 1:
        options += ["--workers", str(workers)]
    for n in range(rounds):
        server = Server(db, *options)
        try:
            if n == 0:
                spec = {"arms": [f"a{j}" for j in range(ARMS)], "items": [f"i{i}" for i in range(ITEMS)], "k": K}
                spec["settings"] = {"window_s": None, "policy": {"name": "bc_ucb"}}
                httpx.put(f"{server.url}/v1/problems/p", json=spec, timeout=60.0).raise_for_status()
            else:
                compare(server.url, sums)
            asyncio.run(_attacked(server, book, rng))
        finally:
            server.kill()
            server.log.unlink(missing_ok=True)
        sums = audit(db, book)
        tell(f"round {n + 1}: {len(book.asked)} decisions, {len(book.told)} feedbacks, {book.repeats} repeats")
    store = open_store(db, serving=False)
    report = verify(store)
    store.close()
    assert not report.faults, report.faults
    assert report.snapshots, "no snapshot was taken while the service ran; give a smaller --snapshot-every"
    assert report.events >= len(book.asked) + len(book.told)
    return book


async def _attacked(server: Server, book: Acknowledged, rng: random.Random) -> None:
    seconds = rng.uniform(0.05, 0.7)
    before = len(book.asked)
    loading = asyncio.create_task(load(server.url, book, seconds + 20.0, rng))
    for _ in range(400):  # on a busy machine the first answer may take a while
        if len(book.asked) > before or loading.done():
            break
        await asyncio.sleep(0.05)
    await asyncio.sleep(seconds)
    server.kill()
    for ending in await loading:
        assert isinstance(ending, httpx.TransportError), ending  # anything else the service answered is a fault


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--snapshot-every", type=int, default=SNAPSHOT_EVERY, help="events between two snapshots")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    how = (options.rounds, options.seed, options.workers, options.snapshot_every, print)
    if options.store == "sqlite":
        with tempfile.TemporaryDirectory() as home:
            crash(str(Path(home) / "log.db"), *how)
    else:
        for address in started():
            crash(fresh(address, "crash"), *how)


if __name__ == "__main__":
    main()
