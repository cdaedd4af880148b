"""Rewards of finished decisions by the round they were made in, and counts, for the console.

Derived from the log; never authoritative.

A stretch is a number of rounds, not of hours: neither a clock that jumps nor the order in which decisions finish
changes anything. There are at most ``MAX_STRETCHES``; when more are needed, neighbours are joined and stretches get
twice as long.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from superarm.core.arrays import Floats, Ints
from superarm.core.support import Dense
from superarm.decisions import DEFAULTED, PENDING, UNSEEN
from superarm.service.domain.behaviour import Behaviour
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.events import Asked
from superarm.service.domain.intervals import outcome_values, values_each, worth_each
from superarm.service.domain.lift import (
    LiftSums,
    MeanInterval,
    RewardMoments,
    RunningMoments,
    join_moments,
    mean_interval,
)
from superarm.thresholds import Thresholds

MAX_STRETCHES = 128
MAX_KEPT_ITEMS = 200
"""Of problems with more items, or segments, the rewards of decisions about some items, or by segment, are not kept."""

MAX_EACH_ITEMS = 20
"""Of problems with more items, it is not kept what each of them contributed to decisions about all items."""

MAX_EARLIER = 100
"""So many comparisons that have ended are kept."""

MAX_UNFLUSHED_REWARDS = 256
MAX_UNFLUSHED_VALUES = 100_000
"""The rewards of at most so many decisions are computed by one call, and of so many values in total."""


class Claims(NamedTuple):
    """What is estimated: ``rows`` gives the parameters of some arms in some segments, (n, n_items), for ``problem``."""

    problem: Any
    rows: Callable[[Ints, Ints], Floats]


class Stretch(Struct, array_like=True):
    """The finished decisions of some rounds: the policy's, and those answered with the caller's baseline.

    ``gap`` is what the policy's decisions earned minus what the estimates predicted for their slates when they
    finished. A decision was made at ``at`` at the latest.
    """

    policy: RunningMoments = field(default_factory=RunningMoments)
    baseline: RunningMoments = field(default_factory=RunningMoments)
    at: int = 0
    gap: RunningMoments = field(default_factory=RunningMoments)

    def side(self, record: DecisionRecord) -> RunningMoments:
        """Where a decision counts: as the policy's or the baseline's."""
        self.at = max(self.at, record.asked.at)
        return self.policy if record.asked.policy_action is None else self.baseline


class Earned(NamedTuple):
    """The mean reward of the policy's newest decisions, and that minus what the estimates said; None if not known."""

    realised: MeanInterval
    gap: MeanInterval | None


class LastSlate(Struct, frozen=True, array_like=True):
    """The slate that the policy chose for a round, whether it or the caller's baseline was shown."""

    t: int
    action: tuple[int, ...]
    id: str = ""


class History(Struct):
    """What the page shows of the past; ``unvalued`` decisions finished with entries of which nothing is known.

    ``decisions`` is how many were made and not erased. Of the ``scores`` that count, so many lie ``beyond`` the scale.
    ``earlier`` are the comparisons before ``lift``, the oldest first.
    """

    length: int = 1
    stretches: list[Stretch] = field(default_factory=list)
    slots: int = 0
    explored: int = 0
    late: int = 0
    expired: int = 0
    complete: int = 0
    unvalued: int = 0
    waiting: list[DecisionRecord] = field(default_factory=list)
    last: LastSlate | None = None
    filled: int = 0
    filled_in_part: int = 0
    lift: LiftSums = field(default_factory=LiftSums)
    decisions: int = 0
    earlier: list[LiftSums] = field(default_factory=list)
    scores: int = 0
    beyond: int = 0
    behaviour: Behaviour = field(default_factory=Behaviour)

    def compare_anew(self, begun: LiftSums, slate: str | list[str], *, frozen: bool) -> None:
        """Begin another comparison, and keep the one so far, of a control slate.

        It goes on with the rewards of its own decisions, unless it is ``frozen``: with other items these are others.
        """
        for one in self.earlier:
            one.frozen = one.frozen or frozen
        if self.lift.shown_policy or self.lift.shown_control:
            ended = replace(self.lift, until=begun.since, slate=slate, frozen=frozen)
            self.earlier = [*self.earlier, ended][-MAX_EARLIER:]
        self.lift = begun

    def comparison(self, asked: Asked) -> LiftSums:
        """The comparison that a decision belongs to, or one that does not count it."""
        return next((one for one in (self.lift, *reversed(self.earlier)) if asked.t > one.since), self.lift)

    def count_decision(self, asked: Asked, share: float, sign: int = 1) -> None:
        """A slate was chosen: a slot that the policy did not fill had at most the chance that all arms have alike.

        With ``sign`` -1, it counts no longer.
        """
        self.decisions += sign
        self.comparison(asked).count(asked, sign)
        chances = None if asked.group == "control" else asked.propensities
        if chances is not None:
            self.slots += sign * len(chances)
            if share > 0.0:
                self.explored += sign * sum(chance < 1.0 - share or share == 1.0 for chance in chances)

    def count_scores(self, before: DecisionRecord | None, after: DecisionRecord, scale: Thresholds) -> None:
        """Count the scores of a decision that changed."""
        for record, sign in ((before, -1), (after, 1)):
            if record is not None and record.scores:
                ends = scale.edges[0], scale.edges[-1]
                self.scores += sign * len(record.scores)
                self.beyond += sign * sum(not ends[0] <= score <= ends[1] for _, score in record.scores)

    def remember_slate(self, asked: Asked) -> None:
        """Remember the slate that the policy chose, if no later round is known."""
        if self.last is None or asked.t >= self.last.t:
            chosen = asked.action if asked.policy_action is None else asked.policy_action
            self.last = LastSlate(asked.t, chosen, asked.id)

    def follow(
        self, before: DecisionRecord, after: DecisionRecord, problem: Any, estimates: Claims | None, cascade: bool
    ) -> None:
        """A decision changed; ``cascade`` as in ``has_known_reward``."""
        if before.closed == "expired":
            self.late += 1
        elif after.closed and not before.closed:
            self._count_filled(before, after, problem)
            self.finish(after, problem, estimates, cascade)

    def finish(self, after: DecisionRecord, problem: Any, estimates: Claims | None, cascade: bool) -> None:
        """A decision closed that was open."""
        self.expired += after.closed == "expired"
        self.complete += after.closed == "complete"
        if has_known_reward(after, problem, cascade):
            self.waiting.append(after)
        else:
            self.unvalued += 1
            self.comparison(after.asked).leave_out(after.asked)
        values = len(self.waiting) * len(after.action) * problem.n_items
        if len(self.waiting) >= MAX_UNFLUSHED_REWARDS or values >= MAX_UNFLUSHED_VALUES:
            self.flush(problem, estimates)

    def _count_filled(self, before: DecisionRecord, after: DecisionRecord, problem: Any) -> None:
        """Count a decision if the end of its window filled entries; and if it was told of some items only.

        Where a decision names its items, or there is only one, what was not told is silence about arms, which is what
        the value at the end of the window is for.
        """
        if after.closed == "expired" and after.fill is not None and after.active:
            self.filled += 1
            if before.asked.items is None and problem.n_items > 1:
                told = [row for row in before.rows if row is not None]
                self.filled_in_part += any(PENDING in row and max(row) >= 0.0 for row in told)

    def erase(self, before: DecisionRecord, problem: Any, share: float, cascade: bool) -> None:
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
        if not has_known_reward(before, problem, cascade):
            self.unvalued -= 1
        elif asked.items is None:
            (value,), each = rewards_of([before], problem)
            moments = self.place_of(before).side(before)
            if moments.n:  # otherwise it finished while its reward was not known
                moments.add(value, -1)
                moments.add_each(each[0], -1)
            self.comparison(asked).take_back(asked, value - problem.floor, each[0])

    def flush(self, problem: Any, estimates: Claims | None = None) -> None:
        """Compute the rewards of the decisions that finished since the last call, and what was estimated of them."""
        finished, self.waiting = self.waiting, []
        self._add_partial([record for record in finished if record.asked.items is not None], problem, estimates)
        waiting = [record for record in finished if record.asked.items is None]
        values, each = rewards_of(waiting, problem)
        claims = self._claims_of(waiting, problem, estimates)
        for n, record in enumerate(waiting):
            stretch = self.place_of(record)
            moments = stretch.side(record)
            moments.add(values[n])
            moments.add_each(each[n])
            if claims is not None and moments is stretch.policy:
                stretch.gap.add(values[n] - claims[n])
                stretch.gap.add_each(in_segment(record, problem, values[n] - claims[n]))
            self.comparison(record.asked).add(record.asked, values[n] - problem.floor, problem, each[n])

    def _claims_of(self, records: list[DecisionRecord], problem: Any, estimates: Claims | None) -> list[float] | None:
        """What the estimates say of the slates of decisions; and what is learnt of visitors where they differ."""
        if not records:
            return None
        (arms, segments), sizes = _shown(records), np.array([len(record.action) for record in records], np.int64)
        rows = None if estimates is None else estimates.rows(arms, segments)
        if problem.n_items == 1 and not problem.reward.totals and problem.thresholds is None:
            own = rows if estimates is not None and estimates.problem is problem else None
            outcome = outcomes_of(records, problem)[0][:, 0]
            self.behaviour.follow(arms, sizes, outcome, None if own is None else own[:, 0])
        if estimates is None or rows is None:
            return None
        return values_each(estimates.problem, rows, sizes).tolist()

    def _add_partial(self, records: list[DecisionRecord], problem: Any, estimates: Claims | None) -> None:
        """What each item of decisions about some items contributed: the reward of the item alone, with its weight."""
        if not records:
            return
        rows, sizes = outcomes_of(records, problem)
        worth, claimed = worth_each(problem, rows, sizes), None
        if estimates is not None:
            claimed = worth - worth_each(problem, estimates.rows(*_shown(records)), sizes)
        for n, record in enumerate(records):
            stretch, items = self.place_of(record), list(record.asked.items or ())
            found = dict(zip(items, worth[n, items].tolist(), strict=True))
            moments, own = stretch.side(record), in_segment(record, problem, sum(found.values()))
            moments.add_items(found)
            moments.add_each(own)
            if claimed is not None and moments is stretch.policy:
                stretch.gap.add_items(dict(zip(items, claimed[n, items].tolist(), strict=True)))
                stretch.gap.add_each(in_segment(record, problem, float(claimed[n, items].sum())))
            if len(found) == 1:
                self.comparison(record.asked).add(record.asked, found[items[0]], problem, own, items[0])
            else:
                self.comparison(record.asked).leave_out(record.asked)

    def recent(self) -> Stretch:
        """The last quarter of the policy's finished decisions."""
        parts = [stretch for stretch in self.stretches if stretch.policy.count]
        return join_stretches(parts[-max(1, len(parts) // 4) :])

    def earned(self, needed: frozenset[int], stratum: int | None = None) -> Earned | None:
        """What the policy earns now, in total or in one stratum; None before the first decision has finished."""
        now = self.recent()
        policy, gap = now.policy.of(stratum), now.gap.of(stratum)
        realised = mean_interval(policy, needed)
        known = policy.count == gap.count  # otherwise nothing was estimated of some
        return None if realised is None else Earned(realised, mean_interval(gap, needed) if known else None)

    def count_served(self, made: Any, group: str, n: int, found: tuple[float, float], stratum: int) -> None:
        """``n`` decisions from the table of the event ``made`` had a reward, and a gap to what was claimed.

        They are taken back if ``n`` is negative.
        """
        stretch = self.stretch_of(made.t)
        stretch.at = max(stretch.at, made.at)
        self.decisions += n
        own = (stretch.baseline,) if group == "control" else (stretch.policy, stretch.gap)
        for value, moments in zip(found, own, strict=False):
            for part in (moments, moments.each.setdefault(stratum, RewardMoments())):
                part.include(RewardMoments(n, n * value, n * value * value))

    def place_of(self, record: DecisionRecord) -> Stretch:
        """The stretch that a decision counts in."""
        return self.stretch_of(record.asked.t)

    def stretch_of(self, t: int) -> Stretch:
        """The stretch of a round."""
        while (place := t // self.length) >= MAX_STRETCHES:
            self._halve()
        while len(self.stretches) <= place:
            self.stretches.append(Stretch())
        return self.stretches[place]

    def _halve(self) -> None:
        if len(self.stretches) % 2:
            self.stretches.append(Stretch())
        pairs = zip(self.stretches[::2], self.stretches[1::2], strict=True)
        self.stretches = [join_stretches([a, b]) for a, b in pairs]
        self.length *= 2


def join_stretches(parts: list[Stretch]) -> Stretch:
    """All of them together."""
    policy, baseline, gap = (join_moments([getattr(one, of) for one in parts]) for of in ("policy", "baseline", "gap"))
    return Stretch(policy, baseline, max((one.at for one in parts), default=0), gap)


def outcomes_of(records: list[DecisionRecord], problem: Any) -> tuple[Floats, Ints]:
    """The outcomes of decisions, a row with all items for each arm, and how many arms each decision has."""
    rows = [_fill_row(row, arm, record, problem) for record in records for arm, row in _rows_of(record)]
    return np.array(rows, float), np.array([len(record.action) for record in records], np.int64)


def rewards_of(records: list[DecisionRecord], problem: Any) -> tuple[list[float], list[dict[int, float]]]:
    """The rewards of finished decisions that are known whole, and their parts by stratum, where these are kept."""
    if not records:
        return [], []
    rows, sizes = outcomes_of(records, problem)
    values: list[float] = outcome_values(problem, rows, sizes).tolist()
    parts: list[dict[int, float]] = [{} for _ in records]
    if problem.n_items <= MAX_EACH_ITEMS and problem.reward.additive and problem.thresholds is None:
        parts = [dict(enumerate(row)) for row in worth_each(problem, rows, sizes).tolist()]
    known = zip(records, values, parts, strict=True)
    return values, [part | in_segment(record, problem, value) for record, value, part in known]


def in_segment(record: DecisionRecord, problem: Any, value: float) -> dict[int, float]:
    """The reward of a decision by the stratum of its segment: -1 for the first; nothing where there are none."""
    context, made = problem.context, record.asked.context
    if context is None or made is None or context.dimension(problem.n_items) or context.n_segments > MAX_KEPT_ITEMS:
        return {}
    return {-1 - made.segment: value}


def _shown(records: list[DecisionRecord]) -> tuple[Ints, Ints]:
    """The arms of decisions, and the segments that they were shown to."""
    shown = [(arm, getattr(record.asked.context, "segment", 0)) for record in records for arm in record.action]
    return np.array(shown, np.int64)[:, 0], np.array(shown, np.int64)[:, 1]


def has_known_reward(record: DecisionRecord, problem: Any, cascade: bool) -> bool:
    """Whether the reward is known: every entry was told, filled at the end of the window, or makes no difference.

    Entries of a ``cascade`` that were told as not seen make none after the first success: the reward is the same if all
    of them are 0 as if all are 1. Of other slates such decisions stay unknown: with their failures unknown, counting
    the successes would bias the mean. Of a decision about some items, these are what counts; their rewards are kept
    for problems of a moderate size.
    """
    if not record.active or not record.action or record.asked.n_items != problem.n_items:
        return False
    items = record.asked.items
    if items is not None and (problem.n_items > MAX_KEPT_ITEMS or not problem.reward.additive):
        return False
    missing = False
    for row in record.rows:
        if row is None:
            return False
        seen = row if items is None else [row[i] for i in items]
        if seen and min(seen) >= 0.0:  # most rows: no code of a missing value among them
            continue
        if PENDING in seen or (record.fill is None and DEFAULTED in seen):
            return False
        missing = missing or UNSEEN in seen
    return not missing or (cascade and problem.reward.additive and _is_determined(record, problem))


def _is_determined(record: DecisionRecord, problem: Any) -> bool:
    """Whether the reward is the same whatever the outcomes were that were not seen; rewards rise with outcomes."""
    items, sizes = slice(None) if record.asked.items is None else [*record.asked.items], np.array([len(record.action)])
    low, high = (
        values_each(problem, np.array(rows, float)[:, items], sizes, problem.weights[items])
        for rows in ([_fill_row(row, arm, record, problem, end) for arm, row in _rows_of(record)] for end in (0.0, 1.0))
    )
    return bool(low == high)


def _rows_of(record: DecisionRecord) -> Any:
    return zip(record.action, record.rows, strict=True)


def _fill_row(row: Any, arm: int, record: DecisionRecord, problem: Any, unseen: float = 0.0) -> Any:
    """One value per item: what fills those that were not seen, and 0 where the arm touches nothing."""
    support, fill = problem.support, {DEFAULTED: record.fill or 0.0, UNSEEN: unseen}
    told = row if min(row, default=0.0) >= 0.0 else [fill.get(x, x) for x in row]
    if not isinstance(support, Dense):
        values = np.zeros(problem.n_items)
        values[support.items[support.start[arm] : support.start[arm + 1]]] = told
        return values
    return [*told, *[0.0] * (problem.n_items - len(row))]  # items may have been added since it finished
