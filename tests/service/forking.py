"""Command lines of superarm in processes that are forked from one that has imported the service.

Starting Python and importing the service takes about a second of processor time, which tests of what a service does
need not spend for every service they start. What a forked process runs is the same command line.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TextIO

IMPORTED = [
    "superarm.cli",
    "superarm.agent",
    "superarm.contextual",
    "superarm.core.kernels",
    "superarm.service.server",
    "superarm.service.demo",
    "superarm.service.storage.postgres",
    "uvicorn.loops.auto",
    "uvicorn.lifespan.on",
]
"""What the process that is forked has imported; what is missing here is imported by every process that needs it."""

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(IMPORTED)


class Forked:
    """``superarm WORDS`` in a session of its own, with the methods of ``subprocess.Popen`` that the tests call."""

    def __init__(self, words: Sequence[str], output: TextIO, cwd: str | Path | None = None) -> None:
        started, starts = _forks.Pipe(duplex=False)
        given = (list(words), dict(os.environ), str(cwd or Path.cwd()), output.name, starts)
        self._process = _forks.Process(target=run, args=given, daemon=True)
        self._process.start()
        self.pid = int(self._process.pid or 0)
        starts.close()
        with started:
            started.recv()  # from now on it leads its session

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("superarm", timeout)
        return self.returncode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def run(words: list[str], environment: dict[str, str], cwd: str, output: str, started: Connection) -> None:
    """What a forked process does."""
    os.setsid()
    started.send(True)
    started.close()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    descriptor = os.open(output, os.O_WRONLY | os.O_APPEND)
    for standard in (1, 2):
        os.dup2(descriptor, standard)
    os.close(descriptor)
    sys.argv = ["superarm", *words]

    from superarm.cli import main

    main(prog_name="superarm")
