"""Problem: what is to be learnt, without the true parameters."""

import math
from collections.abc import Iterable
from dataclasses import InitVar, replace
from functools import cached_property
from typing import Any

import numpy as np

from superarm.actions.base import Actions
from superarm.core.arrays import HUGE, Floats, Ints, arms, count, floats, probabilities
from superarm.core.component import Component, shorten
from superarm.core.errors import InvalidArgument
from superarm.core.support import AnySupport, Dense, Sparse
from superarm.core.tally import GRID, Feedback, Tally, View
from superarm.core.totals import MAX_ARMS, TotalTally, check_trials, joint_feedback
from superarm.output.labels import align, is_frame, numbered
from superarm.rewards import Coverage, Reward
from superarm.thresholds import Thresholds

UNBOUNDED = 1024.0
"""Outcomes without bounds lie in [-UNBOUNDED, UNBOUNDED]: they are recorded as multiples of 2^-14."""

MAX_DIMENSION = 2**31
"""Dimensions of a problem are below this."""


class Problem(Component):
    """A combinatorial semi-bandit problem: arms, items, weights, reward and action set.

    Parameters
    ----------
    n_arms, n_items
        How many arms there are to choose from, and how many items they can touch.
    reward
        The function from batches to numbers: ``Coverage()``, ``Logistic(c)``, ``Linear()``, or your own; ``Total()`` if
        only the total of a batch is seen.
    actions
        Which batches may be played, e.g. ``Subsets(k)`` or ``Explicit([...])``.
    weights
        The weight of each item, (n_items,), not negative; all 1 by default.
    support
        Which items each arm can touch: a SciPy sparse matrix of shape (n_arms, n_items) whose stored entries are the
        support. By default every arm can touch every item.
    context
        What is known of users and arms, if outcomes depend on it: ``superarm.Context(…)``.
    items
        Items that were learnt by ``superarm.items.learn``, in place of ``n_arms``, ``n_items``, ``weights`` and, unless
        it is given, the reward ``Coverage()``: ``Problem(items=items, actions=Subsets(5))``. Or ``Thresholds``, where
        every arm has a score and the best one counts: ``Problem(n_arms=5, items=Thresholds(0, 10), actions=…)``.
    thresholds
        The scale of scores; ``items`` sets it.
    bounds
        The range of outcomes, (low, high), for simulations of a sum of outcomes that are no shares: with ``Linear()``.
        Their sums are exact: outcomes are rounded to 2^-24 of the range. None is (-1024, 1024).

    Raises
    ------
    InvalidArgument
        If an argument is of the wrong type or out of range, or the action set does not fit the number of arms.

    Examples
    --------
    >>> from superarm.rewards import Coverage
    >>> from superarm.actions import Subsets
    >>> problem = Problem(n_arms=4, n_items=2, reward=Coverage(), actions=Subsets(2), weights=[1, 3])
    >>> p = [[0.5, 0.0], [0.5, 0.5], [0.0, 1.0], [0.1, 0.1]]
    >>> problem.value(p, [0, 1])
    2.25
    """

    n_arms: int = 0
    n_items: int = 0
    reward: Reward = None  # type: ignore[assignment]
    actions: Actions = None  # type: ignore[assignment]
    weights: Any = None
    support: Any = None
    context: Any = None
    items: InitVar[Any] = None
    thresholds: Thresholds | None = None
    bounds: Any = (0.0, 1.0)

    def __post_init__(self, items: Any) -> None:  # type: ignore[override]
        if isinstance(items, Thresholds):
            if self.n_items or self.weights is not None:
                raise InvalidArgument("items", "given beside what they say", "leave out n_items and weights")
            given = {"n_items": len(items), "weights": items.weights, "reward": self.reward or Coverage()}
            for name, value in {**given, "thresholds": items}.items():
                self.convert(name, value)
        elif items is not None:
            if self.n_arms or self.n_items or self.weights is not None:
                remedy = "leave out n_arms, n_items and weights, which they say"
                raise InvalidArgument("items", "given beside what they say", remedy)
            n_arms, n_items = items.p.shape
            learnt = {"n_arms": n_arms, "n_items": n_items, "weights": items.shares}
            for name, value in {**learnt, "reward": self.reward or Coverage()}.items():
                self.convert(name, value)
        if getattr(self.reward, "totals", False) and not self.n_items:
            self.convert("n_items", 1)
        super().__post_init__()

    def check(self) -> None:
        for name in ("n_arms", "n_items"):
            value = count(getattr(self, name), name, 1)
            if value >= MAX_DIMENSION:
                raise InvalidArgument(name, f"{value!r} is too large", f"give an int below {MAX_DIMENSION}")
            self.convert(name, value)
        self.require_family("reward", Reward, "Coverage()")
        self.require_family("actions", Actions, "Subsets(k)")
        self.actions.validate(self.n_arms)
        self.convert("weights", _parse_weights(self.weights, self.n_items))
        self.convert("support", _parse_support(self.support, self.n_arms, self.n_items))
        if self.context is not None:
            if not hasattr(self.context, "validate"):
                raise InvalidArgument("context", f"{shorten(repr(self.context))} is not a context", "give Context(…)")
            self.context.validate(self.n_arms, self.n_items)
        plain = self.context is None and isinstance(self.support, Dense) and not self.reward.totals
        if self.actions.alike is not None and not plain:
            wrong = "copies share what is learnt, and the problem has a context, a sparse support or the reward Total()"
            raise InvalidArgument("actions", wrong, "leave these out, or the copies")
        if self.thresholds is not None and len(self.thresholds) != self.n_items:
            wrong = f"{len(self.thresholds)} bins for {self.n_items} items"
            raise InvalidArgument("thresholds", wrong, "give items=Thresholds(…)")
        if self.reward.totals:
            self._check_totals()
        self.convert("bounds", _parse_bounds(self.bounds))
        if self.real:
            self._check_real()

    def _check_real(self) -> None:
        """Refuse what needs outcomes in [0, 1]."""
        if not self.reward.any_outcome:
            wrong = f"{self.bounds}, and {self.reward!r} is a reward of outcomes in [0, 1]"
            raise InvalidArgument("bounds", wrong, "take Linear(), or leave bounds out")
        if self.bounds[0] < 0.0 and not self.actions.any_worth:
            unknown = f"the best of {shorten(repr(self.actions))} is not known if arms can be worth less than 0"
            wrong = f"{self.bounds}, and {unknown}"
            raise InvalidArgument("bounds", wrong, "take Subsets, Paths, a matroid or Explicit, or bounds from 0 on")
        if self.thresholds is not None:
            raise InvalidArgument("bounds", "given beside a scale of scores", "leave it out")

    def _check_totals(self) -> None:
        """Refuse what does not go with totals."""
        if self.n_items != 1 or not isinstance(self.support, Dense):
            raise InvalidArgument(
                "n_items", f"{self.n_items} items, and a total has one", "leave out items and support"
            )
        if self.context is not None:
            raise InvalidArgument("context", "given beside Total()", "make one problem for each segment")
        if self.n_arms > MAX_ARMS:
            wrong = f"{self.n_arms} arms, of which only totals are seen"
            raise InvalidArgument("n_arms", wrong, f"give at most {MAX_ARMS}, or groups of arms")
        if self.weights[0] != 1.0:
            raise InvalidArgument("weights", "given beside Total()", "leave it out: totals are in [0, 1]")

    def __repr__(self) -> str:
        low, high = float(self.weights.min()), float(self.weights.max())
        weights = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        entries = "" if isinstance(self.support, Dense) else f", {self.n_entries} entries"
        items = f"{self.n_items} items of weight {weights}" if self.thresholds is None else repr(self.thresholds)
        parts = f"{self.n_arms} arms, {items}, {self.reward!r}"
        context = "" if self.context is None else ", with a context"
        bounds = f", outcomes in [{self.bounds[0]:g}, {self.bounds[1]:g}]" if self.real else ""
        return f"<Problem: {parts}, {shorten(repr(self.actions))}{entries}{context}{bounds}>"

    def parameters(self) -> dict[str, Any]:
        """The parameters by name; without a scale of scores and usual bounds, as it was before: equal digests."""
        given, usual = super().parameters(), {"thresholds": None, "bounds": (0.0, 1.0)}
        return {name: value for name, value in given.items() if name not in usual or value != usual[name]}

    def changed(self, **changes: Any) -> "Problem":
        """The same problem with other parameters.

        >>> from superarm.rewards import Linear
        >>> from superarm.actions import Subsets
        >>> Problem(4, 2, Linear(), Subsets(2)).changed(weights=[1, 3]).weights.tolist()
        [1.0, 3.0]
        """
        return type(self)(**(self.parameters() | changes))

    @cached_property
    def k(self) -> int:
        """The size of the largest batch, K."""
        return int(self.actions.capacity(self.n_arms))

    @property
    def n_entries(self) -> int:
        """How many parameters there are: n_arms * n_items, or the stored entries of the support."""
        return int(self.support.size)

    @property
    def real(self) -> bool:
        """Whether outcomes have other bounds than 0 and 1."""
        return bool(self.bounds != (0.0, 1.0))

    def require_shares(self, remedy: str) -> None:
        """Refuse a problem whose outcomes are not in [0, 1]."""
        if self.real:
            low, high = self.bounds
            raise InvalidArgument("problem", f"its outcomes are in [{low:g}, {high:g}]", remedy)

    @cached_property
    def unit(self) -> float:
        """A power of two that no outcome exceeds; 1 for outcomes in [0, 1]."""
        return float(2.0 ** math.ceil(math.log2(max(map(abs, self.bounds)))))

    def entries(self, p: Any, name: str = "p") -> Floats:
        """Parameters as users write them, (n_arms, n_items), as entries with one replication; refuse a wrong shape."""
        if is_frame(p):
            p, _ = align(p, numbered("arms", self.n_arms), numbered("items", self.n_items), name=name)
        low, high = (-1.0, 1.0) if self.reward.totals else self.bounds
        values = probabilities(p, name, low, high)
        dense = isinstance(self.support, Dense)
        right = (self.n_arms, self.n_items) if dense else (self.n_entries,)
        if values.shape not in (right, (self.n_entries,)):
            raise InvalidArgument(name, f"shape {values.shape}", f"give shape {right}, one row per arm")
        if hasattr(p, "tocsr") and not dense and Sparse.of(p) != self.support:
            remedy = "store exactly the entries of the support, zeros included"
            raise InvalidArgument(name, "stores other entries than the support", remedy)
        return self.support.to_entries(values)

    @property
    def floor(self) -> float:
        """What the empty batch is worth: that of the lowest score where items are thresholds, otherwise 0."""
        return 0.0 if self.thresholds is None else self.thresholds.floor

    def values(self, q: Floats, action: Ints) -> Floats:
        """The reward above ``floor`` of each batch of ``action`` (R, K), padded with -1, at the entries ``q``: (R,)."""
        return self.reward.values(self, q, action)

    def value(self, p: Any, action: Any) -> float:
        """The reward r(action; p) at the parameters ``p`` (n_arms, n_items); of thresholds in the units of scores."""
        return self.floor + float(self.values(self.entries(p), self.action(action)[None])[0])

    def gradient(self, p: Any, action: Any) -> Floats:
        """The derivatives of r(action; p) with respect to p, in the shape of p; zero for arms outside of ``action``."""
        flat = self.reward.gradient(self, self.entries(p), self.action(action))
        return self.support.to_user(flat[0])

    def gain(self, p: Any, action: Any, arm: int) -> float:
        """The marginal gain r(action + arm; p) - r(action; p); 0 for an arm of ``action``."""
        q, batch = self.entries(p), arms(action, "action", self.n_arms)
        new = int(arms([arm], "arm", self.n_arms)[0])
        if new in batch:
            return 0.0
        states = self.reward.states(self, q, batch[None])
        return float(self.reward.gains(self, states, q)[0, new])

    def action(self, action: Any) -> Ints:
        """Convert ``action`` to an array of arms; refuse a batch that may not be played."""
        batch = arms(action, "action", self.n_arms)
        if not self.actions.includes(batch, self.n_arms):
            remedy = f"play one of {shorten(repr(self.actions))}"
            raise InvalidArgument("action", f"{batch.tolist()} is outside the action set", remedy)
        return batch

    def new_tally(self, rows: int = 1, partial: bool = False) -> Tally:
        """A tally of no observations."""
        if self.reward.totals:
            return TotalTally(self.support, self.k, rows, partial)
        return Tally(self.support, rows, partial, self.unit)

    def view(self, tally: Tally | None = None, t: int = 1, keys: Any = None) -> View:
        """A view in which all arms are eligible and nothing is pending; of no observations by default."""
        tally = self.new_tally() if tally is None else tally
        keys = np.zeros(len(tally), np.uint64) if keys is None else keys
        everyone = np.ones((len(tally), self.n_arms), bool)
        pinned = np.tile(np.array(self.actions.pins, np.int64), (len(tally), 1))
        return View(t, tally, keys, tally.pulls, everyone, pinned)

    def shared(self, feedback: Feedback) -> Feedback:
        """Feedback with a row for each arm that learns from it: for all copies of an arm, where there are copies."""
        alike = self.actions.alike
        if alike is None:
            return feedback
        told, (_, most) = feedback.action, alike.shape
        rows = {name: getattr(feedback, name) for name in ("outcome", "seen")}
        rows = {name: None if part is None else np.repeat(part, most, axis=1) for name, part in rows.items()}
        action = np.where(told[:, :, None] < 0, -1, alike[told])
        return replace(feedback, action=action.reshape(len(told), -1), **rows)

    def past(
        self,
        arms: Any = None,
        outcomes: Any = None,
        seen: Any = None,
        contexts: Any = None,
        *,
        sets: Any = None,
        totals: Any = None,
        n: Any = 1,
    ) -> Tally:
        """The tally of past observations, for a warm start: of ``outcomes`` of arms, or of ``totals`` of sets.

        Parameters
        ----------
        arms
            The arm of each observation, (n,).
        outcomes
            One row per observation, (n, n_items); in a sparse problem, a row has the entries of its arm.
        seen
            Which outcomes were observed, in the same shape; all by default.
        contexts
            With segments, the context of each observation, as ``ask`` takes it, or the name of its segment.
        sets, totals, n
            The arms of each set that was shown, what each set did, and of how many trials that is the mean.
        """
        if self.reward.totals or sets is not None:
            return self._past_totals(sets, totals, n)
        n_segments = 1 if self.context is None else self.context.n_segments
        tally = Tally(self.support, n_segments, seen is not None, self.unit)
        chosen = _parse_arms(arms, self.n_arms)
        segments = self._segments(contexts, len(chosen), n_segments)
        if is_frame(outcomes) or is_frame(seen):
            outcomes, seen = align(outcomes, None, numbered("items", self.n_items), seen, "outcomes")
        marks = [None] * len(chosen) if seen is None else list(seen)
        rows = [self._row(j, row, mark) for j, row, mark in _aligned(chosen, list(outcomes), marks)]
        if rows:
            outcome, shown = (np.array(part)[:, None] for part in zip(*rows, strict=True))
            for segment, j, x, mark in zip(segments, chosen, outcome, shown, strict=True):
                given = Feedback(0, np.array([[j]]), x[None], None if seen is None else mark[None])
                tally.take(slice(segment, segment + 1)).record(self.shared(given))  # shares its memory
        return tally

    def _past_totals(self, sets: Any, totals: Any, n: Any) -> Tally:
        if sets is None or totals is None:
            raise InvalidArgument("sets", "missing, and the reward is Total()", "give past(sets=…, totals=…)")
        if not self.reward.totals:
            raise InvalidArgument(
                "sets", f"given with {self.reward!r}", "declare reward=Total(), or give arms, outcomes"
            )
        tally, trials = self.new_tally(), np.broadcast_to(n, (len(totals),)).tolist()
        for name, given in (("sets", sets), ("totals", totals)):
            if len(given) != len(trials):
                raise InvalidArgument(name, f"{len(given)} for {len(trials)} totals", "give one total for each set")
        for some, total, many in zip(sets, totals, trials, strict=True):
            own, y = arms(some, "sets", self.n_arms), floats(total, "totals", low=0.0, high=1.0)
            tally.record(joint_feedback(0, [(own.tolist(), float(y), check_trials(many))], len(own)))
        return tally

    def _segments(self, contexts: Any, n: int, n_segments: int) -> list[int]:
        """The segment of each of ``n`` past observations."""
        given = [0] * n if contexts is None and n_segments == 1 else contexts
        if given is None:
            wrong = f"missing, and there are {n_segments} segments"
            raise InvalidArgument("contexts", wrong, "give the context of each observation")
        if len(given) != n or (self.context is None and contexts is not None):
            wrong = "the problem has none" if self.context is None else f"{len(contexts)} for {n} observations"
            raise InvalidArgument("contexts", wrong, "give one for each observation of a problem with a context")
        return given if self.context is None else self.context.segments(given)

    def _row(self, arm: int, row: Any, mark: Any) -> tuple[Floats, Any]:
        """One observation as a row of outcomes and marks, padded to the widest arm."""
        width = self.n_items if isinstance(self.support, Dense) else int(self.support.widths[arm])
        seen = np.ones(np.shape(row), bool) if mark is None else np.asarray(mark, bool)
        for name, shape in (("outcomes", np.shape(row)), ("seen", seen.shape)):
            if shape != (width,):
                raise InvalidArgument(name, f"a row has shape {shape}", f"arm {arm} has {width} entries")
        outcome, shown = np.zeros(self.support.widest), np.ones(self.support.widest, bool)
        least = max(0.0, self.bounds[0])
        outcome[:width] = floats(np.where(seen, row, least), "outcomes", low=self.bounds[0], high=self.bounds[1])
        shown[:width] = seen
        return outcome, shown

    def prior(self, mean: Any, strength: int) -> Tally:
        """The tally of ``strength`` imagined binary observations of each arm with means ``mean`` (n_arms, n_items)."""
        whole = isinstance(strength, int | float | np.number) and 0 < strength < 2**29 and strength == int(strength)
        if not whole:
            raise InvalidArgument("strength", f"{strength!r}", "give a whole number of observations, at least 1")
        if self.reward.totals:
            raise InvalidArgument("mean", "given of arms, and the reward is Total()", "give past(sets=…, totals=…)")
        if self.real:
            raise InvalidArgument("mean", f"given of outcomes in {self.bounds}", "give past(arms, outcomes)")
        tally = Tally(self.support)
        tally.pulls[...] = float(strength)
        tally.total[...] = np.floor(self.entries(mean, "mean") * strength * GRID + 0.5) / GRID
        tally.square[...] = tally.total
        tally.refresh()
        return tally


def _aligned(chosen: Ints, rows: list[Any], marks: list[Any]) -> Iterable[tuple[int, Any, Any]]:
    for name, given in (("outcomes", rows), ("seen", marks)):
        if len(given) != len(chosen):
            raise InvalidArgument(name, f"{len(given)} rows for {len(chosen)} arms", "give one row per arm")
    return zip(chosen.tolist(), rows, marks, strict=True)


def _parse_arms(given: Any, n_arms: int) -> Ints:
    return np.array([int(arms([j], "arms", n_arms)[0]) for j in given], np.int64)


def _parse_weights(weights: Any, n_items: int) -> Floats:
    if weights is None:
        return np.ones(n_items)
    values = floats(weights, "weights", low=0.0, high=np.finfo(float).max)
    if values.shape != (n_items,):
        raise InvalidArgument("weights", f"shape {values.shape}", f"give one weight per item, shape ({n_items},)")
    if not values.any():
        raise InvalidArgument("weights", "all are zero", "give at least one item a positive weight")
    return values


def _parse_bounds(bounds: Any) -> tuple[float, float]:
    if bounds is None:
        return -UNBOUNDED, UNBOUNDED
    ends = floats(bounds, "bounds", low=-HUGE, high=HUGE)
    if ends.shape != (2,) or not ends[0] < ends[1] or np.abs(ends).max() > 2.0**40:
        raise InvalidArgument("bounds", f"{bounds!r}", "give (low, high) with low < high, or None")
    return float(ends[0]), float(ends[1])


def _parse_support(support: Any, n_arms: int, n_items: int) -> AnySupport:
    if support is None:
        return Dense(n_items, n_arms)
    made: AnySupport = support if isinstance(support, Dense | Sparse) else Sparse.of(support)
    if (made.n_arms, made.n_items) != (n_arms, n_items):
        raise InvalidArgument("support", f"shape ({made.n_arms}, {made.n_items})", f"give shape ({n_arms}, {n_items})")
    return made
