"""The TypeScript client: compiled, installed by npm, run by node against a running service."""

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
CLIENT = Path("clients", "typescript")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the compiled client, installed as ``docs/guides/service.md`` says, without network."""
    home = tmp_path_factory.mktemp("project")
    (home / "package.json").write_text('{"type": "module"}')
    unwanted, copy = shutil.ignore_patterns("node_modules", "package-lock.json", "dist"), home / "superarm" / CLIENT
    shutil.copytree(ROOT / CLIENT, copy, ignore=unwanted)
    done = subprocess.run(["tsc", "-p", copy], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    (line,) = re.findall(r"^npm install .*$", (ROOT / "docs" / "guides" / "service.md").read_text(), re.MULTILINE)
    programs = tmp_path_factory.mktemp("programs")
    for name in ("npm", "node", "sh"):
        (programs / name).symlink_to(str(shutil.which(name)))
    environment = {**os.environ, "PATH": str(programs), "npm_config_cache": str(home / "cache")}
    words = [*line.split(), "--offline"]
    done = subprocess.run(words, cwd=home, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return home


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    db = str(tmp_path_factory.mktemp("client") / "log.db")
    store = open_store(db, serving=False)
    key, row = make_key("shop", ("admin",))
    store.put_key(row)
    store.close()
    with Server(db) as server:
        yield server, key


@pytest.mark.needs("tsc")
@pytest.mark.needs("npm")
def test_the_client_drives_a_service(project, keyed):
    server, key = keyed
    variables = {"SUPERARM_URL": server.url, "SUPERARM_KEY": key}
    words = ["node", "--test", shutil.copy(ROOT / CLIENT / "test" / "client.test.mjs", project)]
    done = subprocess.run(words, env={**os.environ, **variables}, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^# pass [1-9]", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.needs("tsc")
@pytest.mark.needs("npm")
def test_it_decides_from_tables_as_all_languages_do(project):
    cases = ROOT / "tests" / "data" / "table-cases.json"
    words = ["node", shutil.copy(ROOT / CLIENT / "test" / "table.test.mjs", project), cases]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "1000\n"), done.stderr
