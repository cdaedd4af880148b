"""The numbers that the page shows."""

from typing import NamedTuple

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.service.domain.history import History
from superarm.service.domain.intervals import Band, mean_alone, value_each_arm, wilson
from superarm.service.domain.moments import MeanInterval, RunningMoments, difference, join_moments
from superarm.service.domain.problem import ProblemState
from superarm.tally import Tally

ARMS_PER_PAGE = 25
SORTS = ("value", "pulls", "pending", "number")


class Verdict(NamedTuple):
    """An answer in a word, the number that decides it, and what it means."""

    word: str
    number: str
    meaning: str
    kind: str  # "good", "bad" or "open"


def weighty_items(learner: ProblemState) -> frozenset[int]:
    """The items that count: the reward is known if each of them was seen."""
    return frozenset(np.flatnonzero(learner.problem.weights > 0.0).tolist())


def judge_learning(history: History, needed: frozenset[int] = frozenset()) -> Verdict:
    """Whether late decisions earn more than early ones."""
    parts = [stretch.policy for stretch in history.stretches if stretch.policy.count]
    quarter = max(1, len(parts) // 4)
    if len(parts) < 8:
        return Verdict(
            "Too early", f"{sum(p.count for p in parts)} finished", "Needs a few more finished decisions.", "open"
        )
    gained = difference(join_moments(parts[-quarter:]), join_moments(parts[:quarter]), needed)
    meaning = "Reward per decision, last quarter minus first quarter, with its 95 % interval."
    return _judge(gained, meaning, ("Yes", "Level", "Falling"))


def compare_with_baseline(history: History, mode: str, needed: frozenset[int] = frozenset()) -> Verdict:
    """Whether the policy's slates earn more than those of the caller's baseline."""
    policy, baseline = (
        join_moments([getattr(stretch, name) for stretch in history.stretches]) for name in ("policy", "baseline")
    )
    if not baseline.count or not policy.count:
        said = "Decisions made in mode apprentice or logging_only, with a baseline, are what it is compared with."
        now = "only the baseline is shown" if mode != "online" else "no decision with a baseline"
        return Verdict("Unknown", now, said, "open")
    counts = f"{policy.count} of the policy minus {baseline.count} of the baseline"
    meaning = f"Reward per decision, {counts}, with a 95 % interval."
    return _judge(difference(policy, baseline, needed), meaning, ("Better", "Level", "Worse"))


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
    """A page of arms: their numbers in order, how many there are, their values, and the largest upper end."""

    arms: Ints
    total: int
    value: Band
    most: float


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
    keys = {"pulls": -tally.pulls, "pending": -pending, "number": np.zeros(problem.n_arms)}
    if ordering.sort == "value":
        value = mean_alone(problem, tally, arms) if len(arms) else np.zeros(0)
        first = -value
    else:
        first = keys[ordering.sort][arms]
    order = arms[np.lexsort((arms, first, learner.retired[arms]))]
    page = order[ordering.page * ARMS_PER_PAGE : (ordering.page + 1) * ARMS_PER_PAGE]
    band = value_each_arm(problem, wilson(tally, problem.support, page)) if len(page) else Band(*[np.zeros(0)] * 3)
    return Overview(page, len(order), band, float(band.high.max()) if len(page) else 1.0)
