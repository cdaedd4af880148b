"""The console with a keyboard and a screen reader: axe-core finds nothing to object to in any view."""

from collections.abc import Iterator

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

from tests.system_packages import chromium

from .running import Server

pytestmark = pytest.mark.slow("every page in a browser")

SPEC = {"arms": ["a", "b", "c", "d" * 200], "items": ["x", "y"], "k": 2, "settings": {"policy": {"name": "bc_ucb"}}}
VIEWS = {
    "problem": "/?problem=p&try=a&decision=d1",
    "problems": "/problems",
    "versions": "/versions?problem=p",
    "arm": "/arm?problem=p&arm=a",
    "decisions": "/decisions?problem=p",
    "login": "/login",
}
DARK_PHONE = {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(str(tmp_path_factory.mktemp("access") / "log.db")) as server:
        with httpx.Client(base_url=server.url, timeout=60.0) as http:
            http.put("/v1/problems/p", json=SPEC).raise_for_status()
            for n in range(30):
                http.post("/v1/problems/p/decisions", json={"id": f"d{n}"}).raise_for_status()
                http.post(f"/v1/decisions/d{n}/feedback", json={"outcome": [[1, 0], [0, n % 2]]}).raise_for_status()
            http.post("/v1/decisions/d1/feedback", json={"outcome": [[0, 0], [0, 0]]})  # refused, and so remarked on
            http.patch("/v1/problems/p/settings", json={"explore": 0.1}).raise_for_status()
        yield server


@pytest.fixture(scope="module", params=[{}, DARK_PHONE], ids=["light", "dark phone"])
def page(request: pytest.FixtureRequest) -> Iterator[Page]:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        yield browser.new_context(**request.param).new_page()
        browser.close()


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing(server, page, view):
    assert page.goto(f"{server.url}{VIEWS[view]}").ok
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the screen"


@pytest.mark.needs("chromium")
def test_the_first_key_leads_past_the_header(server, page):
    page.goto(f"{server.url}/problems")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
