"""The TypeScript client: installed by npm, run by node against a running service."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from superarm.service.http.service import make_key
from superarm.service.server import open_store

from .running import Server

pytestmark = pytest.mark.slow("npm")

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "typescript"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has installed the client as ``docs/guides/service.md`` says, without a compiler or network."""
    home = tmp_path_factory.mktemp("project")
    (home / "package.json").write_text('{"type": "module"}')
    unwanted = shutil.ignore_patterns("node_modules", "package-lock.json")
    shutil.copytree(CLIENT, home / "superarm" / "clients" / "typescript", ignore=unwanted)
    (line,) = re.findall(r"^npm install .*$", (ROOT / "docs" / "guides" / "service.md").read_text(), re.MULTILINE)
    programs = tmp_path_factory.mktemp("programs")
    for name in ("npm", "node", "sh"):
        (programs / name).symlink_to(str(shutil.which(name)))
    environment = {**os.environ, "PATH": str(programs), "npm_config_cache": str(home / "cache")}
    words = [*line.split(), "--offline"]
    done = subprocess.run(words, cwd=home, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return home


@pytest.mark.needs("tsc")
def test_the_compiled_client_is_that_of_the_sources(tmp_path):
    """Compilers of different years write a few things differently; the compiler checks the types, too."""
    done = subprocess.run(["tsc", "-p", CLIENT, "--outDir", tmp_path], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout

    def read(place: Path) -> dict[str, str]:
        texts = {file.name: file.read_text().replace("export declare type", "export type") for file in place.iterdir()}
        return {name: re.sub(r"(?<=\d)_(?=\d)", "", text) for name, text in texts.items()}

    assert read(CLIENT / "dist") == read(tmp_path), "run npm run build in clients/typescript"


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    db = str(tmp_path_factory.mktemp("client") / "log.db")
    store = open_store(db, serving=False)
    key, row = make_key("shop", ("admin",))
    store.put_key(row)
    store.close()
    with Server(db) as server:
        yield server, key


@pytest.mark.needs("npm")
def test_the_client_drives_a_service(project, keyed):
    server, key = keyed
    variables = {"SUPERARM_URL": server.url, "SUPERARM_KEY": key}
    words = ["node", "--test", shutil.copy(CLIENT / "test" / "client.test.mjs", project)]
    done = subprocess.run(words, env={**os.environ, **variables}, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^# pass [1-9]", done.stdout, re.MULTILINE), done.stdout
