"""Mean rewards with their intervals, and the lift: the policy's reward against that of the control share.

The intervals of ``MeanInterval`` are for one reading; those of the lift hold at all times. The lift is about means of
realised rewards, over the decisions that finished. Of decisions about one item (visitors who belong to one segment
each), the means of what each item contributed are added up, over the items that both groups have seen. Decisions that
ended with entries of which nothing is known, and those about several items but not all, are left out and counted.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field

from superarm.offline.mean_sequences import (
    ENOUGH,
    BoundedSums,
    MeanBounds,
    Stratum,
    bound_strata,
    effective_number,
    normal_radius,
    sequence_factor,
    strata_radius,
)
from superarm.service.domain.events import Asked
from superarm.service.domain.spec import Settings


class RewardMoments(Struct, array_like=True):
    """Number, sum and sum of squares of rewards."""

    n: int = 0
    total: float = 0.0
    square: float = 0.0

    def add(self, value: float, sign: int = 1) -> None:
        """Add the reward of a decision, or take it away with ``sign`` -1."""
        self.include(RewardMoments(sign, sign * value, sign * value * value))

    def include(self, other: "RewardMoments") -> None:
        """Add all rewards of another one."""
        self.n, self.total, self.square = self.n + other.n, self.total + other.total, self.square + other.square


class RunningMoments(RewardMoments, array_like=True):
    """Moments of rewards that are known whole, and by stratum.

    A stratum is the number of an item, or that of a segment of the context: -1, -2 and so on. ``items`` has what each
    item contributed to the reward of the ``n_partial`` decisions that were about some items only. ``each`` has what it
    contributed to rewards that are known whole, where there are few items, and the rewards of each segment.
    """

    n_partial: int = 0
    items: dict[int, RewardMoments] = field(default_factory=dict)
    each: dict[int, RewardMoments] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many decisions there are, whole or in part."""
        return self.n + self.n_partial

    def add_each(self, values: Mapping[int, float], sign: int = 1) -> None:
        """Add the parts of a reward by stratum."""
        for stratum, value in values.items():
            self.each.setdefault(stratum, RewardMoments()).add(value, sign)

    def add_items(self, values: Mapping[int, float]) -> None:
        """Add a decision of which only some items are known: what each of them contributed to the reward."""
        self.n_partial += 1
        for item, value in values.items():
            self.items.setdefault(item, RewardMoments()).add(value)

    def of(self, stratum: int | None) -> "RunningMoments":
        """The part of a stratum, whatever the decisions were about; everything for None."""
        if stratum is None:
            return self
        own = RunningMoments()
        for part in (self.items, self.each):
            own.include(part.get(stratum, RewardMoments()))
        return own


def join_moments(parts: Iterable[RunningMoments]) -> RunningMoments:
    """All of them together."""
    joined = RunningMoments()
    for part in parts:
        joined.include(part)
        joined.n_partial += part.n_partial
        for mine, others in ((joined.items, part.items), (joined.each, part.each)):
            for stratum, more in others.items():
                mine.setdefault(stratum, RewardMoments()).include(more)
    return joined


class MeanInterval(NamedTuple):
    """A mean and the half-width of its 95 % interval."""

    value: float
    reach: float


def mean_interval(m: RunningMoments, needed: frozenset[int] = frozenset()) -> MeanInterval | None:
    r"""The mean reward; None without decisions, and an infinite interval with one.

    Of decisions about some items, the mean is that of a sample stratified by item,

    .. math:: \hat r = \sum_i \bar r_i, \qquad \mathrm{Var}\,\hat r = \sum_i s_i^2 / n_i

    where :math:`\bar r_i` is the mean of what item i contributed, with its weight. It is unknown until each of the
    ``needed`` items was seen. It does not matter how often each item is seen.
    """
    whole = _mean(m) if m.n else None
    if not m.n_partial or not needed <= m.items.keys():
        return whole
    parts = [_mean(one) for one in m.items.values()]
    strata = MeanInterval(sum(p.value for p in parts), math.sqrt(sum(p.reach**2 for p in parts)))
    if whole is None:
        return strata
    share = m.n / m.count
    value = share * whole.value + (1.0 - share) * strata.value
    return MeanInterval(value, math.hypot(share * whole.reach, (1.0 - share) * strata.reach))


def _mean(m: RewardMoments) -> MeanInterval:
    value = m.total / m.n
    if m.n == 1:
        return MeanInterval(value, math.inf)
    spread = max(0.0, m.square - m.n * value * value) / (m.n - 1)
    return MeanInterval(value, 1.96 * math.sqrt(spread / m.n))


class GroupSums(BoundedSums, array_like=True):
    """Rewards of decisions about all items; ``items`` has those of decisions about one item, by the item.

    ``each`` has the parts of rewards by stratum, as in ``RunningMoments``.
    """

    items: dict[int, BoundedSums] = field(default_factory=dict)
    each: dict[int, BoundedSums] = field(default_factory=dict)

    def count(self, stratum: int | None = None) -> int:
        """How many decisions there are, about all items or one, or in a stratum."""
        return self.n + sum(one.n for one in self.items.values()) if stratum is None else self.of(stratum).n

    def of(self, stratum: int) -> BoundedSums:
        """The part of a stratum, whatever the decisions were about."""
        return self.items.get(stratum, BoundedSums()).joined(self.each.get(stratum, BoundedSums()))


def join_groups(one: GroupSums, other: GroupSums) -> GroupSums:
    """The rewards of both groups, without ``each``."""
    nothing, whole = BoundedSums(), one.joined(other)
    items = {i: one.items.get(i, nothing).joined(other.items.get(i, nothing)) for i in {*one.items, *other.items}}
    return GroupSums(whole.n, whole.total, whole.spread, items)


class LiftSums(Struct):
    """Rewards of the two groups, and of decisions that the guardrail let fall back.

    They count decisions after round ``since``: a change of the control slate or of the items begins anew. ``scale`` is
    the largest reward that there can be, ``scales`` the most that each item can contribute. ``shown_policy`` and
    ``shown_control`` count decisions when they are made, by what they showed. ``first_end`` is when the first window
    ends, in milliseconds since 1970; 0 without windows. ``until`` is the last round of a comparison that has ended,
    and ``slate`` the control slate that it was about; if it is ``frozen``, rewards that come later do not count.
    Of a ``planned`` comparison so many rounds count, or, with ``planned_at``, those before a time; ``over`` says that
    later ones have come.
    """

    policy: GroupSums = field(default_factory=GroupSums)
    control: GroupSums = field(default_factory=GroupSums)
    fallback: GroupSums = field(default_factory=GroupSums)
    scale: float = 0.0
    since: int = 0
    left_out: int = 0
    shown_policy: int = 0
    shown_control: int = 0
    scales: list[float] = field(default_factory=list)
    first_end: int = 0
    until: int = 0
    slate: str | list[str] = ""
    frozen: bool = False
    planned: int = 0
    planned_at: int = 0
    over: bool = False

    @classmethod
    def begun(cls, settings: Settings, since: int = 0) -> "LiftSums":
        """A comparison that begins after a round, with the end that the settings plan."""
        end = settings.planned
        if isinstance(end, datetime):
            return cls(since=since, planned_at=int(1000.0 * end.timestamp()))
        return cls(since=since, planned=end or 0)

    @property
    def awaited(self) -> int | None:
        """Of a planned comparison, how many decisions have not finished, or are not made yet; None without a plan."""
        if not self.planned and not self.planned_at:
            return None
        finished = sum(one.count() for one in (self.policy, self.control, self.fallback)) + self.left_out
        made = self.shown_policy + self.shown_control
        return max(0, made - finished) if self.over else max(1, max(made, self.planned) - finished)

    def counts(self, asked: Asked) -> bool:
        """Whether a decision is part of the comparison."""
        return bool(asked.group) and asked.t > self.since and not self.frozen and not self._beyond(asked, 0)

    def _beyond(self, asked: Asked, ahead: int) -> bool:
        """Whether a decision, or one ``ahead`` of it, comes after the planned end."""
        late = self.planned > 0 and asked.t + ahead > self.since + self.planned
        return late or 0 < self.planned_at <= asked.at

    def count(self, asked: Asked, sign: int = 1) -> None:
        """A decision was made; with ``sign`` -1, it was erased."""
        self.over = self.over or self._beyond(asked, 1)
        if self.counts(asked):
            if asked.window_ms is not None:
                self.first_end = min(self.first_end or asked.at + asked.window_ms, asked.at + asked.window_ms)
            if asked.group == "control" or asked.fallback:
                self.shown_control += sign
            else:
                self.shown_policy += sign

    def add(self, asked: Asked, value: float, problem: Any, each: Mapping[int, float], item: int | None = None) -> None:
        """The reward of a decision about all items, or one ``item``, is known, and its parts by stratum."""
        if self.counts(asked):
            if not self.scales:
                self.scales = largest_rewards(problem)
                self.scale = self.scale or sum(self.scales)
            group = self._group(asked)
            (group if item is None else group.items.setdefault(item, BoundedSums())).add(value)
            for stratum, part in each.items():
                group.each.setdefault(stratum, BoundedSums()).add(part)

    def add_served(self, group: str, rewards: list[tuple[float, int, int]], problem: Any) -> None:
        """Decisions from tables had these rewards: each with how many had it (negative: taken back) and its stratum."""
        if not self.scales:
            self.scales = largest_rewards(problem)
            self.scale = self.scale or sum(self.scales)
        sums: GroupSums = getattr(self, group)
        sums.add_many([one[:2] for one in rewards])
        for stratum in {one[2] for one in rewards}:
            own = [one[:2] for one in rewards if one[2] == stratum]
            sums.each.setdefault(stratum, BoundedSums()).add_many(own)
        shown = f"shown_{group}"
        setattr(self, shown, getattr(self, shown) + sum(one[1] for one in rewards))

    def scale_of(self, stratum: int | None) -> float:
        """The largest reward that there can be in a stratum, or at all."""
        return self.scale if stratum is None or stratum < 0 else self.scales[stratum]

    def take_back(self, asked: Asked, value: float, each: Mapping[int, float]) -> None:
        """The decision was erased; its part of the spread stays, which keeps the intervals as wide as they were."""
        if self.counts(asked):
            group = self._group(asked)
            for sums, part in [(group, value), *((group.each[s], x) for s, x in each.items() if s in group.each)]:
                sums.n -= 1
                sums.total -= part

    def _group(self, asked: Asked) -> GroupSums:
        return self.fallback if asked.fallback else self.control if asked.group == "control" else self.policy

    def leave_out(self, asked: Asked) -> None:
        """The reward of a decision will not be known."""
        self.left_out += self.counts(asked)

    def strata(self, one: GroupSums, other: GroupSums, stratum: int | None = None) -> list[Stratum]:
        """What the mean reward of ``one`` group is made of, to compare it with ``other``; empty if nothing is known.

        With ``stratum``, it is the part of this one. Otherwise only items that both groups have seen count, and
        decisions about all items and those about one count by how many of each both groups have.
        """
        if stratum is not None:
            sums = one.of(stratum)
            return [Stratum(sums, self.scale_of(stratum))] if sums.n and self.scale_of(stratum) else []
        alone = not other.count()
        items = [i for i in sorted(one.items) if self.scales[i] and (alone or i in other.items)]
        n_whole = one.n + other.n if one.n and (alone or other.n) else 0
        n_items = sum(group.items[i].n for group in (one, other) for i in items if i in group.items)
        share = n_whole / (n_whole + n_items) if n_whole else 0.0
        whole = [Stratum(one, self.scale, share)] if n_whole else []
        return whole + [Stratum(one.items[i], self.scales[i], 1.0 - share) for i in items]


def largest_rewards(problem: Any) -> list[float]:
    """The most that each item can contribute to the reward of a slate: all its parameters are 1."""
    reward, weights = problem.reward, problem.weights
    if reward.totals:
        return [1.0]
    if not reward.additive:
        return list(weights.tolist())
    states = np.array(reward.start(weights), float)
    most = np.array(reward.worth(weights, states), float)
    for _ in range(problem.k):
        states = reward.join(states, np.ones(len(weights)))
        most = np.maximum(most, reward.worth(weights, states))
    return list(most.tolist())


class Lift(NamedTuple):
    """Means of the two groups, and the first minus the second, each with an interval that holds at all times.

    What is not known yet is None. ``relative`` is the difference as a share of the control's mean; None while that may
    be 0. ``method`` says how the intervals were made. ``needed`` estimates how many more decisions decide, if the
    difference stays what it is, and ``needed_at_half`` the same with half of them as control.
    """

    policy: MeanBounds | None
    control: MeanBounds | None
    difference: MeanBounds | None = None
    relative: MeanBounds | None = None
    method: str = "bounded"
    needed: int | None = None
    needed_at_half: int | None = None

    @property
    def verdict(self) -> str:
        """``"better"``, ``"worse"``, or ``"open"`` while the interval holds 0."""
        if self.difference is None:
            return "open"
        low, high = self.difference[1:]
        return "better" if low > 0.0 else "worse" if high < 0.0 else "open"


EXPECTED = 10_000
"""The intervals are narrowest after about so many decisions."""

MAX_NEEDED = 10**9


def measure_lift(sums: LiftSums, delta: float = 0.05, stratum: int | None = None) -> Lift:
    """The lift, in total or of one stratum; all intervals hold together with probability 1 - ``delta``.

    Eight tenths of ``delta`` are for the difference, the rest for the two means. A stratum in which few rewards matter
    makes the intervals those of bounded rewards; otherwise they are those for large numbers. A planned comparison
    speaks once, when its decisions have finished.
    """
    groups = (sums.strata(sums.policy, sums.control, stratum), sums.strata(sums.control, sums.policy, stratum))
    strata = [*groups[0], *groups[1]]
    large = bool(strata) and min(effective_number(one) for one in strata) >= ENOUGH
    policy, control = (bound_strata(own, 0.1 * delta, large, EXPECTED) if own else None for own in groups)
    found = Lift(policy, control, method="large" if large else "bounded")
    if policy is None or control is None or sums.awaited:
        return found._replace(needed=sums.awaited)
    gap, side = policy.value - control.value, 0.4 * delta
    planned = EXPECTED if sums.awaited is None else None
    reach = normal_radius(strata, side, planned) if large else strata_radius(strata, side)
    bounds = MeanBounds(gap, gap - reach, gap + reach)
    found = found._replace(difference=bounds, relative=_relative(bounds, control))
    if planned is None:
        return found._replace(method="planned" if large else "bounded")
    if abs(gap) > reach:
        return found._replace(needed=0, needed_at_half=0)
    needed, at_half = _needed(groups, gap, side)
    return found._replace(needed=needed, needed_at_half=at_half)


def _relative(gap: MeanBounds, control: MeanBounds) -> MeanBounds | None:
    """A difference as a share of the control's mean, at the ends of both intervals; None while that may be 0."""
    if control.low <= 0.0:
        return None
    low = gap.low / (control.high if gap.low > 0.0 else control.low)
    high = gap.high / (control.low if gap.high > 0.0 else control.high)
    return MeanBounds(gap.value / control.value, max(low, -1.0), high)


def _needed(groups: tuple[list[Stratum], ...], gap: float, side: float) -> tuple[int | None, int | None]:
    """How many more decisions it takes until the interval for large numbers leaves out 0; and with half as control.

    The second is how many there were if all were made anew.
    """
    counts = [sum(one.sums.n for one in own) for own in groups]
    n, parts = sum(counts), zip(counts, groups, strict=True)
    each = [count * sum(one.share**2 * one.sums.spread / one.sums.n**2 for one in own) for count, own in parts]
    spreads = sum(n * one / count for one, count in zip(each, counts, strict=True)), 2.0 * sum(each)
    few = max(1.0, min(effective_number(one) for own in groups for one in own))
    total, at_half = (_first(gap, side, spread) for spread in spreads)
    return None if total is None else max(total, math.ceil(n * ENOUGH / few)) - n, at_half


def _first(gap: float, side: float, spread: float) -> int | None:
    """After how many decisions the interval leaves out 0; ``spread`` over them is the variance of the difference."""
    sizes = np.geomspace(10.0, MAX_NEEDED, 2_000)
    enough = sequence_factor(sizes, side, EXPECTED) ** 2 * spread / sizes < gap * gap
    return int(sizes[enough.argmax()]) if enough.any() else None


RESUMED_DECISIONS = 50
"""After a fallback, the policy is shown again when so many of its decisions could earn nothing: no flapping."""


class Guard(NamedTuple):
    """What the policy's decisions so far are surely worth, and what the guardrail asks of them."""

    earned: float
    needed: float

    @property
    def holds(self) -> bool:
        """Whether the policy may be shown."""
        return self.earned >= self.needed


def check_guard(sums: LiftSums, allowed: float, next_decisions: int, delta: float = 0.05) -> Guard:
    r"""The budget of conservative bandits, [WuEtAl2016]_, on means of rewards.

    With :math:`n_\pi` decisions of the policy, :math:`n_0` of the control slate, whose mean reward is :math:`\mu_0`,
    and m decisions to come, all together earn at least :math:`(1 - \alpha)` of what the control slate would have if

    .. math:: \sum_{t \in \pi} \mu_t + n_0 \mu_0 \ge (1 - \alpha)(n_\pi + n_0 + m)\,\mu_0
              \iff \sum_{t \in \pi} \mu_t \ge [(1 - \alpha)(n_\pi + m) - \alpha n_0]\,\mu_0

    The left side is ``earned``, the lower end of its interval, over decisions that finished; the right side ``needed``,
    at the upper end of :math:`\mu_0`. Both hold at all times with probability 1 - ``delta``.
    """
    due = (1.0 - allowed) * (sums.shown_policy + next_decisions) - allowed * sums.shown_control
    if due <= 0.0:
        return Guard(0.0, 0.0)
    shown = join_groups(sums.control, sums.fallback)
    policy, control = sums.strata(sums.policy, shown), sums.strata(shown, sums.policy)
    low = bound_strata(policy, delta).low if policy else 0.0
    high = bound_strata(control, delta).high if control else sums.scale or 1.0
    return Guard(sums.policy.count() * low, due * high)
