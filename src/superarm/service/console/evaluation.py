"""Policies evaluated on the service's own log: the present one, the baseline, uniform slates, and candidates."""

from collections import Counter
from typing import Any, NamedTuple

from superarm import catalog
from superarm.context import Segments
from superarm.errors import InvalidArgument, SuperarmError
from superarm.offline import PolicyValue, Recommendation
from superarm.offline.candidates import parse_candidate
from superarm.offline.estimators.next_slates import PolicyTarget
from superarm.offline.log import Log
from superarm.service.domain.components import POLICIES
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.spec import PolicySpec, to_policy
from superarm.service.storage.base import Position, Store
from superarm.service.storage.recent import log_of, recent_decisions

MAX_SHIPPED_SEGMENTS = 12
"""For so many segments at most, the slate to ship is shown for each of them."""


class Wanted(NamedTuple):
    """Whose problem is evaluated, and the candidates: policies with settings, as text."""

    tenant: str
    name: str
    candidates: tuple[str, ...]


class Evaluation(NamedTuple):
    """The values by name, or why one could not be computed; the slates to ship, by segment."""

    n_rounds: int
    values: dict[str, PolicyValue | str]
    best: dict[str, Recommendation]


def evaluate(store: Store, position: Position, learner: ProblemState, wanted: Wanted) -> Evaluation | str:
    """Evaluate all targets on the newest decisions, in a thread; a sentence if that is impossible."""
    context = learner.problem.context
    if context is not None and not isinstance(context.model, Segments):
        return (
            f"The problem learns a {type(context.model).__name__} of features, so that a slate is worth something else "
            "in every context. This page evaluates problems without contexts and problems with segments. To compare "
            "policies here, set a control share; or export the log, give its rows a column group, and use "
            "superarm.offline."
        )
    n_values = learner.k * learner.problem.n_items
    try:
        records = recent_decisions(store, position, wanted.tenant, wanted.name, n_values, learner.born)
        log = log_of(records, wanted.tenant, wanted.name, learner)
    except SuperarmError as error:
        return f"Nothing to evaluate yet: {error}"
    kept = [arm for arm, gone in zip(learner.arms.all, learner.retired, strict=True) if not gone]
    values = {name: _value(log, one, kept) for name, one in _targets(learner, records, wanted).items()}
    return Evaluation(log.n_rounds, values, _ship(log, kept))


def _targets(learner: ProblemState, records: dict[str, DecisionRecord], wanted: Wanted) -> dict[str, Any]:
    """What is evaluated, by name; a candidate that is still to be read is given as text."""
    settings = learner.settings
    targets: dict[str, Any] = {
        "shown so far": "logged",
        "this policy, next": PolicyTarget(to_policy(settings.policy), settings.explore),
    }
    baseline = settings.control_slate if isinstance(settings.control_slate, list) else _frequent(learner, records)
    if baseline is not None:
        targets["baseline"] = baseline
    targets["uniform slates"] = PolicyTarget(catalog.uniform())
    targets["best by the means"] = PolicyTarget(catalog.follow_the_leader())
    return targets | {text: _read(text) for text in wanted.candidates}


def _read(text: str) -> PolicyTarget | str:
    """A candidate: a policy of the service with its settings, or why there is none."""
    try:
        found = parse_candidate(text)
        if found.name not in POLICIES:
            return f"There is no policy {found.name!r}; choose one from the list."
        parameters, memory, explore = found.split()
        return PolicyTarget(to_policy(PolicySpec(found.name, parameters, **memory)), explore)
    except InvalidArgument as error:
        return f"Not understood: {error.wrong}; {error.remedy}."


def _frequent(learner: ProblemState, records: dict[str, DecisionRecord]) -> list[str] | None:
    """The slate that was shown most often in place of the policy's."""
    shown = Counter(record.action for record in records.values() if record.asked.policy_action is not None)
    return [learner.arms.all[j] for j in shown.most_common(1)[0][0]] if shown else None


def _value(log: Log, target: Any, eligible: list[str]) -> PolicyValue | str:
    if isinstance(target, str) and target != "logged":
        return target
    try:
        return log.value(target._replace(eligible=eligible) if isinstance(target, PolicyTarget) else target)
    except SuperarmError as error:
        return str(error)


def _ship(log: Log, eligible: list[str]) -> dict[str, Recommendation]:
    """The slate to ship of each segment; of the whole log under the name "" if there are none."""
    found: dict[str, Recommendation] = {}
    if log.n_groups <= MAX_SHIPPED_SEGMENTS:
        for name in log.group_names:
            try:
                found[name if log.problem.context is not None else ""] = log.of_group(name).best(eligible=eligible)
            except SuperarmError:
                continue
    return found
