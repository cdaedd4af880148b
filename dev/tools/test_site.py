"""Checks of the built documentation site in ``out/docs``; ``make docs-test`` builds it and runs them.

They are not among the tests of ``make test``. Chromium is needed, and no network: pages are opened as files.
"""

import functools
import re
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.system_packages import chromium

SITE = Path(__file__).parents[2] / "out" / "docs"
PAGES = sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)
READ = [path for path in PAGES if not {"_modules", "api"} & set(path.parts)]
WIDTHS = {"phone": 390, "desktop": 1280}


class Links(HTMLParser):
    """The ids of a page, the targets of its links, and what it loads."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Collect what one tag names."""
        values = {name: value for name, value in attributes if value is not None}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if "src" in values:
            self.loaded.append(values["src"])
        if tag == "link" and "href" in values and values.get("rel") not in ("canonical", "author"):
            self.loaded.append(values["href"])


@pytest.fixture(scope="module")
def parsed() -> dict[Path, Links]:
    assert PAGES, "build the site first: make docs"
    return {page.resolve(): Links(page) for page in PAGES}


def test_every_link_and_anchor_leads_somewhere(parsed):
    broken = []
    for page, found in parsed.items():
        for link in found.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            anchors = parsed[target].ids if target in parsed else set()
            if not target.exists() or (parts.fragment and target in parsed and unquote(parts.fragment) not in anchors):
                broken.append(f"{page.relative_to(SITE.resolve())}: {link}")
    assert broken == []


def test_every_formula_was_recognised(parsed):
    """A dollar sign outside of code is what is left of a formula that was not."""
    left = []
    for page in READ:
        (text,) = re.findall(r"<article.*?</article>", page.read_text(encoding="utf-8"), re.S) or [""]
        text = re.sub(r"<(pre|code|math)\b.*?</\1>", "", text, flags=re.S)
        left += [f"{page.name}: {found}" for found in re.findall(r".{0,40}\$.{0,40}", re.sub(r"<[^>]+>", "", text))]
    assert left == []


def test_nothing_is_loaded_from_another_host_or_from_the_root(parsed):
    """So the site works from a file, below any path and without the network."""
    outside = {
        link for found in parsed.values() for link in found.loaded if urlsplit(link).netloc or link.startswith("/")
    }
    rooted = {link for found in parsed.values() for link in found.links if link.startswith("/")}
    assert outside | rooted == set()
    for sheet in SITE.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert "url(http" not in text, sheet
        assert "@import" not in text, sheet


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = chromium()
    assert path, "install Chromium: make system"
    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_pages_fit_their_window_without_scripts(browser, width, scheme):
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=False, offline=True
    )
    page, wide, pictures = context.new_page(), [], SITE.parent / "docs-pictures"
    pictures.mkdir(exist_ok=True)
    for path in READ:
        page.goto(path.resolve().as_uri())
        name = path.relative_to(SITE).as_posix()
        across = page.locator("body").evaluate("body => Math.max(body.scrollWidth, body.parentElement.scrollWidth)")
        if across > width:
            wide.append((name, across))
        assert page.locator("article h1").count() == 1 or name in (
            "genindex.html",
            "search.html",
            "py-modindex.html",
        ), name
        if name in ("index.html", "theory/kl-ucb.html", "background/model.html", "reference/http.html"):
            page.screenshot(path=pictures / f"{path.stem}-{width}-{scheme}.png")
    context.close()
    assert wide == []


def test_every_picture_is_shown_with_words_for_those_who_cannot_see_it(browser):
    context = browser.new_context(java_script_enabled=False, offline=True)
    page, faults = context.new_page(), []
    for path in READ:
        page.goto(path.resolve().as_uri())
        for picture in page.locator("article img").all():
            shown = picture.evaluate("img => img.complete && img.naturalWidth > 0")
            if not (shown and picture.get_attribute("alt")):
                faults.append(f"{path.name}: {picture.get_attribute('src')}")
    context.close()
    assert faults == []


def test_scripts_run_without_errors(browser):
    page, faults = browser.new_page(), []
    page.on("pageerror", lambda error: faults.append((page.url, str(error))))
    page.on("console", lambda said: faults.append((page.url, said.text)) if said.type == "error" else None)
    page.on("requestfailed", lambda request: faults.append((page.url, request.url)))
    for path in READ:
        page.goto(path.resolve().as_uri())
    page.close()
    assert faults == []


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that logs nothing."""

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing."""


@pytest.fixture
def prefix() -> Iterator[str]:
    """The address of the site below a path."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE.parent))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/{SITE.name}"
    server.shutdown()
    server.server_close()


def test_the_site_works_below_a_path(browser, prefix):
    page, missing = browser.new_page(), []
    page.on("response", lambda answer: missing.append(answer.url) if answer.status >= 400 else None)
    page.goto(f"{prefix}/index.html")
    page.locator("article a", has_text="The service").first.click()
    assert page.locator("article h1").inner_text().startswith("The service")
    page.goto(f"{prefix}/search.html?q=matroid")
    page.locator("#search-results li a").first.click(timeout=30_000)
    assert page.locator("article").get_by_text("matroid").count() > 0
    page.close()
    assert [url for url in missing if not url.endswith("favicon.ico")] == []


@pytest.mark.parametrize("word", ["matroid", "comonotone", "Personalizer"])
def test_search_finds_a_word(browser, word):
    page = browser.new_page()
    page.goto(f"{(SITE / 'search.html').resolve().as_uri()}?q={word}")
    page.wait_for_selector("#search-results li a", timeout=30_000)
    page.close()
