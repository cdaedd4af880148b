"""Policies evaluated on the service's own log: the present one, the baseline, uniform slates, and candidates.

The next slates of a policy are chosen from everything that was learnt, as the service chooses them. What they are worth
is estimated from the newest decisions.
"""

import copy
from typing import Any, NamedTuple

import numpy as np

from superarm import catalog
from superarm.context import Segments
from superarm.core.arrays import Bools
from superarm.core.errors import InvalidArgument, SuperarmError
from superarm.core.support import Sparse
from superarm.learner import Learner
from superarm.offline import PolicyValue, Recommendation
from superarm.offline.candidates import parse_candidate
from superarm.offline.estimators.entries import entry_means
from superarm.offline.estimators.mixture import SlateMixture, logged_slates, mix_slates
from superarm.offline.estimators.next_slates import PolicyTarget
from superarm.offline.log import Log
from superarm.policies import forgets
from superarm.service.domain.components import POLICIES
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.spec import PolicySpec, to_policy
from superarm.service.storage.base import Position, Store
from superarm.service.storage.recent import log_of, recent_decisions

MAX_SHIPPED_SEGMENTS = 12
"""For so many segments at most, the slate to ship is shown for each of them."""
MAX_NAMED_ARMS = 5
"""So many arms at most are named in a sentence."""


class Wanted(NamedTuple):
    """Whose problem is evaluated, and the candidates: policies with settings, as text."""

    tenant: str
    name: str
    candidates: tuple[str, ...]


class Evaluation(NamedTuple):
    """The values by name, or why one could not be computed; the slates to ship, by segment.

    ``n_known`` arms of ``n_arms`` were seen with all their items, in every segment.
    """

    n_rounds: int
    n_known: int
    n_arms: int
    values: dict[str, PolicyValue | str]
    best: dict[str, Recommendation]


def copy_learner(learner: ProblemState) -> Learner:
    """What the problem has learnt so far, while nobody changes it."""
    learner.flush()
    return copy.deepcopy(learner.learner)


def evaluate(
    store: Store, position: Position, learner: ProblemState, live: Learner, wanted: Wanted
) -> Evaluation | str:
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
    known = _known_arms(log)
    targets = _targets(log, learner, live, records, wanted, known)
    values = {name: _value(log, one, known) for name, one in targets.items()}
    n_known = int((known.all(axis=0) & ~live.retired).sum())
    kept = [arm for arm, gone in zip(log.arms, live.retired, strict=True) if not gone]
    return Evaluation(log.n_rounds, n_known, len(kept), values, _ship(log, kept))


def _known_arms(log: Log) -> Bools:
    """Which arms were seen with all items that count, in each group, (n_groups, n_arms)."""
    support, seen = log.problem.support, entry_means(log).seen > 0.0
    if not isinstance(support, Sparse):
        table = seen.reshape(log.n_groups, log.problem.n_arms, log.problem.n_items)
        return np.asarray((table | (log.problem.weights == 0.0)).all(axis=2))
    missing = np.zeros((log.n_groups, log.problem.n_arms))
    arm = np.repeat(np.arange(log.problem.n_arms), np.diff(support.start))
    for g in range(log.n_groups):
        np.add.at(missing[g], arm, ~seen[g] & (log.problem.weights[support.items] > 0.0))
    return np.asarray(missing == 0.0)


def _targets(
    log: Log,
    learner: ProblemState,
    live: Learner,
    records: dict[str, DecisionRecord],
    wanted: Wanted,
    known: Bools,
) -> dict[str, Any]:
    """What is evaluated, by name; in place of what cannot be, a sentence."""
    settings = learner.settings
    seen = {name: np.flatnonzero(row).tolist() for name, row in zip(log.group_names, known, strict=True)}
    following = PolicyTarget(live.policy, settings.explore, learner=live)
    some = any(record.asked.items is not None for record in records.values())
    said = "Requests name the items that they are about, and the next slate depends on them."
    targets: dict[str, Any] = {"shown so far": "logged", "this policy, next": said if some else following}
    if isinstance(settings.control_slate, list):
        targets["control slate"] = settings.control_slate
    else:
        targets |= _baseline(log, learner, records, wanted)
    for name, policy in (("uniform slates", catalog.uniform()), ("best by the means", catalog.follow_the_leader())):
        targets[name] = _changed(live, PolicyTarget(policy, eligible=seen))
    return targets | {text: _changed(live, _read(text)) for text in wanted.candidates}


def _changed(live: Learner, target: PolicyTarget | str) -> PolicyTarget | str:
    """The target with what was learnt so far. A policy that forgets learns from the log, which has the rounds."""
    if isinstance(target, str):
        return target
    if forgets(target.policy):
        return target._replace(eligible=np.flatnonzero(~live.retired).tolist())
    changed = copy.deepcopy(live)
    try:
        changed.change_policy(target.policy)
    except SuperarmError as error:
        return str(error)
    return target._replace(learner=changed)


def _baseline(
    log: Log, learner: ProblemState, records: dict[str, DecisionRecord], wanted: Wanted
) -> dict[str, SlateMixture]:
    """The slates that were shown in place of the policy's, as often as they were, if each segment has some."""
    shown = {id: record for id, record in records.items() if record.asked.policy_action is not None}
    try:
        part = log_of(shown, wanted.tenant, wanted.name, learner)
    except SuperarmError:
        return {}
    if set(part.group_names) != set(log.group_names):
        return {}
    slates, shares, _ = logged_slates(part)
    return {"baseline, as shown": SlateMixture(slates, shares[[part.group_names.index(n) for n in log.group_names]])}


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


def _value(log: Log, target: Any, known: Bools) -> PolicyValue | str:
    """The value of a target, or why there is none: nobody knows what an arm is worth that was not seen."""
    if isinstance(target, str) and target != "logged":
        return target
    try:
        mixture = mix_slates(log, target)
        unknown = _unknown_arms(mixture, known)
        if unknown:
            named = ", ".join(log.arms[j] for j in unknown[:MAX_NAMED_ARMS])
            more = f" and {len(unknown) - MAX_NAMED_ARMS} more" if len(unknown) > MAX_NAMED_ARMS else ""
            return f"Its slates hold arms that these decisions do not tell of: {named}{more}."
        return log.value(target)
    except SuperarmError as error:
        return str(error)


def _unknown_arms(mixture: SlateMixture, known: Bools) -> list[int]:
    """The arms of a mixture that were not seen with all their items in a group where it shows them."""
    if mixture.logged:
        return []
    found: set[int] = set()
    for shares, row in zip(mixture.shares, known, strict=True):
        used = np.unique(mixture.slates[shares > 0.0])
        found |= {int(j) for j in used if j >= 0 and not row[j]}
    return sorted(found)


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
