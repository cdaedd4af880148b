r"""The values :math:`r(A; p)` of all batches of a small action set, listed in a table, and their slopes.

The notation is that of [MerlisMannor2019]_ (section Preliminaries).
"""

import math

import numpy as np

from superarm._jit import kernel
from superarm.arrays import Floats, Ints
from superarm.rewards import Reward, Terms, initial_states, join_arm, value_of_states
from superarm.rewards.base import derivative
from superarm.support import item, span


@kernel
def batch_values(reward: Reward, terms: Terms, p: Floats, table: Ints, sizes: Ints) -> Floats:
    """r(A; p) of every row of ``table``, (n_batches,); arms that consecutive rows share are added once."""
    width = table.shape[1]
    states = np.empty((width + 1, len(terms.weights)))
    states[0] = initial_states(reward, terms)
    result = np.empty(len(sizes))
    shared = 0
    for row in range(len(sizes)):
        for position in range(shared, sizes[row]):
            states[position + 1] = states[position]
            join_arm(reward, terms, states[position + 1], p, table[row, position])
        result[row] = value_of_states(reward, terms, states[sizes[row]])
        if row + 1 < len(sizes):
            shared = 0
            while shared < min(sizes[row], sizes[row + 1]) and table[row, shared] == table[row + 1, shared]:
                shared += 1
    return result


@kernel
def arm_extremes(table: Ints, sizes: Ints, value: Floats, target: float, below: Floats, lowest: Floats) -> None:
    """Write, for each arm, the largest and the smallest of the values below ``target`` of the batches with it."""
    for row in range(len(sizes)):
        if value[row] < target:
            for position in range(sizes[row]):
                j = table[row, position]
                below[j] = max(below[j], value[row])
                lowest[j] = min(lowest[j], value[row])


@kernel
def batch_slopes(reward: Reward, terms: Terms, p: Floats, action: Ints, sums: Floats) -> None:
    r"""Write two sums over the items of each arm of ``action`` into ``sums``, (n, 2).

    The first is :math:`\sum_i d_{ij}\sqrt{p_{ij}(1 - p_{ij})}`, the second :math:`\sum_i d_{ij}`, where
    :math:`d_{ij}` is the derivative of the batch's value with respect to :math:`p_{ij}`.
    """
    for at in range(len(action)):
        states = initial_states(reward, terms)
        for other in range(len(action)):
            if other != at:
                join_arm(reward, terms, states, p, action[other])
        first, last = span(terms.support, action[at])
        sums[at, 0] = 0.0
        sums[at, 1] = 0.0
        for o in range(last - first):
            i = item(terms.support, first, o)
            x = p[first + o]
            d = derivative(reward, terms.weights[i], states[i], x)
            sums[at, 0] += d * math.sqrt(x * (1.0 - x))
            sums[at, 1] += d


@kernel
def largest_slopes(
    reward: Reward, terms: Terms, p: Floats, table: Ints, sizes: Ints, main: Floats, slow: Floats
) -> None:
    """Write, for each arm, the largest of the two sums of :func:`batch_slopes` over the batches of ``table`` with it.

    ``main`` gets the sum of the squares of the first over the arms of the batch, ``slow`` the largest of the second.
    """
    sums = np.empty((table.shape[1], 2))
    for row in range(len(sizes)):
        batch_slopes(reward, terms, p, table[row, : sizes[row]], sums)
        square, top = 0.0, 0.0
        for at in range(sizes[row]):
            square += sums[at, 0] * sums[at, 0]
            top = max(top, sums[at, 1])
        for at in range(sizes[row]):
            j = table[row, at]
            main[j] = max(main[j], square)
            slow[j] = max(slow[j], top)
