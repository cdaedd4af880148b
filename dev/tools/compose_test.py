"""Run deploy/compose.yaml as an operator would: the service with two workers, and PostgreSQL, each in a container.

    make compose-test      after make image; needs root, podman, netavark and aardvark-dns

Where the image of PostgreSQL that compose.yaml names cannot be pulled, one with Debian's PostgreSQL takes its place: it
is made here. The test creates a problem, decides and sends feedback, stops everything, starts it again on the same
volume, and finds the decision.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from image import REPOSITORY, import_debian, install, output, run, say
from image_test import LIMITS, PODMAN, SPEC, Client, check, free_port

MADE_POSTGRES = "localhost/superarm-postgres"
COMPOSE = REPOSITORY / ".venv-manifests" / "bin" / "podman-compose"
COMPOSE_FILE = REPOSITORY / "deploy" / "compose.yaml"
PASSWORD = "only-for-the-test"
ENTRY = """#!/bin/sh
# What the official image does with these variables: a cluster with one user and one database, on all addresses.
set -eu
data=/var/lib/postgresql/data
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
if [ ! -s "$data/PG_VERSION" ]; then
    chown postgres:postgres "$data"
    printf '%s' "$POSTGRES_PASSWORD" > /tmp/password
    chown postgres /tmp/password
    as_postgres initdb -D "$data" -U "$POSTGRES_USER" --pwfile=/tmp/password --auth=scram-sha-256 -E UTF8
    rm /tmp/password
    echo "CREATE DATABASE $POSTGRES_DB" | as_postgres postgres --single -D "$data" postgres
    echo 'host all all all scram-sha-256' >> "$data/pg_hba.conf"
fi
mkdir -p /run/postgresql && chown postgres /run/postgresql
exec setpriv --reuid=postgres --regid=postgres --init-groups postgres -D "$data" -c listen_addresses='*'
"""


def choose_postgres() -> str:
    """The image that compose.yaml names, or one with Debian's PostgreSQL if that cannot be pulled."""
    found = re.search(r"image: (\S*postgres\S*)", COMPOSE_FILE.read_text())
    assert found
    pulled = subprocess.run(["timeout", "60", *PODMAN, "pull", "-q", found[1]], check=False, capture_output=True)
    if pulled.returncode == 0:
        return found[1]
    say(f"{found[1]} cannot be pulled")
    if subprocess.run([*PODMAN, "image", "exists", MADE_POSTGRES], check=False).returncode:
        make_postgres()
    return MADE_POSTGRES


def make_postgres() -> None:
    """An image with Debian's PostgreSQL, which takes the variables that compose.yaml sets."""
    say("making an image with Debian's PostgreSQL")
    container = import_debian("postgresql")
    with tempfile.TemporaryDirectory(prefix="superarm-entry-") as directory:
        entry = Path(directory) / "entry"
        entry.write_text(ENTRY)
        run("buildah", "copy", "-q", "--chmod=0755", container, entry, "/entry")
    run("buildah", "config", "--entrypoint", '["/entry"]', "--volume", "/var/lib/postgresql/data", container)
    run("buildah", "commit", "-q", "--format=docker", "--rm", container, MADE_POSTGRES)


class Composition:
    """The containers of compose.yaml under a name of their own."""

    def __init__(self, postgres: str, key: str, directory: Path) -> None:
        override, backend = directory / "override.yaml", directory / "containers.conf"
        override.write_text(f"services: {{postgres: {{image: {postgres}}}}}\n")
        backend.write_text('[network]\nnetwork_backend = "netavark"\n')  # its containers find one another by name
        self.port = free_port()
        values = {"SUPERARM_ADMIN_KEY": key, "POSTGRES_PASSWORD": PASSWORD, "SUPERARM_PUBLISHED_PORT": str(self.port)}
        self._environment = {**os.environ, **values, "CONTAINERS_CONF": str(backend)}
        arguments = [f"--podman-args={' '.join(PODMAN[1:])}", f"--podman-run-args={' '.join(LIMITS)}"]
        self._line = [COMPOSE, *arguments, "-p", f"superarm-test-{os.getpid()}"]
        self._line += ["-f", COMPOSE_FILE, "-f", override]

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        line: list[Any] = [*self._line, *words]
        return subprocess.run(line, check=False, capture_output=True, text=True, env=self._environment)

    def up(self, key: str) -> Client:
        began = time.monotonic()
        started = self.call("up", "-d", "--no-build")
        if started.returncode:
            sys.exit(f"compose-test: FAILED: {started.stdout[-2000:]}{started.stderr[-2000:]}")
        client = Client(self.port, key)
        client.wait()
        say(f"both containers are up and the service is ready after {time.monotonic() - began:.1f} s")
        return client


def test(composition: Composition, key: str) -> None:
    client = composition.up(key)
    check(client.call("PUT", "/v1/problems/p", SPEC)[0] == 201, "a problem is created")
    status, decision = client.call("POST", "/v1/problems/p/decisions", {"id": "d"})
    check(status == 201 and len(decision["arms"]) == 2, "a decision is made")
    status, told = client.call("POST", "/v1/problems/p/decisions/d/feedback", {"outcome": [[1, 0], [0, 1]]})
    check(status == 200 and told["applied"], "feedback is accepted")
    stopped = composition.call("down")
    check(stopped.returncode == 0, "everything is stopped")
    client = composition.up(key)
    check(
        client.call("GET", "/v1/problems/p/decisions/d")[1]["state"] == "complete",
        "started again, it knows the decision",
    )


def main() -> int:
    install("podman", "runc", "buildah")
    if not shutil.which("aardvark-dns", path="/usr/lib/podman:/usr/libexec/podman"):
        run("apt-get", "install", "-qq", "--yes", "--no-install-recommends", "netavark", "aardvark-dns")
    postgres = choose_postgres()
    image = "localhost/superarm:latest"
    key = output(*PODMAN, "run", "--rm", "--network=host", *LIMITS, image, "keys", "new").strip().splitlines()[-1]
    with tempfile.TemporaryDirectory(prefix="superarm-compose-") as directory:
        composition = Composition(postgres, key, Path(directory))
        try:
            test(composition, key)
        finally:
            composition.call("down", "-v")
    return 0


if __name__ == "__main__":
    sys.exit(main())
