"""What an agent keeps of contexts: decisions of each segment, the precision of pending decisions, and frames.

An agent has one replication. Its steps are: ``encode`` what the caller gave, ``contexts`` for the policy's view,
``decide`` what is stored with the decision, ``pend`` it, and ``answer`` for the context of its feedback. After each
decision it counts the context (``frames.count``), begins the frame that is due (``begin_frame``), and its memory takes
the fit that is due. Frames and fits are steps of their own, so that a log can hold them as events.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from superarm.context.context import Contexts, EncodedContext
from superarm.context.design import design_of
from superarm.context.encoding import name_coordinates
from superarm.context.frames import Frame, Frames
from superarm.context.models import ALL
from superarm.context.sums import UNWEIGHTED, add_precision, grow_groups, triangle
from superarm.core.arrays import Floats, Ints
from superarm.core.support import AnySupport, Dense
from superarm.policies.memory import Memory
from superarm.problem import Problem

_NOTHING = np.zeros(0)


class DecisionContext(NamedTuple):
    """What is stored with a decision: its encoded context, the weights of its observations, and the frame's version.

    ``weights`` and ``shifts`` are those of ``Contexts``, of the entries of the decision's arms, flat, in the order of
    the action; empty if there are none. It is decision ``t`` of its segment, counted from 1.
    """

    encoded: EncodedContext
    weights: Floats
    frame: int
    t: int
    shifts: Floats = _NOTHING

    def to_plain(self) -> dict[str, Any]:
        """The same as plain data."""
        segment, x, pairs = self.encoded
        plain = {"segment": int(segment), "x": x.tolist(), "pairs": pairs.tolist(), "weights": self.weights.tolist()}
        more = {"shifts": self.shifts.tolist()} if self.shifts.size else {}
        return plain | {"frame": self.frame, "t": self.t} | more

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "DecisionContext":
        """What ``to_plain`` described."""
        encoded = EncodedContext(plain["segment"], np.array(plain["x"], float), np.array(plain["pairs"], float))
        weights, shifts = (np.array(plain.get(name, ()), float) for name in ("weights", "shifts"))
        return cls(encoded, weights, plain["frame"], plain["t"], shifts)


class ContextHistory:
    """The contexts of an agent.

    ``clock`` (n_segments,) counts the decisions of each segment, ``frames`` holds what standardised features need, and
    ``n_pending`` is how many arms of a regression are pending.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.frames = problem, Frames(problem.context)
        self.clock: Ints = np.zeros(problem.context.n_segments, np.int64)
        self._pending, self.n_pending = _NOTHING, 0
        self._waiting: dict[tuple[bytes, ...], tuple[Ints, Contexts, float]] = {}
        if problem.context.dimension(problem.n_items):
            design = design_of(problem)
            self._pending = np.zeros((1, design.n_groups(problem.support), triangle(design.d)))

    @property
    def pending(self) -> Floats | None:
        """The precision of decisions without feedback, (1, n_groups, d (d + 1) / 2); None for segments.

        Decisions are added when it is read: of most the feedback has come by then, and sums on the grid are exact, so
        that adding them and taking them out again would change nothing.
        """
        for arms, given, times in self._waiting.values():
            add_precision(self._pending, (design_of(self.problem), self.problem.support), arms[None], given, times)
        self._waiting = {}
        return self._pending if self._pending.size else None

    def encode(self, given: Any, pairs: Any = None) -> EncodedContext:
        """A context as users give it, in the present frame."""
        return self.problem.context.encode(given, self.frames.frame, self.problem.n_arms, pairs)

    def contexts(self, encoded: EncodedContext, t: int | None = None) -> Contexts:
        """The context of a view: that of decision ``t`` of its segment, by default the next one."""
        t = int(self.clock[encoded.segment]) + 1 if t is None else t
        given = Contexts.of([self._widen(encoded)], [t], self.problem.n_arms, self.frames.frame.version)
        given.pending = self.pending if self.n_pending else None
        return given

    def _widen(self, encoded: EncodedContext) -> EncodedContext:
        """The context with features of pairs for all arms: 0 for those that came later."""
        more = self.problem.n_arms * self.problem.context.pairs - len(encoded.pairs)
        return encoded._replace(pairs=np.pad(encoded.pairs, (0, more))) if more else encoded

    def decide(self, encoded: EncodedContext, weighed: Contexts, action: Ints) -> DecisionContext:
        """What is stored with a decision: ``weighed`` is what ``Policy.weigh`` returned for its arms (k,)."""
        flat = (_flatten(self.problem.support, part, action) for part in (weighed.weights, weighed.shifts))
        weights, shifts = flat
        return DecisionContext(encoded, weights, weighed.frame, int(weighed.t[0]), shifts)

    def answer(self, made: DecisionContext, action: Ints, observed: Ints, otherwise: float | None = None) -> Contexts:
        """The context of feedback to a decision about ``observed`` arms.

        A decision has no weights for arms that are not its own, and for items that came later: they are ``otherwise``,
        by default as unweighted observations of a linear model have them, and 0 for a logistic one.
        """
        given = Contexts.of([self._widen(made.encoded)], [made.t], self.problem.n_arms, made.frame)
        if not made.weights.size:
            return given
        otherwise = (0.0 if made.shifts.size else UNWEIGHTED) if otherwise is None else otherwise
        support = self.problem.support
        weights = _fit_rows(support, made.weights, action, observed, otherwise)
        shifts = _fit_rows(support, made.shifts, action, observed, 0.0) if made.shifts.size else None
        return replace(given, weights=weights, shifts=shifts)

    def pend(self, made: DecisionContext, action: Ints, arms: Ints, sign: float = 1.0) -> None:
        """Some arms of a decision wait for feedback, or no longer (``sign=-1.0``); one of an earlier frame never."""
        self.clock[made.encoded.segment] = max(self.clock[made.encoded.segment], made.t)
        if self._pending.size and made.frame == self.frames.frame.version:
            self.n_pending += int(sign) * len(arms)
            key = (arms.tobytes(), made.encoded.x.tobytes(), made.encoded.pairs.tobytes(), made.weights.tobytes())
            held = self._waiting.pop(key, None) or (arms, self.answer(made, action, arms, 0.0), 0.0)
            if held[2] + sign:
                self._waiting[key] = (*held[:2], held[2] + sign)

    def begin_frame(self, memory: Memory, frame: Frame) -> None:
        """Standardise by another frame from now on, and carry what is remembered over.

        Decisions of earlier frames count no longer as pending precision.
        """
        self.frames.begin(frame)
        if self._pending.size:
            self._pending[...], self._waiting, self.n_pending = 0.0, {}, 0
            memory.carry(self.frames)

    def grow(self, problem: Problem) -> None:
        """Take on a problem with more arms or items; the memory grows by itself."""
        pending, before = self.pending, self.problem
        self.problem, self.frames.context = problem, problem.context
        if pending is not None:
            old, new = (design_of(before), before.support), (design_of(problem), problem.support)
            self._pending = grow_groups(pending, old, new, triangle(new[0].d) - triangle(old[0].d))

    def effects(
        self, policy: Any, memory: Memory, made: DecisionContext, arm: int, words: Any = None
    ) -> dict[str, float]:
        """By how much each feature of a decision changes the mean of ``arm``'s estimates, by name; for explanations.

        Empty for segments, and in another frame than the present one. ``words`` are as in ``feature_names``.
        """
        if not self._pending.size or made.frame != self.frames.frame.version:
            return {}
        design, pairs = design_of(self.problem), self._widen(made.encoded).pairs.reshape(self.problem.n_arms, -1)
        theta = policy.coefficients(self.problem, memory)[0]
        u = design.own_features(made.encoded.x, np.array(arm), pairs[arm])
        groups = design.groups_of(self.problem.support, np.array([arm]))[0]
        effects = (theta[groups[groups >= 0], : len(u)] * u).mean(0)
        return dict(zip(feature_names(self.problem, words), effects.tolist(), strict=True))

    def to_plain(self) -> dict[str, Any]:
        """Everything but the pending precision, which follows from the decisions that are pending."""
        return {"clock": self.clock.tolist()} | ({"frames": self.frames.to_plain()} if self.frames.in_use else {})

    def from_plain(self, plain: Mapping[str, Any]) -> None:
        """Take on what ``to_plain`` described."""
        self.clock = np.array(plain["clock"], np.int64)
        if "frames" in plain:
            self.frames.from_plain(plain["frames"])


def feature_names(problem: Problem, words: Mapping[str, list[str]] | None = None) -> list[str]:
    """The names of the coordinates of an entry's features that do not indicate its item.

    ``words`` are those of the context's hashed features (``hashed_words``).

    >>> from superarm.actions import Subsets
    >>> from superarm.context import Context, Features, models
    >>> from superarm.problem import Problem
    >>> from superarm.rewards import Coverage
    >>> context = Context(Features(numeric=["age"]), arms=[[1.0], [0.5]], model=models.Linear(shared=True))
    >>> feature_names(Problem(2, 1, Coverage(), Subsets(1), context=context))
    ['intercept', 'age', 'arm feature 0', 'age × arm feature 0']
    """
    context, design = problem.context, design_of(problem)
    own = name_coordinates(context.features, words or {})
    user = ["intercept"] * (design.n_user - len(own)) + own
    declared = context.arm_features.coordinates or [f"arm feature {n}" for n in range(context.arms.shape[1])]
    arm = ["intercept"] * (design.arms.shape[1] - len(declared)) + declared if design.sharing == ALL else ["intercept"]
    pairs = [f"pair feature {n}" for n in range(design.n_pair)]
    if not design.crossed:
        return user + arm[1:] + pairs
    parts = [[name for name in (a, b) if name != "intercept"] for b in arm for a in user]
    return [" × ".join(names) or "intercept" for names in parts] + pairs


def _flatten(support: AnySupport, rows: Floats | None, action: Ints) -> Floats:
    """Rows (1, k, widest) of the entries of ``action`` (k,), one arm after the other."""
    if rows is None:
        return _NOTHING
    widths = np.full(len(action), support.n_items) if isinstance(support, Dense) else support.widths[action]
    return np.concatenate([_NOTHING, *(row[:width] for row, width in zip(rows[0], widths, strict=False))])


def _fit_rows(support: AnySupport, flat: Floats, action: Ints, observed: Ints, otherwise: float) -> Floats:
    """Numbers of the entries of ``action``, as rows (1, n, widest) of ``observed``; ``otherwise`` where it has none."""
    dense = isinstance(support, Dense)
    if dense and observed is action and len(flat) == len(action) * support.n_items:  # as most feedback is
        return flat.reshape(1, len(action), -1)
    widths = [len(flat) // len(action)] * len(action) if dense else support.widths[action].tolist()  # type: ignore[union-attr]
    own = dict(zip(action.tolist(), np.split(flat, np.cumsum(widths)[:-1]), strict=True))
    rows = np.full((1, len(observed), support.widest), otherwise)
    for n, arm in enumerate(observed.tolist()):
        row = own.get(arm, _NOTHING)
        rows[0, n, : len(row)] = row
    return rows
