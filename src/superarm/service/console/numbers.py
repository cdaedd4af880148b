"""The numbers that the page shows."""

import math
from typing import NamedTuple

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.tally import Tally
from superarm.offline import Convergence
from superarm.service.console.markup import shorten
from superarm.service.domain.history import (
    RESUMED_DECISIONS,
    History,
    MeanInterval,
    RunningMoments,
    difference,
    join_moments,
    measure_lift,
)
from superarm.service.domain.intervals import Band, mean_alone, time_uniform, value_each_arm
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import guard_of
from superarm.service.http.views import needed_decisions

ARMS_PER_PAGE = 25
NAME_LETTERS = 24
"""How many letters of an arm's name are shown in a sentence."""

SORTS = ("value", "pulls", "pending", "number")


class Verdict(NamedTuple):
    """An answer in a word, the number that decides it, and what it means."""

    word: str
    number: str
    meaning: str
    kind: str  # "good", "bad" or "open"


def digits(value: float) -> str:
    """A value in four digits; one that is nearly 0 is 0.

    >>> digits(7.07112), digits(1.4e-9)
    ('7.071', '0')
    """
    return "0" if abs(value) < 5e-5 else f"{value:.4g}"


def weighty_items(learner: ProblemState) -> frozenset[int]:
    """The items that count: the reward is known if each of them was seen."""
    return frozenset(np.flatnonzero(learner.problem.weights > 0.0).tolist())


def judge_learning(history: History, needed: frozenset[int] = frozenset()) -> Verdict:
    """Whether late decisions earn more than early ones."""
    parts = [stretch.policy for stretch in history.stretches if stretch.policy.count]
    quarter = max(1, len(parts) // 4)
    if len(parts) < 8:
        return Verdict(
            "Too early",
            f"{sum(p.count for p in parts)} finished",
            "Needs a few more finished decisions that show the policy's slates.",
            "open",
        )
    gained = difference(join_moments(parts[-quarter:]), join_moments(parts[:quarter]), needed)
    meaning = "Reward per decision, last quarter minus first quarter; its 95 % interval is for one look, not for many."
    return _judge(gained, meaning, ("Yes", "Unclear", "Falling"))


def compare_with_baseline(history: History, mode: str, needed: frozenset[int] = frozenset()) -> Verdict:
    """Whether the policy's slates earn more than those of the caller's baseline."""
    policy, baseline = (
        join_moments([getattr(stretch, name) for stretch in history.stretches]) for name in ("policy", "baseline")
    )
    if not baseline.count or not policy.count:
        said = "Set control, a share of decisions that show the baseline, to know; or use mode apprentice for a while."
        now = "only the baseline is shown" if mode != "online" else "no decision with a baseline"
        return Verdict("Unknown", now, said, "open")
    counts = f"{policy.count} of the policy minus {baseline.count} of the baseline"
    meaning = f"Reward per decision, {counts}, at different times; the 95 % interval is for one look. A control share "
    meaning += "compares at the same time."
    return _judge(difference(policy, baseline, needed), meaning, ("Better", "Unclear", "Worse"))


def judge_lift(learner: ProblemState) -> Verdict:
    """Whether the policy earns more than the control share; the interval holds at all times."""
    sums = learner.history.lift
    found = measure_lift(sums)
    counts = f"{sums.policy.n} decisions of the policy, {sums.control.n} of the control share"
    if found is None:
        held = f" {sums.fallback.n} in a fallback of the guardrail are left out." if sums.fallback.n else ""
        return Verdict("Too early", counts, f"Both need finished decisions.{held}", "open")
    value, low, high = found.difference
    number = f"{value:+.3g}, between {low:+.3g} and {high:+.3g}"
    share = "" if found.relative is None else f", {100.0 * found.relative.value:+.3g} %"
    meaning = f"Reward per decision, {counts}{share}. The 95 % interval holds at all times: look as often as you like."
    words = {"better": ("Better", "good"), "worse": ("Worse", "bad"), "open": ("Open", "open")}
    word, kind = words[found.verdict]
    return Verdict(word, number, meaning, kind)


def judge_guard(learner: ProblemState) -> Verdict | None:
    """Whether the guardrail shows the control slate; None without a guardrail."""
    guard, settings = guard_of(learner), learner.settings
    if guard is None or settings.guardrail is None:
        return None
    number = f"surely earned {guard.earned:.4g}, needed {guard.needed:.4g}"
    kept = f"{100.0 * (1.0 - settings.guardrail):.3g} % of what the control slate would earn"
    if learner.guarded or not guard.holds:
        unless = f"even if {RESUMED_DECISIONS} decisions of the policy earn nothing"
        return Verdict("Fallback", number, f"The control slate is shown until {kept} is sure, {unless}.", "bad")
    return Verdict("Holds", number, f"The policy is shown: {kept} is sure.", "good")


def judge_convergence(learner: ProblemState, found: Convergence | str | None) -> Verdict:
    """Whether the slate that is best by the means is known to be best up to epsilon."""
    if found is None:
        return Verdict("…", "", "Being computed; reload for the answer.", "open")
    if isinstance(found, str):
        return Verdict("Unknown", "", f"No certificate: {found}.", "open")
    number = f"at most {found.shortfall:.3g} below the best; asked for {found.epsilon:.3g}"
    if math.isinf(found.shortfall):
        number = f"asked for {found.epsilon:.3g}"
    slate = ", ".join(shorten([learner.arms.all[j] for j in found.slate[:5]], NAME_LETTERS))
    sure = (
        f"Slate {slate}{', …' if len(found.slate) > 5 else ''}; {100.0 * (1.0 - found.delta):.3g} % sure, at all times."
    )
    if found.certified:
        return Verdict("Yes", number, sure, "good")
    more, _ = needed_decisions(learner, found)
    about = (
        "Another slate may be as good" if more is None else f"Needs about {more:,} more decisions at the present pace"
    )
    return Verdict("Not yet", number, f"{sure} {about}.", "open")


def _judge(gap: MeanInterval | None, meaning: str, words: tuple[str, str, str]) -> Verdict:
    if gap is None or not np.isfinite(gap.reach):
        return Verdict("Too early", "", meaning, "open")
    number = f"{gap.value:+.3g} ± {gap.reach:.2g}"
    if gap.value > gap.reach:
        return Verdict(words[0], number, meaning, "good")
    return (
        Verdict(words[2], number, meaning, "bad")
        if gap.value < -gap.reach
        else Verdict(words[1], number, meaning, "open")
    )


def recent(history: History) -> RunningMoments:
    """The policy's last quarter."""
    parts = [stretch.policy for stretch in history.stretches if stretch.policy.count]
    return join_moments(parts[-max(1, len(parts) // 4) :])


class Overview(NamedTuple):
    """A page of arms: their numbers in order, how many there are, their values, and the largest upper end.

    ``pulls`` and ``pending`` are those of the arms of the page.
    """

    arms: Ints
    total: int
    value: Band
    most: float
    pulls: Floats
    pending: Floats


class Ordering(NamedTuple):
    """How arms are looked at."""

    sort: str = "value"
    find: str = ""
    page: int = 0


def overview(learner: ProblemState, counters: tuple[Tally, Floats], ordering: Ordering) -> Overview:
    """Arms whose names contain ``find``, sorted, a page of them; retired ones last. Only reads; may run in a thread."""
    problem, (tally, pending) = learner.problem, counters
    word = ordering.find.casefold()
    names = learner.arms.all
    wanted = range(len(names)) if not word else [j for j, name in enumerate(names) if word in name.casefold()]
    arms = np.array(wanted, np.int64)
    keys = {"pulls": -tally.pulls[0], "pending": -pending, "number": np.zeros(problem.n_arms)}
    if ordering.sort == "value":
        value = mean_alone(problem, tally, arms) if len(arms) else np.zeros(0)
        first = -value
    else:
        first = keys[ordering.sort][arms]
    order = arms[np.lexsort((arms, first, learner.retired[arms]))]
    page = order[ordering.page * ARMS_PER_PAGE : (ordering.page + 1) * ARMS_PER_PAGE]
    band = (
        value_each_arm(problem, time_uniform(tally, problem.support, page)) if len(page) else Band(*[np.zeros(0)] * 3)
    )
    most = float(band.high.max()) if len(page) else 1.0
    return Overview(page, len(order), band, most, tally.pulls[0, page], pending[page])
