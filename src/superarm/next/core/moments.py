r"""Moments: how the items of an arm vary together, and the largest value of their weighted average.

For each arm, over the pulls of which every entry was seen: their number, the sums of the reference average
:math:`\bar Y_j = \sum_i u_i X_{ij} / \sum_i u_i` and of its square, how often it fell into each of a fixed set of
intervals, and the sums of every entry and of its square; and, if they are wanted, the sums of the products of any two
entries. All of them are sums of multiples of :math:`2^{-24}`, so they are added, merged and taken back exactly. The
largest value seen is read off the intervals: taking back the largest outcome makes it smaller again.
"""

from typing import Any

import numpy as np

from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.next.core.support import AnySupport, Dense
from superarm.next.core.tally import GRID, Feedback, Tally, round_to_grid

INTERVALS = 64
"""The reference average is counted in the intervals ((n - 1)^2, n^2] / INTERVALS^2: narrow where it is small."""


class Moments:
    """The moments of all arms of R replications, and the sample that follows from them.

    ``reference`` (n_items,) are the weights u. The sums ``pulls``, ``average`` and ``average_square`` are (R, n_arms),
    ``intervals`` (R, n_arms, 65), ``total`` and ``square`` have the shape of entries, ``products`` (R, n_arms, n_pairs)
    has a place for each pair of an arm's entries, ``first`` and ``second``; n_pairs is 0 if they are not wanted.

    Over the ``pulls`` seen whole, ``mean``, ``deviation`` and ``top`` are the mean, the standard deviation and a bound
    of the largest value of each entry; ``spread`` and ``peak`` (R, n_arms) the standard deviation and a bound of the
    largest value of the sum of u_i X_i; ``covariance`` is in the layout of ``products``.

    >>> from superarm.next.core.support import Dense
    >>> moments = Moments(Dense(3, 2), np.ones(3), products=True)
    >>> moments.record(Feedback(1, np.array([[1]]), np.array([[[1.0, 0.0, 1.0]]])))
    >>> moments.pulls.tolist(), moments.products[0, 1].tolist()
    ([[0.0, 1.0]], [0.0, 1.0, 0.0])
    """

    SUMS = ("pulls", "average", "average_square", "intervals", "total", "square", "products")

    def __init__(self, support: AnySupport, reference: Floats, replications: int = 1, products: bool = False) -> None:
        arms = (replications, support.n_arms)
        self.support, self.reference, self.with_products = support, reference.copy(), products
        self.least = 1.0  # the least weight of an observation, below 1 where observations are discounted
        self.pulls, self.average, self.average_square, self.spread, self.peak = (np.zeros(arms) for _ in range(5))
        self.intervals = np.zeros((*arms, INTERVALS + 1))
        shape = support.shape(replications)
        self.total, self.square, self.mean, self.deviation, self.top = (np.zeros(shape) for _ in range(5))
        self.first, self.second = np.tril_indices(support.widest if products else 0, -1)
        self.products, self.covariance = (np.zeros((*arms, len(self.first))) for _ in range(2))
        dense = isinstance(support, Dense)
        whole = np.full(support.n_arms, np.cumsum(reference)[-1]) if dense else None
        self._weight: Floats = support.sum_items(support.by_item(reference[None]))[0] if whole is None else whole

    def __len__(self) -> int:
        return len(self.pulls)

    def record(self, feedback: Feedback, sign: float = 1.0) -> None:
        """Add the rows of which every entry was seen, or take them back; no arm stands twice in a row of ``action``."""
        here = feedback.action >= 0
        if feedback.seen is not None:
            here = here & (feedback.seen | ~self._inside(feedback.action)).all(2)
        r, k = np.nonzero(here)
        j = feedback.action[r, k]
        inside, weights = self._inside(j), self._weights(j)
        x = np.where(inside, round_to_grid(feedback.outcome[r, k]), 0.0)
        y = np.cumsum(weights * x, 1)[:, -1] / np.where(self._weight[j] > 0.0, self._weight[j], 1.0)
        y = round_to_grid(np.minimum(1.0, y))
        self.least = min(self.least, abs(sign))
        self.pulls[r, j] += sign
        self.average[r, j] += sign * y
        self.average_square[r, j] += sign * round_to_grid(y * y)
        self.intervals[r, j, np.ceil(INTERVALS * np.sqrt(y)).astype(int)] += sign
        self._put(self.total, r, j, self._rows(self.total, r, j) + sign * x)
        self._put(self.square, r, j, self._rows(self.square, r, j) + sign * round_to_grid(x * x))
        self.products[r, j] += sign * round_to_grid(x[:, self.first] * x[:, self.second])
        self._update(r, j)

    def _update(self, r: Ints, j: Ints) -> None:
        """Bring the sample of the arms ``j`` of replications ``r`` up to date."""
        n = np.where(self.pulls[r, j] > 0.0, self.pulls[r, j], 1.0)
        total, square = self._rows(self.total, r, j), self._rows(self.square, r, j)
        mean = total / n[:, None]
        self._put(self.mean, r, j, mean)
        self._put(self.deviation, r, j, np.sqrt(np.maximum(square / n[:, None] - mean * mean, 0.0)))
        # No value exceeds their sum, nor the root of the sum of squares, each of which was rounded by half a unit.
        root = np.sqrt(np.maximum(square + (0.5 * n / GRID)[:, None], 0.0) / self.least)
        self._put(self.top, r, j, np.minimum(np.minimum(1.0, np.maximum(total, 0.0) / self.least), root))
        average = self.average[r, j] / n
        variance = np.maximum(self.average_square[r, j] / n - average * average, 0.0)
        self.spread[r, j] = self._weight[j] * np.sqrt(variance)
        largest = ((self.intervals[r, j] > 0.0) * np.arange(INTERVALS + 1)).max(1) / INTERVALS
        self.peak[r, j] = self._weight[j] * largest * largest
        self.covariance[r, j] = self.products[r, j] / n[:, None] - mean[:, self.first] * mean[:, self.second]

    def refresh(self) -> None:
        """Compute the sample of every arm from the sums."""
        r, j = np.indices(self.pulls.shape).reshape(2, -1)
        self._update(r, j)

    def add(self, other: "Moments", sign: float = 1.0) -> None:
        """Add other moments of the same reference weights, or take them away; exact, in any order."""
        same = np.array_equal(self.reference, other.reference) and self.with_products == other.with_products
        if not same:
            raise InvalidArgument("tally", "its moments were recorded for other weights", "merge tallies of one agent")
        self.least = min(self.least, other.least * abs(sign))
        for name in self.SUMS:
            getattr(self, name)[...] += sign * getattr(other, name)
        self.refresh()

    def like(self) -> "Moments":
        """Empty moments of the same kind."""
        return Moments(self.support, self.reference, len(self), self.with_products)

    def grown(self, support: AnySupport) -> "Moments":
        """The same moments for a support with more arms after the ones it has."""
        new = Moments(support, self.reference, len(self), self.with_products)
        for name in self.SUMS:
            old = getattr(self, name)
            if name in ("total", "square"):
                getattr(new, name)[..., : old.shape[-1]] = old
            else:
                getattr(new, name)[tuple(slice(n) for n in old.shape)] = old
        new.refresh()
        return new

    # --- rows of an arm's entries: (n, n_items), or (n, widest) if the support is sparse ---

    def _inside(self, j: Ints) -> Any:
        """Which places of the rows of arms ``j`` are entries; broadcasts to the rows."""
        return np.ones((*j.shape, 1), bool) if isinstance(self.support, Dense) else self.support.row_entries[j] >= 0

    def _weights(self, j: Ints) -> Any:
        if isinstance(self.support, Dense):
            return self.reference
        places = self.support.row_entries[j]
        return np.where(places >= 0, self.reference[self.support.items[places]], 0.0)

    def _rows(self, entries: Floats, r: Ints, j: Ints) -> Floats:
        if isinstance(self.support, Dense):
            return entries[r, :, j]
        places = self.support.row_entries[j]
        return np.where(places >= 0, entries[r[:, None], places], 0.0)

    def _put(self, entries: Floats, r: Ints, j: Ints, rows: Floats) -> None:
        if isinstance(self.support, Dense):
            entries[r, :, j] = rows
        else:
            places = self.support.row_entries[j]
            n, o = np.nonzero(places >= 0)
            entries[r[n], places[n, o]] = rows[n, o]


def keep_moments(tally: Tally, reference: Floats, products: bool) -> Moments:
    """The moments of ``tally``; empty ones are attached to it first if it has none, or none with ``products``."""
    if tally.moments is None or (products and not tally.moments.with_products):
        tally.moments = Moments(tally.support, reference, len(tally), products)
    return tally.moments  # type: ignore[no-any-return]
