"""kill -9, a full disk, a failing fsync, a jumping clock, a flood: nothing lost, nothing twice, memory bounded."""

import os
import resource
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from superarm.service.server import open_store
from superarm.service.storage.snapshot import verify

from .crash import crash
from .running import Server, command

SPEC = {
    "arms": ["a", "b", "c"],
    "items": ["x"],
    "k": 1,
    "settings": {"policy": {"name": "bc_ucb"}, "window_s": None, "max_pending": 1000},
}


def put(server: Server, **more) -> None:
    httpx.put(f"{server.url}/v1/problems/p", json={**SPEC, **more}, timeout=60.0).raise_for_status()


def ask(server: Server, id: str) -> httpx.Response:
    return httpx.post(f"{server.url}/v1/problems/p/decisions", json={"id": id}, timeout=30.0)


def logged(db: str) -> list[str]:
    store = open_store(db, serving=False)
    try:
        assert verify(store).faults == []
        return [read.entry.stream.removeprefix("p/") for read in store.tail({}) if read.entry.kind == "decision"]
    finally:
        store.close()


def test_kill_9_under_load_on_sqlite(sqlite_file):
    books = crash(sqlite_file, rounds=3, seed=1)
    assert all(len(book.told) > 10 for book in books.values())


@pytest.mark.slow("faults of a real process")
def test_a_full_disk_gives_503_and_no_acknowledgement_and_recovers(sqlite_file):
    """A real failing write: the soft limit on file sizes, put on the running process and lifted again."""
    with Server(sqlite_file) as server:
        put(server)
        assert ask(server, "before").status_code == 201
        assert httpx.get(f"{server.url}/").status_code == 200  # what the page compiles is on the disk before it is full
        pid = server.process.pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
        for n in range(3):
            reply = ask(server, f"full-{n}")
            assert reply.status_code == 503, reply.text
            assert reply.headers["retry-after"]
        assert httpx.get(f"{server.url}/v1/problems/p/decisions/full-0").status_code == 404
        assert httpx.get(f"{server.url}/health").json()["status"] == "unavailable"
        assert "the log cannot be written" in httpx.get(f"{server.url}/").text
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        server.ready()  # by itself, before anything is asked
        assert ask(server, "full-0").status_code == 201
        assert ask(server, "after").status_code == 201
        server.stop()
    assert logged(sqlite_file) == ["before", "full-0", "after"]


@pytest.mark.slow("faults of a real process")
def test_on_a_disk_with_room_for_a_page_but_not_for_an_event_health_stays_bad(sqlite_file):
    """A commit that changes nothing needs one page, and said every second that the log can be written."""
    with Server(sqlite_file) as server:
        put(server)
        assert ask(server, "before").status_code == 201
        written = Path(f"{sqlite_file}-wal").stat().st_size
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (written + 5_000, resource.RLIM_INFINITY))
        assert ask(server, "full").status_code == 503
        for _ in range(25):  # while the service tries to write again, each second
            time.sleep(0.1)
            assert httpx.get(f"{server.url}/health").status_code == 503
            assert "the log is written" not in httpx.get(f"{server.url}/").text
        assert ask(server, "full").status_code == 503
        infinity = resource.RLIM_INFINITY
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (infinity, infinity))
        server.ready()
        assert ask(server, "full").status_code == 201
        server.stop()
    assert logged(sqlite_file) == ["before", "full"]


SHIM = """
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static int broken(void) { const char *flag = getenv("FAIL_FSYNC"); return flag && access(flag, F_OK) == 0; }
int fsync(int fd) { if (broken()) { errno = EIO; return -1; } return syscall(SYS_fsync, fd); }
int fdatasync(int fd) { if (broken()) { errno = EIO; return -1; } return syscall(SYS_fdatasync, fd); }
"""


@pytest.mark.slow("faults of a real process")
@pytest.mark.needs("cc")
def test_a_failing_fsync_gives_503_and_no_acknowledgement_and_recovers(sqlite_file, tmp_path):
    (tmp_path / "shim.c").write_text(SHIM)
    shim, flag = tmp_path / "shim.so", tmp_path / "flag"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, tmp_path / "shim.c"], check=True)
    env = {**os.environ, "LD_PRELOAD": str(shim), "FAIL_FSYNC": str(flag)}
    with Server(sqlite_file, env=env) as server:
        put(server)
        assert ask(server, "before").status_code == 201
        flag.touch()
        assert ask(server, "broken").status_code == 503
        assert ask(server, "broken").status_code == 503
        flag.unlink()
        assert ask(server, "broken").status_code == 201
        server.stop()
    assert logged(sqlite_file) == ["before", "broken"]


def test_a_second_process_refuses_and_says_why(sqlite_file):
    with Server(sqlite_file):
        second = command("serve", "--db", sqlite_file, "--port", "1")
        assert second.returncode == 2
        assert "served by another process" in second.stderr


@pytest.mark.slow("faults of a real process")
def test_a_wall_clock_that_jumped_ends_no_window_early_or_never(sqlite_file):
    """Decisions stamped a day ahead, as a clock set back leaves them, keep at most their window."""
    with Server(sqlite_file) as server:
        put(server, settings={**SPEC["settings"], "window_s": 1.5, "at_window_end": 0.0})
        ask(server, "d")
        server.kill()
    import sqlite3
    import zlib

    with sqlite3.connect(sqlite_file) as connection:
        (body,) = connection.execute("SELECT body FROM events WHERE stream = 'p/d'").fetchone()
        at = body.split(b'"at":')[1].split(b",")[0]
        body = body.replace(at, str(int(at) + 86_400_000).encode())
        connection.execute("UPDATE events SET body = ?, crc = ? WHERE stream = 'p/d'", (body, zlib.crc32(body)))
    connection.close()
    with Server(sqlite_file) as server:
        url = f"{server.url}/v1/problems/p/decisions/d"
        assert httpx.get(url).json()["state"] == "open"
        limit = time.monotonic() + 20.0
        while httpx.get(url).json()["state"] != "expired":
            assert time.monotonic() < limit
            time.sleep(0.1)


CLOCK = """
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    int done = syscall(SYS_clock_gettime, id, now);
    FILE *file = id == CLOCK_REALTIME ? fopen(getenv("CLOCK_SHIFT"), "r") : NULL;
    long shift = 0;
    if (file) { if (fscanf(file, "%ld", &shift) == 1) now->tv_sec += shift; fclose(file); }
    return done;
}
"""


@pytest.mark.slow("faults of a real process")
@pytest.mark.needs("cc")
def test_a_wall_clock_that_jumps_while_it_runs_does_no_harm(sqlite_file, tmp_path):
    (tmp_path / "clock.c").write_text(CLOCK)
    shim, shift = tmp_path / "clock.so", tmp_path / "shift"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, tmp_path / "clock.c"], check=True)
    shift.write_text("0")
    env = {**os.environ, "LD_PRELOAD": str(shim), "CLOCK_SHIFT": str(shift)}
    with Server(sqlite_file, env=env) as server:
        put(server, settings={**SPEC["settings"], "window_s": 2.0, "at_window_end": 0.0})
        asked = {}
        for n, jump in enumerate((0, 86_400, -86_400, 0)):
            shift.write_text(str(jump))
            asked[f"d{n}"] = time.monotonic()
            assert ask(server, f"d{n}").status_code == 201
        for id, began in asked.items():  # open for its two seconds, whatever the clock said
            state = httpx.get(f"{server.url}/v1/problems/p/decisions/{id}").json()["state"]
            assert state == "open" or time.monotonic() - began > 1.9
        shift.write_text("86400")
        for id in asked:
            while httpx.get(f"{server.url}/v1/problems/p/decisions/{id}").json()["state"] != "expired":
                assert time.monotonic() < asked["d3"] + 15.0
                time.sleep(0.05)
        server.stop()
    store = open_store(sqlite_file, serving=False)
    stamps = [read.entry.event.at for read in store.tail({}) if read.entry.step == 0 and read.entry.kind == "decision"]
    store.close()
    assert stamps[1] - stamps[0] > 80_000_000 > -80_000_000 > stamps[2] - stamps[0]  # the clock did jump
    assert set(logged(sqlite_file)) == set(asked)


def test_a_graceful_stop_answers_what_was_asked_and_leaves_a_snapshot(sqlite_file):
    with Server(sqlite_file) as server:
        put(server)
        for n in range(20):
            assert ask(server, f"d{n}").status_code == 201
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) in (0, -signal.SIGTERM)  # uvicorn ends, then passes the signal on
    store = open_store(sqlite_file, serving=False)
    assert len(list(store.snapshots())) == 1
    store.close()
    assert len(logged(sqlite_file)) == 20
    assert not Path(f"{sqlite_file}-wal").exists()


@pytest.mark.slow("faults of a real process")
def test_a_flood_without_feedback_is_bounded(sqlite_file):
    with Server(sqlite_file) as server, httpx.Client(base_url=server.url, timeout=30.0) as http:
        put(server)
        for _ in range(3):
            reply = http.post("/v1/problems/p/decisions/bulk", json={"decisions": [{}] * 600})
            assert reply.status_code == 200
        made = [d for d in reply.json()["decisions"] if "id" in d]
        assert not made
        assert "superarm_open_decisions 1000.0" in http.get("/metrics").text
