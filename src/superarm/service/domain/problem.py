"""One problem of the service: the library's learner, with versions of settings and a history.

The random numbers of a decision are a function of the problem's key and the decision's id, so that feedback can come in
any order and be taken back exactly.
"""

import copy
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from superarm.actions import Actions
from superarm.agent import Learner
from superarm.agent.growth import support_with_arms
from superarm.context import EncodedContext
from superarm.context.design import design_of
from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.errors import SuperarmError
from superarm.core.support import Dense, Sparse
from superarm.core.tally import Feedback, Tally
from superarm.core.totals import whole_feedback
from superarm.decisions import counted_rows, open_record, pending_arms
from superarm.decisions.names import Names
from superarm.describe import build, describe
from superarm.problem import Problem
from superarm.service.domain import events
from superarm.service.domain.components import ActionSpec, SlotsSpec, to_actions
from superarm.service.domain.decision import DecisionRecord, past_of
from superarm.service.domain.decision_contexts import DecisionContexts
from superarm.service.domain.events import Asked, Created, Fitted
from superarm.service.domain.history import MAX_KEPT_ITEMS, Claims, History
from superarm.service.domain.learnt import LearntItems
from superarm.service.domain.lift import LiftSums
from superarm.service.domain.published import PublishedTables, Sums
from superarm.service.domain.spec import Settings, Words, to_policy, to_problem


class ProblemState:
    """The state of one problem; changed only by ``apply`` and ``move``.

    ``planned`` are decisions on their way to the log: they count as pending for those that are chosen after them.
    ``claimed`` is the last round that one of them was planned for. ``seen`` holds, for each log, the number of the last
    event that the state knows.
    """

    def __init__(self, created: Created, born: int = 0) -> None:
        spec = created.spec
        self.created, self.born = created, born
        self.actions = spec.actions
        settings = spec.settings
        policy = to_policy(settings.policy, Names(spec.arms, "arms"))
        self.learner = Learner(to_problem(spec), policy, spec.arms, spec.item_names)
        self.learnt = LearntItems(self.problem, spec.arms) if spec.items == "learn" else None
        self.contexts = None if spec.context is None else DecisionContexts(self.learner, spec.context.stored)
        self.versions: list[Settings] = [settings]
        self._policies = [(0, policy.cascade)]  # by version of the settings: the learner's version, and its lists
        self.warmed: dict[str, str] = {}
        self.summed = Sums()
        self.published = PublishedTables()
        self.step = born
        self.planned: list[Asked] = []
        self.claimed = 0
        self.seen: dict[str, int] = {}
        self.history = History(lift=LiftSums.begun(settings))
        self.come = 0  # how many arms were added since the list was given
        self.renewed = 0  # how often it was, since the control slate was
        self.guarded = False  # whether the guardrail lets the control slate be shown
        self._clock: Ints | None = None

    @property
    def arms(self) -> Names:
        """The names of all arms, retired ones included."""
        return self.learner.arms

    @property
    def items(self) -> Names:
        """The names of all items, retired ones included."""
        return self.learner.items

    @property
    def problem(self) -> Problem:
        return self.learner.problem

    @property
    def chooser(self) -> Learner:
        """What slates are chosen by: the learner, or that of the classes of visitors, where several were learnt."""
        if self.learnt is None or not self.learnt.in_force:
            return self.learner
        self.learnt.learner.pending = self.learner.pending
        return self.learnt.learner

    @property
    def retired(self) -> Bools:
        """Which arms are retired."""
        return self.learner.retired

    @property
    def decisions(self) -> int:
        """How many decisions were made, without those that were erased."""
        return self.history.decisions

    @property
    def triggered(self) -> bool:
        """Whether feedback may be about arms outside of the slate."""
        return self.created.spec.triggered

    @property
    def is_random(self) -> bool:
        """Whether the policy draws slates in a way of its own, apart from the exploration share."""
        return self.learner.policy.random and self.chooser is self.learner

    @property
    def whole_batches(self) -> bool:
        """Whether the policy scores whole slates, so that a part of one is not what it would choose."""
        return self.learner.policy.whole_batches and self.chooser is self.learner

    def as_created(self, settings: Settings) -> Created:
        """The event of the problem's creation, with other settings."""
        return replace(self.created, spec=replace(self.created.spec, settings=settings))

    @property
    def slot_names(self) -> list[str]:
        """The names of the slots, where these are the action set."""
        return list(self.actions.parameters.slots) if isinstance(self.actions, SlotsSpec) else []

    def items_of(self, arm: int) -> Ints | None:
        """The items that an arm can touch, in ascending order; None if these are all items."""
        support = self.problem.support
        return None if isinstance(support, Dense) else support.items[support.start[arm] : support.start[arm + 1]]

    def widths(self, arms: Sequence[int]) -> tuple[int, ...] | None:
        """How many items each of some arms can touch; None if that is all items."""
        support = self.problem.support
        return None if isinstance(support, Dense) else tuple(support.widths[list(arms)].tolist())

    @property
    def tally(self) -> Tally:
        """The counters."""
        return self.learner.tally

    @property
    def strata(self) -> dict[str, int]:
        """The parts that rewards are kept for, by name: items, and segments of the context, from -1 down."""
        segments = [] if self.contexts is None else self.contexts.segments
        named = {name: -1 - n for n, name in enumerate(segments)} if len(segments) <= MAX_KEPT_ITEMS else {}
        return named | {name: i for i, name in enumerate(self.items.all)}

    def overall(self, stratum: int | None = None) -> tuple[Tally, Floats]:
        """The counters and the pending pulls of each arm, over all contexts, or of the segment of a ``stratum``."""
        tally, pending = self.learner.tally, self.learner.pending
        if stratum is not None and stratum < 0:
            return tally.take([-1 - stratum]), pending[-1 - stratum]
        pending = pending.sum(0)
        if len(tally) == 1:
            return tally, pending
        whole = Tally(tally.support, 1, tally.partial)
        for name in Tally.SUMS:
            if getattr(tally, name).size:
                getattr(whole, name)[0] = getattr(tally, name).sum(0)
        whole.refresh()
        return whole, pending

    @property
    def settings(self) -> Settings:
        return self.versions[-1]

    @property
    def words(self) -> Words:
        """What people call arms, items and outcomes."""
        return self.settings.words or Words()

    @property
    def weighty_items(self) -> frozenset[int]:
        """The items that count: the reward is known if each of them was seen."""
        return frozenset(np.flatnonzero(self.problem.weights > 0.0).tolist())

    @property
    def work_size(self) -> int:
        """How many numbers a choice looks at, about."""
        problem = self.problem
        size = max(problem.n_entries, problem.k * problem.n_arms // 5, 1_000 * self.settings.propensity_draws)
        if problem.reward.totals:
            size = max(size, problem.n_arms**2)
        if self.contexts is not None and (d := problem.context.dimension(problem.n_items)):
            groups = design_of(problem).n_groups(problem.support)
            size = max(size, groups * d * d // 2, problem.k * problem.n_items * d * d // 50)
        return int(size)

    def flush(self) -> None:
        """Bring the history up to date: compute the rewards of decisions that have finished."""
        self.history.flush(self.problem, self._estimates)

    @property
    def _estimates(self) -> Claims | None:
        """Estimated parameters by arms and segments, and their problem; None for a regression."""
        if self.problem.reward.totals:
            return Claims(self.problem, self._share_rows) if self.learner.policy.needs_totals else None
        regression = self.contexts is not None and self.problem.context.dimension(self.problem.n_items)
        return None if regression else Claims(self.chooser.problem, self.estimate_rows)

    def estimate_rows(self, arms: Ints, segments: Ints) -> Floats:
        """The estimated parameters of some arms, each in a segment, (n, n_items)."""
        support, mean = self.chooser.problem.support, self.chooser.tally.mean
        found = np.empty((len(arms), self.chooser.problem.n_items))
        for segment in np.unique(segments):
            mine, rows = segments == segment, mean[segment : segment + 1]
            found[mine] = support.rows_to_items(support.rows(rows, arms[None, mine]), arms[None, mine], 0.0)[0]
        return found

    def _share_rows(self, arms: Ints, segments: Ints) -> Floats:
        """What arms are estimated to add to totals."""
        learner = self.learner
        view = learner.view(self.t, self.key("mind", ""))
        return learner.policy.estimates(learner.problem, view, learner.memory)[0][0].T[arms]

    @property
    def t(self) -> int:
        """The round that the next decision belongs to."""
        return max(self.learner.t, self.claimed) + 1

    def choose(
        self,
        key: Any,
        eligible: Bools,
        pinned: Sequence[int] = (),
        actions: Actions | None = None,
        context: EncodedContext | None = None,
        unit: str = "",
    ) -> list[int]:
        """A slate for the next round, around the ``pinned`` arms and in the order of picking; empty if there is none.

        ``actions`` are others than the problem's, for this choice alone; ``unit`` is whom it is for.
        """
        learner = self.chooser
        view = learner.view(self.t, key, eligible, pinned, context)
        if self.learnt is not None and learner is not self.learner:
            return [int(j) for j in self.learnt.choose(view, unit, actions)]
        if self.contexts is not None:
            self.contexts.view = view
        return [int(j) for j in learner.choose(view, actions)]

    def plan(self, asked: Asked) -> None:
        """A decision is on its way to the log: those after it see it as pending."""
        if self._clock is None and self.contexts is not None:
            self._clock = self.learner.contexts.clock.copy()
        self.claimed = max(self.claimed, asked.t)
        self.planned.append(asked)
        self._unpend(asked, asked.action, -1.0)

    def settle(self) -> None:
        """No decision is on its way any more: each is in the log and will be applied, or will never be."""
        for asked in self.planned:
            self._unpend(asked, asked.action)
        if self._clock is not None:
            self.learner.contexts.clock, self._clock = self._clock, None
        self.planned, self.claimed = [], 0

    def key(self, stream: str, id: str) -> Any:
        """The key of the random numbers that belong to a decision, (1,)."""
        return np.array([self.word(stream, id)], np.uint64)

    def word(self, stream: str, id: str) -> int:
        """64 random bits that belong to a decision."""
        return int.from_bytes(hashlib.sha256(f"{self.created.key}/{stream}/{id}".encode()).digest()[:8], "little")

    def apply(self, event: Any) -> None:
        """Apply one event of the problem's stream."""
        self.step += 1
        self.published.follow(event)
        if isinstance(event, events.Changed):
            self._change(event)
        elif isinstance(event, events.Armed):
            self._grow(event)
        elif isinstance(event, events.Itemed):
            self.flush()
            if event.add:
                self.learner.grow_items(event.add, event.weights)
            if event.retire:
                self.learner.retire_items(event.retire)
            self._compare_anew(self.settings, self.t - 1, frozen=True)
        elif isinstance(event, events.Guarded):
            self.guarded = event.fallback
        elif isinstance(event, events.Warmed):
            self.warmed[event.id] = event.body
            self.learner.warm_start(past_of(self.problem, event), event.t)
            if self.learnt is not None:
                self.learnt.warm(event)
        elif isinstance(event, events.Summed):
            self.summed.apply(event, self)
        elif isinstance(event, events.Learnt) and self.learnt is not None:
            self.learnt.apply(event)
        elif isinstance(event, Fitted):
            self.learner.memory.accept(_plan_of(event))
        elif self.contexts is not None:
            self.contexts.apply(event)

    def rehearse(self, event: Any) -> None:
        """Apply an event to a copy: one that the policy cannot take raises here, before it is in the log for good."""
        parts = ("learner", "learnt", "contexts", "history", "warmed", "summed", "published", "versions", "_policies")
        shared = {id(one): one for one in (self.problem, self.problem.support, *self.versions)}
        copied = copy.copy(self)
        try:
            copied.__dict__ |= copy.deepcopy({name: getattr(self, name) for name in parts}, shared)
        except Exception:  # what a policy of one's own keeps need not be possible to copy
            return
        copied.apply(event)

    def plan_fit(self, now: int, newest: Sequence[Asked] = ()) -> Fitted | None:
        """The event of what is due to be fitted, if there is something: without the decisions ``newest``."""
        memory, t = self.learner.memory, self.learner.asked
        silent = [asked for asked in newest if counted_rows(open_record(asked))]
        for asked in silent:
            self._count_silence(asked, -1.0)
        try:
            plan = memory.plan(t)
        finally:
            for asked in silent:
                self._count_silence(asked, 1.0)
        return None if plan is None else Fitted(now, t, {name: describe(p) for name, p in plan.items()}, events.ARRAYS)

    def _count_silence(self, asked: Asked, sign: float) -> None:
        """Count what a decision counts as before anything is told, or take it back."""
        context, (key, version) = None if self.contexts is None else self.contexts.restore(asked), self._own(asked)
        self.learner.count(asked, counted_rows(open_record(asked)), context, key, sign, version)

    def _grow(self, event: events.Armed) -> None:
        self.come += len(event.add)
        if event.add or event.actions is not None:
            more = enlarge(self.learner, event.add, event.actions, event.support)
            self.learner.grow_arms(event.add, *more, event.features)
            self.actions = event.actions or self.actions
            if self.learnt is not None:
                self.learnt.grow(self.problem, self.arms.all)
        self.learner.restore_arms(event.restore)
        self.learner.retire_arms(event.retire)

    def _compare_anew(self, settings: Settings, since: int, *, frozen: bool) -> None:
        begun = LiftSums.begun(settings, since)
        self.history.compare_anew(begun, self.settings.control_slate, frozen=frozen)
        self.published.compare_anew()

    def _change(self, event: events.Changed) -> None:
        if event.settings.policy != self.settings.policy:
            self.learner.change_policy(to_policy(event.settings.policy, self.arms), event.t)
        old, new = self.settings, event.settings
        if (new.policy.baseline, new.control_slate) != (old.policy.baseline, old.control_slate):
            self.come, self.renewed = 0, self.renewed + 1
        if new.control_slate != old.control_slate:
            self.renewed = 0
        if (new.control_slate, new.planned) != (old.control_slate, old.planned):
            self._compare_anew(new, event.t, frozen=False)
        self.guarded = self.guarded and event.settings.guardrail is not None
        self.versions.append(event.settings)
        self._policies.append((self.learner.version, self.learner.policy.cascade))

    def move(self, before: DecisionRecord | None, after: DecisionRecord) -> None:
        """Update the counters exactly for a decision that changed from ``before`` to ``after``."""
        asked = after.asked if before is None else before.asked
        share, (_, cascade) = self.versions[asked.version - 1].explore, self._policies[asked.version - 1]
        if before is None:
            self.learner.pend(after.action, asked.t, None if self.contexts is None else self.contexts.restore(asked))
            self._count_context(asked, 1)
            self.history.count_decision(asked, share)
            self.history.remember_slate(asked)
        elif after.closed == "erased":
            self.history.erase(before, self.problem, share, cascade)
            self._count_context(asked, -1)
        else:
            self.history.follow(before, after, self.problem, self._estimates, cascade)
        if self.problem.thresholds is not None:
            self.history.count_scores(before, after, self.problem.thresholds)
        self.follow(before, after)

    def follow(self, before: DecisionRecord | None, after: DecisionRecord) -> None:
        """Let the counters follow a decision that changed; its history stays."""
        asked = after.asked if before is None else before.asked
        context = None if self.contexts is None else self.contexts.restore(asked)
        self.learner.move(before, after, context, *self._own(asked))
        if self.learnt is not None and (before is None or counted_rows(before) != counted_rows(after)):
            self.learnt.record(asked, counted_rows(after))

    def _own(self, asked: Asked) -> tuple[Any, int]:
        """The key of the rounding of a decision's outcomes, and the version of the policy that made it."""
        return self.key("coin", asked.id), self._policies[asked.version - 1][0]

    def _count_context(self, asked: Asked, sign: int) -> None:
        """Count the context of a decision in the means of standardised features."""
        if asked.context is not None and asked.context.given is not None:
            self.learner.contexts.frames.count(asked.context.given, sign)

    def _unpend(self, asked: Asked, arms: tuple[int, ...], sign: float = 1.0) -> None:
        context = None if self.contexts is None or not arms else self.contexts.restore(asked)
        self.learner.unpend(list(arms), context, sign, list(asked.action))

    def place(self, record: DecisionRecord) -> None:
        """A decision of a snapshot is pending; its pulls are in the counters already."""
        arms = pending_arms(record)
        if self.contexts is not None and arms:
            made, action = self.contexts.restore(record.asked), np.array(record.asked.action, np.int64)
            self.learner.contexts.pend(made, action, np.array(arms, np.int64))


def rehearse(created: Created) -> None:
    """Choose and learn twice with a problem like this one, so that the kernels that it needs are compiled."""
    state = ProblemState(created)
    learner, context = state.learner, None
    if state.contexts is not None:
        features = state.problem.context.features
        given = [0.0] * features.d if features.d else {name: levels[0] for name, levels in features.levels.items()}
        context = state.contexts.encode(given, None)
    for t in (1, 2):
        view = learner.view(t, state.key("mind", ""), context=context)
        action = learner.choose(view)
        made = learner.weigh(view, action, context)
        feedback = Feedback(t, action[None], np.ones((1, len(action), state.problem.support.widest)))
        if state.problem.reward.totals:
            feedback = whole_feedback(t, action[None], np.ones(1))
        if made is not None:
            feedback.context = learner.contexts.answer(made, action, action)
        learner.apply(feedback, state.key("coin", ""))
        learner.pending += 1.0  # every arm was tried
    if state.learnt is not None and not state.learnt.in_force:
        state.learnt.rehearse()
        state.choose(state.key("mind", ""), ~state.retired)


def enlarge(
    learner: Learner, add: list[str], actions: ActionSpec | None, support: list[list[int]] | None
) -> tuple[Actions | None, Sparse | None]:
    """The action set and the support of a problem with more arms; None where they stay what they are."""
    names = Names([*learner.arms.all, *add], "arms")
    more = None if support is None else support_with_arms(learner.problem.support, support)
    return None if actions is None else to_actions(actions, names), more


def _plan_of(fitted: Fitted) -> dict[str, Any]:
    """What a policy fitted, unless an earlier version cannot know its form."""
    if fitted.arrays > events.ARRAYS:
        raise SuperarmError("a later version of superarm has fitted its policy; serve it with that version")
    return {name: build(part) for name, part in fitted.plan.items()}
