"""Every view of the console in a browser, light on a desktop and dark on a phone, with axe-core as its reader."""

from collections.abc import Iterator

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

from tests.system_packages import chromium

from .running import DECISIONS, Server

pytestmark = [pytest.mark.slow("a browser, for every view"), pytest.mark.needs("chromium")]

LONG = "d" * 200
SPEC = {"arms": ["a", "b", "c", LONG], "items": ["x", "y"], "k": 2, "settings": {"policy": {"name": "bc_ucb"}}}
WIDE = {
    "arms": [f"product {n}" for n in range(30)],
    "items": [f"segment {n}" for n in range(20)],
    "k": 4,
    "settings": {"control": 0.3, "control_slate": ["product 1"], "at_window_end": 0.0, "words": {"arm": "product"}},
}
VIEWS = {
    "problem": "/?problem=p&decision=d1",
    "a segment": "/?problem=p&item=y",
    "many": "/?problem=wide&items=1&page=1",
    "versions": "/versions?problem=p",
    "login": "/login",
    "docs": "/docs",
}
DARK_PHONE = {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}}
SMALL = """() => [...document.querySelectorAll('a, button, input:not([type=hidden]), select, summary')]
    .filter(e => !e.closest('p, li, dd, pre, code') && e.getClientRects().length)
    .filter(e => { const r = e.getBoundingClientRect(); return r.right > 0 && Math.min(r.width, r.height) < 24 })
    .map(e => e.outerHTML.slice(0, 100))"""
BEYOND = """() => [...document.querySelectorAll('body *')].filter(e => e.getClientRects().length)
    .filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 100))"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(str(tmp_path_factory.mktemp("access") / "log.db")) as server:
        with httpx.Client(base_url=server.url, timeout=60.0) as http:
            for name, spec in (("p", SPEC), ("wide", WIDE)):
                http.put(f"/v1/problems/{name}", json=spec).raise_for_status()
            for n in range(30):
                http.post("/v1/problems/p/decisions", json={"id": f"d{n}"}).raise_for_status()
                http.post(f"{DECISIONS}/d{n}/feedback", json={"outcome": [[1, 0], [0, n % 2]]}).raise_for_status()
                asked = {"id": f"w{n}", "items": [f"segment {n % 20}"]}
                arms = http.post("/v1/problems/wide/decisions", json=asked).raise_for_status().json()["arms"]
                told = {"outcome": [[n % 2]] * len(arms)}
                http.post(f"/v1/problems/wide/decisions/w{n}/feedback", json=told).raise_for_status()
            http.post(f"{DECISIONS}/d1/feedback", json={"outcome": [[0, 0], [0, 0]]})  # refused, and so remarked on
            http.patch("/v1/problems/p/settings", json={"explore": 0.1}).raise_for_status()
        yield server


@pytest.fixture(scope="module", params=[{}, DARK_PHONE], ids=["light", "dark phone"])
def page(request: pytest.FixtureRequest) -> Iterator[Page]:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        yield browser.new_context(**request.param).new_page()
        browser.close()


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_and_everything_is_on_the_screen(server, page, view):
    foreign = list[str]()
    page.on("request", lambda sent: sent.url.startswith((server.url, "data:")) or foreign.append(sent.url))
    assert page.goto(f"{server.url}{VIEWS[view]}").ok
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate(BEYOND) == [], "beyond the right edge of the screen"
    assert page.evaluate(SMALL) == [], "smaller than 24 pixels"
    assert foreign == []


def test_the_first_key_leads_past_the_header(server, page):
    page.goto(f"{server.url}/versions?problem=p")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_a_product_is_retired_and_restored_with_two_clicks(server, page):
    page.goto(f"{server.url}/?problem=p")
    row = page.locator("#arms tr", has_text="c").filter(has=page.get_by_role("rowheader", name="c"))
    row.get_by_role("button", name="Retire").click()
    page.wait_for_url("**#arms")
    assert "retired" in row.inner_text()
    row.get_by_role("button", name="Restore").click()
    page.wait_for_url("**#arms")
    assert "retired" not in row.inner_text()
