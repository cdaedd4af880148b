"""A fault at every write of SQLite, and at every message of PostgreSQL: what was acknowledged is there once."""

import asyncio
import contextlib
import sqlite3
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from superarm.service.application import application
from superarm.service.http.service import ServiceLimits
from superarm.service.storage import sqlite
from superarm.service.storage.base import Store
from superarm.service.storage.postgres import Postgres
from superarm.service.storage.snapshot import verify
from superarm.service.storage.sqlite import Sqlite

from .cutting import Proxy
from .database import fresh
from .inprocess import serving

WRITES = ("INSERT", "DELETE", "UPDATE", "BEGIN IMMEDIATE", "PRAGMA user_version =", "CREATE")
MESSAGES = {
    "full": "database or disk is full",
    "read-only": "attempt to write a readonly database",
    "refused": "disk I/O error",
}
"""What SQLite says of a full disk, of a file that became read-only, and of a commit that the disk refuses."""
SPEC = {"arms": ["a", "b", "c"], "k": 2, "settings": {"policy": {"name": "bc_ucb"}, "window_s": None}}


class Disk:
    """Counts writes, and lets the ``n``-th fail, ``after`` it was done or before; a fault that lasts takes two more.

    One that ``lies`` loses the ``n``-th instead, and says that it was done.
    """

    def __init__(self, n: int, kind: str, *, after: bool = False, lies: bool = False) -> None:
        self.n, self.kind, self.after, self.lies, self.seen = n, kind, after, lies, 0
        self.lasts = 1 if kind == "refused" else 3

    def write(self, do: Callable[[], Any]) -> Any:
        """Do a write, unless it has to fail."""
        self.seen += 1
        if self.lies or not self.n <= self.seen < self.n + self.lasts:
            return do()
        if self.after:
            do()
        raise sqlite3.OperationalError(MESSAGES[self.kind])


class Connection(sqlite3.Connection):
    """A connection to a log on a disk of the test."""

    disk: Disk | None = None

    def execute(self, query: str, *values: Any) -> Any:
        do = lambda: super(Connection, self).execute(query, *values)  # noqa: E731 - called by the disk
        if self.disk is None or not query.lstrip().startswith(WRITES):
            return do()
        done = self.disk.write(do)
        if self.disk.lies and self.disk.seen == self.disk.n:
            super().execute("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)")
        return done


async def operate(store: Store, wait: float = 0.0) -> tuple[dict[str, list[str]], set[str]]:
    """Ask and tell, and try again after 503: the slates that were acknowledged, and the decisions that were told of."""
    asked, told = dict[str, list[str]](), set[str]()
    async with serving(application(store, ServiceLimits(snapshot_every=3))) as http:

        async def send(method: str, path: str, body: Any) -> Any:
            for n in range(10):
                await asyncio.sleep(n * wait)
                reply = await http.request(method, f"/v1/problems/p{path}", json=body)
                if reply.status_code != 503:
                    assert reply.status_code in (200, 201), reply.text
                    return reply.json()
            raise AssertionError("the fault has passed, and 503 goes on")

        await send("PUT", "", SPEC)
        for id in ("d1", "d2", "d3"):
            asked[id] = (await send("POST", "/decisions", {"id": id}))["arms"]
            feedback = {"feedback": [{"arm": arm, "value": 0.5} for arm in asked[id]]}
            assert not (await send("POST", f"/decisions/{id}/feedback", feedback))["late"]
            told.add(id)
        await send("POST", "/arms", {"add": ["d"]})
    return asked, told


def run(path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """One run with the fault, and the log afterwards against what was acknowledged."""
    real = sqlite3.connect
    with monkeypatch.context() as patched:
        patched.setattr(sqlite.sqlite3, "connect", lambda *given, **more: real(*given, factory=Connection, **more))
        store = Sqlite(path)
        patched.setattr(Connection, "disk", disk)
        asked, told = asyncio.run(operate(store))
    compare(Sqlite(path), asked, told)


def compare(store: Store, asked: dict[str, list[str]], told: set[str]) -> None:
    """The log against what was acknowledged: everything is there once, and nothing else."""
    with contextlib.closing(store):
        assert verify(store).faults == []
        lines = [(read.entry.stream, read.entry.step) for read in store.tail({})]
        assert sorted(lines) == sorted(
            [("p", 0), ("p", 1), *((f"p/{id}", 0) for id in asked), *((f"p/{id}", 1) for id in told)]
        )
        assert [entry.event.add for entry in store.stream("default", "problem", "p")[1:]] == [["d"]]


@pytest.mark.parametrize("after", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("kind", MESSAGES)
def test_a_fault_at_every_write_loses_nothing(kind, after, tmp_path, monkeypatch):
    for n in count(1):
        disk = Disk(n, kind, after=after)
        run(tmp_path / f"{n}.db", disk, monkeypatch)
        if disk.seen < n:
            assert n > 8, "so many writes are there at least"
            return


@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_write_that_is_lost_although_it_was_acknowledged_is_found(n, tmp_path, monkeypatch):
    """A test of the test above."""
    with pytest.raises((AssertionError, KeyError)):
        run(tmp_path / "log.db", Disk(n, "full", lies=True), monkeypatch)


def run_cut(url: str, home: Path, n: int, *, torn: bool) -> Proxy:
    """One run on PostgreSQL with the n-th message cut, and the log afterwards against what was acknowledged."""
    behind = Path(url.partition("host=")[2]) / ".s.PGSQL.5432"
    proxy = Proxy(home, behind, n, torn=torn)
    try:
        store = Postgres(f"{url.partition('host=')[0]}host={home}", wait=True)
        asked, told = asyncio.run(operate(store, 0.05))
    finally:
        proxy.close()
    compare(Postgres(url, serving=False), asked, told)
    return proxy


# psycopg warns of the cursor of a connection that was cut, which cannot be closed any more.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow("a run for each message")
@pytest.mark.parametrize("torn", [False, True], ids=["cut", "torn"])
def test_a_connection_that_is_cut_at_every_message_loses_nothing(torn, postgres):
    sides = set[str]()
    for n in count(1):
        with tempfile.TemporaryDirectory(prefix="superarm-cut-", dir="/tmp") as home:  # the path of a socket is short
            proxy = run_cut(fresh(postgres, "cut"), Path(home), n, torn=torn)
        if proxy.seen < n:
            assert n > 60, "so many messages are there at least"
            assert sides == {"client", "server"}
            return
        sides.add(proxy.cut)
