r"""Moments: how the items of an arm vary together, and the largest value of their weighted average.

For each arm, over the pulls of which every entry was seen: their number, the sums of the reference average
:math:`\bar Y_j = \sum_i u_i X_{ij} / \sum_i u_i` and of its square, how often it fell into each of a fixed set of
intervals, and the sums of every entry and of its square; and, if they are wanted, the sums of the products of any two
entries. All of them are sums of multiples of :math:`2^{-24}`, so they are added, merged and taken back exactly. The
largest value seen is read off the intervals: taking back the largest outcome makes it smaller again.
"""

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.support import AnySupport, Dense
from superarm.core.tally import GRID, Feedback, Tally, round_to_grid

INTERVALS = 64
"""The reference average is counted in the intervals ((n - 1)^2, n^2] / INTERVALS^2: narrow where it is small."""


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

    SUMS = ("values", "products")

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

    def add(self, other: "Moments", sign: float = 1.0) -> None:
        """Add other moments of the same reference weights, or take them away; exact, in any order."""
        same = np.array_equal(self.reference, other.reference) and self.with_products == other.with_products
        if not same:
            raise InvalidArgument("tally", "its moments were recorded for other weights", "merge tallies of one agent")
        self.least = min(self.least, other.least * abs(sign))
        self.values += sign * other.values
        self.products += sign * other.products
        self.refresh()

    def like(self) -> "Moments":
        """Empty moments of the same kind."""
        return Moments(self.support, self.reference, len(self), self.with_products)

    def fill(self, values: Floats, products: Floats) -> None:
        """Take on the sums of the first arms, which may be of a support with fewer arms and fewer entries per arm."""
        n_arms, width, wider = values.shape[1], (values.shape[2] - _ENTRIES) // 2, self.support.widest
        self.values[:, :n_arms, : _ENTRIES + width] = values[:, :, : _ENTRIES + width]
        self.values[:, :n_arms, _ENTRIES + wider : _ENTRIES + wider + width] = values[:, :, _ENTRIES + width :]
        self.products[:, :n_arms, : products.shape[2]] = products
        self.refresh()

    def grown(self, support: AnySupport) -> "Moments":
        """The same moments for a support with more arms after the ones it has."""
        new = Moments(support, self.reference, len(self), self.with_products)
        new.least = self.least
        new.fill(self.values, self.products)
        return new


_NUMBERS = np.arange(INTERVALS + 1)


def keep_moments(tally: Tally, reference: Floats, products: bool) -> Moments:
    """The moments of ``tally``; empty ones are attached to it first if it has none, or none with ``products``."""
    if tally.moments is None or (products and not tally.moments.with_products):
        tally.moments = Moments(tally.support, reference, len(tally), products)
    return tally.moments  # type: ignore[no-any-return]
