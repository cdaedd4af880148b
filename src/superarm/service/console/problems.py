"""Several problems side by side: one row per problem, a page of them at a time."""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np

from superarm.service.console import numbers, svg
from superarm.service.console.feedback import FEW, find_faults
from superarm.service.console.markup import Html, tag
from superarm.service.console.view import pages, scrollable, section
from superarm.service.domain.history import mean_interval
from superarm.service.domain.problem import ProblemState

PROBLEMS_PER_PAGE = 25


class ShownProblem(NamedTuple):
    """A problem in the table; without a learner if another worker serves it."""

    name: str
    learner: ProblemState | None
    pending: int


def problems(shown: Sequence[ShownProblem], total: int, page: int, public: bool) -> Html:
    """The table: rewards, what is learnt, and what is wrong with the feedback."""
    left = [tag("th", "Problem", scope="col"), tag("th", "Reward over time", scope="col")]
    heads = [tag("th", word, scope="col", class_="num") for word in ("Reward now", "Decisions", "Pending", "Arms")]
    right = [tag("th", word, scope="col") for word in ("Learning?", "Feedback")]
    rows = [_row(one, public) for one in shown]
    table = tag("table", tag("thead", tag("tr", left, heads, right)), tag("tbody", rows), class_="stacked")
    scroll = scrollable("Problems", table)
    last = max(0, (total - 1) // PROBLEMS_PER_PAGE)
    return section(
        "problems",
        f"Problems ({total:,})",
        scroll,
        pages("Pages of problems", page, last, lambda n: f"problems?{urlencode({'page': n})}"),
        note="Curves are rewards per decision of the policy, each on a scale of its own that begins at 0.",
    )


def _row(one: ShownProblem, public: bool) -> Html:
    link = tag("th", tag("a", one.name, href=f"./?{urlencode({'problem': one.name})}"), scope="row")
    learner = one.learner
    if learner is None:
        return tag("tr", link, tag("td", "Another worker serves this problem.", colspan=7, class_="quiet"))
    needed = numbers.weighty_items(learner)
    stretches, _ = svg.merge_stretches(learner.history.stretches, needed)
    curve = [mean_interval(stretch.policy, needed) for stretch in stretches]
    now = mean_interval(numbers.recent(learner.history), needed)
    learning = numbers.judge_learning(learner.history, needed)
    reward = "–" if now is None else f"{now.value:.3g}" + (f" ± {now.reach:.2g}" if np.isfinite(now.reach) else "")
    return tag(
        "tr",
        link,
        tag("td", svg.spark([None if mean is None else mean.value for mean in curve]), data_label="Reward over time"),
        tag("td", reward, class_="num", data_label="Reward now"),
        tag("td", f"{learner.decisions:,}", class_="num", data_label="Decisions"),
        tag("td", f"{one.pending:,}", class_="num", data_label="Pending"),
        tag("td", f"{learner.problem.n_arms:,}", class_="num", data_label="Arms"),
        tag("td", learning.word, class_=learning.kind, data_label="Learning?"),
        _feedback(learner, one.pending, public),
    )


def _feedback(learner: ProblemState, pending: int, public: bool) -> Html:
    """The worst of what is wrong with the feedback, in a cell of the table."""
    faults = [] if public else find_faults(learner, pending)
    if faults:
        worst = next((fault for fault in faults if fault.harms), faults[0])
        return tag("td", worst.seen, class_="words bad" if worst.harms else "words", data_label="Feedback")
    finished = learner.history.complete + learner.history.expired
    return tag("td", "–" if public else "good" if finished >= FEW else "too early", data_label="Feedback")
