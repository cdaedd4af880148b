"""Means of rewards with their intervals, also of decisions of which only some items were seen."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct, field

Sums = tuple[int, float, float]
"""Number, sum and sum of squares."""


class RunningMoments(Struct, array_like=True):
    """Number, sum and sum of squares of rewards that are known whole.

    ``items`` has the same for what each item contributed to the reward of the ``n_partial`` decisions that were about
    some items only, and ``each`` for what it contributed to rewards that are known whole, where there are few items.
    """

    n: int = 0
    total: float = 0.0
    square: float = 0.0
    n_partial: int = 0
    items: dict[int, Sums] = field(default_factory=dict)
    each: dict[int, Sums] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many decisions there are, whole or in part."""
        return self.n + self.n_partial

    def add(self, value: float, sign: int = 1) -> None:
        """Add the reward of a decision, or take it away with ``sign`` -1."""
        self.n += sign
        self.total += sign * value
        self.square += sign * value * value

    def add_each(self, values: Sequence[float], sign: int = 1) -> None:
        """Add what each item contributed to a reward that is known whole."""
        for item, value in enumerate(values):
            _add(self.each, item, (sign, sign * value, sign * value * value))

    def add_items(self, values: dict[int, float]) -> None:
        """Add a decision of which only some items are known: what each of them contributed to the reward."""
        self.n_partial += 1
        for item, value in values.items():
            _add(self.items, item, (1, value, value * value))

    def of_item(self, item: int) -> "RunningMoments":
        """What one item contributed, whatever the decisions were about."""
        parts = [part[item] for part in (self.items, self.each) if item in part]
        return RunningMoments(*(sum(values) for values in zip(*parts, strict=True))) if parts else RunningMoments()


def _add(sums: dict[int, Sums], item: int, more: Sums) -> None:
    n, total, square = sums.get(item, (0, 0.0, 0.0))
    sums[item] = (n + more[0], total + more[1], square + more[2])


def join_moments(parts: list[RunningMoments]) -> RunningMoments:
    """All of them together."""
    joined = RunningMoments(
        sum(p.n for p in parts),
        sum(p.total for p in parts),
        sum(p.square for p in parts),
        sum(p.n_partial for p in parts),
    )
    for part in parts:
        for item, more in part.items.items():
            _add(joined.items, item, more)
        for item, more in part.each.items():
            _add(joined.each, item, more)
    return joined


class MeanInterval(NamedTuple):
    """A mean and the half-width of its 95 % interval."""

    value: float
    reach: float


def mean_interval(m: RunningMoments, needed: frozenset[int] = frozenset()) -> MeanInterval | None:
    r"""The mean reward; None without decisions, and an infinite interval with one.

    Of decisions about some items, the mean is that of a sample stratified by item,

    .. math:: \hat r = \sum_i \bar r_i, \qquad \mathrm{Var}\,\hat r = \sum_i s_i^2 / n_i

    where :math:`\bar r_i` is the mean of what item i contributed, with its weight. It is unknown until each of the
    ``needed`` items was seen. It does not matter how often each item is seen.
    """
    whole = _mean(m.n, m.total, m.square) if m.n else None
    if not m.n_partial or not needed <= m.items.keys():
        return whole
    parts = [_mean(*one) for one in m.items.values()]
    strata = MeanInterval(sum(p.value for p in parts), math.sqrt(sum(p.reach**2 for p in parts)))
    if whole is None:
        return strata
    share = m.n / m.count
    value = share * whole.value + (1.0 - share) * strata.value
    return MeanInterval(value, math.hypot(share * whole.reach, (1.0 - share) * strata.reach))


def _mean(n: int, total: float, square: float) -> MeanInterval:
    value = total / n
    if n == 1:
        return MeanInterval(value, math.inf)
    spread = max(0.0, square - n * value * value) / (n - 1)
    return MeanInterval(value, 1.96 * math.sqrt(spread / n))


def difference(a: RunningMoments, b: RunningMoments, needed: frozenset[int] = frozenset()) -> MeanInterval | None:
    """The mean of ``a`` minus that of ``b``, with its 95 % interval (Welch's, for large numbers)."""
    x, y = mean_interval(a, needed), mean_interval(b, needed)
    return None if x is None or y is None else MeanInterval(x.value - y.value, math.hypot(x.reach, y.reach))
