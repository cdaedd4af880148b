"""Pages without a problem: the log-in, a service in which there is nothing yet, and why a page cannot be shown."""

from superarm.service.console.markup import tag
from superarm.service.console.page import Access, document, header

RELOAD_SECONDS = 5
"""A page that waits for something is loaded anew so often."""


def login(message: str = "") -> bytes:
    """Ask for a key."""
    form = tag(
        "form",
        tag("h1", "superarm"),
        tag("p", "This service has keys. Give one with the scope ", tag("code", "read"), "."),
        tag(
            "label",
            "Key ",
            tag("input", type="password", name="key", required=True, autofocus=True, autocomplete="current-password"),
        ),
        tag("p", message, class_="bad", role="alert") if message else None,
        tag("button", "Look"),
        method="post",
        action="login",
        class_="login card",
    )
    return document("superarm: key", tag("main", form, id="content"))


def nothing_yet(access: Access) -> bytes:
    """A service without problems."""
    said = tag(
        "section",
        tag("h1", "No problem yet"),
        tag("p", "Create one at the address of this page; the page shows it within a few seconds."),
        tag(
            "pre",
            'curl -X PUT --json \'{"arms": ["ad-1", "ad-2", "ad-3"], "items": ["sport", "news"], "k": 2}\' '
            "localhost:8000/v1/problems/ads",
        ),
        class_="card",
    )
    main = tag("main", said, id="content")
    return document("superarm", header([], "", access), main, again=RELOAD_SECONDS)


def refused(message: str, *, passing: bool) -> bytes:
    """Why a page cannot be shown, and a way back; what is ``passing`` is tried again."""
    said = tag(
        "section",
        tag("h1", "Not ready" if passing else "Not found"),
        tag("p", f"{message[:1].upper()}{message[1:]}."),
        tag("p", f"The page is loaded again every {RELOAD_SECONDS} seconds.", class_="note") if passing else None,
        tag("p", tag("a", "All problems", href="problems")),
        class_="card",
    )
    main = tag("main", said, id="content")
    return document("superarm", header([], "", Access()), main, again=RELOAD_SECONDS if passing else None)
