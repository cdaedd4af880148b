"""The arms: a table, a page of it at a time, and who covers what."""

from urllib.parse import urlencode

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.tally import Tally
from superarm.service.console import svg
from superarm.service.console.markup import Html, tag
from superarm.service.console.numbers import ARMS_PER_PAGE, Overview, overview
from superarm.service.console.view import View, export_link, hidden_inputs, pages, scrollable, section
from superarm.service.domain.intervals import known_means
from superarm.service.domain.problem import ProblemState

HEAT_ITEMS = 40
NARROW_ITEMS = 14
"""A picture of more items does not fit beside the table of arms."""


def table(view: View, learner: ProblemState, arms: Overview) -> Html:
    order = view.ordering
    heads = [
        tag("th", "Arm", scope="col"),
        *(
            tag(
                "th",
                tag("a", label, href=view.address(sort=sort, page=0, to="#arms")),
                scope="col",
                class_="num",
                aria_sort="descending" if order.sort == sort else None,
            )
            for sort, label in (("value", "Value alone"), ("pulls", "Pulls"), ("pending", "Pending"))
        ),
        tag("th", "95 % interval", scope="col"),
        tag("th", "What if", scope="col"),
    ]
    rows = [_arm(view, learner, arms, n) for n in range(len(arms.arms))]
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows))
    return section(
        "arms",
        f"Arms ({arms.total:,})",
        _finder(view),
        scrollable("Arms", table),
        _pager(view, arms),
        None if view.public else export_link(view.problem, "arms.csv"),
        note="The reward of a slate of this arm alone, at the estimates. Intervals hold for all arms, at all times.",
    )


def _arm(view: View, learner: ProblemState, arms: Overview, n: int) -> Html:
    arm, pulls, pending = int(arms.arms[n]), int(arms.pulls[n]), int(arms.pending[n])
    name, tried = learner.arms.all[arm], view.tried
    low, value, high = (float(part[n]) for part in arms.value)
    link = None
    if name not in tried and not learner.retired[arm]:
        link = tag("a", "+ try", href=view.address(tried=(*tried, name), to="#what-if"), aria_label=f"try {name}")
    return tag(
        "tr",
        tag(
            "th",
            name if view.public else tag("a", name, href=f"arm?{urlencode({'problem': view.problem, 'arm': name})}"),
            tag("span", " retired", class_="quiet") if learner.retired[arm] else None,
            scope="row",
        ),
        tag("td", f"{value:.4g}" if pulls else "–", class_="num"),
        tag("td", pulls, class_="num"),
        tag("td", pending, class_="num"),
        tag("td", svg.interval(low, value, high, arms.most)),
        tag("td", link),
    )


def _finder(view: View) -> Html:
    field = tag("input", type="search", name="find", value=view.ordering.find, id="find", accesskey="f")
    return tag(
        "form",
        hidden_inputs(view, "find"),
        tag("label", "Find ", field),
        tag("button", "Find"),
        method="get",
        action="./#arms",
        class_="row",
    )


def _pager(view: View, arms: Overview) -> Html | None:
    here, last = view.ordering.page, max(0, (arms.total - 1) // ARMS_PER_PAGE)
    return pages("Pages of arms", here, last, lambda n: view.address(page=n, to="#arms"))


def read_arms(view: View, learner: ProblemState, counters: tuple[Tally, Floats]) -> tuple[Overview, Html]:
    """The page of arms that is wanted, and the picture of it. Only reads; runs in a thread, since it may take long."""
    found = overview(learner, counters, view.ordering)
    return found, _heat(view, learner, found.arms, counters[0])


def _heat(view: View, learner: ProblemState, shown: Ints, tally: Tally) -> Html:
    retired = learner.learner.retired_items
    items = [i for i in np.argsort(-learner.problem.weights, kind="stable") if int(i) not in retired]
    last = max(0, (len(items) - 1) // HEAT_ITEMS)
    here = min(view.items_page, last)
    n_items, items = len(items), items[here * HEAT_ITEMS : (here + 1) * HEAT_ITEMS]
    means = known_means(tally, learner.problem.support, shown)
    known, mean = means.seen != 0.0, means.mean
    table = [[float(mean[n, i]) if known[n, i] else None for i in items] for n in range(len(shown))]
    names = [learner.arms.all[int(j)] for j in shown]
    note = "Estimated means of the arms of this page of the table; an empty box where nothing is known."
    if known_values := [value for row in table for value in row if value is not None]:
        note += f" The stronger the colour, the larger; the strongest is {max(known_values):.3g}."
    note += f" {len(items)} of {n_items:,} items, by weight." if last else ""
    broad = len(items) > NARROW_ITEMS
    picture = svg.heat(names, [learner.items.all[int(i)] for i in items], table)
    return section(
        "heat",
        "Who covers what",
        scrollable("Heat map", picture),
        pages("Pages of items", here, last, lambda n: view.address(items=n, to="#heat")),
        note=note,
        broad=broad,
    )
