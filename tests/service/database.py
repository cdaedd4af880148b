"""A PostgreSQL of our own: pip-installable binaries, a directory that goes away, loopback only."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg


def binaries() -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pgserver
    return Path(pgserver.__file__).parent / "pginstall" / "bin"


def started() -> Iterator[str]:
    """The address of a running server, as ``postgresql://…/{}`` with a place for the database's name."""
    home = Path(tempfile.mkdtemp(prefix="superarm-pg-", dir="/tmp"))
    ours = os.geteuid() == 0
    if ours:  # PostgreSQL refuses to run as root
        nobody = pwd.getpwnam("nobody")
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
    who = {"user": "nobody", "group": "nogroup", "extra_groups": []} if ours else {}
    run = {"env": {**os.environ, "LC_ALL": "C", "HOME": str(home)}, "cwd": home, **who}
    data = home / "data"
    initdb = [binaries() / "initdb", "-D", data, "-U", "superarm", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, **run)
    options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={home}", "-c", "max_connections=60"]
    with (home / "log").open("w") as log:
        server = subprocess.Popen(
            [binaries() / "postgres", "-D", data, *options], stdout=log, stderr=subprocess.STDOUT, **run
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
