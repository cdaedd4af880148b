"""Settings of a problem that contradict one another, or what its decisions look like."""

import math
from datetime import UTC, datetime

import numpy as np

from superarm.output.table import format_number
from superarm.rewards import Coverage
from superarm.service.domain.history import Earned
from superarm.service.domain.lift import Lift
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import fixed_slate
from superarm.service.domain.spec import Words

MANY_DECISIONS = 20
LARGE_SHARE = 0.2
CAPPED = 0.03
"""From such a share of amounts at the limit on, of all that was told, too much of them may be above it."""

MOVED, FEW_ARMS = 0.25, 3
"""From such a share, and so many, of the first arms of a list on, two slates full, it is not today's."""

MANY_SCORES, BEYOND = 100, 0.01
"""From so many scores on, so large a share of them beyond the scale is too much."""


def list_warnings(learner: ProblemState) -> list[str]:
    """What the owner of a problem should look at, a sentence each; nothing is refused because of it."""
    found = _from_settings(learner) + _from_decisions(learner) + _from_outcomes(learner)
    found += _from_scores(learner) + _from_behaviour(learner) + _from_list(learner)
    said = learner.learner.policy.warning(learner.learner.memory)
    return found + learner.published.warn() + [said] * bool(said)


def _from_settings(learner: ProblemState) -> list[str]:
    settings, found = learner.settings, []
    if settings.at_window_end != "ignore" and settings.window_s is None and settings.silence is None:
        found.append("at_window_end has no effect: window_s is null, so no window ends")
    if settings.late == "learn" and settings.window_s is None:
        found.append("late has no effect: window_s is null, so no feedback is late")
    for share in ("explore", "control"):
        if getattr(settings, share) > 0.0 and settings.mode != "online":
            found.append(f"{share} has no effect: mode {settings.mode} answers with the baseline")
    fixed = settings.control_slate if settings.control > 0.0 else ""
    if isinstance(fixed, list) and (missing := len(fixed) - len(fixed_slate(learner, fixed, ~learner.retired))):
        found.append(f"control has no effect: {missing} of control_slate is retired; name others as policy.baseline")
    return found


def _from_decisions(learner: ProblemState) -> list[str]:
    history, words, found = learner.history, learner.words, []
    finished = history.complete + history.expired
    if finished < MANY_DECISIONS:
        return []
    decisions, items = words.many("decision"), words.many("item")
    if history.filled_in_part > LARGE_SHARE * finished:
        found.append(
            f"of {finished} finished {decisions}, {history.filled_in_part} were told of some {items} only, and the "
            "others counted as at_window_end when the window ended: estimates are biased towards it; name the `items` "
            f"that each {words.one('decision')} is about"
        )
    if history.unvalued > LARGE_SHARE * finished and history.filled_in_part == 0:
        remedy = f"name the `items` that each {words.one('decision')} is about, if these are what is told"
        if learner.problem.n_items == 1:
            remedy = f"report on every {words.one('arm')} that was shown, or set at_window_end to 0"
        found.append(
            f"of {finished} finished {decisions}, {history.unvalued} ended with {words.many('outcome')} of which "
            f"nothing is known, so that their rewards are unknown; {remedy}"
        )
    return found + _from_estimates(learner)


def _from_outcomes(learner: ProblemState) -> list[str]:
    """Where only successes are told, every estimate is 1: from the first outcomes on, while windows are still open."""
    tally, words = learner.tally, learner.words
    seen = float(np.broadcast_to(tally.counts(tally.pulls), tally.total.shape).sum())
    told = learner.settings.at_window_end == "ignore" and learner.problem.thresholds is None
    if told and seen >= MANY_DECISIONS and float(tally.total.sum()) == seen:
        return [
            f"every {words.one('outcome')} that was told is 1, so that every estimate is 1: send 0 for what was shown "
            "without success, or set at_window_end to 0"
        ]
    return []


def _from_scores(learner: ProblemState) -> list[str]:
    """Where many scores lie beyond the scale, the best arms are told apart no longer."""
    n, beyond = learner.history.scores, learner.history.beyond
    if learner.problem.thresholds is not None and learner.problem.k == 1 < learner.problem.n_arms:
        one, many = learner.words.one("slate"), learner.words.many("arm")
        return [
            f"each {one} has one of {learner.problem.n_arms} {many}, so that there is no best of several scores: "
            "make a problem with a larger k"
        ]
    if learner.problem.thresholds is None or n < MANY_SCORES or beyond <= BEYOND * n:
        return []
    low, high = learner.problem.thresholds.edges[[0, -1]]
    return [
        f"{beyond} of {n} scores lie beyond the scale from {low:g} to {high:g} and count as its ends: make a problem "
        "with wider `scores`, and give it the scores of this one as past `outcomes`"
    ]


def _from_behaviour(learner: ProblemState) -> list[str]:
    """What visitors do that estimates of single arms do not show; where programs click, nothing else is believed."""
    seen, words, found = learner.history.behaviour, learner.words, []
    one, many, arms = words.one("slate"), words.many("decision"), words.many("arm")
    if seen.programs:
        return [
            f"in {seen.whole:,} of {seen.decisions:,} {many} every {words.one('arm')} that was shown got its "
            f"{words.one('outcome')}, by chance it would be {seen.whole_expected:.0f}: these are programs rather than "
            "people; leave them out before you ask and tell, by their address or by how often they come"
        ]
    if seen.capped > CAPPED and (words.unit or seen.told < 0.5 * seen.amounts):  # shares, of films seen, end at 1
        found.append(
            f"{seen.limited:,} of {seen.amounts:,} amounts are at the limit, {seen.capped:.0%} of all that was told: "
            "what is above counts nowhere; make a problem with a limit that no amount reaches, such as twice the "
            "largest, as `weights`"
        )
    unit = seen.typical**2
    both, expected = seen.both / unit, seen.expected / unit
    if seen.rivals:
        found.append(
            f"two {arms} of one {one} were taken together {both:,.0f} times, by chance it would be {expected:,.0f}: "
            f"they take {words.many('outcome')} from each other; if people take one of a kind, allow one of each kind "
            "in `actions` (`partition_matroid`)"
        )
    elif seen.tastes and learner.learnt is None:
        found.append(
            f"some {arms} of one {one} are taken together far more often than others are: visitors have different "
            'tastes; send what you know of them as `context`, or make a problem with `"items": "learn"`'
        )
    return found


def _from_list(learner: ProblemState) -> list[str]:
    """Where many arms of the list are gone, and others came, since it was given."""
    settings, words = learner.settings, learner.words
    fixed = settings.control_slate if settings.control > 0.0 and isinstance(settings.control_slate, list) else []
    listed = list(settings.policy.baseline or fixed)
    if fixed and learner.renewed and fixed != listed[: len(fixed)]:
        return [
            f"`policy.baseline` was renewed {learner.renewed} times and `control_slate` was not: lift compares with an "
            'old list; leave `control_slate` at "baseline", and send today\'s list by PUT …/baseline'
        ]
    first = listed[: 2 * learner.problem.k]
    gone, come = sum(bool(learner.retired[learner.arms.number(name)]) for name in first), learner.come
    if min(come, gone) < max(FEW_ARMS, MOVED * len(first)):
        return []
    return [
        f"{gone} of the first {len(first)} {words.many('arm')} of the list are retired, and {come} others came since "
        "it was given: it is not what you would show today, so that lift is too large; send today's list by "
        "PUT …/baseline"
    ]


def _from_estimates(learner: ProblemState) -> list[str]:
    """Where nothing is ever told, or claims and reality part, estimates mislead."""
    tally, words, found = learner.tally, learner.words, []
    if learner.history.filled >= MANY_DECISIONS and float(tally.total.sum()) == 0.0:
        found.append(
            f"no {words.one('outcome')} was ever told: {learner.history.filled} {words.many('decision')} counted as "
            "at_window_end when their windows ended; look whether feedback arrives"
        )
    if (said := warn_of_gap(learner, learner.history.earned(learner.weighty_items))) is not None:
        found.append(said)
    return found


def say_need(learner: ProblemState) -> str:
    """Whether visitors fall into groups that items should serve, in a sentence; empty where that is not asked.

    Where the problem learns items, by its decisions; where it has one item, by what its slates claimed and earned.
    """
    if learner.learnt is not None:
        since = next((one.version for one in learner.learnt.versions if len(one.shares) > 1), 0)
        return learner.learnt.need().say(f"slates are chosen for all of them, since version {since} of the items")
    earned = learner.history.earned(learner.weighty_items)
    own = learner.problem
    one = own.n_items == 1 and own.thresholds is None and isinstance(own.reward, Coverage)
    if not one or earned is None or earned.gap is None or not math.isfinite(earned.gap.reach):
        return ""
    gap, reach = earned.gap
    if gap >= -reach:
        return ""
    served, promised = 100 * earned.realised.value, 100 * (earned.realised.value - gap)
    return (
        f"The slates served {served:.0f} of 100 visitors, the estimates promised {promised:.0f}: answers of one "
        'visitor hang together. A problem with items: "learn" finds out which visitors are alike.'
    )


def warn_of_gap(learner: ProblemState, earned: Earned | None) -> str | None:
    """Where realised and estimated rewards part, and what to do about it; None where they agree."""
    if earned is None or earned.gap is None:
        return None
    words, (value, reach) = learner.words, earned.gap
    estimated = earned.realised.value - value
    if abs(value) <= max(reach, LARGE_SHARE * abs(estimated)):
        return None
    if value > 0.0 and learner.settings.control > 0.0:
        return None  # the control share says what is earned
    return (
        f"{words.many('slate')} earn {'more' if value > 0.0 else 'less'} than the estimates say: "
        f"{earned.realised.value:.3g} instead of {estimated:.3g} per {words.one('decision')}; "
        f"{words.many('outcome')} of one {words.one('slate')} depend on one another, or change with time: "
        "compare with a control share before you rely on estimates"
    )


def say_missing(learner: ProblemState, stratum: int | None = None) -> str:
    """What a comparison lacks of which nothing can be said yet: a control share, or decisions that have finished."""
    sums, many = learner.history.lift, learner.words.many("decision")
    if learner.settings.control == 0.0 and not sums.control.count():
        return f"no {many} to compare with: set a control share"
    n_policy, n_control = sums.policy.count(stratum), sums.control.count(stratum)
    if sums.awaited and n_policy and n_control:
        end = f"{sums.awaited:,} more {many} have finished"
        if sums.planned_at and not sums.over:
            end = f"those made before {_moment(sums.planned_at)} have finished"
        return f"{n_policy + n_control:,} {many} have finished; the comparison speaks once, when {end}"
    line = f"{n_policy:,} {many} of superarm and {n_control:,} of the control share have finished"
    if not sums.first_end:
        return line
    return f"{line}; the first window ends at {_moment(sums.first_end)}"


def _moment(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def say_lift(found: Lift, n: int, words: Words) -> str:
    """What ``n`` decisions gained against the control share, and how many more decide; empty if it is not known."""
    if found.difference is None:
        return ""
    total, low, high = (_signed(n * one) for one in found.difference)
    share = "" if found.relative is None else f" ({_signed(100.0 * found.relative.value)} %)"
    line = f"{f'{total} {words.unit}'.strip()}{share} in {n:,} {words.many('decision')} of superarm"
    return f"{line}, between {low} and {high}{_say_needed(found, words.many('decision'))}"


def _say_needed(found: Lift, many: str) -> str:
    """How many more decisions decide; nothing where that is known already, or cannot be said."""
    if not found.needed:
        return ""
    half = found.needed_at_half or found.needed
    less = f", {_rounded(half)} with a control share of 50 %" if half < 0.8 * found.needed else ""
    return f"; about {_rounded(found.needed)} more {many} decide, if the difference stays what it is{less}"


def _rounded(n: int) -> str:
    """A large number, with two digits that count."""
    return f"{float(f'{n:.2g}'):,.0f}"


def _signed(value: float) -> str:
    return f"{'+' if value > 0.0 else ''}{format_number(value, 3)}"
