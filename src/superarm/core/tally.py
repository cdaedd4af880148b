r"""Tallies: the sufficient statistics of all observations, additive and exact.

Outcomes and their squares are rounded to multiples of :math:`2^{-24}`; float64 sums of such numbers are exact up to
:math:`2^{29}` observations. Where outcomes have other bounds than 0 and 1, both are in proportion: to multiples of
:math:`2^{-24}` of a power of two that no outcome exceeds, and of its square.
So a tally does not depend on the order of its observations, tallies are merged by
addition, feedback is undone by subtraction, and a live state, its replay and any merge of partial tallies agree bit for
bit.
"""

from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.ops import op
from superarm.core.support import AnySupport, Dense

if TYPE_CHECKING:
    from superarm.problem import Problem

GRID = 2.0**24
"""Outcomes are recorded as multiples of 1 / GRID."""

MAX_COUNT = 2**29
"""So many observations of an entry are added exactly."""

_NOTHING_HIDDEN = np.empty((0, 0, 0), bool)


def round_to_grid(x: Any) -> Any:
    """The nearest multiple of 1 / GRID.

    >>> float(round_to_grid(0.1)) == round(0.1 * GRID) / GRID
    True
    """
    return np.floor(x * GRID + 0.5) / GRID


class Joint(NamedTuple):
    """What sets of arms did together, in decisions of which only that is known.

    ``arms`` (R, n_sets, widest) are the sets, padded with -1, and ``total`` (R, n_sets) what each did, the mean of
    ``trials`` (R, n_sets) trials. ``size`` (R,) is how many arms each decision has: smaller sets are parts of it.
    """

    arms: Ints
    total: Floats
    trials: Floats
    size: Ints


@dataclass
class Feedback:
    """What was observed in round ``t``, one row per arm.

    ``action`` (R, n) are the arms that the rows belong to: those of the batch or, if arms are triggered, the observed
    ones; -1 is none. ``outcome`` is (R, n, n_items), or (R, n, widest) if the support is sparse, in the order of the
    arm's entries. ``seen`` has the same shape; None: everything. ``context`` is what the policy knew of the round.
    ``share`` (R, n_items), multiples of 1 / GRID, says by how much an outcome counts for each item, if the item that it
    belongs to is not known. ``joint`` is what sets of arms did together: outcomes are then equal shares of it.
    """

    t: int
    action: Ints
    outcome: Floats
    seen: Bools | None = None
    context: Any = None
    share: Floats | None = None
    joint: Joint | None = None

    def of_rows(self, rows: slice) -> "Feedback":
        """The feedback of some replications, without its context."""
        seen, share = self.seen, self.share
        seen, share = None if seen is None else seen[rows], None if share is None else share[rows]
        given: Any = self.joint
        joint = None if given is None else Joint(*(part[rows] for part in given))
        return Feedback(self.t, self.action[rows], self.outcome[rows], seen, None, share, joint)


class Tally:
    r"""The sufficient statistics of all observations, of R replications.

    ``pulls`` (R, n_arms) is :math:`N_j`. ``total`` and ``square`` are :math:`\sum X_{ij}` and :math:`\sum X_{ij}^2` of
    each entry, ``mean`` and ``deviation`` the estimates that follow from them:

    .. math:: \hat p = \frac{1}{N}\sum X, \qquad \hat V = \max\{0,\ \frac{1}{N}\sum X^2 - \hat p^2\}

    [MerlisMannor2019]_ (section Preliminaries); the clamp at 0 guards against cancellation. ``missed`` counts in how
    many pulls of its arm an entry was not seen; it is empty while everything was seen. ``unit`` is a power of two that
    no outcome exceeds. Subclasses have further sums,
    which are recorded of feedback that is ``known`` alone.
    """

    SUMS: ClassVar[tuple[str, ...]] = ("pulls", "total", "square", "missed")
    ours = False
    """Whether sums that are added to what a policy knows come of its own decisions, as from its tables."""

    def __init__(self, support: AnySupport, replications: int = 1, partial: bool = False, unit: float = 1.0) -> None:
        shape = support.shape(replications)
        self.support, self.unit = support, unit
        self.pulls = np.zeros((replications, support.n_arms))
        self.total, self.square, self.mean, self.deviation = (np.zeros(shape) for _ in range(4))
        self.missed = np.zeros(shape if partial else (0,) * len(shape))

    @classmethod
    def of_sums(cls, support: AnySupport, pulls: Any, seen: Any, total: Any, square: Any) -> "Tally":
        """The tally of integer sums, exactly: outcomes and squares were rounded to the grid before they were added.

        ``pulls`` (R, n_arms) and ``seen``, in the shape of entries, are counts; ``total`` and ``square`` are in units
        of 1 / GRID, one observation being ``floor(x * GRID + 0.5)``.

        >>> sums = ([[3]], [[[3]]], [[[2 * 2**24]]], [[[2 * 2**24]]])  # one arm, shown three times, clicked twice
        >>> float(Tally.of_sums(Dense(1, 1), *sums).total[0, 0, 0])
        2.0
        """
        pulls, seen, total, square = (np.asarray(part, np.int64) for part in (pulls, seen, total, square))
        made = cls(support, len(pulls), bool((seen < support.by_arm(pulls)).any()))
        _check_sums(support.by_arm(pulls), seen, total, square)
        made.pulls[...], made.total[...], made.square[...] = pulls, total / GRID, square / GRID
        if made.partial:
            made.missed[...] = support.by_arm(pulls) - seen
        made.refresh()
        return made

    def require_exact(self) -> None:
        """Raise ``InvalidArgument`` if an arm has more observations than are added exactly."""
        most = int(self.pulls.max(initial=0.0))
        if most > MAX_COUNT:
            wrong = f"{most} observations of an arm"
            raise InvalidArgument("sums", wrong, f"at most 2^29 = {MAX_COUNT} are added exactly: leave out old ones")

    def __len__(self) -> int:
        return len(self.pulls)

    @property
    def partial(self) -> bool:
        """Whether entries that were not seen can be recorded."""
        return self.missed.size > 0

    def allow_missing(self) -> None:
        """Make room for ``missed``."""
        if not self.partial:
            self.missed = np.zeros_like(self.total)

    def record(self, feedback: Feedback, sign: float = 1.0, known: bool = True) -> None:
        """Add feedback (``sign=1.0``), or take it back (``sign=-1.0``), in place.

        An arm of which nothing was seen was played, but not observed: no pull is counted for it.
        """
        if feedback.share is not None:
            self._record_shares(feedback, feedback.share, sign)
            return
        if feedback.seen is not None and not feedback.seen.all():
            self.allow_missing()
        seen = _NOTHING_HIDDEN
        if self.partial:
            seen = np.ones(feedback.outcome.shape, bool) if feedback.seen is None else feedback.seen
        arrays = (self.pulls, self.total, self.square, self.missed, self.mean, self.deviation)
        if isinstance(self.support, Dense):
            op("record", 8 * feedback.outcome.size)(feedback.action, feedback.outcome, seen, sign, self.unit, *arrays)
        else:
            record = op("record_sparse", 8 * feedback.outcome.size)
            record(self.support.start, feedback.action, feedback.outcome, seen, sign, self.unit, *arrays)

    def _record_shares(self, feedback: Feedback, share: Floats, sign: float) -> None:
        """Add feedback of which every item gets its share, on the grid: so it can be taken back exactly."""
        self.allow_missing()
        at = np.arange(len(feedback.action))
        for place in range(feedback.action.shape[1]):
            arm, x = feedback.action[:, place], feedback.outcome[:, place]
            own = (at, slice(None), arm)
            self.pulls[at, arm] += sign
            self.total[own] += sign * round_to_grid(share * x)
            self.square[own] += sign * round_to_grid(share * (x * x))
            self.missed[own] += sign * (1.0 - share)
            n = self.pulls[at, arm][:, None] - self.missed[own]
            n = np.where(n > 0.0, n, 1.0)
            self.mean[own] = self.total[own] / n
            self.deviation[own] = np.sqrt(np.maximum(self.square[own] / n - self.mean[own] * self.mean[own], 0.0))

    def counts(self, counted: Floats) -> Any:
        """How often entries count as seen if arms count as pulled ``counted`` (R, n_arms); broadcasts to entries."""
        pulls = self.support.by_arm(counted)
        return pulls - self.missed if self.partial else pulls

    def unknown(self) -> Any:
        """Which entries were never seen, broadcast to entries; None if there are none."""
        if not self.partial:
            return self.support.by_arm(self.pulls) <= 0.0 if np.minimum.reduce(self.pulls, None) <= 0.0 else None
        seen = self.counts(self.pulls)
        return seen <= 0.0 if np.minimum.reduce(seen, None) <= 0.0 else None

    def refresh(self) -> None:
        """Compute the estimates of every entry from the sums, in place."""
        n = self.counts(self.pulls)
        n = np.where(n > 0.0, n, 1.0)  # weighted sums of tallies have parts of a pull
        self.mean[...] = self.total / n
        self.deviation[...] = np.sqrt(np.maximum(self.square / n - self.mean * self.mean, 0.0))

    def add(self, other: "Tally", sign: float = 1.0) -> None:
        """Add the sums of another tally of the same support that it has, or take them away; exact, in any order."""
        if other.support != self.support:
            raise InvalidArgument("tally", "it has another support", "add tallies of the same problem")
        if other.partial:
            self.allow_missing()
        for name in self.SUMS:
            if getattr(other, name, _NOTHING_HIDDEN).size:
                getattr(self, name)[...] += sign * getattr(other, name)
        self.refresh()

    def take_over(self, other: "Tally", t: int) -> bool:
        """Add the sums of a policy that decided up to round ``t``, as far as both have them; whether it has all."""
        self.add(other)
        return True

    def known_estimates(self) -> tuple[Floats, Floats]:
        """Mean and variance of every entry as entries; NaN where nothing was seen."""
        unknown = self.unknown()
        if unknown is None:
            return self.mean.copy(), self.deviation**2
        return np.where(unknown, np.nan, self.mean), np.where(unknown, np.nan, self.deviation**2)

    def like(self) -> Self:
        """An empty tally of the same kind."""
        return self._with(Tally(self.support, len(self), self.partial, self.unit))

    def _with(self, sums: "Tally") -> Self:
        """A tally of this kind with the sums and estimates of ``sums``."""
        new = copy(self)
        vars(new).update(vars(sums))
        return new

    def take(self, rows: Any) -> Self:
        """The tally of some replications: a slice of them shares its memory, an array of numbers is a copy."""
        part = copy(self)
        for name in (*self.SUMS, "mean", "deviation"):
            values = getattr(self, name)
            setattr(part, name, values[rows] if len(values) else values)
        return part

    def put(self, rows: Any, part: "Tally") -> None:
        """Let some replications be those of ``part``, which ``take`` returned."""
        if part.partial:
            self.allow_missing()
        for name in (*self.SUMS, "mean", "deviation"):
            if getattr(part, name).size:
                getattr(self, name)[rows] = getattr(part, name)

    def grown(self, problem: "Problem") -> Self:
        """The tally of a larger problem: new arms have no pulls, and of new items every pull so far was missed."""
        old, new = self.support, problem.support
        grown = Tally(new, len(self), self.partial or new.n_items > old.n_items, self.unit)
        for name in Tally.SUMS:
            sums = getattr(self, name)
            if sums.size:
                getattr(grown, name)[tuple(slice(n) for n in sums.shape)] = sums
        if new.n_items > old.n_items:
            grown.missed[:, old.n_items :] = grown.pulls[:, None, :]
        grown.refresh()
        return self._with(grown)

    def to_arrays(self) -> dict[str, Any]:
        """The sums by name, equal for equal sums; ``missed`` is left out if nothing was."""
        return {name: part for name in self.SUMS if (part := getattr(self, name)).any() or name != "missed"}

    def from_arrays(self, arrays: dict[str, Any]) -> Self:
        """The tally of this kind whose sums ``to_arrays`` returned."""
        new = self.like()
        if "missed" in arrays:
            new.allow_missing()
        for name in self.SUMS:
            if name in arrays:
                getattr(new, name)[...] = arrays[name]
        new.refresh()
        return new


def _check_sums(pulls: Any, seen: Any, total: Any, square: Any) -> None:
    """Refuse integers that are not the sums of outcomes in [0, 1]."""
    if pulls.size and max(int(pulls.max()), int(seen.max(initial=0))) > MAX_COUNT:
        wrong = f"{int(pulls.max())} observations of an arm"
        raise InvalidArgument("sums", wrong, f"at most 2^29 = {MAX_COUNT} are added exactly: leave out old ones")
    if min(int(part.min(initial=0)) for part in (pulls, seen, total, square)) < 0:
        raise InvalidArgument("sums", "a negative one", "give counts and sums of outcomes in [0, 1]")
    if (seen > pulls).any():
        raise InvalidArgument("sums", "an arm with more outcomes than pulls", "count a decision once for each arm")
    if (total > seen * int(GRID)).any() or (square > total).any():
        wrong = "more than outcomes in [0, 1] add up to"
        raise InvalidArgument("sums", wrong, "give total and square in units of 2^-24, of outcomes in [0, 1]")
    least = total.astype(float) ** 2 / np.maximum(seen, 1) / GRID  # by Cauchy and Schwarz
    if (square + 0.5 * seen + 8 < least).any():  # each square is rounded by at most a half, and ``least`` by 8
        wrong = "squares that add up to less than such a total allows"
        raise InvalidArgument("sums", wrong, "give the sum of the squares of the same outcomes")


@dataclass
class View:
    """What a policy sees when it chooses: the round, the tally, and which arms may be played.

    ``counts`` (R, n_arms) are pulls plus pending pulls: they count in confidence radii, so that many decisions before
    any feedback differ, while means come from outcomes alone. ``pinned`` (R, P) are arms that stand first in the batch.
    ``keys`` (R,) are those of the policy's random numbers, ``context`` what is known of the round.
    """

    t: int
    tally: Tally
    keys: Any
    counts: Floats
    eligible: Bools
    pinned: Ints = field(default_factory=lambda: np.empty((1, 0), np.int64))
    context: Any = None

    def __len__(self) -> int:
        return len(self.counts)
