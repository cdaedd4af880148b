r"""Moments: how the items of an arm vary together, and the largest value of their weighted average.

For each arm, over the pulls of which every entry was seen: their number, the sums of the reference average
:math:`\bar Y_j = \sum_i u_i X_{ij} / \sum_i u_i` and of its square, how often it fell into each of a fixed set of
intervals, and the sums of every entry and of its square; and, if they are wanted, the sums of the products of any two
entries. All of them are sums of multiples of :math:`2^{-24}`, so they are added, merged and taken back exactly. The
largest value seen is read off the intervals: taking back the largest outcome makes it smaller again. ``JointTally`` has
one number for all pairs of items of an arm, in three sums.
"""

from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.support import AnySupport, Dense
from superarm.core.tally import GRID, Feedback, Tally, round_to_grid

if TYPE_CHECKING:
    from superarm.problem import Problem

INTERVALS = 64
"""The reference average is counted in the intervals ((n - 1)^2, n^2] / INTERVALS^2: narrow where it is small."""

EXPECTED, EVENTS = 0.36, 5.0
"""The correlation that is expected of an arm without events, and how many events that counts for: with 0 expected, arms
whose items move together are given up after few pulls. Tried on the known instances of ``dev.benchmarks.adversary``."""

FINE = 2.0**20
"""Squares of sums are multiples of 1 / FINE: they are exact while their sum is below 2^33."""

_COUNT, _AVERAGE, _SQUARE, _INTERVALS = 0, 1, 2, 3
_ENTRIES = _INTERVALS + INTERVALS + 1


class Moments:
    """The moments of all arms of R replications, and the sample that follows from them.

    ``reference`` (n_items,) are the weights u. ``values`` (R, n_arms, 68 + 2 widest) has for each arm the number of
    pulls, the sums of the average and of its square, the counts of the intervals, and the sums of every entry and of
    its square. ``products`` (R, n_arms, n_pairs) has a place for each pair of an arm's entries, ``first`` and
    ``second``; n_pairs is 0 if they are not wanted. Both are laid out as stored states are.

    Over the ``pulls`` seen whole, ``mean``, ``deviation`` and ``top`` are the mean, the standard deviation and a bound
    of the largest value of each entry; ``spread`` and ``peak`` (R, n_arms) the standard deviation and a bound of the
    largest value of the sum of u_i X_i; ``covariance`` is in the layout of ``products``.

    >>> from superarm.core.support import Dense
    >>> moments = Moments(Dense(3, 2), np.ones(3), products=True)
    >>> moments.record(Feedback(1, np.array([[1]]), np.array([[[1.0, 0.0, 1.0]]])))
    >>> moments.pulls.tolist(), moments.products[0, 1].tolist()
    ([[0.0, 1.0]], [0.0, 1.0, 0.0])
    """

    PARTS = ("values", "products", "covariance", "mean", "deviation", "top", "spread", "peak")

    def __init__(self, support: AnySupport, reference: Floats, replications: int = 1, products: bool = False) -> None:
        arms, shape = (replications, support.n_arms), support.shape(replications)
        self.support, self.reference, self.with_products = support, reference.copy(), products
        self.least = 1.0  # the least weight of an observation, below 1 where observations are discounted
        self.first, self.second = np.tril_indices(support.widest if products else 0, -1)
        self.values = np.zeros((*arms, _ENTRIES + 2 * support.widest))
        self.products, self.covariance = (np.zeros((*arms, len(self.first))) for _ in range(2))
        self.mean, self.deviation, self.top = (np.zeros(shape) for _ in range(3))
        self.spread, self.peak = np.zeros(arms), np.zeros(arms)
        weights = np.broadcast_to(support.by_item(reference[None]), support.shape(1))
        self._weight: Floats = support.sum_items(weights.copy())[0]  # a copy is added up in natural order

    def __len__(self) -> int:
        return len(self.values)

    @property
    def pulls(self) -> Floats:
        """How often each arm was seen whole, (R, n_arms)."""
        return self.values[:, :, _COUNT]

    def record(self, feedback: Feedback, sign: float = 1.0) -> None:
        """Add the rows of which every entry was seen, or take them back; no arm stands twice in a row of ``action``."""
        here = feedback.action >= 0
        if feedback.seen is not None:
            inside = True if isinstance(self.support, Dense) else self.support.row_entries[feedback.action] >= 0
            here = here & (feedback.seen | np.logical_not(inside)).all(2)
        r, k = np.nonzero(here)
        j, x, weights = feedback.action[r, k], round_to_grid(feedback.outcome[r, k]), self.reference
        if not isinstance(self.support, Dense):
            places = self.support.row_entries[j]
            x = np.where(places >= 0, x, 0.0)
            weights = weights[self.support.items[places]]
        whole = self._weight[j]
        y = np.cumsum(weights * x, 1)[:, -1] / np.where(whole > 0.0, whole, 1.0)
        y = round_to_grid(np.minimum(1.0, y))
        row = np.zeros((len(j), self.values.shape[2]))
        row[:, _COUNT], row[:, _AVERAGE], row[:, _SQUARE] = 1.0, y, round_to_grid(y * y)
        row[np.arange(len(j)), _INTERVALS + np.ceil(INTERVALS * np.sqrt(y)).astype(int)] = 1.0
        row[:, _ENTRIES : _ENTRIES + x.shape[1]] = x
        row[:, _ENTRIES + x.shape[1] :] = round_to_grid(x * x)
        self.least = min(self.least, abs(sign))
        self.values[r, j] += sign * row
        if self.with_products:
            self.products[r, j] += sign * round_to_grid(x[:, self.first] * x[:, self.second])
        self._update(r, j)

    def _update(self, r: Ints, j: Ints) -> None:
        """Bring the sample of the arms ``j`` of replications ``r`` up to date."""
        values, width = self.values[r, j], self.support.widest
        n = np.where(values[:, :1] > 0.0, values[:, :1], 1.0)
        total, square = values[:, _ENTRIES : _ENTRIES + width], values[:, _ENTRIES + width :]
        mean = total / n
        self._put(self.mean, r, j, mean)
        self._put(self.deviation, r, j, np.sqrt(np.maximum(square / n - mean * mean, 0.0)))
        # No value exceeds their sum, nor the root of the sum of squares, each of which was rounded by half a unit.
        root = np.sqrt(np.maximum(square + 0.5 * n / GRID, 0.0) / self.least)
        self._put(self.top, r, j, np.minimum(np.minimum(1.0, np.maximum(total, 0.0) / self.least), root))
        average = values[:, _AVERAGE] / n[:, 0]
        variance = np.maximum(values[:, _SQUARE] / n[:, 0] - average * average, 0.0)
        self.spread[r, j] = self._weight[j] * np.sqrt(variance)
        largest = ((values[:, _INTERVALS:_ENTRIES] > 0.0) * _NUMBERS).max(1) / INTERVALS
        self.peak[r, j] = self._weight[j] * largest * largest
        if self.with_products:
            self.covariance[r, j] = self.products[r, j] / n - mean[:, self.first] * mean[:, self.second]

    def _put(self, entries: Floats, r: Ints, j: Ints, rows: Floats) -> None:
        """Write the rows of arms, (n, n_items) or (n, widest), into ``entries``."""
        if isinstance(self.support, Dense):
            entries[r, :, j] = rows
        else:
            places = self.support.row_entries[j]
            n, o = np.nonzero(places >= 0)
            entries[r[n], places[n, o]] = rows[n, o]

    def refresh(self) -> None:
        """Compute the sample of every arm from the sums."""
        r, j = np.indices(self.values.shape[:2]).reshape(2, -1)
        self._update(r, j)

    def suits(self, other: "Moments") -> bool:
        """Whether other moments can be added: of the same reference weights, and with products if these have some."""
        return np.array_equal(self.reference, other.reference) and (other.with_products or not self.with_products)

    def add(self, other: "Moments", sign: float = 1.0) -> None:
        """Add other moments, or take them away; exact, in any order."""
        if not self.suits(other):
            raise InvalidArgument("tally", "its moments were recorded for other weights", "merge tallies of one agent")
        self.least = min(self.least, other.least * abs(sign))
        self.values += sign * other.values
        if self.with_products:
            self.products += sign * other.products
        self.refresh()

    def like(self) -> "Moments":
        """Empty moments of the same kind."""
        return Moments(self.support, self.reference, len(self), self.with_products)

    def take(self, rows: Any) -> "Moments":
        """The moments of some replications: a slice of them shares its memory."""
        part = copy(self)
        for name in self.PARTS:
            setattr(part, name, getattr(self, name)[rows])
        return part

    def put(self, rows: Any, part: "Moments") -> None:
        """Let some replications be those of ``part``, which ``take`` returned."""
        self.least = min(self.least, part.least)
        for name in self.PARTS:
            getattr(self, name)[rows] = getattr(part, name)

    def grown(self, support: AnySupport) -> "Moments":
        """The same moments for a support with more arms after the ones it has."""
        new = Moments(support, self.reference, len(self), self.with_products)
        new.least, n_arms, width, wider = self.least, self.values.shape[1], self.support.widest, support.widest
        new.values[:, :n_arms, : _ENTRIES + width] = self.values[:, :, : _ENTRIES + width]
        new.values[:, :n_arms, _ENTRIES + wider : _ENTRIES + wider + width] = self.values[:, :, _ENTRIES + width :]
        new.products[:, :n_arms, : self.products.shape[2]] = self.products
        new.refresh()
        return new


class MomentTally(Tally):
    """A tally with the ``moments`` of the arms."""

    def __init__(self, support: AnySupport, moments: Moments, partial: bool = False) -> None:
        super().__init__(support, len(moments), partial)
        self.moments = moments

    def record(self, feedback: Feedback, sign: float = 1.0, known: bool = True) -> None:
        super().record(feedback, sign)
        if known:
            self.moments.record(feedback, sign)

    def add(self, other: Tally, sign: float = 1.0) -> None:
        super().add(other, sign)
        if isinstance(other, MomentTally):
            self.moments.add(other.moments, sign)

    def take_over(self, other: Tally, t: int) -> bool:
        """Moments keep their reference, and begin anew if products are wanted that ``other`` has not."""
        wanted = self.moments.with_products
        if not isinstance(other, MomentTally) or (wanted and not other.moments.with_products):
            Tally.add(self, other)
            return False
        self.moments = Moments(self.support, other.moments.reference, len(self), wanted)
        self.add(other)
        return True

    def like(self) -> Self:
        new = super().like()
        new.moments = self.moments.like()
        return new

    def take(self, rows: Any) -> Self:
        part = super().take(rows)
        part.moments = self.moments.take(rows)
        return part

    def put(self, rows: Any, part: Tally) -> None:
        super().put(rows, part)
        if isinstance(part, MomentTally):
            self.moments.put(rows, part.moments)

    def grown(self, problem: "Problem") -> Self:
        """Moments of new items begin anew."""
        new = super().grown(problem)
        same = problem.n_items == self.support.n_items
        empty = Moments(problem.support, problem.weights, len(self), self.moments.with_products)
        new.moments = self.moments.grown(problem.support) if same else empty
        return new

    def to_arrays(self) -> dict[str, Any]:
        m = self.moments
        return super().to_arrays() | {"reference": m.reference, "moments": m.values, "products": m.products}

    def from_arrays(self, arrays: dict[str, Any]) -> Self:
        new = super().from_arrays(arrays)
        new.moments = Moments(self.support, arrays["reference"], len(self), self.moments.with_products)
        new.moments.values[...], new.moments.products[...] = arrays["moments"], arrays["products"]
        new.moments.refresh()
        return new


class JointTally(Tally):
    r"""A tally that says of each arm how strongly its items vary together.

    Over the pulls of an arm of which every entry was seen, with :math:`Y = \sum_i X_{ij}`: their number, how many had
    :math:`Y > 0` (events), and the sum of :math:`Y^2`. The mean correlation of two items is what the variance of Y has
    beyond that of independent items, as a share of the most that it can have:

    .. math:: r_j = \frac{\hat E Y^2 - (\sum_i\hat p_{ij})^2 - \sum_i\hat V_{ij}}
                         {(\sum_i\sqrt{\hat V_{ij}})^2 - \sum_i\hat V_{ij}}

    in [0, 1]. It begins at ``EXPECTED`` and counts that as ``EVENTS`` events.

    ``whole`` (R, n_arms) counts pulls of which every entry was seen, ``eventful`` those of them with an outcome above
    0, and ``joint`` adds up the squares of the sums of their outcomes. With one item nothing is counted.

    It tells whose the pulls are, too: ``given`` are those that others decided, as in past data, and ``before`` those
    that were decided up to round ``since``, when the present policy began. Of all others, it is in charge itself.

    >>> tally = JointTally(Dense(2, 1))
    >>> for outcome in [[1.0, 1.0], [0.0, 0.0]] * 50:
    ...     tally.record(Feedback(1, np.array([[0]]), np.array([[outcome]])))
    >>> tally.correlation().round(2).tolist()
    [[0.94, 0.94]]
    """

    BESIDE, OWNERS = ("whole", "eventful", "joint"), ("given", "before")
    SUMS = (*Tally.SUMS, *BESIDE, *OWNERS)
    since = -1

    def __init__(self, support: AnySupport, replications: int = 1, partial: bool = False) -> None:
        super().__init__(support, replications, partial)
        arrays = (np.zeros((replications, support.n_arms)) for _ in range(5))
        self.whole, self.eventful, self.joint, self.given, self.before = arrays

    def record(self, feedback: Feedback, sign: float = 1.0, known: bool = True) -> None:
        pulls = self.pulls.copy() if feedback.t <= self.since else None
        super().record(feedback, sign, known)
        if pulls is not None:
            self.before += self.pulls - pulls
        if not known or self.support.widest == 1 or feedback.share is not None:
            return
        here, outcome = feedback.action >= 0, feedback.outcome
        if not isinstance(self.support, Dense):
            inside = self.support.row_entries[feedback.action] >= 0
            outcome = np.where(inside, outcome, 0.0)
            here = here if feedback.seen is None else here & (feedback.seen | ~inside).all(2)
        elif feedback.seen is not None:
            here = here & feedback.seen.all(2)
        r, k = np.nonzero(here)
        j, y = feedback.action[r, k], round_to_grid(outcome[r, k]).sum(1)
        self.whole[r, j] += sign
        self.eventful[r, j] += sign * (y > 0.0)
        self.joint[r, j] += sign * np.floor(y * y * FINE + 0.5) / FINE

    def correlation(self, n_segments: int = 1) -> Floats:
        """The mean correlation of two items of each arm in a pull, and of all arms in the last column, (R, n_arms + 1).

        It is over all segments, if rows are theirs. Arms of which nothing varies in a pull that was seen whole have
        ``EXPECTED``.
        """
        add, n = self.support.sum_items, self.whole
        mean, alone = add(self.mean.copy()), add(self.deviation**2)
        parts = (self.joint - n * (mean * mean + alone), n * (add(self.deviation.copy()) ** 2 - alone), self.eventful)
        by_arm = (part.reshape(-1, n_segments, n.shape[1]).sum(1) for part in parts)
        excess, most, events = (np.concatenate([part, part.sum(1, keepdims=True)], 1) for part in by_arm)
        seen = np.clip(excess / np.where(most > 1e-12, most, 1.0), 0.0, 1.0)
        events = np.where(most > 1e-12, events, 0.0)
        return (EVENTS * EXPECTED + events * seen) / (EVENTS + events)

    def add(self, other: Tally, sign: float = 1.0) -> None:
        super().add(other, sign)
        if not (isinstance(other, JointTally) or other.ours):
            self.given += sign * other.pulls

    def take_over(self, other: Tally, t: int) -> bool:
        """What another policy decided was before the present one."""
        self.add(other)
        self.since = t
        joint = isinstance(other, JointTally)
        self.given *= joint
        self.before[...] = self.pulls - self.given
        return joint

    def like(self) -> Self:
        return self._with(JointTally(self.support, len(self), self.partial))

    def grown(self, problem: "Problem") -> Self:
        """New arms have no pulls; with new items no pull so far was seen whole."""
        new = super().grown(problem)
        empty, n = JointTally(problem.support, len(self)), self.support.n_arms
        for name in (*self.BESIDE, *self.OWNERS):
            if problem.n_items == self.support.n_items or name in self.OWNERS:
                getattr(empty, name)[:, :n] = getattr(self, name)
            setattr(new, name, getattr(empty, name))
        return new

    def to_arrays(self) -> dict[str, Any]:
        """Without what was never counted."""
        arrays = super().to_arrays()
        kept = dict.fromkeys(self.BESIDE, self.whole.any()) | {name: arrays[name].any() for name in self.OWNERS}
        arrays = {name: part for name, part in arrays.items() if kept.get(name, True)}
        return arrays if self.since < 0 else arrays | {"owned since": np.array(float(self.since))}

    def from_arrays(self, arrays: dict[str, Any]) -> Self:
        new = super().from_arrays(arrays)
        new.since = int(arrays.get("owned since", -1))
        return new


_NUMBERS = np.arange(INTERVALS + 1)
