"""Earlier versions of superarm, and then this one, on the same database.

    make test-upgrade
    python -m tests.service.versions 946dbf8 94bab84

The source of an earlier version comes out of the repository's history, and runs with the packages of this environment,
as plain Python. On SQLite, and on PostgreSQL after ``superarm reshard``, this version finds the counters that the
earlier one left, takes feedback on a decision that the other one made, and finds the log sound.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from .database import Database, fresh
from .running import MAIN, Server

ROOT = Path(__file__).parents[2]
VERSIONS = ("946dbf8", "d6893df", "94bab84")
"""The commit of release 0.1.0, and later ones."""

POLICIES = ("kl_ucb", "cts", "bc_ucb")


class Version(NamedTuple):
    """A version of superarm: its name, and the directory of its source."""

    name: str
    source: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which Python imports this version."""
        return {**os.environ, "PYTHONPATH": str(self.source), "NUMBA_DISABLE_JIT": "1"}

    def serve(self, db: str, *options: str) -> Server:
        """Serve a database by this version."""
        server = Server(db, *options, wait=False, env=self.environment, cwd=self.source)
        server.ready(120.0)
        return server

    def run(self, *words: str) -> None:
        """Run a command of this version."""
        words = (sys.executable, "-c", MAIN, *words)
        done = subprocess.run(
            words, check=False, capture_output=True, text=True, env=self.environment, cwd=self.source, timeout=300
        )
        assert done.returncode == 0, f"{self.name}: {done.stdout}{done.stderr}"


def extract(commit: str, home: Path) -> Version:
    """An earlier version, out of the repository's history."""
    target = home / commit
    target.mkdir()
    archive = subprocess.run(["git", "-C", ROOT, "archive", commit, "src"], check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", target], input=archive.stdout, check=True)
    return Version(commit, target / "src")


def problem_spec(policy: str) -> dict[str, Any]:
    """A problem that all versions know."""
    settings = {"policy": {"name": policy}}
    return {"arms": ["a", "b", "c", "d"], "items": ["x", "y"], "k": 2, "seed": 7, "settings": settings}


def feed(http: httpx.Client, decisions: str, id: str, n: int) -> None:
    """Complete a decision."""
    slate = http.get(f"{decisions}/{id}").json()["arms"]
    feedback = [{"arm": arm, "item": item, "value": (n + len(arm)) % 2} for arm in slate for item in "xy"]
    reply = http.post(f"{decisions}/{id}/feedback", json={"feedback": feedback})
    assert reply.status_code == 200, reply.text


def read_counters(http: httpx.Client) -> list[Any]:
    """What a service knows of the arms, and how many decisions it awaits feedback of."""
    found = []
    for policy in POLICIES:
        arms = http.get(f"/v1/problems/{policy}/arms").json()["arms"]
        pending = http.get(f"/v1/problems/{policy}").json()["pending"]
        found.append([[(arm["arm"], arm["pulls"], arm["pending"], arm["mean"]) for arm in arms], pending])
    return found


def upgrade(old: Version, new: Version, db: str) -> int:
    """Let an earlier version and then this one serve a database: how many decisions were made."""
    left: list[Any] = []
    for turn, version in enumerate((old, new, new)):
        with version.serve(db) as server, httpx.Client(base_url=server.url, timeout=60.0) as http:
            for policy in POLICIES:
                if turn == 0:
                    assert http.put(f"/v1/problems/{policy}", json=problem_spec(policy)).status_code == 201
            if turn:
                assert read_counters(http) == left, f"{version.name} in turn {turn}"
            for policy in POLICIES:
                decisions = f"/v1/problems/{policy}/decisions" if turn else "/v1/decisions"  # which the earliest had
                if turn:
                    feed(http, decisions, f"{policy}-{turn - 1}-9", turn)  # made in the turn before
                for n in range(10):
                    id = f"{policy}-{turn}-{n}"
                    reply = http.post(f"/v1/problems/{policy}/decisions", json={"id": id})
                    assert reply.status_code == 201, reply.text
                    if n < 8:
                        feed(http, decisions, id, n)
            left = read_counters(http)
        new.run("verify", "--db", db)
        if turn == 0 and "://" in db:
            new.run("reshard", "--db", db)
            new.run("verify", "--db", db)
    return 3 * 10 * len(POLICIES)


def check_version(commit: str, home: Path, database: Database) -> None:
    """All that is asked of one earlier version."""
    old, new = extract(commit, home), Version("this version", ROOT / "src")
    for kind, db in (
        ("SQLite", str(home / f"{commit}.db")),
        ("PostgreSQL", fresh(database.address, f"hands_{commit}")),
    ):
        n = upgrade(old, new, db)
        print(f"{commit}, {kind}: {n} decisions; this version found what the earlier one left", flush=True)


def main() -> None:
    """Read the arguments and check every version."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="*", default=VERSIONS)
    given = parser.parse_args()
    database = Database()
    try:
        with tempfile.TemporaryDirectory(prefix="superarm-versions-") as home:
            for commit in given.commits:
                check_version(commit, Path(home), database)
    finally:
        database.close()


if __name__ == "__main__":
    main()
