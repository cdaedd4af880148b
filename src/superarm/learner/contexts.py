"""What a learner keeps of contexts: how many decisions each segment had, pending precision, and frames."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm._repeated_calls import RepeatedCall, without_calls
from superarm.arrays import Bools, Floats, Ints
from superarm.candidates import Candidates
from superarm.context import Context, EncodedContext, Frame
from superarm.context.design import Design, make_design
from superarm.context.observations import ContextFeedback, ContextRound
from superarm.context.sums import UNWEIGHTED, record_sums
from superarm.errors import InvalidArgument
from superarm.learner.context_batch import choose_each_context
from superarm.learner.frames import FrameSums
from superarm.learner.growth import grow_sums
from superarm.learner.pending_precision import PendingPrecision
from superarm.parameters import has_method
from superarm.policies import PolicyState, plan_refit
from superarm.policies.base import fill_decision_weights, linearises
from superarm.policies.contextual.logistic import Logits
from superarm.policies.contextual.maximum_likelihood import Refit
from superarm.streams import Stream
from superarm.support import fit_rows, length
from superarm.tally import Feedback

if TYPE_CHECKING:
    from superarm.learner.learner import Learner
    from superarm.problem import Problem

_NOTHING, _NO_SHIFTS = np.zeros((0, 0)), np.zeros(0)


class DecisionContext(NamedTuple):
    """What is stored with a decision: its encoded context, the weights of its observations, and the frame's version.

    ``weights`` and ``shifts`` are those of ``ContextFeedback``, of the entries of the decision's arms, flat, in the
    order of the action.
    It is decision ``t`` of its segment, counted from 1.
    """

    encoded: EncodedContext
    weights: Floats
    frame: int
    t: int
    shifts: Floats = _NO_SHIFTS


class Contexts:
    """The contexts of a learner.

    ``clock`` (n_segments,) counts the decisions of each segment, ``claimed`` also those that are not handed out yet.
    ``frames`` holds what standardised features need.
    """

    def __init__(self, problem: "Problem", context: Context) -> None:
        self.context = context
        self.clock: Ints = np.zeros(context.n_segments, np.int64)
        self.frames = FrameSums(context)
        d = context.dimension(problem.n_items)
        self.design: Design | None = make_design(context, problem.n_arms, problem.n_items) if d else None
        self._pending = None if self.design is None else PendingPrecision(self.design, problem.support)
        self.claimed: Ints = np.zeros(context.n_segments, np.int64)
        self._choice: tuple[Any, Any] = (None, None)
        self._linearises = False
        self._seen: Bools = np.ones(0, bool)  # of the last pending decision: nothing of it is unseen
        self.renew_calls()

    def renew_calls(self) -> None:
        """Let calls of kernels hold on to nothing that was there before."""
        self._fill_weights, self.choose_each = RepeatedCall(fill_decision_weights), RepeatedCall(choose_each_context)

    def __getstate__(self) -> dict[str, Any]:
        return without_calls(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.renew_calls()

    def grow(self, before: "Problem", after: "Problem") -> None:
        """Take on a problem with more arms or items."""
        assert after.context is not None
        self.context = self.frames.context = after.context
        if self._pending is not None:
            self.design = make_design(after.context, after.n_arms, after.n_items)
            self._pending.grow(self.design, after.support, lambda sums: grow_sums(sums, before, after))
            self.frames.change(lambda sums: grow_sums(sums, before, after))

    @property
    def pending(self) -> Floats:
        """The precision of decisions whose feedback has not come, in the shape of ``ContextTally.precision``.

        Empty for segments.
        """
        return _NOTHING if self._pending is None else self._pending.read()

    @property
    def pending_shape(self) -> tuple[int, int]:
        """The shape of ``pending``: to read that may take long, since decisions are added to it then."""
        return (0, 0) if self._pending is None else self._pending.shape

    def take_pending(self, pending: Floats) -> None:
        """Take on another precision of pending decisions, to which some were added elsewhere."""
        if self._pending is not None:
            self._pending.take(pending)

    def encode(self, problem: "Problem", given: Any, pairs: Any) -> EncodedContext:
        """A context as users give it, in the present frame."""
        return self.context.encode(given, self.frames.frame, problem.n_arms, pairs)

    def current_round(
        self, learner: "Learner", eligible: Bools, context: EncodedContext, round: int, t: int | None = None
    ) -> ContextRound:
        """What the policy sees when it chooses for ``context``: decision ``t`` of its segment, by default the next."""
        n_arms, segment = learner.problem.n_arms, context.segment
        part = slice(segment * n_arms, (segment + 1) * n_arms)
        counts = learner.tally.pulls[part] + learner.pending[part]
        tally: Any = learner.tally
        decision = self._next(segment) if t is None else t
        pending = _NOTHING if self._pending is None or self._pending.empty else self._pending.read()
        return ContextRound(decision, tally, Candidates(counts, eligible), context, pending, round)

    def nothing(self, t: int) -> ContextFeedback:
        """Feedback of round ``t`` about no arm."""
        none, user = np.zeros(0), self.design.n_user if self.design is not None else 0
        encoded = EncodedContext(0, np.zeros(user), none)
        return ContextFeedback(t, np.zeros(0, np.int64), none, np.zeros(0, bool), encoded, none, none)

    def keep_choice(self, fitted: Any, memory: Any) -> None:
        """Keep what the policy computed when it chose, for the weights of ``decide``."""
        self._linearises = self._linearises if self._choice[0] is fitted else bool(linearises(fitted))
        self._choice = fitted, memory

    def decide(self, learner: "Learner", action: Ints, encoded: EncodedContext) -> DecisionContext:
        """What is stored with a decision for the context of the last choice; ``action`` need not be that choice."""
        fitted, memory = self._choice
        support = learner.problem.support
        n = 0 if self.design is None else length(support, action)
        weights, shifts = np.zeros(n), np.zeros(n) if self._linearises else _NO_SHIFTS
        self._fill_weights(fitted, memory, support, action, weights, shifts)
        return DecisionContext(encoded, weights, self.frames.frame.version, self._next(encoded.segment), shifts)

    def _next(self, segment: int) -> int:
        return int(max(self.clock[segment], self.claimed[segment])) + 1

    def next_decisions(self, segments: Sequence[int]) -> list[int]:
        """Which decision of its segment each of some decisions is that are made one after the other."""
        last, numbers = dict[int, int](), list[int]()
        for segment in segments:
            last[segment] = last[segment] + 1 if segment in last else self._next(segment)
            numbers.append(last[segment])
        return numbers

    def pend(self, learner: "Learner", action: Ints, t: int, made: DecisionContext) -> None:
        """The batch of round ``t`` was handed out."""
        segment = made.encoded.segment
        self.pass_time(learner, t, segment, made.t)
        learner.unpend(self.cells(learner, action, segment), -1.0)
        self.count_pending(learner, (action, made), action, 1.0)

    def pass_time(self, learner: "Learner", t: int, segment: int, decision: int) -> None:
        """Round ``t`` was that of a decision, which is number ``decision`` of its segment."""
        self.clock[segment] = max(self.clock[segment], decision)
        learner.pend((), t)

    def begin_frame(self, learner: "Learner", frame: Frame) -> None:
        """Standardise by another frame from now on; decisions of earlier ones count no longer as pending precision."""
        self.frames.begin(frame)
        if self._pending is not None:
            self._pending.clear()
        state = learner.state
        if state is not None and state.kept is not None and self.design is not None:
            state = state._replace(kept=self.frames.carry_kept(self.design, state.kept))
        self._carry(learner, state)

    def bring_up_to_date(self, learner: "Learner", given: Any) -> None:
        """Count the context of a decision that was made, and begin the frame and take on the refit that are due."""
        if self.frames.in_use:
            self.frames.count(given)
            frame = self.frames.due()
            if frame is not None:
                self.begin_frame(learner, frame)
        refit = self.plan_refit(learner) if self.refit_due(learner) else None
        if refit is not None:
            self.take_refit(learner, refit)

    def plan_refit(self, learner: "Learner") -> Refit | None:
        """The refit of a logistic model that is due after the last choice."""
        found: Refit | None = plan_refit(learner.fitted, learner.problem, learner.memory, learner.asked)
        return found

    def refit_due(self, learner: "Learner") -> bool:
        """Whether ``plan_refit`` would find one."""
        return isinstance(learner.memory, Logits) and bool(learner.memory.kept.due[0])

    def take_refit(self, learner: "Learner", refit: Refit) -> None:
        """Take on a refit, one of this learner or of another one with the same history."""
        hooks: Any = learner.fitted
        if has_method(hooks, "take_refit"):
            hooks.take_refit(learner.problem, learner.memory, refit)

    def cells(self, learner: "Learner", arms: Ints | Sequence[int], segment: int) -> Ints:
        """Where arms are in counts that hold all segments one after the other."""
        numbers = np.asarray(arms, np.int64)
        return numbers + segment * learner.problem.n_arms if segment else numbers

    def take_back(
        self, learner: "Learner", decided: tuple[Ints, DecisionContext], arms: Ints, sign: float = 1.0
    ) -> None:
        """Some arms of a decision, given by its arms and its context, are pending no longer (``sign=-1.0``: again)."""
        learner.unpend(self.cells(learner, arms, decided[1].encoded.segment), sign)
        self.count_pending(learner, decided, arms, -sign)

    def count_pending(self, learner: "Learner", decided: tuple[Ints, DecisionContext], arms: Ints, sign: float) -> None:
        """Add the precision of some arms of a decision to ``pending``; one of an earlier frame counts no longer."""
        made = decided[1]
        if self._pending is not None and made.frame == self.frames.frame.version and len(arms) and made.weights.size:
            weights, shifts = self._fit_weights(learner, arms, decided, 0.0)
            if len(self._seen) != len(weights):
                self._seen = np.ones(len(weights), bool)
            self._pending.count(ContextFeedback(0, arms, weights, self._seen, made.encoded, weights, shifts), sign)

    def apply(
        self,
        learner: "Learner",
        told: Feedback,
        decided: tuple[Ints, DecisionContext],
        stream: Stream,
        sign: float,
        version: int,
    ) -> None:
        """Record feedback to a decision, given by its arms and its context, or take it back, exactly."""
        made = decided[1]
        otherwise = 0.0 if made.shifts.size else UNWEIGHTED
        weights, shifts = self._fit_weights(learner, told.action, decided, otherwise)
        feedback: Any = ContextFeedback(told.t, told.action, told.outcome, told.seen, made.encoded, weights, shifts)
        if self.frames.in_use and self.design is not None:
            tally: Any = learner.tally
            precision, response = self.frames.own(made.frame, (tally.precision, tally.response))
            own = tally._replace(precision=precision, response=response)
            record_sums(own, self.design, learner.problem.support, feedback, sign)
            if made.frame != self.frames.frame.version:
                learner.apply(feedback._replace(weights=np.zeros_like(weights)), stream, sign, version)  # counts alone
                hooks: Any = learner.fitted
                if has_method(hooks, "keep_late"):
                    hooks.keep_late(learner.problem, learner.memory, feedback, made.frame, sign)
                return self._carry(learner, learner.state)
        learner.apply(feedback, stream, sign, version)

    def _carry(self, learner: "Learner", state: PolicyState | None) -> None:
        """Let the tally hold the sums of all frames, carried to the present one, beside what the policy keeps."""
        if self.design is not None:
            tally: Any = learner.tally
            precision, response = self.frames.carry_sums(self.design, (tally.precision, tally.response))
            carried = tally._replace(precision=precision, response=response)
            learner.restore(carried, learner.pending, learner.asked, state)

    def to_plain(self) -> dict[str, Any]:
        """Everything but the pending precision, which follows from the decisions that are pending."""
        plain: dict[str, Any] = {"clock": self.clock.tolist()}
        return plain | ({"frames": self.frames.to_plain()} if self.frames.in_use else {})

    def from_plain(self, plain: dict[str, Any]) -> None:
        """Take on what ``to_plain`` described."""
        self.clock = np.array(plain["clock"], np.int64)
        if "frames" in plain:
            self.frames.from_plain(plain["frames"])

    def _fit_weights(
        self, learner: "Learner", observed: Ints, decided: tuple[Ints, DecisionContext], otherwise: float
    ) -> tuple[Floats, Floats]:
        """Weights and shifts of the entries of ``observed``; the weight ``otherwise`` where a decision has none.

        It has none for arms that are not its own, and for items that came later.
        """
        action, made = decided
        if observed is action and len(made.weights) == len(action) * learner.problem.n_items:
            return made.weights, made.shifts  # one for each of the arms' entries: no item came later
        support = learner.problem.support
        weights = fit_rows(support, made.weights, action, observed, otherwise)
        return weights, fit_rows(support, made.shifts, action, observed, 0.0)


def require_context(problem: "Problem", given: Any, pairs: Any) -> None:
    """Refuse a context that the problem does not declare, and a missing one that it needs."""
    if problem.context is None and (given is not None or pairs is not None):
        raise InvalidArgument("context", "the problem has none", "declare it: Problem(…, context=Context(…))")
    if problem.context is not None and given is None and problem.context.features.size:
        raise InvalidArgument("context", "missing", f"give {problem.context.features.names}, as far as known")


def decision_to_plain(made: DecisionContext) -> dict[str, Any]:
    """What is stored with a decision, as plain data."""
    segment, x, pairs = made.encoded
    return {
        "segment": segment,
        "x": x.tolist(),
        "pairs": pairs.tolist(),
        "weights": made.weights.tolist(),
        "frame": made.frame,
        "t": made.t,
    } | ({"shifts": made.shifts.tolist()} if made.shifts.size else {})


def decision_from_plain(plain: dict[str, Any]) -> DecisionContext:
    """What ``decision_to_plain`` described."""
    encoded = EncodedContext(plain["segment"], np.array(plain["x"], float), np.array(plain["pairs"], float))
    weights, shifts = (np.array(plain.get(name, ()), float) for name in ("weights", "shifts"))
    return DecisionContext(encoded, weights, plain["frame"], plain["t"], shifts)
