"""The TypeScript client: installed by npm, run by node and in a browser against a running service."""

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import sync_playwright

from superarm.service.http.auth import make_key
from superarm.service.server import open_store
from tests.system_packages import chromium

from .running import Server, free_port

pytestmark = pytest.mark.slow("npm and a browser")

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "typescript"
SECRET = "a secret of the tests, and of nobody else"


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
def page_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory, page_port: int) -> Iterator[tuple[Server, str]]:
    db = str(tmp_path_factory.mktemp("client") / "log.db")
    store = open_store(db, serving=False)
    key, row = make_key("shop", ("admin",))
    store.put_key(row)
    store.close()
    origin = f"http://127.0.0.1:{page_port}"
    with Server(db, "--beacon-secret", SECRET, "--beacon-origin", origin) as server:
        yield server, key


@pytest.mark.needs("npm")
def test_the_client_drives_a_service(project, keyed):
    server, key = keyed
    variables = {"SUPERARM_URL": server.url, "SUPERARM_KEY": key}
    words = ["node", "--test", shutil.copy(CLIENT / "test" / "client.test.mjs", project)]
    done = subprocess.run(words, env={**os.environ, **variables}, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^# pass [1-9]", done.stdout, re.MULTILINE), done.stdout


@pytest.fixture
def pages(tmp_path: Path, page_port: int) -> Iterator[str]:
    """A web server of another origin than the service, with the compiled client and an empty page."""
    shutil.copy(CLIENT / "dist" / "beacon.js", tmp_path)
    (tmp_path / "page.html").write_text("<!doctype html><title>shop</title><link rel=icon href=data:,>")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", page_port), partial(Quiet, directory=str(tmp_path))) as web:
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{page_port}"
        web.shutdown()
        thread.join()


@pytest.mark.needs("chromium")
def test_a_page_of_another_origin_reports_clicks_and_the_rest_when_it_goes_away(keyed, pages):
    server, key = keyed
    problem = {"arms": ["a", "b", "c"], "items": ["x"], "k": 2, "settings": {"policy": {"name": "bc_ucb"}}}
    with httpx.Client(base_url=server.url, headers={"authorization": f"Bearer {key}"}) as http:
        http.put("/v1/problems/page", json=problem).raise_for_status()
        decision = http.post("/v1/problems/page/decisions", json={"id": "page-view"}).json()
        target = {"url": server.url, "problem": "page", "signedId": decision["signed_id"], "arms": decision["arms"]}
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
            page, said = browser.new_page(), list[str]()
            page.on("console", lambda message: said.append(message.text))
            page.goto(f"{pages}/page.html")
            clicked = """async (target) => {
                const { PageFeedback } = await import("/beacon.js");
                const feedback = new PageFeedback(target);
                feedback.finishOnPageHide();
                return feedback.report(target.arms[0]);
            }"""
            with page.expect_response("**/beacon") as answered:
                assert page.evaluate(clicked, target) is True
            assert answered.value.status == 200
            page.goto("about:blank")  # pagehide: the other arm was seen, and not clicked
            wait_for_state(http, "page-view", "complete")
            browser.close()
        rows = {row["arm"]: row["mean"] for row in http.get("/v1/problems/page/arms").json()["arms"]}
        assert [rows[arm] for arm in decision["arms"]] == [[1.0], [0.0]]
        assert said == []


def wait_for_state(http: httpx.Client, id: str, state: str) -> None:
    """Wait until a decision has the state; a beacon is sent without anybody waiting for its answer."""
    for _ in range(500):
        if http.get(f"/v1/decisions/{id}").json()["state"] == state:
            return
        threading.Event().wait(0.02)
    raise AssertionError(f"decision {id} did not become {state}")
