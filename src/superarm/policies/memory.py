"""Memory: what a policy knows, one value with one owner.

A memory holds the sums of all observations, which are additive and exact, and whatever else its policy has: what is
derived from the sums, what was fitted to them, and what follows from neither. Nobody outside of the policy knows more
of it than this contract. Agents, simulations, the service, segments, windows and files use nothing else.
"""

from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from superarm.core.arrays import Ints
from superarm.core.moments import MomentTally
from superarm.core.tally import Feedback, Tally
from superarm.problem import Problem

Arrays = dict[str, Any]
"""Arrays and numbers by name; the names of parts are ``inside`` their owner's."""

NEVER = 1 << 62
"""A round that does not come."""


class Memory:
    """What a policy knows: by default the sums of all observations.

    ``tally`` has one row for each replication; on a problem with segments, one for each replication and segment, those
    of a replication one after the other. Feedback for decisions of rounds up to ``begun`` is not known to this memory:
    it changes the tally alone.

    A subclass overrides what it has more of. What follows from the tally is derived in ``adopt``, or when it is needed.
    What does not is counted in ``note``. It is named in ``by_row`` (arrays with a row for each of the tally's, made
    before ``super().__init__``), or goes through ``refill``, ``inherit``, ``grown``, ``beside`` and ``take_beside``.

    >>> import superarm as sa
    >>> problem = sa.Problem(3, 1, sa.Coverage(), sa.Subsets(1))
    >>> memory = sa.bc_ucb().new_memory(problem, 1)
    >>> memory.learn(Feedback(1, np.array([[2]]), np.array([[[1.0]]])))
    >>> memory.tally.pulls
    array([[0., 0., 1.]])
    """

    divisible: ClassVar[bool] = True
    """Whether ``take`` and ``put`` work; otherwise segments have one memory each."""
    by_row: ClassVar[tuple[str, ...]] = ()
    """The names of arrays with a row for each of the tally's, which begin with zeros. A last axis with a place for each
    arm grows. Where sums are replaced, as in windows, they begin anew."""
    begun = -1
    due = NEVER
    """The round from which on ``plan`` has something, as far as it is known."""
    tally: Tally

    def __init__(self, policy: Any, problem: Problem, rows: int = 1, partial: bool = False) -> None:
        self.policy, self.problem = policy, problem
        self.adopt(self.new_tally(rows, partial))

    def __len__(self) -> int:
        return len(self.tally)

    def new_tally(self, rows: int, partial: bool) -> Tally:
        """A tally of no observations."""
        return self.problem.new_tally(rows, partial)

    def adopt(self, tally: Tally) -> None:
        """Take on other sums of all observations, and derive anew what follows from them."""
        self.tally = tally

    @property
    def only_sums(self) -> bool:
        """Whether the tally is all there is, so that a kernel may play on it."""
        return type(self) is Memory

    # --- observations ---

    def learn(self, feedback: Feedback, weight: float = 1.0) -> None:
        """Record feedback for the round of its decision; with ``-weight`` it is taken back.

        Weights are powers of 1/2, so sums are exact and taken back exactly. Fits are not undone.
        """
        known = feedback.t > self.begun
        self.tally.record(feedback, weight, known)
        if known:
            self.note(feedback, weight)

    def note(self, feedback: Feedback, weight: float) -> None:
        """Remember more of feedback than the sums, or take it back; nothing by default."""

    def warm(self, past: Tally, t: int, weight: float = 1.0) -> None:
        """Add past data or a prior, which count for round ``t``; what was fitted without them goes."""
        self.tally.add(past, weight)
        self.adopt(self.tally)

    def refill(self, sums: Tally) -> None:
        """Take on sums of other observations, as when a window moves: fits stay, what follows from neither goes."""
        self.adopt(sums)
        for name in self.by_row:
            setattr(self, name, np.zeros_like(getattr(self, name)))

    def inherit(self, old: "Memory", t: int) -> None:
        """Take on, as a new memory, what that of another policy knows; it counts for round ``t``.

        What does not follow from the tally begins after round ``t``.
        """
        self.warm(old.tally, t)
        if self.by_row:
            self.begun = t

    # --- time ---

    def advance(self, t: int) -> None:
        """Time goes on to round ``t``: what is too old is forgotten. This follows from ``t`` alone."""

    def at(self, t: int) -> Self:
        """The memory to choose with in round ``t``: itself, or a copy that has moved on. It changes nothing."""
        return self

    def plan(self, t: int, within: int = NEVER) -> Arrays | None:
        """What is due to be fitted after the choice of round ``t``, before its feedback; it changes nothing.

        It may be slow. The next one is due ``within`` so many rounds.
        """
        return None

    def accept(self, plan: Arrays) -> None:
        """Take on a plan, of this memory or of one with the same history: this is what a log replays."""

    def carry(self, frames: Any) -> None:
        """The coordinates of features have changed to those of the present one of ``frames``."""

    # --- parts, and other problems ---

    def take(self, rows: Any) -> Self:
        """The memory of some rows: a slice of them shares its arrays."""
        part = copy(self)
        for name in self.by_row:
            setattr(part, name, getattr(self, name)[rows])
        part.adopt(self.tally.take(rows))
        return part

    def put(self, rows: Any, part: Self) -> None:
        """Let some rows be those of ``part``, which ``take`` returned."""
        self.tally.put(rows, part.tally)
        for name in self.by_row:
            getattr(self, name)[rows] = getattr(part, name)

    def on(self, problem: Problem) -> Self:
        """This memory for one choice on a problem with other actions or weights."""
        part = copy(self)
        part.problem = problem
        return part

    def grown(self, problem: Problem, t: int) -> Self:
        """A memory of the same for a problem with more arms or items, or other weights, after round ``t``."""
        new = copy(self)
        new.problem = problem
        for name in self.by_row:
            setattr(new, name, with_more_arms(getattr(self, name), self.problem, problem))
        new.adopt(self.tally.grown(problem))
        return new

    # --- files ---

    def to_arrays(self) -> Arrays:
        """All that does not follow from the problem and the policy; equal memories give equal arrays."""
        return self.tally.to_arrays() | self.beside()

    def from_arrays(self, arrays: Mapping[str, Any]) -> Self:
        """Take on, as a new memory, what ``to_arrays`` returned."""
        self.adopt(self.tally.from_arrays(dict(arrays)))
        self.take_beside(arrays)
        return self

    def beside(self) -> Arrays:
        """What does not follow from the tally either."""
        begun = {} if self.begun < 0 else {"begun": np.array(float(self.begun))}
        return begun | {name: getattr(self, name) for name in self.by_row}

    def take_beside(self, arrays: Mapping[str, Any]) -> None:
        """Take on what ``beside`` returned."""
        if "begun" in arrays:
            self.begun = int(arrays["begun"])
        for name in self.by_row:
            setattr(self, name, np.array(arrays[name]))


class MomentMemory(Memory):
    """The tally with moments of the arms: a policy says in ``moments(problem, rows)`` which."""

    tally: MomentTally

    def new_tally(self, rows: int, partial: bool) -> Tally:
        return MomentTally(self.problem.support, self.policy.moments(self.problem, rows), partial)

    def inherit(self, old: Memory, t: int) -> None:
        """Moments that the old memory has not are begun anew."""
        self.begun = old.begun if self.tally.take_over(old.tally, t) else t
        self.adopt(self.tally)

    def grown(self, problem: Problem, t: int) -> Self:
        new = super().grown(problem, t)
        if problem.n_items > self.problem.n_items:
            new.begun = t
        return new


class SplitMemory(Memory):
    """One memory for each row, of a policy whose memory cannot be split. The rows of ``tally`` are theirs."""

    def __init__(self, policy: Any, problem: Problem, rows: int, partial: bool = False) -> None:
        self.parts = [policy.new_memory(problem, 1, True) for _ in range(rows)]
        super().__init__(policy, problem, rows, True)

    def adopt(self, tally: Tally) -> None:
        tally.allow_missing()  # now, so that parts share its arrays from now on
        super().adopt(tally)
        self.parts = [copy(part) for part in self.parts]
        for part, rows in self._each():
            part.adopt(tally.take(rows))

    def _each(self) -> list[tuple[Memory, slice]]:
        return [(part, slice(r, r + 1)) for r, part in enumerate(self.parts)]

    def learn(self, feedback: Feedback, weight: float = 1.0) -> None:
        for part, rows in self._each():
            part.learn(feedback.of_rows(rows), weight)

    def warm(self, past: Tally, t: int, weight: float = 1.0) -> None:
        for part, rows in self._each():
            part.warm(past.take(rows), t, weight)

    def refill(self, sums: Tally) -> None:
        self.adopt(sums)
        for part in self.parts:
            part.refill(part.tally)

    def inherit(self, old: Memory, t: int) -> None:
        for n, (part, rows) in enumerate(self._each()):
            part.inherit(old.parts[n] if isinstance(old, SplitMemory) else _Sums(old.tally.take(rows)), t)

    @property
    def due(self) -> int:  # type: ignore[override]
        """The first round that is due in a row."""
        return min(part.due for part in self.parts)

    def plan(self, t: int, within: int = NEVER) -> Arrays | None:
        plans = [part.plan(t, within) for part in self.parts]
        return join(plans) if any(plan is not None for plan in plans) else None

    def accept(self, plan: Arrays) -> None:
        for part, own in zip(self.parts, split(plan, len(self.parts)), strict=True):
            if own:
                part.accept(own)

    def take(self, rows: Any) -> Self:
        chosen = copy(self)
        chosen.tally, chosen.parts = self.tally.take(rows), [self.parts[r] for r in np.arange(len(self.parts))[rows]]
        return chosen

    def put(self, rows: Any, part: Self) -> None:
        """What ``take`` returned has the memories themselves."""

    def on(self, problem: Problem) -> Self:
        chosen = super().on(problem)
        chosen.parts = [part.on(problem) for part in self.parts]
        return chosen

    def grown(self, problem: Problem, t: int) -> Self:
        new = copy(self)
        new.problem, new.parts = problem, [part.grown(problem, t) for part in self.parts]
        new.adopt(self.tally.grown(problem))
        return new

    def beside(self) -> Arrays:
        return join([part.beside() for part in self.parts])

    def take_beside(self, arrays: Mapping[str, Any]) -> None:
        for part, own in zip(self.parts, split(arrays, len(self.parts)), strict=True):
            part.take_beside(own)


class _Sums(Memory):
    """Nothing but sums that are there already."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally


def new_rows(policy: Any, problem: Problem, rows: int, partial: bool = False) -> Memory:
    """A memory of which single rows can be taken."""
    made: Memory = policy.new_memory(problem, rows, partial)
    return made if made.divisible else SplitMemory(policy, problem, rows, partial)


def segment_rows(given: Any, n_segments: int, rows: int) -> Ints:
    """The row of each replication's segment in a tally with ``rows``, (R,), which may be those of one replication."""
    first = np.arange(len(given.segment)) * n_segments if rows > n_segments else 0
    return given.segment + first


def record_rows(tally: Tally, feedback: Feedback, n_segments: int, weight: float, known: bool = True) -> None:
    """Record feedback in the rows of its segments."""
    if n_segments == 1:
        tally.record(feedback, weight, known)
        return
    if feedback.seen is not None and not feedback.seen.all():
        tally.allow_missing()
    at = one_or_many(segment_rows(feedback.context, n_segments, len(tally)))
    own = tally.take(at)
    own.record(feedback, weight, known)
    tally.put(at, own)


def one_or_many(rows: Ints) -> Any:
    """The rows as an index; a single one as a slice, whose arrays are shared and not copied."""
    return slice(int(rows[0]), int(rows[0]) + 1) if len(rows) == 1 else rows


def with_more_arms(values: Any, before: Problem, after: Problem) -> Any:
    """An array with zeros for new arms, if its last axis has a place for each arm."""
    more, shape = after.n_arms - before.n_arms, np.shape(values)
    if not shape or shape[-1] != before.n_arms:
        return values
    return np.pad(values, [(0, 0)] * (len(shape) - 1) + [(0, more)])


def inside(arrays: Mapping[str, Any], owner: str) -> Arrays:
    """The arrays of an owner, by their names there."""
    return {name[len(owner) + 1 :]: part for name, part in arrays.items() if name.startswith(f"{owner}.")}


def under(owner: str, arrays: Mapping[str, Any]) -> Arrays:
    """Arrays by their names under an owner.

    >>> under("prior", {"alpha": 2.0})
    {'prior.alpha': 2.0}
    """
    return {f"{owner}.{name}": part for name, part in arrays.items()}


def join(parts: list[Arrays | None]) -> Arrays:
    """The arrays of numbered parts, those of part n under n."""
    return {name: value for n, part in enumerate(parts) for name, value in under(str(n), part or {}).items()}


def split(arrays: Mapping[str, Any], n: int) -> list[Arrays]:
    """The inverse of ``join``."""
    return [inside(arrays, str(part)) for part in range(n)]
