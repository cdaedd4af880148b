"""Earlier versions of superarm and this one on the same database: one after the other, and at the same time.

    make test-upgrade
    python -m tests.service.versions 946dbf8 d6893df

The source of an earlier version comes out of the repository's history, and runs with the packages of this environment,
as plain Python. For each version:

1. on SQLite and on PostgreSQL, the database changes hands: the earlier version, this one, the earlier one, this one.
   Every one finds the counters that the one before it left, takes feedback on a decision that the other one made, and
   finds the log sound;
2. on PostgreSQL, two workers of either version are replaced by two of the other behind nginx, under load, and workers
   of both serve together in between. No request fails, and in the end every decision and all feedback that was
   acknowledged is in the log exactly once.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from superarm.service.domain.events import Asked, Told
from superarm.service.server import open_store
from tests.system_packages import nginx

from .database import Database, fresh
from .running import MAIN, Server, free_port

ROOT = Path(__file__).parents[2]
VERSIONS = ("946dbf8", "d6893df")
"""The commit of release 0.1.0, and one between it and this version."""

N_CLIENTS = 3
TOGETHER_SECONDS = 5.0
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

    def verify(self, db: str) -> None:
        """Have this version check a database."""
        words = [sys.executable, "-c", MAIN, "verify", "--db", db]
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


def feed(http: httpx.Client, id: str, n: int) -> None:
    """Complete a decision."""
    slate = http.get(f"/v1/decisions/{id}").json()["arms"]
    feedback = [{"arm": arm, "item": item, "value": (n + len(arm)) % 2} for arm in slate for item in "xy"]
    reply = http.post(f"/v1/decisions/{id}/feedback", json={"feedback": feedback})
    assert reply.status_code == 200, reply.text


def read_counters(http: httpx.Client) -> list[Any]:
    """What a service knows of the arms, and how many decisions it awaits feedback of."""
    found = []
    for policy in POLICIES:
        arms = http.get(f"/v1/problems/{policy}/arms").json()["arms"]
        pending = http.get(f"/v1/problems/{policy}").json()["pending"]
        found.append([[(arm["arm"], arm["pulls"], arm["pending"], arm["mean"]) for arm in arms], pending])
    return found


def change_hands(old: Version, new: Version, db: str) -> int:
    """Let versions serve a database one after the other: how many decisions were made."""
    left: list[Any] = []
    for turn, version in enumerate((old, new, old, new)):
        with version.serve(db) as server, httpx.Client(base_url=server.url, timeout=60.0) as http:
            for policy in POLICIES:
                if turn == 0:
                    assert http.put(f"/v1/problems/{policy}", json=problem_spec(policy)).status_code == 201
            if turn:
                assert read_counters(http) == left, f"{version.name} in turn {turn}"
            for policy in POLICIES:
                if turn:
                    feed(http, f"{policy}-{turn - 1}-9", turn)  # the other version made it
                for n in range(10):
                    id = f"{policy}-{turn}-{n}"
                    reply = http.post(f"/v1/problems/{policy}/decisions", json={"id": id})
                    assert reply.status_code == 201, reply.text
                    if n < 8:
                        feed(http, id, n)
            left = read_counters(http)
        for reader in (old, new):
            reader.verify(db)
    return 4 * 10 * len(POLICIES)


class Proxy:
    """nginx on one port, in front of the services at some others, which can be changed while it runs."""

    def __init__(self, home: Path, ports: list[int]) -> None:
        self._home, self.port = home, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._write(ports)
        words = [nginx(), "-p", str(home), "-c", str(home / "nginx.conf"), "-e", str(home / "error.log")]
        self._words = words
        self._process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        limit = time.monotonic() + 20
        while not (home / "pid").exists() and time.monotonic() < limit:
            time.sleep(0.05)

    def _write(self, ports: list[int]) -> None:
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        places = " ".join(f"{kind}_temp_path {self._home}/{kind};" for kind in kinds)
        servers = " ".join(f"server 127.0.0.1:{port};" for port in ports)
        proxy = "proxy_pass http://services; proxy_http_version 1.1; proxy_set_header Host $http_host;"
        text = f"daemon off; pid {self._home}/pid; error_log {self._home}/error.log; events {{}}\n"
        text += f"http {{ access_log off; {places} upstream services {{ {servers} }}\n"
        text += f"server {{ listen 127.0.0.1:{self.port}; location / {{ {proxy} }} }} }}\n"
        (self._home / "nginx.conf").write_text(text)

    def forward_to(self, ports: list[int]) -> None:
        """Send new requests to these ports; those that were begun are answered."""
        self._write(ports)
        subprocess.run([*self._words, "-s", "reload"], check=True, stderr=subprocess.DEVNULL)
        time.sleep(2.0)  # until the processes of nginx that know the former ports take no more requests

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(20)


class Load:
    """Clients that ask and tell, each request by a connection of its own, and what was acknowledged."""

    def __init__(self, url: str) -> None:
        self._url, self._stop = url, threading.Event()
        self.failed: list[str] = []
        self.asked: set[str] = set()
        self.told: set[str] = set()
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(N_CLIENTS)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(120)

    def _run(self, client: int) -> None:
        n = 0
        while not self._stop.is_set():
            n += 1
            policy, id = POLICIES[n % len(POLICIES)], f"load-{self._url[-5:]}-{client}-{n}"
            slate = self._post(f"/v1/problems/{policy}/decisions", {"id": id}, 201)
            if slate is None:
                continue
            self.asked.add(id)
            feedback = [{"arm": arm, "value": n % 2} for arm in slate["arms"]]
            if n % 4 and self._post(f"/v1/decisions/{id}/feedback", {"feedback": feedback}, 200) is not None:
                self.told.add(id)

    def _post(self, path: str, body: Any, expected: int) -> Any:
        try:
            reply = httpx.post(self._url + path, json=body, timeout=60.0)
        except httpx.HTTPError as error:
            self.failed.append(f"{path}: {error!r}")
            return None
        if reply.status_code != expected:
            self.failed.append(f"{path}: {reply.status_code} {reply.text[:200]}")
            return None
        return reply.json()


def replace(before: Version, after: Version, db: str, home: Path) -> tuple[int, int]:
    """Replace the workers of one version by those of another, under load: acknowledged decisions and feedback."""
    with ExitStack() as stack:
        leaving = stack.enter_context(before.serve(db, "--workers", "2"))
        proxy = Proxy(home, [leaving.port])
        stack.callback(proxy.stop)
        with Load(proxy.url) as load:
            time.sleep(TOGETHER_SECONDS)
            coming = stack.enter_context(after.serve(db, "--workers", "2"))
            proxy.forward_to([leaving.port, coming.port])
            time.sleep(TOGETHER_SECONDS)
            proxy.forward_to([coming.port])
            assert leaving.stop() == 0
            time.sleep(TOGETHER_SECONDS)
        assert load.failed == [], f"{len(load.failed)} requests failed, such as {load.failed[0]}"
        assert load.asked, "no decision was made"
    check_log(db, load)
    after.verify(db)
    before.verify(db)
    return len(load.asked), len(load.told)


def check_log(db: str, load: Load) -> None:
    """Compare what was acknowledged with the events of the log, each of which has to be there exactly once."""
    store: Any = open_store(db, serving=False)
    events = Counter(
        (read.entry.stream, type(read.entry.event)) for read in store.tail({}) if read.entry.kind == "decision"
    )
    store.close()
    assert {id for id in load.asked if events[id, Asked] != 1} == set()
    assert {id for id in load.told if events[id, Told] != 1} == set()


def check_version(commit: str, home: Path, database: Database) -> None:
    """All that is asked of one earlier version."""
    old, new = extract(commit, home), Version("this version", ROOT / "src")
    for kind, db in (
        ("SQLite", str(home / f"{commit}.db")),
        ("PostgreSQL", fresh(database.address, f"hands_{commit}")),
    ):
        n = change_hands(old, new, db)
        print(f"{commit}, {kind}: {n} decisions by turns; every version found what the other left", flush=True)
    db = database.address.format(f"hands_{commit}")
    for turn, (before, after) in enumerate(((old, new), (new, old))):
        place = home / f"nginx-{commit}-{turn}"
        place.mkdir()
        n_asked, n_told = replace(before, after, db, place)
        said = f"{n_asked} decisions and {n_told} with feedback, no request failed, all in the log once"
        print(f"{before.name} to {after.name} under load: {said}", flush=True)


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
