r"""Bounds of the gains of arms under a shared linear model, with one root per arm in place of one per entry.

Gains are linear in the parameters, with slopes :math:`u_i` that add up to U. The root is concave, so for squared widths
:math:`s_{ij}`

.. math:: \sum_i u_i \sqrt{s_{ij}} \le \sqrt{U \sum_i u_i s_{ij}}

and the sum on the right is as quick to compute as one :math:`s_{ij}`, by [LiuEtAl2023]_ (Algorithms 1 and 2).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from superarm._jit import kernel, lean
from superarm.arrays import Floats
from superarm.policies.contextual.shared_scores import ArmBlock, Reduced
from superarm.rewards.base import Terms, item_gain

_ROUNDING = 1e-15
"""More than four times the relative error of one operation; a sum of n terms has n times as much."""


class GainSums(NamedTuple):
    """What the bounds of all arms have in common for a batch: sums over items, each with its slope.

    ``slope`` is the sum of the slopes and ``largest`` the gain of an arm whose parameters are 1. ``mean`` and
    ``square`` are the sums of the items' means and squares with more than the rounding errors of all that is summed,
    ``lowest`` is the least of the items' means, and ``cross`` (m,) what the numbers of an arm are multiplied by.
    """

    slope: float
    largest: float
    mean: float
    square: float
    lowest: float
    cross: Floats


@kernel
def sum_slopes(reward: Any, terms: Terms, states: Floats, reduced: Reduced, largest: float, cross: Floats) -> GainSums:
    """The sums for a batch whose items have these states; ``cross`` (m,) is written to."""
    m, n_item = reduced.cross.shape
    slope, mean, square, size, lowest = 0.0, 0.0, 0.0, 0.0, 0.0 if n_item == 0 else np.inf
    cross[:] = 0.0
    for i in range(len(states)):
        u = item_gain(reward, terms.weights[i], states[i], 1.0)
        slope += u
        if n_item > 0:
            mean += u * reduced.item_mean[i] + _ROUNDING * len(states) * abs(u * reduced.item_mean[i])
            lowest = min(lowest, reduced.item_mean[i])
            square += u * reduced.item_square[i]
            size += u * abs(reduced.item_square[i])
            for k in range(m):
                cross[k] += u * reduced.cross[k, i]
                size += u * abs(reduced.cross[k, i])
    square += _ROUNDING * (m + len(states)) * size
    return GainSums(slope, largest, mean, square, lowest, cross)


@lean
def bound_block(sums: GainSums, block: ArmBlock, spread: float, reach: Floats) -> None:
    """Lower ``reach`` (n_arms,) of the arms of a block to bounds of their gains, where these are less.

    A parameter below 0 counts as 0: that is at most the parameter plus by how much the least of the arm's estimates is
    below 0.
    """
    mean, own, total, n_arms = block.mean, block.own, block.total, len(block.mean)
    slope, wide = sums.slope, 1.0 + _ROUNDING * (len(sums.cross) + 10)
    for n in range(n_arms):
        total[n] = slope * wide * max(0.0, own[n]) + sums.square
    for k in range(len(sums.cross)):
        v, cross = block.v[k], sums.cross[k]
        for n in range(n_arms):
            total[n] += cross * v[n]
    for n in range(n_arms):
        short = max(0.0, -(mean[n] + sums.lowest))
        estimate = slope * (mean[n] + short) + sums.mean + 1e-12 * slope * abs(mean[n])
        bound = estimate + spread * math.sqrt(slope * max(0.0, total[n]))
        total[n] = min(sums.largest, bound * (1.0 + 1e-9) + 1e-12)
    for n in range(n_arms):
        reach[block.first + n] = min(reach[block.first + n], total[n])
