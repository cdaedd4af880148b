"""``superarm serve --demo``: simulated visitors of a magazine's front page, who ask and report as an application would.

What visitors like is drawn from a seed. They use the HTTP interface alone, so everything that the console shows
has come the way that real feedback comes: some of it late, some of it never.
"""

import contextlib
import heapq
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from superarm.service.client import ServiceError, connect

log = logging.getLogger("superarm.demo")

PROBLEM = "front-page"
SLATE = 4
READERS = {"politics": 5.0, "sport": 4.0, "science": 2.0, "culture": 2.0, "travel": 1.5, "money": 3.0}
"""The interests of readers, each with the weight of its readers: how many of them there are, up to a factor."""

WORDS = {"arm": "article", "item": "interest", "outcome": "click", "decision": "edition", "slate": "front page"}
ARTICLES = {
    "politics": ("Budget vote goes to a second reading", "Interview: the new minister", "Live: the debate"),
    "sport": ("Cup final: player ratings", "The transfer window in one table", "Why sprinters start early"),
    "science": ("A telescope for two continents", "What sleep does for memory"),
    "culture": ("The museum that opens at night", "Ten films of the year", "Review: an opera about bankers"),
    "travel": ("Three days in Lisbon", "Cheap ways across the Alps"),
    "money": ("Rates: what changes for savers", "Rents: the map"),
    "": ("Quiz: how well do you know the week?", "Letters from readers", "The weather"),
}
"""Headlines by the interest of the readers who like them most; "" for none."""

EDITED = 100
"""So many editions at the start are the editors', at random; nothing is learnt from them, so that learning shows."""

FIRST_EDITIONS, EDITIONS_PER_SECOND = 150, 10.0
"""Editions at once at the start, so that there is something to see, and per second afterwards."""

READERS_PER_INTEREST = 5
WINDOW_SECONDS = 30.0
SHARE_SILENT = 0.03
"""The share of editions of which no feedback comes: their window ends, and nothing is learnt from them."""


def make_readership(seed: int) -> dict[str, Any]:
    """The chances of clicks on each headline, drawn from a seed: one per interest.

    >>> len(make_readership(0)["The weather"]) == len(READERS)
    True
    """
    rng = np.random.default_rng(seed)
    return {
        headline: np.where([interest == one for one in READERS], rng.uniform(0.25, 0.55), rng.uniform(0.01, 0.06))
        for interest, headlines in ARTICLES.items()
        for headline in headlines
    }


class Visitors:
    """Editions of the front page, one after the other, and their readers, all drawn from a seed.

    A few readers of each interest see an edition; its feedback is the share of them that clicked on each article, and
    comes some seconds later.
    """

    def __init__(self, url: str, seed: int) -> None:
        self._click, self._rng = make_readership(seed), np.random.default_rng((seed, 1))
        self._due: list[tuple[float, int, Any, Any]] = []
        self._shown = 0
        self._name = f"{time.time_ns():x}"  # ids of another run would be decisions of that run
        settings = {"policy": {"name": "directional_kl_moss"}, "mode": "logging_only", "window_s": WINDOW_SECONDS}
        settings |= {"explore": 0.05, "control": 0.2, "control_slate": "baseline", "words": WORDS | {"unit": "readers"}}
        sizes = {"weights": list(READERS.values()), "settings": settings}
        self._agent = connect(url).create(PROBLEM, list(self._click), list(READERS), SLATE, **sizes)

    def show(self, now: float, delay: float) -> None:
        """Ask for one edition at ``now``, and note what will be reported after ``delay`` seconds on average."""
        rng = self._rng
        if self._shown == EDITED:
            self._agent.change_settings(mode="online")
        self._shown += 1
        baseline = rng.choice(list(self._click), SLATE, replace=False).tolist()
        decision = self._agent.ask(id=f"edition-{self._name}-{self._shown}", baseline=baseline)
        rows = np.array([self._click[arm] for arm in decision.arms])
        shares = rng.binomial(READERS_PER_INTEREST, rows) / READERS_PER_INTEREST
        if rng.random() >= SHARE_SILENT:
            heapq.heappush(self._due, (now + rng.exponential(delay), self._shown, decision, shares))

    def report(self, now: float) -> None:
        """Send the feedback that is due."""
        while self._due and self._due[0][0] <= now:
            _, _, decision, shares = heapq.heappop(self._due)
            self._agent.tell(decision, shares)


@contextlib.contextmanager
def visit_in_background(url: str, seed: int) -> Iterator[None]:
    """Simulated visitors of the service at ``url``, in a thread, as soon as it is ready and until this ends."""
    stop = threading.Event()
    thread = threading.Thread(target=_visit_until, args=(url, seed, stop), name="superarm-demo", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(5.0)


def _visit_until(url: str, seed: int, stop: threading.Event) -> None:
    try:
        visitors = Visitors(url, seed)  # which waits until the service is ready
        for _ in range(FIRST_EDITIONS):
            if stop.is_set():
                return
            visitors.show(0.0, 0.0)
            visitors.report(np.inf)
        while not stop.wait(1.0 / EDITIONS_PER_SECOND):
            visitors.show(time.monotonic(), 3.0)
            visitors.report(time.monotonic())
    except ServiceError as error:
        if not stop.is_set():
            log.error("demo: the visitors have left: %s", error)
