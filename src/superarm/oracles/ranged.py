from typing import NamedTuple

import numpy as np

from superarm._jit import component, inlined, interpreted, kernel
from superarm.actions import capacity, pins
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.oracles.base import Guarantee
from superarm.oracles.gains import batch_states
from superarm.oracles.greedy import greedy_guarantee
from superarm.oracles.lazy import BLOCK_SIZE, GainLimits, PartialBatch, add_best_arm, new_limits
from superarm.parameters import positive
from superarm.problem import Problem
from superarm.rewards import Terms, gain
from superarm.rewards.base import Reward, derivative
from superarm.rewards.traits import gains_shrink, linear_gain
from superarm.streams import Stream
from superarm.support import Dense

_SLACK = 1e-9
"""More than rounding can change of sums over items, relative to their terms, all of which are at least 0."""

_LEAST_GAIN = 1e-250
"""Gains below are not bounded: rounding may change sums of such small terms by more than ``_SLACK``."""

_HALVINGS = 8
"""How often the interval of ``c`` is halved: a bound that is a little too large costs few evaluations."""

_ROWS = 4
"""How many arms are compared with the ranges at once, so that these are read and written less often."""


class ItemRanges(NamedTuple):
    """Between which numbers the parameters of each item lie, and two buffers, (n_items,) each.

    ``low`` and ``high`` are the least and the largest parameter of an item over all arms that may join. ``before`` are
    the slopes of the items for which the bounds of all arms hold, ``now`` those of the current batch.
    """

    low: Floats
    high: Floats
    before: Floats
    now: Floats


@component
class RangedGreedy(NamedTuple):
    r"""Lazy greedy whose bounds of all gains follow each pick: the same batches as ``Greedy``, ties included.

    For dense problems whose gains are linear in the parameters, :math:`\sum_i s_i q_{ij}` with slopes :math:`s_i` that
    depend on the batch. An arm that gained at most G with the slopes :math:`S_i` gains at most

    .. math:: \sum_i s_i x_i + c\,\big(G - \sum_i S_i x_i\big), \qquad
        x_i = \max_j q_{ij} \text{ if } s_i > c S_i \text{ else } \min_j q_{ij}

    with the slopes :math:`s_i`, for every :math:`c \ge 0`: the parameters :math:`x` maximise
    :math:`\sum_i (s_i - c S_i) q_i` over all that lie between the least and the largest of each item. After every pick
    the bounds of all arms are replaced by these, where they are smaller, and :math:`c` is the number for which fewest
    arms can still win; this is the dual of a fractional knapsack, [Dantzig1957]_. Bounds of earlier gains alone, as in
    :class:`LazyGreedy` after [Minoux1978]_, rule out few arms if every arm covers a little of every item, as optimistic
    parameters do.

    Parameters
    ----------
    slack
        The factor by which a gain may exceed an earlier one by rounding, at least 1.
    """

    slack: float = 1.0 + 1e-9

    @property
    def greedy(self) -> bool:
        return True

    def _check(self) -> None:
        positive(self, "slack")

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
        size = pins(problem.actions, candidates, chosen)
        if size < 0:
            return chosen[:0]
        states = batch_states(problem, q, chosen[:size])
        limits = new_limits(candidates, chosen[:size], self.slack)
        ranges = _evaluate_all(problem, q, candidates, states, limits)
        while size < len(chosen):
            if not add_best_arm(problem, q, candidates, PartialBatch(chosen, size, states), limits):
                break
            size += 1
            if size < len(chosen):
                _carry_limits(problem, q, states, limits, ranges)
        return chosen[:size]

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return greedy_guarantee(problem)

    @interpreted
    def fit(self, problem: Problem) -> "RangedGreedy":
        if not suits_ranges(problem):
            raise InvalidArgument(
                "oracle", "RangedGreedy needs a dense problem with linear, shrinking gains", "take LazyGreedy()"
            )
        return self._replace(slack=1.0) if gains_shrink(problem.reward) else self


def suits_ranges(problem: Problem) -> bool:
    """Whether gains are linear in the parameters, shrink as the batch grows, and every arm has every item."""
    shrinks = problem.reward.submodular and not problem.reward.modular
    return shrinks and linear_gain(problem.reward) and isinstance(problem.support, Dense)


@kernel
def _evaluate_all(
    problem: Problem, q: Floats, candidates: Candidates, states: Floats, limits: GainLimits
) -> ItemRanges:
    """Write the gain of every arm that may join into ``limits``, and find the ranges of all items."""
    n, arm = problem.n_items, limits.arm
    ranges = ItemRanges(np.full(n, np.inf), np.full(n, -np.inf), np.zeros(n), np.zeros(n))
    limits.block[:] = -np.inf
    known = int(np.argmax(arm))
    if arm[known] < 0.0:
        return ranges
    for first in range(0, problem.n_arms, _ROWS):
        for j in range(first, min(first + _ROWS, problem.n_arms)):
            if arm[j] > 0.0:
                arm[j] = max(0.0, gain(problem.reward, problem.terms, states, q, j)) * limits.slack
                limits.block[j // BLOCK_SIZE] = max(limits.block[j // BLOCK_SIZE], arm[j])
        rows = (  # of an arm that may not join or is not there, another one's
            _row(arm, first, known, n), _row(arm, first + 1, known, n),
            _row(arm, first + 2, known, n), _row(arm, first + 3, known, n),
        )  # fmt: skip
        _widen(ranges, q, rows)
    _write_slopes(problem.reward, problem.terms, states, ranges.before)
    return ranges


@inlined
def _row(arm: Floats, j: int, known: int, n: int) -> int:
    """The first entry of arm ``j`` if it may join, otherwise that of arm ``known``."""
    return (j if j < len(arm) and arm[j] >= 0.0 else known) * n


@inlined
def _widen(ranges: ItemRanges, q: Floats, rows: tuple[int, int, int, int]) -> None:
    """Make the ranges include the parameters of four arms, whose first entries are ``rows``."""
    low, high = ranges.low, ranges.high
    a, b, c, d = np.uint64(rows[0]), np.uint64(rows[1]), np.uint64(rows[2]), np.uint64(rows[3])
    for i in range(np.uint64(len(low))):
        low[i] = _smaller(low[i], _smaller(_smaller(q[a + i], q[b + i]), _smaller(q[c + i], q[d + i])))
        high[i] = _larger(high[i], _larger(_larger(q[a + i], q[b + i]), _larger(q[c + i], q[d + i])))


@inlined
def _smaller(a: float, b: float) -> float:
    return a if a < b else b


@inlined
def _larger(a: float, b: float) -> float:
    return a if a > b else b


@inlined
def _write_slopes(reward: Reward, terms: Terms, states: Floats, slopes: Floats) -> None:
    """Write the derivative of the gain in the parameter of each item."""
    for i in range(len(states)):
        slopes[i] = derivative(reward, terms.weights[i], states[i], 0.0)


@kernel
def _carry_limits(problem: Problem, q: Floats, states: Floats, limits: GainLimits, ranges: ItemRanges) -> None:
    """Replace the bounds of all arms by those for the item states ``states``, where these are smaller."""
    arm, block = limits.arm, limits.block
    _write_slopes(problem.reward, problem.terms, states, ranges.now)
    target = gain(problem.reward, problem.terms, states, q, int(np.argmax(arm)))
    if target > _LEAST_GAIN:
        c = _choose_multiplier(ranges, target)
        value, size = _sum_corner(ranges, c)
        if c > 0.0:
            for j in range(len(arm)):
                arm[j] = min(arm[j], _carry(arm[j], c, value, size))
            for n in range(len(block)):
                block[n] = min(block[n], _carry(block[n], c, value, size))
            ranges.before[:] = ranges.now


@inlined
def _carry(limit: float, c: float, value: float, size: float) -> float:
    """A bound of the gains now of an arm whose gains before did not exceed ``limit``; grows with ``limit``."""
    return value + c * (limit - size) + _SLACK * (value + c * limit)


@inlined
def _choose_multiplier(ranges: ItemRanges, target: float) -> float:
    """The ``c`` for which fewest arms can gain ``target``: where the value of the best parameters falls below it."""
    least, most = np.inf, 0.0
    for i in range(len(ranges.now)):
        ratio = ranges.now[i] / ranges.before[i] if ranges.before[i] > 0.0 else 0.0
        least, most = min(least, ratio), max(most, ratio)
    for _ in range(_HALVINGS):
        middle = 0.5 * (least + most)
        if _sum_corner(ranges, middle)[0] >= target:
            least = middle
        else:
            most = middle
    return most


@inlined
def _sum_corner(ranges: ItemRanges, c: float) -> tuple[float, float]:
    """The sums of slope times x now and before, for the parameters x that maximise the sum of (now - c before) x."""
    low, high, before, now = ranges
    value, size = 0.0, 0.0
    for i in range(np.uint64(len(now))):
        x = high[i] if now[i] > c * before[i] else low[i]
        value += now[i] * x
        size += before[i] * x
    return value, size
