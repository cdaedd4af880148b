"""Slates: the last one that was chosen, one put together by hand, and one that was given."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from superarm.agent.explanations import ExplainedArm, Explanation
from superarm.service.console import svg
from superarm.service.console.markup import Html, join, tag
from superarm.service.console.numbers import digits
from superarm.service.console.times import duration
from superarm.service.console.view import View, hidden_inputs, scrollable, section
from superarm.service.domain.decision import DEFAULTED, PENDING, DecisionRecord, blank_row
from superarm.service.domain.events import UNSEEN
from superarm.service.domain.intervals import time_uniform, value_in_order
from superarm.service.domain.problem import ProblemState

MAX_ITEMS_SHOWN = 40
EXPLAINED = "Why these arms"

FEATURES_SHOWN = 3
"""How many features are named for each arm."""


class FoundDecision(NamedTuple):
    """A decision, and why it was chosen, or a sentence on why that is not known."""

    record: DecisionRecord
    explanation: Explanation | str


def slate(learner: ProblemState) -> Html:
    """The slate of the newest decision. The policy is not asked for another: its memory belongs to its decisions."""
    title, last = "The last slate it chose", learner.history.last
    if last is None:
        return section("slate", title, tag("p", "No decision yet.", class_="empty"))
    return section(
        "slate",
        title,
        _worth(learner, list(last.action)),
        note=f"The policy's choice for round {last.t}: what each arm adds to those above it, at the estimates of now. "
        "Arms that were observed rarely may be in the slate for what they could be worth.",
    )


def _worth(learner: ProblemState, arms: list[int]) -> Html:
    gains, total = value_in_order(
        learner.problem, time_uniform(learner.overall()[0], learner.problem.support, np.array(arms, np.int64))
    )
    names = [learner.arms.all[j] for j in arms]
    low, value, high = (float(part[0]) for part in total)
    words = tag(
        "p", "Worth ", tag("strong", digits(value)), f", between {digits(low)} and {digits(high)} (95 %, at all times)."
    )
    return join(svg.waterfall(names, [float(g) for g in gains], value), words)


def what_if(view: View, learner: ProblemState) -> Html:
    chips = [
        tag(
            "li",
            name,
            " ",
            tag(
                "a",
                "×",
                href=view.address(tried=tuple(x for x in view.tried if x != name), to="#what-if"),
                aria_label=f"leave out {name}",
            ),
        )
        for name in view.tried
    ]
    arms = [learner.arms.number(name) for name in view.tried]
    unknown = [name for name, arm in zip(view.tried, arms, strict=True) if arm is None]
    form = tag(
        "form",
        hidden_inputs(view),
        tag("label", "Add an arm ", tag("input", name="try", id="try", autocomplete="off")),
        tag("button", "Add"),
        method="get",
        action="./#what-if",
        class_="row",
    )
    known = [arm for arm in arms if arm is not None]
    k = learner.k
    return section(
        "what-if",
        "What if",
        form,
        tag("ul", chips, class_="chips")
        if chips
        else tag("p", "Put a slate together, from here or from the table.", class_="empty"),
        tag("p", f"No arm is called {unknown[0]!r}.", class_="bad") if unknown else None,
        tag("p", f"A slate has at most {k} arms.", class_="bad") if len(known) > k else None,
        _worth(learner, known) if known else None,
    )


def inspector(view: View, learner: ProblemState, found: Any) -> Html:
    form = tag(
        "form",
        hidden_inputs(view, "decision"),
        tag(
            "label", "Decision ", tag("input", name="decision", value=view.decision, id="decision", autocomplete="off")
        ),
        tag("button", "Look"),
        method="get",
        action="./#inspector",
        class_="row",
    )
    body = (
        _decision(found.record, learner)
        if isinstance(found, FoundDecision)
        else tag("p", found, class_="bad")
        if found
        else None
    )
    looked_up = section("inspector", "Look at a decision", form, body)
    return join(looked_up, explained(found.explanation)) if isinstance(found, FoundDecision) else looked_up


def _decision(record: DecisionRecord, learner: ProblemState) -> Html:
    asked, names = record.asked, learner.arms.all
    facts = [("state", record.state), ("round", asked.t), ("settings", f"version {asked.version}")]
    if asked.window_ms is not None:
        facts.append(("window", duration(asked.window_ms / 1000)))
    if asked.items is not None:
        facts.append(("about", ", ".join(learner.items.all[i] for i in asked.items)))
    if asked.policy_action is not None:
        facts.append(("the policy would have given", ", ".join(names[j] for j in asked.policy_action)))
    if asked.context is not None and asked.context.given is not None:
        facts.append(("context", _context(asked.context.given)))
    if record.late:
        facts.append(("late", f"{len(record.late)} entries came after the window"))
    chances = asked.propensities if record.action == asked.action else None
    items = learner.items.all[: min(asked.n_items, MAX_ITEMS_SHOWN)]
    heads = [tag("th", "Arm", scope="col"), tag("th", "Chance", scope="col", class_="num")]
    heads += [tag("th", item, scope="col", class_="num") for item in items]
    rows = []
    for place, (arm, row) in enumerate(zip(record.action, record.rows, strict=True)):
        own = learner.items_of(arm)
        values = _by_item(learner, arm, row or blank_row(record, asked.n_items if own is None else len(own)))
        rows.append(
            tag(
                "tr",
                tag("th", names[arm], scope="row"),
                tag("td", f"{chances[place]:.3g}" if chances else "–", class_="num"),
                [
                    tag("td", "" if values[i] is None else _entry(values[i], record), class_="num")
                    for i in range(len(items))
                ],
            )
        )
    return join(
        tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts"),
        scrollable("Decision", tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows))),
    )


def _context(given: Any) -> str:
    if not isinstance(given, dict):
        return ", ".join(f"{value:g}" for value in given)
    return ", ".join(f"{name} {_value(value)}" for name, value in given.items())


def _value(value: Any) -> str:
    """The value of a feature: words, also with weights, are listed."""
    if isinstance(value, dict):
        return ", ".join(word if weight == 1 else f"{word} ({weight:g})" for word, weight in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)


def _by_item(learner: ProblemState, arm: int, row: Sequence[float]) -> list[float | None]:
    """The values of an arm's own items as values of all items, None for the others."""
    own = learner.items_of(arm)
    if own is None:
        return list(row)
    values: list[float | None] = [None] * learner.problem.n_items
    for item, value in zip(own, row, strict=True):
        values[item] = value
    return values


def _entry(value: float | None, record: DecisionRecord) -> str:
    if value is None:  # an item that the arm cannot touch
        return ""
    if value == DEFAULTED:
        return "–" if record.fill is None else f"{record.fill:g} (window)"
    return {PENDING: "pending", UNSEEN: "not seen"}.get(value, f"{value:g}")


def explained(found: Explanation | str) -> Html:
    """The arms of a slate in the order of picking: what they added, and the features that mattered most."""
    if isinstance(found, str):
        return section("explanation", EXPLAINED, tag("p", found, class_="empty"))
    heads = [
        tag("th", "Arm", scope="col"),
        *(tag("th", word, scope="col", class_="num") for word in ("Mean", "Optimistic", "Added", "Added at the means")),
        tag("th", "Features", scope="col"),
    ]
    rows = [_explained_arm(arm) for arm in found.arms]
    note = (
        "By what is known now: means over items of the estimates and of the parameters that the policy "
        "hoped for, what each arm added to those above it, and the features that changed its estimate most."
    )
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows))
    return section("explanation", EXPLAINED, scrollable("Explanation", table), note=note)


def _explained_arm(arm: ExplainedArm) -> Html:
    mean, optimistic = (float(values.mean()) if values.size else 0.0 for values in (arm.estimate, arm.optimistic))
    numbers = (mean, optimistic, arm.gain, arm.estimated_gain)
    effects = ", ".join(f"{name} {effect:+.3g}" for name, effect in arm.features)
    cells = [tag("td", f"{number:.4g}", class_="num") for number in numbers]
    return tag("tr", tag("th", arm.name, scope="row"), *cells, tag("td", effects or "–", class_="text"))
