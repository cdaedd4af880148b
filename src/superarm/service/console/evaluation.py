"""The page that evaluates policies on the service's own log: this one, the baseline, uniform slates, and candidates."""

from collections import Counter
from typing import Any, NamedTuple
from urllib.parse import urlencode

from superarm import catalog
from superarm.errors import SuperarmError
from superarm.offline import PolicyValue, Recommendation
from superarm.offline.log import Log
from superarm.service.console import svg
from superarm.service.console.markup import Html, tag
from superarm.service.console.view import section
from superarm.service.domain.components import POLICIES
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.spec import PolicySpec, to_policy
from superarm.service.storage.base import Position, Store
from superarm.service.storage.recent import log_of, recent_decisions


class Wanted(NamedTuple):
    """Whose problem is evaluated, and the names of policies that are candidates."""

    tenant: str
    name: str
    policies: tuple[str, ...]


class Evaluation(NamedTuple):
    """The values by name, or why one could not be computed; the slate to ship, and warnings about the log."""

    n_rounds: int
    values: dict[str, PolicyValue | str]
    best: Recommendation | None
    warnings: tuple[str, ...]


def evaluate(store: Store, position: Position, learner: ProblemState, wanted: Wanted) -> Evaluation | str:
    """Evaluate all targets on the newest decisions, in a thread; a sentence if that is impossible."""
    if learner.contexts is not None:
        return "This page evaluates problems without contexts: export the log, and give groups to superarm.offline."
    n_values = learner.k * learner.problem.n_items
    try:
        records = recent_decisions(store, position, wanted.tenant, wanted.name, n_values)
        log = log_of(records, wanted.tenant, wanted.name, learner)
    except SuperarmError as error:
        return f"Nothing to evaluate yet: {error}"
    values = {name: _value(log, target) for name, target in _targets(learner, records, wanted).items()}
    kept = [arm for arm, gone in zip(learner.arms.all, learner.retired, strict=True) if not gone]
    try:
        best = log.best(eligible=kept)
    except SuperarmError:
        best = None
    return Evaluation(log.n_rounds, values, best, log.check().warnings)


def _targets(learner: ProblemState, records: dict[str, DecisionRecord], wanted: Wanted) -> dict[str, Any]:
    settings = learner.settings
    targets: dict[str, Any] = {
        "shown so far": "logged",
        "this policy, next": to_policy(settings.policy),
    }
    baseline = settings.control_slate if isinstance(settings.control_slate, list) else _frequent(learner, records)
    if baseline is not None:
        targets["baseline"] = baseline
    targets["uniform slates"] = catalog.uniform()
    targets["best by the means"] = catalog.follow_the_leader()
    return targets | {name: to_policy(PolicySpec(name)) for name in wanted.policies if name in POLICIES}


def _frequent(learner: ProblemState, records: dict[str, DecisionRecord]) -> list[str] | None:
    """The slate that was shown most often in place of the policy's."""
    shown = Counter(record.action for record in records.values() if record.asked.policy_action is not None)
    return [learner.arms.all[j] for j in shown.most_common(1)[0][0]] if shown else None


def _value(log: Log, target: Any) -> PolicyValue | str:
    try:
        return log.value(target)
    except SuperarmError as error:
        return str(error)


def sections(learner: ProblemState, wanted: Wanted, found: Evaluation | str) -> list[Html]:
    """The sections of the page."""
    form = _form(wanted)
    if isinstance(found, str):
        return [section("evaluation", "Evaluation", form, tag("p", found, class_="empty"))]
    note = (
        f"From the newest {found.n_rounds:,} decisions of the log. A policy stands for the slates that it would show "
        "next, having learnt from them. Intervals marked “at all times” hold for all slates at once, however often you "
        "look; the others are for one look."
    )
    parts = [section("evaluation", "What slates and policies are worth", form, _table(found), note=note)]
    if found.best is not None:
        parts.append(section("ship", "The slate to ship", tag("pre", repr(found.best))))
    warnings = dict.fromkeys(found.warnings)
    for one in found.values.values():
        warnings |= dict.fromkeys(() if isinstance(one, str) else one.warnings)
    if warnings:
        parts.append(section("cautions", "What may be wrong", tag("ul", [tag("li", text) for text in warnings])))
    return parts


def _form(wanted: Wanted) -> Html:
    options = [tag("option", name, value=name, selected=name in wanted.policies) for name in POLICIES]
    return tag(
        "form",
        tag("input", type="hidden", name="problem", value=wanted.name),
        [tag("input", type="hidden", name="policy", value=name) for name in wanted.policies],
        tag("label", "Candidate ", tag("select", options, name="policy", id="policy")),
        tag("button", "Add"),
        tag("a", "Back to the problem", href=f"./?{urlencode({'problem': wanted.name})}"),
        method="get",
        action="evaluation",
        class_="row",
    )


def _table(found: Evaluation) -> Html:
    most = max((one.high for one in found.values.values() if not isinstance(one, str)), default=1.0)
    names = ("", "Value", "Interval", "Minus shown so far", "Verdict", "How sure")
    heads = [tag("th", name, scope="col") for name in names]
    rows = [_row(name, one, most) for name, one in found.values.items()]
    return tag("div", tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows)), class_="wide")


def _row(name: str, one: PolicyValue | str, most: float) -> Html:
    if isinstance(one, str):
        return tag("tr", tag("th", name, scope="row"), tag("td", one, colspan=5))
    kind = {"better": "good", "worse": "bad"}.get(one.verdict, "")
    d = one.difference
    sure = "95 %, at all times" if one.time_uniform else "95 %, for one look"
    slate = None if one.slate is None else tag("span", ", ".join(one.slate), class_="note")
    return tag(
        "tr",
        tag("th", name, slate, scope="row"),
        tag("td", f"{one.value:.4g}", class_="num"),
        tag("td", svg.interval(one.low, one.value, one.high, most), f"{one.low:.3g} to {one.high:.3g}"),
        tag("td", f"{d.value:+.3g} ({d.low:+.3g} to {d.high:+.3g})", class_="num"),
        tag("td", one.verdict, class_=kind or None),
        tag("td", sure),
    )
