"""Turn the state into replies: problems, decisions, arms, lift, why a slate was chosen; and the log into the audit."""

import math
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, Struct

from superarm.agent.decisions import Decision, MadeDecision
from superarm.agent.explanations import Explanation, explain_decision
from superarm.core.arrays import Floats
from superarm.core.tally import Tally
from superarm.core.totals import TotalTally
from superarm.decisions import to_flat, unasked
from superarm.service import replies
from superarm.service.domain import events
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.events import Armed, Changed, Compacted, Created, ErasureRequested, Itemed, Learnt, Warmed
from superarm.service.domain.lift import LiftSums, measure_lift
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.spec import advise
from superarm.service.domain.warnings import list_warnings, say_lift, say_missing, say_need, warn_of_gap
from superarm.service.errors import invalid
from superarm.service.runtime.coordinator import THREAD_SIZE, Coordinator
from superarm.service.storage.base import Store


def decision(record: DecisionRecord, learner: ProblemState, created: bool = False) -> replies.DecisionReply:
    """The reply that shows a decision, with the names of its arms."""
    asked, names, contexts = record.asked, learner.arms.all, learner.contexts
    same: Any = {name: getattr(asked, name) for name in _SAME}
    shown: Any = {"arms": [names[j] for j in record.action], "action": record.action, "state": record.state}
    if asked.policy_action is not None:
        shown["policy_arms"] = [names[j] for j in asked.policy_action]
    if asked.slots:
        shown["slots"] = asked.slots
    if asked.items is not None:
        shown["items"] = [learner.items.all[i] for i in asked.items]
    if record.scores:
        shown["scores"] = {names[j]: score for j, score in record.scores}
    if asked.context is not None and contexts is not None:
        shown |= {"context": asked.context.given, "segment": contexts.segment(asked)}
    return replies.DecisionReply(**same, **shown, created=created)


_SAME = ("id", "problem", "t", "version", "propensities", "inclusion", "group", "fallback")
"""What a reply tells of a decision as the log has it."""


def problem(name: str, learner: ProblemState, pending: int) -> replies.ProblemReply:
    """The reply that shows the current state of a problem."""
    settings, own = learner.settings, learner.problem
    advice = advise(own, settings.policy, learner.learnt is not None)
    sizes: Any = {"n_arms": own.n_arms, "n_items": own.n_items, "k": own.k, "decisions": learner.decisions}
    parts: Any = {"items": list(learner.items.all), "weights": own.weights.tolist(), "settings": settings}
    parts |= {"warnings": list_warnings(learner), "t": learner.learner.asked, "pending": pending}
    reason = advice.reason if settings.policy.name == advice.name else UNSET
    parts["scores"] = learner.created.spec.scores or UNSET
    parts |= {"actions": UNSET if learner.actions is None else learner.actions}
    return replies.ProblemReply(name=name, version=len(learner.versions), reason=reason, **sizes, **parts)


def items(learner: ProblemState) -> replies.ItemsReply:
    """The reply that shows the items of a problem, and whether groups of visitors should be served by items."""
    learner.flush()
    earned = learner.history.earned(learner.weighty_items)
    realised = None if earned is None else earned.realised.value
    claimed = None if earned is None or earned.gap is None else earned.realised.value - earned.gap.value
    names, said, learnt = list(learner.items.all), say_need(learner), learner.learnt
    if learnt is None:
        return replies.ItemsReply(False, names, said, learner.decisions, 0, [], [], realised, claimed)
    found = learnt.counts.items
    groups = [
        replies.VisitorClass(float(found.shares[c]), float(found.p[:, c].mean()), found.telling_arms(c))
        for c in np.argsort(-found.shares).tolist()
    ]
    versions = [
        replies.ItemsVersion(one.version, one.at, len(one.shares), one.n, one.z, one.of) for one in learnt.versions
    ]
    counts = len(learnt.counts.told), learnt.counts.due
    return replies.ItemsReply(True, names, said, *counts, groups, versions, realised, claimed)


def lift(learner: ProblemState, delta: float, part: str | None = None) -> replies.LiftReply:
    """The reply that compares the policy with the control share, in total, by one item or in one segment."""
    learner.flush()
    sums, stratum = learner.history.lift, None if part is None else learner.strata.get(part)
    if part is not None and stratum is None:
        raise invalid("item", f"unknown {part[:100]!r}", "name an item of the problem, or a segment of its context")
    told = _compared(learner, sums, delta, stratum)
    told |= {"left_out": sums.left_out, "fallback": learner.guarded, "item": part}
    told["missing"] = say_missing(learner, stratum) if told["difference"] is None else ""
    told["said"] = told["said"] or told["missing"]
    told["earlier"] = [
        replies.EarlierLift(one.since, one.until, one.slate, **_compared(learner, one, delta, stratum))
        for one in reversed(learner.history.earlier)
    ]
    return replies.LiftReply(learner.settings.control, delta, sums.since, earned=_earned(learner, stratum), **told)


def _compared(learner: ProblemState, sums: LiftSums, delta: float, stratum: int | None) -> dict[str, Any]:
    """The fields of a reply that a comparison gives; its sums are of rewards above the problem's floor."""
    floor = learner.problem.floor if stratum is None else 0.0
    found = measure_lift(sums, delta, stratum)
    said = say_lift(found, sums.policy.count(stratum), learner.words)
    told: Any = found._asdict() | {"verdict": found.verdict, "said": said}
    for name in ("policy", "control", "difference", "relative"):
        told[name] = None if told[name] is None else replies.IntervalReply(*told[name])
    for name in ("policy", "control"):
        if (mean := getattr(found, name)) is not None:
            told[name] = replies.IntervalReply(*(floor + end for end in mean))
        told[name] = replies.GroupReply(getattr(sums, name).count(stratum), told[name])
    return told


def _earned(learner: ProblemState, stratum: int | None) -> replies.EarnedReply | None:
    """Realised beside estimated rewards."""
    earned = learner.history.earned(learner.weighty_items, stratum)
    if earned is None:
        return None
    value, warning = earned.realised.value, warn_of_gap(learner, earned) or ""
    if earned.gap is None or not math.isfinite(earned.gap.reach):
        return replies.EarnedReply(value, None, None, None, None, warning)
    gap, reach = earned.gap
    return replies.EarnedReply(value, value - gap, gap, gap - reach, gap + reach, warning)


def arm(learner: ProblemState, counters: tuple[Tally, Floats], arm: int) -> replies.ArmRow:
    """What is known of an arm; ``counters`` are the counts and the pending pulls of all arms, over all contexts."""
    (tally, pending), own, support = counters, learner.items_of(arm), learner.problem.support
    one, whole = np.array([arm]), tally.total.shape
    counts, mean, deviation = (
        to_flat(support, one, support.rows(np.broadcast_to(part, whole), one[None])[0])
        for part in (tally.counts(tally.pulls), tally.mean, tally.deviation)
    )
    seen, scale = counts.astype(int).tolist(), learner.problem.thresholds
    if isinstance(tally, TotalTally):
        mean, deviation = tally.model.mean[:, arm], np.sqrt((tally.model.root[:, arm] ** 2).sum(1))
    return replies.ArmRow(
        learner.arms.all[arm],
        int(tally.pulls[0, arm]),
        int(pending[arm]),
        bool(learner.retired[arm]),
        seen,
        [x if s else None for x, s in zip(mean.tolist(), seen, strict=True)],
        [x * x if s else None for x, s in zip(deviation.tolist(), seen, strict=True)],
        UNSET if own is None else [learner.items.all[i] for i in own],
        UNSET if scale is None else float(scale.decode(mean)) if any(seen) else None,
    )


async def explain(
    coordinator: Coordinator, tenant: str, name: str, id: str, most: int, arms: tuple[int, ...] = ()
) -> Explanation:
    """Why the slate of a decision was chosen, with the ``most`` largest effects of features; computed in a thread.

    With ``arms``, what is known of these in its place.
    """
    record = await coordinator.record(tenant, name, id)
    return await coordinator.read(tenant, name, lambda state: explain_record(state, record, most, arms), THREAD_SIZE)


def explain_record(state: ProblemState, record: DecisionRecord, most: int, arms: tuple[int, ...] = ()) -> Explanation:
    """Explain a decision by what is known now; one that is pending is explained as if it was not made yet."""
    asked = record.asked
    context = None if state.contexts is None else state.contexts.restore(asked)
    words = None if state.contexts is None else state.contexts.words(asked)
    arms = arms or record.action or asked.action
    names = tuple(state.arms.all[j] for j in arms)
    decision = Decision(asked.id, asked.t, np.array(arms, np.int64), names)
    made = MadeDecision(decision, arms, asked.n_items, 0, context=context, words=words)
    gone = unasked(record)
    state.follow(record, gone)
    try:
        return explain_decision(state.chooser, made, most, state.key("mind", asked.id))
    finally:
        state.follow(gone, record)


def explanation(problem: str, found: Explanation) -> replies.ExplanationReply:
    """The reply that explains a decision."""
    arms = []
    for arm in found.arms:
        effects = [replies.FeatureEffect(name, effect) for name, effect in arm.features]
        estimates = arm.estimate.tolist(), arm.optimistic.tolist()
        arms.append(replies.ExplainedArmReply(arm.name, *estimates, arm.gain, arm.estimated_gain, effects))
    worth = UNSET if found.worth is None else replies.WorthReply(*found.worth)
    return replies.ExplanationReply(found.decision.id, problem, arms, worth)


MAX_NAMES = 100
"""Of a change with more names, only so many are shown."""


class AuditEntry(Struct, frozen=True):
    """One change.

    Parameters
    ----------
    at
        When, in milliseconds since 1970.
    what
        What was changed.
    problem
        Of which problem; null for keys.
    by
        The id of the key that did it.
    details
        What it changed.
    """

    at: int
    what: str
    problem: str | None
    by: str
    details: dict[str, Any]


class AuditReply(Struct, frozen=True):
    """A page of changes, newest first.

    Parameters
    ----------
    entries
        The changes.
    total
        How many there are.
    """

    entries: list[AuditEntry]
    total: int


def read_audit(store: Store, tenant: str, problem: str | None) -> list[AuditEntry]:
    """All changes of a tenant, newest first; with ``problem``, only those of this problem."""
    found = [*(_key_changes(store, tenant) if problem is None else ()), *_changes(store, tenant, problem)]
    found.reverse()
    found.sort(key=lambda entry: entry.at, reverse=True)  # of one millisecond, the later one stays first
    return found


_UNSAID = (events.Fitted, events.Framed)
"""What the service estimates anew by itself, again and again."""


def _changes(store: Store, tenant: str, problem: str | None) -> Iterator[AuditEntry]:
    whole = (read.entry for read in store.tail({}, problems=True))
    named = () if problem is None or "\0" in problem else store.stream(tenant, "problem", problem)
    for entry in whole if problem is None else named:
        if isinstance(entry.event, (events.Fitted, events.Framed)) or entry.event == Compacted(entry.event.at, 0):
            continue  # of an estimate, not a change; or it only ends a log
        if entry.tenant == tenant:
            what, details = _describe(entry.event)
            yield AuditEntry(entry.event.at, what, entry.stream, getattr(entry.event, "by", ""), details)


def _describe(event: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(event, Created):
        settings = msgspec.to_builtins(event.spec.settings)
        return "created", {"n_arms": len(event.spec.arms), "n_items": len(event.spec.item_names), "settings": settings}
    if isinstance(event, Changed):
        return "settings", {"version": event.version, "settings": msgspec.to_builtins(event.settings)}
    if isinstance(event, (Armed, Itemed)):
        numbers = {"n_added": len(event.add), "n_retired": len(event.retire)}
        shown = {"added": event.add[:MAX_NAMES], "retired_numbers": event.retire[:MAX_NAMES]}
        if isinstance(event, Armed) and event.actions is not None:
            shown["actions"] = str(event.actions.__struct_config__.tag)
        if isinstance(event, Armed) and event.restore:
            numbers["n_restored"], shown["restored_numbers"] = len(event.restore), event.restore[:MAX_NAMES]
        return ("arms" if isinstance(event, Armed) else "items"), numbers | shown
    details: dict[str, Any] = {}
    if isinstance(event, Learnt):
        details = {"version": event.version, "classes": len(event.shares), "of": event.of}
    if isinstance(event, (Compacted, ErasureRequested)):
        details = {"decisions": event.n}
    if isinstance(event, events.Guarded):
        details = {"fallback": event.fallback}
    if isinstance(event, Warmed):
        return "outcomes", {"id": event.id, "n_rows": len(event.arms)}
    if isinstance(event, events.Summed):
        details = {"id": event.id, "n_rows": len(event.rows), "n_patterns": len(event.patterns)}
    if isinstance(event, events.Published):
        details = {"version": event.table.version}
    return str(event.__struct_config__.tag), details  # "deleted", for instance


def _key_changes(store: Store, tenant: str) -> Iterator[AuditEntry]:
    for row in store.key_rows():
        if row.tenant == tenant:
            details = {"key": row.id, "scopes": row.scopes.split(","), "note": row.note}
            yield AuditEntry(row.created, "key created", None, "", details)
            if row.revoked is not None:
                yield AuditEntry(row.revoked, "key revoked", None, "", {"key": row.id})
