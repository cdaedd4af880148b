"""Turn the state into replies, and say what is odd about a problem's settings and decisions."""

import math

import numpy as np
from msgspec import UNSET

from superarm.agent.outcomes import to_flat
from superarm.core.arrays import Floats
from superarm.core.tally import Tally
from superarm.offline import Convergence
from superarm.offline.mean_sequences import bound_mean
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.history import measure_lift
from superarm.service.domain.problem import ProblemState
from superarm.service.replies import (
    ArmRow,
    CertificateReply,
    DecisionReply,
    GroupReply,
    IntervalReply,
    LiftReply,
    ProblemReply,
)


def decision(record: DecisionRecord, learner: ProblemState, created: bool = False) -> DecisionReply:
    """The reply that shows a decision, with the names of its arms."""
    asked, names = record.asked, learner.arms.all
    return DecisionReply(
        asked.id,
        asked.problem,
        [names[j] for j in record.action],
        list(record.action),
        asked.t,
        asked.version,
        record.state,
        created,
        None if asked.propensities is None else list(asked.propensities),
        None if asked.policy_action is None else [names[j] for j in asked.policy_action],
        list(asked.slots) or None,
        None if asked.items is None else [learner.items.all[i] for i in asked.items],
        None if asked.inclusion is None else list(asked.inclusion),
        asked.group,
        asked.fallback,
        None if asked.context is None else asked.context.given,
        None if asked.context is None or learner.contexts is None else learner.contexts.segment(asked),
    )


def problem(name: str, learner: ProblemState, pending: int) -> ProblemReply:
    """The reply that shows the current state of a problem."""
    return ProblemReply(
        name,
        learner.problem.n_arms,
        learner.problem.n_items,
        learner.k,
        learner.decisions,
        pending,
        len(learner.versions),
        learner.settings,
        list(learner.items.all),
        learner.problem.weights.tolist(),
        list_warnings(learner),
        learner.asked,
    )


def lift(learner: ProblemState, delta: float) -> LiftReply:
    """The reply that compares the policy with the control share."""
    learner.history.flush(learner.problem)
    sums = learner.history.lift
    found = measure_lift(sums, delta)
    policy, control = (
        GroupReply(one.n, IntervalReply(*bound_mean(one, sums.scale, 0.5 * delta)) if one.n else None)
        for one in (sums.policy, sums.control)
    )
    return LiftReply(
        learner.settings.control,
        delta,
        sums.since,
        policy,
        control,
        None if found is None else IntervalReply(*found.difference),
        None if found is None or found.relative is None else IntervalReply(*found.relative),
        "open" if found is None else found.verdict,
        sums.left_out,
        learner.guarded,
    )


def certificate(learner: ProblemState, found: Convergence | str) -> CertificateReply:
    """The reply on whether the best slate is known."""
    if isinstance(found, str):
        return CertificateReply([], False, None, None, None, None, None, found)
    more, reason = needed_decisions(learner, found)
    return CertificateReply(
        [learner.arms.all[j] for j in found.slate],
        found.certified,
        IntervalReply(found.value, found.low, found.high),
        found.shortfall if math.isfinite(found.shortfall) else None,
        found.epsilon,
        found.delta,
        more,
        reason,
    )


def needed_decisions(learner: ProblemState, found: Convergence) -> tuple[int | None, str]:
    """How many more decisions are expected to be needed for the certificate; None, and why, if that is not known."""
    if found.certified:
        return 0, ""
    if math.isinf(found.growth):
        return None, "more observations in the present proportions would not do: another slate is as good, or nearly"
    return math.ceil((found.growth - 1.0) * max(learner.asked, learner.learner.rounds, 1)), ""


def arm(learner: ProblemState, counters: tuple[Tally, Floats], arm: int) -> ArmRow:
    """What is known of an arm; ``counters`` are the counts and the pending pulls of all arms, over all contexts."""
    (tally, pending), own, support = counters, learner.items_of(arm), learner.problem.support
    one, whole = np.array([arm]), tally.total.shape
    counts, mean, deviation = (
        to_flat(support, one, support.rows(np.broadcast_to(part, whole), one[None])[0])
        for part in (tally.counts(tally.pulls), tally.mean, tally.deviation)
    )
    seen = counts.astype(int).tolist()
    return ArmRow(
        learner.arms.all[arm],
        int(tally.pulls[0, arm]),
        int(pending[arm]),
        bool(learner.retired[arm]),
        seen,
        [x if s else None for x, s in zip(mean.tolist(), seen, strict=True)],
        [x * x if s else None for x, s in zip(deviation.tolist(), seen, strict=True)],
        UNSET if own is None else [learner.items.all[i] for i in own],
    )


MANY_DECISIONS = 20
LARGE_SHARE = 0.2


def list_warnings(learner: ProblemState) -> list[str]:
    """What the owner of a problem should look at, a sentence each; nothing is refused because of it."""
    return _from_settings(learner) + _from_decisions(learner)


def _from_settings(learner: ProblemState) -> list[str]:
    settings, found = learner.settings, []
    if settings.at_window_end != "ignore" and settings.window_s is None:
        found.append("at_window_end has no effect: window_s is null, so no window ends")
    if settings.late == "learn" and settings.window_s is None:
        found.append("late has no effect: window_s is null, so no feedback is late")
    if settings.explore > 0.0 and settings.mode != "online":
        found.append(f"explore has no effect: mode {settings.mode} answers with the baseline")
    if settings.control > 0.0 and settings.mode != "online":
        found.append(f"control has no effect: mode {settings.mode} answers with the baseline")
    if isinstance(settings.control_slate, list):
        gone = [arm for arm in settings.control_slate if learner.retired[learner.arms.numbers([arm])[0]]]
        if gone and settings.control > 0.0:
            found.append(f"control has no effect: {gone[0]!r} of control_slate is retired")
    if settings.at_window_end != "ignore" and settings.window_s is not None and learner.problem.n_items > 1:
        found.append(
            f"at_window_end counts every entry that is not told within the window as {settings.at_window_end:g}: "
            "if feedback tells of some items only, name them in `items` of the decision, or set at_window_end to ignore"
        )
    return found


def _from_decisions(learner: ProblemState) -> list[str]:
    history, found = learner.history, []
    finished = history.complete + history.expired
    if finished < MANY_DECISIONS:
        return []
    if history.filled_in_part > LARGE_SHARE * finished:
        found.append(
            f"of {finished} finished decisions, {history.filled_in_part} were told in part and filled with "
            "at_window_end: estimates are biased towards it unless what was not told is really that value; "
            "name the `items` of a decision, or set at_window_end to ignore"
        )
    if history.unvalued > LARGE_SHARE * finished and history.filled_in_part == 0:
        found.append(
            f"of {finished} finished decisions, {history.unvalued} ended with entries of which nothing is known, so "
            "that their rewards are unknown; name the `items` that a decision is about, if these are what is told"
        )
    return found
