"""One arm: what is known of it, item by item, and its history."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from msgspec import UnsetType

from superarm.core.arrays import Floats
from superarm.core.tally import Tally
from superarm.service.console import svg
from superarm.service.console.markup import Html, join, tag
from superarm.service.console.times import TimeRange
from superarm.service.console.view import range_form, scrollable, section
from superarm.service.domain.problem import ProblemState
from superarm.service.http import views

MAX_ITEMS_SHOWN = 100


def arm_page(name: str, learner: ProblemState, arm: int, counters: tuple[Tally, Floats]) -> Html:
    """The statistics of an arm."""
    row = views.arm(learner, counters, arm)
    items = learner.items.all if isinstance(row.items, UnsetType) else row.items
    facts = [
        ("pulls", f"{row.pulls:,}"),
        ("pending", f"{row.pending:,}"),
        ("state", "retired" if row.retired else "in use"),
    ]
    order = sorted(range(len(items)), key=lambda i: -(row.mean[i] or 0.0))[:MAX_ITEMS_SHOWN]
    heads = [tag("th", "Item", scope="col")]
    heads += [tag("th", word, scope="col", class_="num") for word in ("Mean", "Standard deviation", "Observed")]
    rows = [
        tag(
            "tr",
            tag("th", items[i], scope="row"),
            tag("td", "–" if row.mean[i] is None else f"{row.mean[i]:.4g}", class_="num"),
            tag("td", "–" if row.variance[i] is None else f"{(row.variance[i] or 0.0) ** 0.5:.4g}", class_="num"),
            tag("td", f"{row.seen[i]:,}", class_="num"),
        )
        for i in order
    ]
    note = (
        f"The {len(order)} items of the largest means; {len(items) - len(order)} more."
        if len(items) > len(order)
        else ""
    )
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows))
    back = tag("p", tag("a", "Back to the problem", href=f"./?{urlencode({'problem': name})}"))
    body = tag("dl", [tag("div", tag("dt", word), tag("dd", value)) for word, value in facts], class_="facts")
    return section("arm", "Estimates, item by item", back, body, scrollable("Estimates", table), note=note)


def history(problem: str, arm: str, points: Sequence[Any], wanted: TimeRange) -> Html:
    """How often the arm was shown, and what it earned, over time."""
    form = range_form("arm", {"problem": problem, "arm": arm}, wanted)
    title = "History"
    if not points:
        return section("history", title, form, tag("p", "No decision at that time.", class_="empty"))
    times = [point.until for point in points]
    shares = [point.shown / point.decisions if point.decisions else None for point in points]
    means = [point.mean for point in points]
    shown, observed = sum(p.shown for p in points), sum(p.observed for p in points)
    pictures = join(
        tag("h3", "Share of slates that it was in"),
        svg.time_curve(times, shares, f"Share of slates with {arm}, {shown:,} in total"),
        tag("h3", "Mean of its outcomes, over all items"),
        svg.time_curve(times, means, f"Mean of {observed:,} observed outcomes of {arm}"),
    )
    note = "From the log: the newest 20,000 decisions at most, in intervals of equal length. Times are UTC."
    return section("history", title, form, pictures, note=note)
