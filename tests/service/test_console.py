"""The console in a browser and out of it: whole without JavaScript, live with it, deaf to what names try."""

from collections.abc import Iterator

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from superarm.decisions import open_record
from superarm.service.domain.events import Asked
from superarm.service.domain.history import MAX_STRETCHES, History
from superarm.service.domain.lift import RunningMoments, mean_interval
from superarm.service.http.service import make_key
from superarm.service.server import open_store
from tests.system_packages import chromium

from .running import Server

HOSTILE = "<img src=x onerror=document.title='owned'>"
FEW = {"arms": ["a", "b", "c", HOSTILE], "items": ["x", "y"], "k": 2, "settings": {"policy": {"name": "bc_ucb"}}}
MANY = {**FEW, "arms": [f"ad-{n:05d}" for n in range(10_000)], "settings": {"policy": {"name": "uniform"}}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(str(tmp_path_factory.mktemp("console") / "log.db")) as server:
        for name, body in (("few", FEW), ("many", MANY)):
            httpx.put(f"{server.url}/v1/problems/{name}", json=body, timeout=120.0).raise_for_status()
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    words = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=words)
        yield browser
        browser.close()


def decide(server: Server, id: str, *values: float) -> list[str]:
    body = httpx.post(f"{server.url}/v1/problems/few/decisions", json={"id": id}, timeout=60.0).json()
    units = [{"arm": arm, "value": value} for arm, value in zip(body["arms"], values, strict=False)]
    if units:
        httpx.post(f"{server.url}/v1/problems/few/decisions/{id}/feedback", json={"feedback": units}).raise_for_status()
    return body["arms"]


def test_the_first_paint_needs_no_script(server):
    arms = decide(server, "first", 1.0, 0.5)
    reply = httpx.get(f"{server.url}/", params={"problem": "few", "decision": "first"})
    assert reply.status_code == 200
    for id in ("tiles", "rewards", "arms", "heat", "slate", "changes", "feedback", "inspector"):
        assert f'id="{id}"' in reply.text
    assert "complete" in reply.text
    assert all(arm in reply.text or arm == HOSTILE for arm in arms)
    assert HOSTILE not in reply.text
    assert "&lt;img src=x" in reply.text
    policy = reply.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert "http:" not in reply.text.replace('xmlns="http:', "")
    assert "style=" not in reply.text


@pytest.mark.parametrize("query", ["problem=few&decision=nobody", "page=-1&sort=odd", "find=%00%ff", "page=999999"])
def test_any_address_gives_a_page(server, query):
    assert httpx.get(f"{server.url}/?{query}").status_code == 200
    assert httpx.get(f"{server.url}/?problem=nobody").status_code == 404


def test_ten_thousand_arms_come_a_page_at_a_time(server):
    reply = httpx.get(f"{server.url}/?problem=many&page=499&sort=number", timeout=30.0)
    assert "ad-09999" in reply.text
    assert len(reply.content) < 100_000
    assert "ad-00042" in httpx.get(f"{server.url}/?problem=many&find=AD-00042", timeout=30.0).text


def watched(server: Server, browser: Browser, **options) -> tuple[Page, list[str]]:
    """A page, and what should not happen on it: messages, errors, requests to other hosts."""
    page, said = browser.new_context(**options).new_page(), list[str]()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda sent: sent.url.startswith((server.url, "data:")) or said.append(sent.url))
    return page, said


@pytest.mark.needs("chromium")
def test_it_is_live_in_a_browser_and_works_with_the_keyboard(server, browser):
    page, said = watched(server, browser, color_scheme="dark", viewport={"width": 390, "height": 844})
    page.goto(f"{server.url}/?problem=few")
    count = page.locator("#feedback dd").first
    before = int(count.evaluate("e => e.firstChild.textContent"))
    page.locator("#tiles summary").first.click()
    decide(server, "second", 0.0, 1.0)
    expect(count).to_contain_text(f"{before + 1} decisions")
    page.locator("#pulse[data-state=live]").wait_for()
    expect(page.locator("#tiles details").first).to_have_attribute("open", "")  # what was opened stays open
    assert page.title() == "few · superarm"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("svg.chart.narrow").bounding_box()["height"] > 200
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    page.select_option("#problem", "many")
    page.wait_for_url("**problem=many**")
    page.keyboard.press("n")
    page.wait_for_url("**page=1**")
    page.keyboard.press("/")
    page.keyboard.type("ad-00777")
    page.keyboard.press("Enter")
    page.wait_for_url("**find=ad-00777**")
    assert page.locator("#arms tbody tr").count() == 1
    assert said == []  # no error, and nothing that the policy on content had to block
    page.context.close()


@pytest.mark.needs("chromium")
def test_all_problems_fit_every_screen_in_light_and_dark(server, browser):
    for width, scheme in ((1280, "light"), (390, "dark")):
        page, said = watched(server, browser, color_scheme=scheme, viewport={"width": width, "height": 844})
        page.goto(f"{server.url}/problems")
        assert page.locator("tbody tr").count() == 2
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.locator("tbody a", has_text="few").click()
        page.wait_for_url("**problem=few**")
        page.fill("#rewards [name=since]", "2026-01-31")
        page.locator("#rewards button").click()
        page.wait_for_url("**since=2026-01-31**")
        assert page.locator("#rewards [name=since]").input_value() == "2026-01-31"
        assert said == []
        page.context.close()


@pytest.mark.slow("a browser; pages without scripts are read as text, too")
@pytest.mark.needs("chromium")
def test_without_javascript_forms_and_links_do_the_same(server, browser):
    page, _ = watched(server, browser, java_script_enabled=False)
    decide(server, "third")
    page.goto(f"{server.url}/?problem=few")
    page.fill("#decision", "third")
    page.locator("#inspector button").click()
    assert "awaited" in page.locator("#inspector table").first.inner_text()
    page.context.close()


def test_a_key_is_asked_for_and_kept_in_a_cookie_that_the_interface_does_not_take(tmp_path):
    db = str(tmp_path / "log.db")
    store = open_store(db, serving=False)
    (reader, row), (blind, other) = make_key("shop", ("read",)), make_key("shop", ("decide",))
    store.put_key(row)
    store.put_key(other)
    store.close()
    with Server(db) as server, httpx.Client(base_url=server.url) as http:
        assert "Give one with the scope" in http.get("/").text
        assert http.get("/").status_code == http.get("/versions").status_code == 401
        assert http.post("/login", data={"key": blind}).status_code == 403
        reply = http.post("/login", data={"key": reader})
        assert reply.status_code == 303
        assert {"HttpOnly", "SameSite=Strict"} <= set(reply.headers["set-cookie"].split("; "))
        assert http.get("/").status_code == 200
        assert http.get("/v1/problems").status_code == 401
        assert "Max-Age=0" in http.post("/logout").headers["set-cookie"]
        assert http.get("/").status_code == 401


def test_means_have_intervals():
    few, many = RunningMoments(), RunningMoments()
    for n in range(4):
        few.add(float(n % 2))
    for n in range(400):
        many.add(float(n % 2))
    assert mean_interval(RunningMoments()) is None
    assert mean_interval(few).value == mean_interval(many).value == 0.5
    assert mean_interval(few).reach == pytest.approx(1.96 * np.std([0, 1, 0, 1], ddof=1) / 2)
    assert mean_interval(many).reach < mean_interval(few).reach


def test_a_long_history_stays_short():
    history, total = History(), 0.0
    for n in np.random.default_rng(0).permutation(1_000):  # they finish in any order
        asked = Asked(0, "p", "", "", int(n), (0,), 1, 1, policy_action=(1,) if n == 3 else None)
        record = open_record(asked)
        history.place_of(record).side(record).add(float(n))
        total += n
    assert len(history.stretches) <= MAX_STRETCHES
    assert history.length == 8
    assert sum(s.policy.n + s.baseline.n for s in history.stretches) == 1_000
    assert sum(s.policy.total + s.baseline.total for s in history.stretches) == total
    assert [s.baseline.total for s in history.stretches if s.baseline.n] == [3.0]
    assert history.stretches[1].policy.total / 8 == 11.5
