"""A service in a process of its own, on loopback, and the calls to it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

import httpx
from click.testing import CliRunner, Result

from superarm.cli import main

DECISIONS, NDJSON = "/v1/problems/p/decisions", {"content-type": "application/x-ndjson"}
MAIN = "from superarm.cli import main; main(prog_name='superarm')"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(*words: str, **options: Any) -> subprocess.CompletedProcess:
    """A command line of superarm, run to its end."""
    return subprocess.run(
        [sys.executable, "-c", MAIN, *words], check=False, capture_output=True, text=True, timeout=120, **options
    )


def invoke(*words: str) -> Result:
    """The same in this process, without the time that starting takes."""
    return CliRunner().invoke(main, words)


def start(words: Sequence[str], output: TextIO, **popen: Any) -> subprocess.Popen:
    """A command line of superarm in a new process, which leads a session of its own."""
    command = [sys.executable, "-c", MAIN, *words]
    return subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True, **popen)


class Server:
    """``superarm serve`` as a child process; tests set ``fork`` to start it in less time, where that can be done."""

    fork: Callable[..., Any] = staticmethod(start)

    def __init__(self, db: str, *options: str, port: int | None = None, wait: bool = True, **popen: Any) -> None:
        self.db, self.port = db, port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = Path(os.environ.get("TMPDIR", "/tmp")) / f"superarm-serve-{self.port}.log"
        words = ["serve", "--db", db, "--port", str(self.port), *options]
        fork = start if "env" in popen or "--workers" in options else self.fork
        with self.log.open("a") as log:
            self.process = fork(words, log, **popen)
        if wait:
            self.ready()

    def ready(self, seconds: float = 180.0, **options: Any) -> None:
        """Wait until it answers that it is ready; ``options`` are httpx's."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            assert self.process.poll() is None, self.log.read_text()[-4000:]
            try:
                if httpx.get(f"{self.url}/health", timeout=1.0, **options).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            time.sleep(0.05)
        raise AssertionError(self.log.read_text()[-4000:])

    def line_with(self, words: str, seconds: float = 30.0) -> dict[str, Any]:
        """The first line of its log whose message has these words; an answer is sent before its line is written."""
        limit = time.monotonic() + seconds
        while True:
            lines = [json.loads(line) for line in self.log.read_text().splitlines()]
            if found := [line for line in lines if words in line["message"]]:
                return found[0]
            assert time.monotonic() < limit, lines
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL to the whole session: the server and its workers."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.kill()
        self.log.unlink(missing_ok=True)
        return self.process.returncode

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
