"""What visitors do that estimates of single arms do not show: successes of one slate that hang together, and amounts.

Counted over finished decisions of problems with one item, as their rewards are computed. An expected number is what
independent successes would give, at the estimates of the time.
"""

import math

import numpy as np
from msgspec import Struct, field

from superarm.core.arrays import Floats, Ints

PLACES = 8
"""Pairs are counted among so many first places of a slate."""

MAX_PAIRS = 1_000
MANY_VALUES = 20
"""Outcomes with more different values are amounts."""

SMALLEST = 1e-9
"""No outcome is less: those below the grid of sums are 0."""

FEW_PAIRS, SURE = 16.0, 4.0
"""So many pairs of successes have to be expected, and a number has to be so many deviations from what was."""

WHOLE, LEAST_WHOLE = 3, 5
"""All successes of a slate are counted from so many arms on, and told from so many slates on."""


class Behaviour(Struct):
    """Counts of decisions and pairs of arms.

    In ``whole`` of ``decisions`` with several arms all succeeded, in ``whole_expected`` by chance. ``pairs`` has for
    two arms how often both succeeded, with what that is worth, and how often they would by chance; ``squares`` the sum
    of the squares of the former. Of ``amounts`` above 0, whose sum is ``told``, so many are ``limited`` to 1.
    ``values`` are different ones, until there are many.
    """

    decisions: int = 0
    whole: int = 0
    whole_expected: float = 0.0
    pairs: dict[int, list[float]] = field(default_factory=dict)
    both: float = 0.0
    expected: float = 0.0
    squares: float = 0.0
    amounts: int = 0
    told: float = 0.0
    told_squares: float = 0.0
    limited: int = 0
    values: list[float] = field(default_factory=list)

    def follow(self, arms: Ints, sizes: Ints, outcome: Floats, estimate: Floats | None) -> None:
        """Count decisions: their arms one after the other, what came of each, and what was estimated."""
        told = outcome[outcome > 0.0]
        self.amounts += len(told)
        self.told += float(told.sum())
        self.told_squares += float(told @ told)
        self.limited += int((told >= 1.0).sum())
        if len(self.values) <= MANY_VALUES:
            self.values = np.union1d(self.values, told)[: MANY_VALUES + 1].tolist()
        if estimate is None:
            return
        for size in np.unique(sizes[sizes > 1]).tolist():
            mine, shape = np.repeat(sizes == size, sizes), (-1, size)
            slates = arms[mine].reshape(shape)
            self._follow_slates(slates, outcome[mine].reshape(shape), estimate[mine].reshape(shape))

    def _follow_slates(self, arms: Ints, outcome: Floats, estimate: Floats) -> None:
        """Count decisions of one size; those in which all arms succeeded have no pairs: they may not be of people."""
        if arms.shape[1] >= WHOLE:
            whole = (outcome > 0.0).all(1)
            self.decisions += len(arms)
            self.whole += int(whole.sum())
            self.whole_expected += float(np.clip(estimate / self.typical, 0.0, 1.0).prod(1).sum())
            arms, outcome, estimate = arms[~whole], outcome[~whole], estimate[~whole]
        order = np.argsort(arms[:, :PLACES], 1)
        arms = np.take_along_axis(arms, order, 1)
        outcome, estimate = (np.take_along_axis(part, order, 1) for part in (outcome, estimate))
        for a in range(order.shape[1]):
            for b in range(a + 1, order.shape[1]):
                both, expected = outcome[:, a] * outcome[:, b], estimate[:, a] * estimate[:, b]
                self.both += float(both.sum())
                self.expected += float(expected.sum())
                self.squares += float(both @ both)
                keys, place = np.unique(arms[:, a] << 32 | arms[:, b], return_inverse=True)
                counts = np.bincount(place, both), np.bincount(place, expected)
                for key, *more in zip(keys.tolist(), *(one.tolist() for one in counts), strict=True):
                    known = self.pairs.setdefault(key, [0.0, 0.0])
                    known[0], known[1] = known[0] + more[0], known[1] + more[1]
        if len(self.pairs) > MAX_PAIRS:
            kept = sorted(self.pairs, key=lambda key: -self.pairs[key][1])[: MAX_PAIRS // 2]
            self.pairs = {key: self.pairs[key] for key in kept}

    @property
    def typical(self) -> float:
        """A typical success; 1 for clicks."""
        return max(self.told_squares / self.told, SMALLEST) if self.told else 1.0

    @property
    def programs(self) -> bool:
        """Whether many decisions have successes of all arms, far more than chance would give."""
        return self.whole >= max(LEAST_WHOLE, 0.005 * self.decisions, 10.0 * self.whole_expected)

    @property
    def rivals(self) -> bool:
        """Whether two arms of a slate rarely succeed together."""
        unit = self.typical**2
        sure = self.expected - self.both > SURE * math.sqrt(max(self.squares, self.expected * unit))
        return self.expected > FEW_PAIRS * unit and sure and self.both < 0.5 * self.expected

    @property
    def tastes(self) -> bool:
        """Whether some arms succeed together far more often than others do, beside how often all of them do."""
        unit = self.typical**2
        many = [(both, expected) for both, expected in self.pairs.values() if expected > 3.0 * unit]
        ratio = sum(one[0] for one in many) / (sum(one[1] for one in many) or 1.0)
        if len(many) < 3 or ratio < 0.75:
            return False
        spread = sum((both - ratio * expected) ** 2 / (ratio * expected * unit) for both, expected in many)
        free = len(many) - 1
        return spread > 1.5 * free + SURE * math.sqrt(2.0 * free)

    @property
    def capped(self) -> float:
        """Which share of all that was told are amounts at the limit; 0 where outcomes are no amounts."""
        money = len(self.values) > MANY_VALUES and self.told < 0.5 * self.amounts and self.limited >= LEAST_WHOLE
        return self.limited / self.told if money else 0.0
