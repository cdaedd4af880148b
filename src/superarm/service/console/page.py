"""The page, section by section. What changes is inside elements with ``data-live``."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np

from superarm.service.console import arms, numbers, slates, svg
from superarm.service.console.feedback import feedback
from superarm.service.console.markup import Html, tag, with_code
from superarm.service.console.numbers import Overview, Verdict
from superarm.service.console.view import View, export_link, range_form, section
from superarm.service.domain.history import mean_interval
from superarm.service.domain.problem import ProblemState
from superarm.service.http.views import list_warnings


class Health(NamedTuple):
    """The state of the process: ``status`` as ``/health`` says it, and what is ``wrong``, empty if nothing is."""

    status: str
    wrong: str
    queue: int
    pending: int
    worker: str


class Access(NamedTuple):
    """Who looks: ``keyed`` with a key, ``public`` without one at a page that is open to everybody."""

    keyed: bool = False
    public: bool = False


def document(title: str, *body: Any, live: str | None = None, again: int | None = None) -> bytes:
    """A whole page around ``body``; with ``again``, the browser loads it anew after so many seconds."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", http_equiv="refresh", content=again) if again else None,
        tag("title", title),
        tag("link", rel="stylesheet", href="console.css"),
        tag("link", rel="icon", href="data:,"),
        tag("script", src="console.js", type="module") if live else None,
    )
    skip = tag("a", "Skip to the content", href="#content", class_="skip")
    page = tag("html", head, tag("body", skip, *body, data_stream=live), lang="en")
    return b"<!doctype html>" + page.encode()


class PageData(NamedTuple):
    """What the page shows; ``found`` is the decision that was searched for, or a sentence on why there is none.

    ``heat`` is the picture of the page of arms.
    ``certificate`` is that of convergence, or why there is none; None while it is being computed.
    """

    view: View
    learner: ProblemState
    health: Health
    arms: Overview
    heat: Html
    found: Any
    certificate: Any = None


def page(names: Sequence[str], shown: PageData, access: Access) -> bytes:
    """The page of one problem."""
    view, learner, health, overview, heat, found, certificate = shown
    public = access.public
    sections = [
        tag("h1", view.problem),
        _public_note() if public else _warnings(learner),
        _tiles(learner, health, certificate),
        _rewards(view, learner),
        arms.table(view, learner, overview),
        heat,
        slates.slate(learner),
        slates.what_if(view, learner),
        feedback(learner, health.pending, health.worker, public),
        None if public else slates.inspector(view, learner, found),
    ]
    live = view.address(to="").replace("./?", "live?", 1)
    top = header(names, view.problem, access)
    return document(f"{view.problem} · superarm", top, tag("main", *sections, id="content"), live=live)


def subpage(title: str, top: Html, *sections: Any) -> bytes:
    """A page beside that of the problem, which does not follow the log."""
    return document(f"{title} · superarm", top, tag("main", tag("h1", title), *sections, id="content"))


def _public_note() -> Html:
    words = (
        "This page is public. It shows the names of problems, arms and items, estimates, rewards over time and counts "
        "of feedback. Single decisions, contexts, versions of the settings and exports need a key."
    )
    return tag("p", words, class_="card note", role="note")


def header(names: Sequence[str], chosen: str, access: Access) -> Html:
    options = [tag("option", name, value=name, selected=name == chosen) for name in names]
    choice = tag(
        "form",
        tag("label", tag("span", "Problem", class_="quiet"), tag("select", options, name="problem", id="problem")),
        tag("button", "Show"),
        method="get",
        action="./",
    )
    leave = tag("form", tag("button", "Forget key", class_="plain"), method="post", action="logout")
    return tag(
        "header",
        tag("a", "superarm", href="./", class_="brand"),
        choice if names else None,
        _links(chosen, access) if names else None,
        tag("span", "", id="pulse", class_="quiet", role="status"),
        leave if access.keyed else tag("a", "Log in", href="login") if access.public else None,
    )


def _links(chosen: str, access: Access) -> Html:
    of_problem = urlencode({"problem": chosen})
    links = [("All problems", "problems")]
    if not access.public:
        pages = (("Decisions", "decisions"), ("Versions", "versions"))
        links += [(label, f"{path}?{of_problem}") for label, path in pages]
    return tag("nav", [tag("a", label, href=path) for label, path in links], aria_label="Pages")


def _warnings(learner: ProblemState) -> Html:
    found = [tag("li", with_code(warning)) for warning in list_warnings(learner)]
    return tag(
        "section",
        tag("ul", found, class_="bad") if found else None,
        id="warnings",
        class_="card" if found else None,
        data_live=True,
        aria_label="Warnings",
    )


def _compare(learner: ProblemState, needed: frozenset[int]) -> Verdict:
    """The policy against the control share, or if there was none, against decisions with the caller's baseline."""
    if learner.settings.control > 0.0 or learner.history.lift.control.n:
        return numbers.judge_lift(learner)
    return numbers.compare_with_baseline(learner.history, learner.settings.mode, needed)


def _tiles(learner: ProblemState, health: Health, certificate: Any) -> Html:
    history, settings = learner.history, learner.settings
    drawn = f"{history.explored / history.slots:.1%}" if history.slots else "–"
    needed = numbers.weighty_items(learner)
    earned = mean_interval(numbers.recent(history), needed)
    verdicts = [
        ("Is it healthy?", _health(learner, health)),
        ("Is it learning?", numbers.judge_learning(history, needed)),
        ("Better than the baseline?", _compare(learner, needed)),
        *([("Guardrail", guard)] if (guard := numbers.judge_guard(learner)) is not None else []),
        ("Converged?", numbers.judge_convergence(learner, certificate)),
        (
            "Exploration",
            Verdict(
                drawn,
                f"of slots drawn at random; asked for {settings.explore:.1%}",
                "The policy itself explores besides, where it knows little.",
                "open",
            ),
        ),
        (
            "Reward now",
            Verdict(
                "–" if earned is None else f"{earned.value:.3g}",
                "" if earned is None else f"± {earned.reach:.2g}" if np.isfinite(earned.reach) else "",
                "Mean reward of the policy's last quarter; the 95 % interval is for one look.",
                "open",
            ),
        ),
    ]
    return tag(
        "section",
        [_tile(*pair) for pair in verdicts],
        id="tiles",
        class_="tiles",
        data_live=True,
        aria_label="At a glance",
    )


def _tile(question: str, verdict: Verdict) -> Html:
    return tag(
        "div",
        tag("h2", question),
        tag("p", verdict.word, class_=f"word {verdict.kind}"),
        tag("p", verdict.number, class_="number"),
        tag("p", verdict.meaning, class_="note"),
        class_="card tile",
    )


def _health(learner: ProblemState, health: Health) -> Verdict:
    limit = learner.settings.max_pending
    words = f"{health.pending:,} pending of at most {limit:,}; {health.queue} in the write queue"
    if health.wrong:
        word = "Stopping" if health.status == "stopping" else "Not ready"
        return Verdict(word, words, f"Decisions are refused: {health.wrong}.", "bad")
    if health.pending >= limit:
        return Verdict("Full", words, "New decisions are refused (429) until feedback comes or windows end.", "bad")
    finished = learner.history.expired + learner.history.complete
    share = learner.history.expired / finished if finished else 0.0
    if share > 0.5 and finished > 20:
        return Verdict("Starved", words, f"{share:.0%} of decisions ended without all their feedback.", "bad")
    return Verdict("Yes", words, "Decisions are made, and the log is written.", "good")


def _rewards(view: View, learner: ProblemState) -> Html:
    history, times = learner.history, view.times
    chosen = [stretch for stretch in history.stretches if times.holds(stretch.at) or not any(times)]
    needed = numbers.weighty_items(learner)
    wide, k = svg.merge_stretches(chosen, needed)
    kept = {"problem": view.problem, "sort": view.ordering.sort, "find": view.ordering.find}
    keys = tag(
        "p",
        tag("span", "policy", class_="key"),
        tag("span", "baseline", class_="key baseline") if any(s.baseline.count for s in wide) else None,
        tag("span", f"left out: {history.unvalued} that finished with entries never seen", class_="quiet")
        if history.unvalued
        else None,
    )
    curve = svg.rewards(wide, k * history.length, needed)
    if not chosen and history.stretches:
        curve = tag("p", "No decision was made between these dates.", class_="empty")
    return section(
        "rewards",
        "Reward per decision",
        range_form("./", {name: value for name, value in kept.items() if value}, times),
        curve,
        keys if chosen else None,
        None if view.public else export_link(view.problem, "rewards.csv"),
        note="By the round they were made in, with the dates (UTC) of their last decisions; each with a 95 % interval "
        "by itself, for one look. The last rounds lack what has not finished.",
    )
