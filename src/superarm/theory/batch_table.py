"""The values :math:`r(A; p)` of all batches of a small action set, listed in a table.

The notation is that of [MerlisMannor2019]_ (section Preliminaries).
"""

import numpy as np

from superarm._jit import kernel
from superarm.arrays import Floats, Ints
from superarm.rewards import Reward, Terms, initial_states, join_arm, value_of_states


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
