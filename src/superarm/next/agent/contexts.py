"""What a learner keeps of contexts: how many decisions each segment had, pending precision, and frames."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.next.agent.decisions import DecisionEntry
from superarm.next.agent.growth import grow_sums
from superarm.next.agent.outcomes import to_flat, to_rows
from superarm.next.context.context import Context, Contexts, EncodedContext
from superarm.next.context.design import Design, design_of
from superarm.next.context.encoding import hashed_words, name_coordinates
from superarm.next.context.frames import Frames
from superarm.next.context.models import ALL, ARMS
from superarm.next.context.sums import UNWEIGHTED, add_precision
from superarm.next.contextual.kept import carry_kept
from superarm.next.core.describe import build, describe
from superarm.next.core.support import Dense
from superarm.next.core.tally import Tally

if TYPE_CHECKING:
    from superarm.next.agent.learner import Learner
    from superarm.next.core.problem import Problem


class LearnerContexts:
    """The contexts of a learner.

    ``clock`` (n_segments,) counts the decisions of each segment, ``frames`` holds what standardised features need.
    ``pending`` is the precision of the ``n_pending`` decisions whose feedback has not come, in the shape of
    ``RegressionSums.precision``; None for segments.
    """

    def __init__(self, problem: "Problem", tally: Tally) -> None:
        context: Context = problem.context
        self.clock: Ints = np.zeros(context.n_segments, np.int64)
        self.frames = Frames(context)
        self.regression = context.dimension(problem.n_items) > 0
        self.pending: Floats | None = np.zeros_like(tally.moments.precision) if self.regression else None
        self.n_pending = 0

    def encode(self, problem: "Problem", given: Any, pairs: Any) -> EncodedContext:
        """A context as users give it, in the present frame."""
        if given is None and problem.context.features.size:
            raise InvalidArgument("context", "missing", f"give {problem.context.features.names}, as far as known")
        return problem.context.encode(given, self.frames.frame, problem.n_arms, pairs)  # type: ignore[no-any-return]

    def given(self, learner: "Learner", context: EncodedContext | Contexts) -> Contexts:
        """What the policy sees of a context: that of the next decision, or of one that was made."""
        if isinstance(context, EncodedContext):
            t = [self.clock[context.segment] + 1]
            context = Contexts.of([context], t, learner.problem.n_arms, self.frames.frame.version)
        return replace(context, pending=self.pending if self.n_pending else None, weights=None, shifts=None)

    def count_pending(self, learner: "Learner", action: Ints, made: Contexts, sign: float) -> None:
        """Add the precision of a decision to ``pending``; one of an earlier frame counts no longer."""
        if self.pending is None or made.weights is None or made.frame != self.frames.frame.version:
            return
        problem = learner.problem
        weights = _fit_rows(made.weights[0], action, action, problem.support.widest, 0.0)
        add_precision(
            self.pending, design_of(problem), problem.support, action[None], replace(made, weights=weights[None]), sign
        )
        self.n_pending += int(sign)

    def pass_time(self, made: Contexts) -> None:
        """A decision was made for its segment."""
        segment = made.segment[0]
        self.clock[segment] = max(self.clock[segment], made.t[0])

    def bring_up_to_date(self, learner: "Learner", given: Any, t: int) -> dict[str, list[str]] | None:
        """Count the context of a decision that was made, and begin the frame and take on the refit that are due.

        Returns the words of hashed features.
        """
        features = learner.problem.context.features
        if self.frames.in_use:
            self.frames.count(given)
            frame = self.frames.due()
            if frame is not None:
                self.frames.begin(frame)
                self.begin_frame(learner)
        learner.policy.refit(learner.problem, learner.memory, t)
        return hashed_words(features, given) if features.hashed else None

    def begin_frame(self, learner: "Learner") -> None:
        """Carry all sums to the present frame; decisions of earlier ones count no longer as pending precision."""
        held = learner.held
        if self.pending is not None:
            self.pending[...], self.n_pending = 0.0, 0
            learner.tally.moments.begin(self.frames)
        learner.renew(carry_kept(held, self.frames) if held is not None and "rows" in held else held)

    def fit(self, learner: "Learner", made: DecisionEntry, observed: Ints) -> Contexts:
        """The context of feedback to a decision, with a weight for every entry of ``observed``.

        A decision has none for arms that are not its own, and for items that came later.
        """
        given, action, widest = made.context, made.decision.action, learner.problem.support.widest
        if given.weights is None or (observed is action and given.weights.shape[2] == widest):
            return given  # type: ignore[no-any-return]
        otherwise = UNWEIGHTED if given.shifts is None else 0.0
        fitted = replace(given, weights=_fit_rows(given.weights[0], action, observed, widest, otherwise)[None])
        if given.shifts is not None:
            fitted.shifts = _fit_rows(given.shifts[0], action, observed, widest, 0.0)[None]
        return fitted

    def grow(self, after: "Problem", tally: Tally) -> None:
        """Take on a problem with more arms or items; ``tally`` is that of the smaller one."""
        self.frames.context = after.context
        if self.pending is not None:
            sums = tally.moments.like()
            sums.precision = self.pending
            self.pending = grow_sums(sums, after).precision

    # --- on disk ---

    def to_plain(self, tally: Tally) -> dict[str, Any]:
        """Everything but the pending precision, which follows from the decisions that are pending."""
        plain: dict[str, Any] = {"clock": self.clock.tolist()}
        if self.frames.in_use:
            by_frame = sorted(tally.moments.by_frame.items()) if self.regression else []
            sums = [[version, describe(a[0]), describe(b[0])] for version, (a, b) in by_frame]
            plain["frames"] = self.frames.to_plain() | {"sums": sums}
        return plain

    def from_plain(self, plain: dict[str, Any], tally: Tally) -> None:
        """Take on what ``to_plain`` described, with the sums of frames into ``tally``."""
        self.clock = np.array(plain["clock"], np.int64)
        if "frames" in plain:
            self.frames.from_plain(plain["frames"])
            if self.regression:
                sums = tally.moments
                sums.present, sums.maps = self.frames.frame.version, self.frames.user_maps()
                sums.by_frame = {n: (build(a)[None], build(b)[None]) for n, a, b in plain["frames"]["sums"]}

    def decision_to_plain(self, problem: "Problem", entry: DecisionEntry) -> dict[str, Any]:
        """What is stored with a decision."""
        given, action = entry.context, entry.decision.action
        plain = {"segment": int(given.segment[0]), "x": given.x[0].tolist(), "pairs": given.pairs.reshape(-1).tolist()}
        rows = {name: getattr(given, name) for name in ("weights", "shifts")}
        flat = {
            name: to_flat(problem.support, action, part[0]).tolist() for name, part in rows.items() if part is not None
        }
        return plain | {"weights": [], "frame": given.frame, "t": int(given.t[0])} | flat

    def decision_from_plain(self, problem: "Problem", plain: dict[str, Any], action: Ints, n_items: int) -> Contexts:
        """What ``decision_to_plain`` described, of a decision made when there were ``n_items`` items."""
        n_pair = problem.context.pairs
        pairs = np.array(plain["pairs"]).reshape(1, -1, n_pair) if n_pair else np.zeros((1, problem.n_arms, 0))
        made = Contexts(
            np.array([plain["segment"]]), np.array([plain["x"]], float), pairs, np.array([plain["t"]]), None
        )
        made.frame = plain["frame"]
        support = Dense(n_items, problem.n_arms) if isinstance(problem.support, Dense) else problem.support
        for name in ("weights", "shifts"):
            if plain.get(name):
                setattr(made, name, to_rows(support, action, np.array(plain[name], float))[None])
        return made

    # --- explanations ---

    def feature_effects(
        self, learner: "Learner", made: DecisionEntry, arm: int, most: int
    ) -> tuple[tuple[str, float], ...]:
        """The features of a regression that change the estimates of ``arm`` most, with their effects on its mean."""
        given: Contexts = made.context
        if not self.regression or given.frame != self.frames.frame.version:
            return ()
        policy: Any = learner.policy
        theta = policy.coefficients(learner.problem, learner.tally, learner.memory)[0]
        design, support = design_of(learner.problem), learner.problem.support
        pair = given.pairs[0, arm] if design.n_pair else np.zeros(0)
        u = design.own_features(given.x[0], np.array(arm), pair)
        first = arm * support.n_items if isinstance(support, Dense) else int(support.start[arm])
        width = support.n_items if isinstance(support, Dense) else int(support.widths[arm])
        groups = {ALL: [0], ARMS: [arm]}.get(design.sharing, list(range(first, first + width)))
        effects = np.mean([theta[g][: len(u)] * u for g in groups], axis=0)
        order = np.argsort(-np.abs(effects), kind="stable")[:most]
        names = feature_names(learner.problem.context, design, made.words or {})
        return tuple((names[n], float(effects[n])) for n in order if effects[n] != 0.0)


def feature_names(context: Context, design: Design, words: Mapping[str, list[str]]) -> list[str]:
    """The names of the coordinates of an entry's features that do not indicate its item.

    >>> from superarm.next.context import Features, models
    >>> from superarm.next.context.design import make_design
    >>> context = Context(Features(numeric=["age"]), arms=[[1.0], [0.5]], model=models.Linear(shared=True))
    >>> feature_names(context, make_design(context, 2, 1), {})
    ['intercept', 'age', 'arm feature 0', 'age × arm feature 0']
    """
    own_names = name_coordinates(context.features, words)
    user = (["intercept"] if design.n_user > len(own_names) else []) + own_names
    declared = context.arm_features.coordinates or [f"arm feature {n}" for n in range(context.arms.shape[1])]
    arm = (["intercept"] if design.arms.shape[1] > len(declared) or design.sharing != ALL else []) + declared
    arm = arm[: design.arms.shape[1]]
    own = [_product(a, b) for b in arm for a in user] if design.crossed else user + arm[1:]
    return own + [f"pair feature {n}" for n in range(design.n_pair)]


def _product(user: str, arm: str) -> str:
    parts = [name for name in (user, arm) if name != "intercept"]
    return " × ".join(parts) or "intercept"


def _fit_rows(rows: Floats, action: Ints, observed: Ints, widest: int, otherwise: float) -> Floats:
    """Rows of the arms ``observed`` (n, widest), those of ``action`` as they are; else ``otherwise``."""
    if observed is action and rows.shape[1] == widest:
        return rows
    fitted, place = np.full((len(observed), widest), otherwise), {j: n for n, j in enumerate(action.tolist())}
    for n, j in enumerate(observed.tolist()):
        if j in place:
            fitted[n, : rows.shape[1]] = rows[place[j]]
    return fitted
