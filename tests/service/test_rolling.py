"""Workers are replaced one by one under load, and no request fails."""

import os
import signal
import threading
import time
from pathlib import Path

import httpx

from superarm.service.storage.postgres import Postgres
from superarm.service.storage.verify import verify

from .database import fresh
from .running import Server

SPEC = {"arms": ["a", "b", "c"], "items": ["x"], "k": 2, "settings": {"policy": {"name": "cucb"}}}
N_CLIENTS = 3


def ask_until(url: str, stop: threading.Event, answers: list[tuple[int, str]]) -> None:
    """A decision every 20 ms, each by a connection of its own; 0 for a request without an answer."""
    while not stop.wait(0.02):
        try:
            reply = httpx.post(f"{url}/v1/problems/p/decisions", json={}, timeout=120.0)
            answers.append((reply.status_code, "" if reply.status_code == 201 else reply.text))
        except httpx.HTTPError as error:
            answers.append((0, repr(error)))


def workers(parent: int) -> set[int]:
    """The worker processes of a service; the process that counts Python's shared resources is none."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            after = status.read_text().rpartition(")")[2].split()
            command = (status.parent / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        if int(after[1]) == parent and b"resource_tracker" not in command:
            found.add(int(status.parent.name))
    return found


def test_no_request_fails_while_workers_are_replaced(postgres):
    url = fresh(postgres, "rolling")
    with Server(url, "--workers", "2") as server:
        assert httpx.put(f"{server.url}/v1/problems/p", json=SPEC, timeout=60.0).status_code == 201
        stop, answers = threading.Event(), list[tuple[int, str]]()
        load = [threading.Thread(target=ask_until, args=(server.url, stop, answers)) for _ in range(N_CLIENTS)]
        before = workers(server.process.pid)
        assert len(before) == 2
        for thread in load:
            thread.start()
        try:
            os.kill(server.process.pid, signal.SIGHUP)
            limit = time.monotonic() + 240
            while before & workers(server.process.pid) and time.monotonic() < limit:
                time.sleep(0.1)
            replaced = workers(server.process.pid)
            n = len(answers)
            while len(answers) < n + 10 and time.monotonic() < limit:
                time.sleep(0.1)
        finally:
            stop.set()
            for thread in load:
                thread.join(130)
        decided = httpx.get(f"{server.url}/v1/problems/p", timeout=60.0).json()["pending"]
    assert not before & replaced, "the restart was given up"
    assert len(replaced) == 2
    assert [answer for answer in answers if answer[0] != 201] == []
    assert decided == len(answers)
    reader = Postgres(url, slot=False)
    assert verify(reader).faults == []
    reader.close()
