"""What the console shows of the past: rewards of finished decisions by round, counts, and the comparison with control.

Derived from the log; never authoritative.

A stretch is a number of rounds, not of hours: neither a clock that jumps nor the order in which decisions finish
changes anything. There are at most ``MAX_STRETCHES``; when more are needed, neighbours are joined and stretches get
twice as long.

The lift is the reward with the policy against that of the control share, with intervals that hold at all times. Both
are means of realised rewards, over the decisions that finished. Decisions that ended with entries of which nothing is
known, and those about some items only, are left out and counted.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field

from superarm.core.support import Dense
from superarm.offline.mean_sequences import BoundedSums, MeanBounds, bound_mean
from superarm.service.domain.decision import DEFAULTED, PENDING, DecisionRecord
from superarm.service.domain.events import UNSEEN, Asked
from superarm.service.domain.intervals import gains_each, values_each


class RunningMoments(Struct, array_like=True):
    """Number, sum and sum of squares of rewards that are known whole.

    ``items`` has the same for what each item contributed to the reward of the ``n_partial`` decisions that were about
    some items only.
    """

    n: int = 0
    total: float = 0.0
    square: float = 0.0
    n_partial: int = 0
    items: dict[int, tuple[int, float, float]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many decisions there are, whole or in part."""
        return self.n + self.n_partial

    def add(self, value: float) -> None:
        """Add the reward of a decision."""
        self.n += 1
        self.total += value
        self.square += value * value

    def add_items(self, values: dict[int, float]) -> None:
        """Add a decision of which only some items are known: what each of them contributed to the reward."""
        self.n_partial += 1
        for item, value in values.items():
            n, total, square = self.items.get(item, (0, 0.0, 0.0))
            self.items[item] = (n + 1, total + value, square + value * value)


def join_moments(parts: list[RunningMoments]) -> RunningMoments:
    """All of them together."""
    joined = RunningMoments(
        sum(p.n for p in parts),
        sum(p.total for p in parts),
        sum(p.square for p in parts),
        sum(p.n_partial for p in parts),
    )
    for part in parts:
        for item, more in part.items.items():
            n, total, square = joined.items.get(item, (0, 0.0, 0.0))
            joined.items[item] = (n + more[0], total + more[1], square + more[2])
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
    whole = _mean(m.n, m.total, m.square) if m.n else None
    if not m.n_partial or not needed <= m.items.keys():
        return whole
    parts = [_mean(*one) for one in m.items.values()]
    strata = MeanInterval(sum(p.value for p in parts), math.sqrt(sum(p.reach**2 for p in parts)))
    if whole is None:
        return strata
    share = m.n / m.count
    value = share * whole.value + (1.0 - share) * strata.value
    return MeanInterval(value, math.hypot(share * whole.reach, (1.0 - share) * strata.reach))


def _mean(n: int, total: float, square: float) -> MeanInterval:
    value = total / n
    if n == 1:
        return MeanInterval(value, math.inf)
    spread = max(0.0, square - n * value * value) / (n - 1)
    return MeanInterval(value, 1.96 * math.sqrt(spread / n))


def difference(a: RunningMoments, b: RunningMoments, needed: frozenset[int] = frozenset()) -> MeanInterval | None:
    """The mean of ``a`` minus that of ``b``, with its 95 % interval (Welch's, for large numbers)."""
    x, y = mean_interval(a, needed), mean_interval(b, needed)
    return None if x is None or y is None else MeanInterval(x.value - y.value, math.hypot(x.reach, y.reach))


class LiftSums(Struct):
    """Rewards of the two groups, and of decisions that the guardrail let fall back.

    They count decisions after round ``since``: a change of the control slate or of the items begins anew. ``scale`` is
    the largest reward that there can be. ``shown_policy`` and ``shown_control`` count decisions when they are made,
    by what they showed.
    """

    policy: BoundedSums = field(default_factory=BoundedSums)
    control: BoundedSums = field(default_factory=BoundedSums)
    fallback: BoundedSums = field(default_factory=BoundedSums)
    scale: float = 0.0
    since: int = 0
    left_out: int = 0
    shown_policy: int = 0
    shown_control: int = 0

    def restart(self, since: int) -> None:
        """Begin anew, with the decisions after a round."""
        fresh = LiftSums(since=since)
        for name in self.__struct_fields__:
            setattr(self, name, getattr(fresh, name))

    def count(self, asked: Asked, sign: int = 1) -> None:
        """A decision was made; with ``sign`` -1, it was erased."""
        if asked.group and asked.t > self.since:
            if asked.group == "control" or asked.fallback:
                self.shown_control += sign
            else:
                self.shown_policy += sign

    def add(self, asked: Asked, value: float, problem: Any) -> None:
        """The reward of a decision is known."""
        if asked.group and asked.t > self.since:
            self.scale = self.scale or largest_reward(problem)
            self._group(asked).add(value, self.scale)

    def take_back(self, asked: Asked, value: float) -> None:
        """The decision was erased; its part of the spread stays, which keeps the intervals as wide as they were."""
        if asked.group and asked.t > self.since:
            group = self._group(asked)
            group.n -= 1
            group.total -= value

    def _group(self, asked: Asked) -> BoundedSums:
        return self.fallback if asked.fallback else self.control if asked.group == "control" else self.policy

    def leave_out(self, asked: Asked) -> None:
        """The reward of a decision will not be known."""
        self.left_out += bool(asked.group and asked.t > self.since)


def largest_reward(problem: Any) -> float:
    """The most that a slate can be worth: all its parameters are 1."""
    if not problem.reward.additive:
        return float(problem.weights.sum())
    added, nothing = gains_each(problem, np.ones((problem.k, problem.n_items)), np.array([problem.k]))
    return float(nothing + added.clip(0.0).sum())


class Lift(NamedTuple):
    """Means of the two groups, and the first minus the second, each with an interval that holds at all times.

    ``relative`` is the difference as a share of the control's mean; None while that may be 0.
    """

    policy: MeanBounds
    control: MeanBounds
    difference: MeanBounds
    relative: MeanBounds | None

    @property
    def verdict(self) -> str:
        """``"better"``, ``"worse"``, or ``"open"`` while the interval holds 0."""
        low, high = self.difference[1:]
        return "better" if low > 0.0 else "worse" if high < 0.0 else "open"


def measure_lift(sums: LiftSums, delta: float = 0.05) -> Lift | None:
    """The lift; all intervals hold together with probability 1 - ``delta``. None until both groups have a reward."""
    if not sums.policy.n or not sums.control.n:
        return None
    policy, control = (bound_mean(one, sums.scale, 0.5 * delta) for one in (sums.policy, sums.control))
    difference = MeanBounds(policy.value - control.value, policy.low - control.high, policy.high - control.low)
    relative = None
    if control.low > 0.0:
        ends = (policy.value / control.value, policy.low / control.high, policy.high / control.low)
        relative = MeanBounds(*(end - 1.0 for end in ends))
    return Lift(policy, control, difference, relative)


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
    scale = sums.scale or 1.0
    low = bound_mean(sums.policy, scale, delta).low if sums.policy.n else 0.0
    high = bound_mean(sums.control.joined(sums.fallback), scale, delta).high
    return Guard(sums.policy.n * low, due * high)


MAX_STRETCHES = 128
MAX_KEPT_ITEMS = 200
"""Of problems with more items, the rewards of decisions about some items are not kept."""

MAX_KEPT_VERSIONS = 100
"""The rewards of so many versions of the settings are kept, the newest."""

MAX_UNFLUSHED_REWARDS = 256
MAX_UNFLUSHED_VALUES = 100_000
"""The rewards of at most so many decisions are computed by one call, and of so many values in total."""


class Stretch(Struct, array_like=True):
    """The finished decisions of some rounds: the policy's, and those answered with the caller's baseline."""

    policy: RunningMoments = field(default_factory=RunningMoments)
    baseline: RunningMoments = field(default_factory=RunningMoments)
    at: int = 0


class LastSlate(Struct, frozen=True, array_like=True):
    """The slate that the policy chose for a round, whether it or the caller's baseline was shown."""

    t: int
    action: tuple[int, ...]


class History(Struct):
    """What the page shows of the past; ``unvalued`` decisions finished with entries of which nothing is known.

    ``decisions`` is how many were made and not erased; -1 in snapshots of earlier versions, which did not count them.

    ``versions`` has the rewards by the version of the settings under which a decision was made; those that finished
    before a state of an earlier release was saved are not in it.

    Repeated and conflicting feedback changes nothing and is not in the log: it is counted by the worker that got it.
    """

    length: int = 1
    stretches: list[Stretch] = field(default_factory=list)
    slots: int = 0
    explored: int = 0
    late: int = 0
    expired: int = 0
    complete: int = 0
    unvalued: int = 0
    repeated: int = 0
    conflicting: int = 0
    waiting: list[DecisionRecord] = field(default_factory=list)
    last: LastSlate | None = None
    filled: int = 0
    filled_in_part: int = 0
    lift: LiftSums = field(default_factory=LiftSums)
    versions: dict[int, Stretch] = field(default_factory=dict)
    decisions: int = -1

    def count_decision(self, asked: Asked, share: float, sign: int = 1) -> None:
        """A slate was chosen: a slot that the policy did not fill had at most the chance that all arms have alike.

        With ``sign`` -1, it counts no longer.
        """
        self.decisions += sign
        self.lift.count(asked, sign)
        chances = None if asked.group == "control" else asked.propensities
        if chances is not None:
            self.slots += sign * len(chances)
            if share > 0.0:
                self.explored += sign * sum(chance < 1.0 - share or share == 1.0 for chance in chances)

    def remember_slate(self, asked: Asked) -> None:
        """Remember the slate that the policy chose, if no later round is known."""
        if self.last is None or asked.t >= self.last.t:
            action = asked.action if asked.policy_action is None else asked.policy_action
            self.last = LastSlate(asked.t, action)

    def follow(self, before: DecisionRecord, after: DecisionRecord, problem: Any) -> None:
        """A decision changed."""
        if before.closed == "expired":
            self.late += 1
        elif after.closed and not before.closed:
            self._count_filled(before, after)
            self.finish(after, problem)

    def finish(self, after: DecisionRecord, problem: Any) -> None:
        """A decision closed that was open."""
        self.expired += after.closed == "expired"
        self.complete += after.closed == "complete"
        if has_known_reward(after, problem):
            self.waiting.append(after)
        else:
            self.unvalued += 1
            self.lift.leave_out(after.asked)
        values = len(self.waiting) * len(after.action) * problem.n_items
        if len(self.waiting) >= MAX_UNFLUSHED_REWARDS or values >= MAX_UNFLUSHED_VALUES:
            self.flush(problem)

    def _count_filled(self, before: DecisionRecord, after: DecisionRecord) -> None:
        """Count a decision if the end of its window filled entries, and whether its other entries were told."""
        if after.closed == "expired" and after.fill is not None and after.active:
            self.filled += 1
            self.filled_in_part += any(row is not None for row in before.rows)

    def erase(self, before: DecisionRecord, problem: Any, share: float) -> None:
        """Take out a decision, as it was before it was erased.

        Counts are corrected exactly, and sums of rewards up to rounding, by the reward that the decision has now. The
        spread of rewards that intervals of a comparison are made of cannot be taken back, so these intervals stay as
        wide as they were. What was computed when the problem had other items, or of decisions about some items only,
        stays.
        """
        asked = before.asked
        self.count_decision(asked, share, -1)
        if self.last is not None and self.last.t == asked.t:
            self.last = None
        if before.closed not in ("complete", "expired"):
            return
        self.flush(problem)
        self.complete -= before.closed == "complete"
        self.expired -= before.closed == "expired"
        if not has_known_reward(before, problem):
            self.unvalued -= 1
        elif asked.items is None:
            (value,) = rewards_of([before], problem)
            for moments in self.moments_of(before):
                if moments.n:  # otherwise it finished before rewards were kept by version
                    moments.n -= 1
                    moments.total -= value
                    moments.square -= value * value
            self.lift.take_back(asked, value)

    def flush(self, problem: Any) -> None:
        """Compute the rewards of the decisions that finished since the last call."""
        finished, self.waiting = self.waiting, []
        self._add_partial([record for record in finished if record.asked.items is not None], problem)
        waiting = [record for record in finished if record.asked.items is None]
        for record, value in zip(waiting, rewards_of(waiting, problem), strict=True):
            one, other = self.moments_of(record)
            one.add(value)
            other.add(value)
            if record.asked.group:
                self.lift.add(record.asked, value, problem)

    def _add_partial(self, records: list[DecisionRecord], problem: Any) -> None:
        """What each item of decisions about some items contributed: the reward of the item alone, with its weight."""
        values: dict[str, dict[int, float]] = {record.asked.id: {} for record in records}
        for item in sorted({item for record in records for item in record.asked.items or ()}):
            about = [record for record in records if item in (record.asked.items or ())]
            sizes = np.array([len(record.action) for record in about], np.int64)
            q = np.array([_outcome(row, item, record) for record in about for row in record.rows], float)
            worth = values_each(problem, q[:, None], sizes, problem.weights[item : item + 1])
            for record, value in zip(about, worth.tolist(), strict=True):
                values[record.asked.id][item] = value
        for record in records:
            for moments in self.moments_of(record):
                moments.add_items(values[record.asked.id])
            self.lift.leave_out(record.asked)

    def moments_of(self, record: DecisionRecord) -> tuple[RunningMoments, RunningMoments]:
        """Where a decision counts, as the policy's or the baseline's: in its stretch, and in its version."""
        while (place := record.asked.t // self.length) >= MAX_STRETCHES:
            self._halve()
        while len(self.stretches) <= place:
            self.stretches.append(Stretch())
        version = record.asked.version
        of_version = self.versions.get(version)
        if of_version is None:
            if len(self.versions) >= MAX_KEPT_VERSIONS:
                del self.versions[min(self.versions)]
            of_version = self.versions[version] = Stretch()
        return _side(self.stretches[place], record), _side(of_version, record)

    def _halve(self) -> None:
        if len(self.stretches) % 2:
            self.stretches.append(Stretch())
        pairs = zip(self.stretches[::2], self.stretches[1::2], strict=True)
        self.stretches = [
            Stretch(join_moments([a.policy, b.policy]), join_moments([a.baseline, b.baseline]), b.at) for a, b in pairs
        ]
        self.length *= 2


def rewards_of(records: list[DecisionRecord], problem: Any) -> list[float]:
    """The rewards of finished decisions that are known whole."""
    sizes = np.array([len(record.action) for record in records], np.int64)
    rows = [_fill_row(row, arm, record, problem) for record in records for arm, row in _rows_of(record)]
    if not rows:
        return []
    values: list[float] = values_each(problem, np.array(rows, float), sizes).tolist()
    return values


def _side(stretch: Stretch, record: DecisionRecord) -> RunningMoments:
    stretch.at = max(stretch.at, record.asked.at)
    return stretch.policy if record.asked.policy_action is None else stretch.baseline


def has_known_reward(record: DecisionRecord, problem: Any) -> bool:
    """Whether the reward is known: every entry was told, or filled at the end of the window.

    Of a decision about some items, these are what counts; their rewards are kept for problems of a moderate size.
    """
    if not record.active or not record.action or record.asked.n_items != problem.n_items:
        return False
    items = record.asked.items
    if items is not None and (problem.n_items > MAX_KEPT_ITEMS or not problem.reward.additive):
        return False
    for row in record.rows:
        if row is None:
            return False
        seen = row if items is None else [row[i] for i in items]
        if seen and min(seen) >= 0.0:  # most rows: no code of a missing value among them
            continue
        if PENDING in seen or UNSEEN in seen or (record.fill is None and DEFAULTED in seen):
            return False
    return True


def _outcome(row: Any, item: int, record: DecisionRecord) -> float:
    value: float = row[item]
    return (record.fill or 0.0) if value == DEFAULTED else value


def _rows_of(record: DecisionRecord) -> Any:
    return zip(record.action, record.rows, strict=True)


def _fill_row(row: Any, arm: int, record: DecisionRecord, problem: Any) -> Any:
    """One value per item: the default where the end of the window filled it, 0 where the arm touches nothing."""
    support, fill = problem.support, record.fill or 0.0
    if not isinstance(support, Dense):
        table = np.zeros(problem.n_items)
        table[support.items[support.start[arm] : support.start[arm + 1]]] = row
        return np.where(table == DEFAULTED, fill, table)
    values = row if record.fill is None or DEFAULTED not in row else [fill if x == DEFAULTED else x for x in row]
    return [*values, *[0.0] * (problem.n_items - len(row))]  # items may have been added since it finished
