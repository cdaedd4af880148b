"""All batches of a small action set in a table, with their values :math:`r(A; p)`.

The notation is that of [MerlisMannor2019]_ (section Preliminaries).
"""

import numpy as np

from superarm._jit import kernel
from superarm.actions import Explicit
from superarm.arrays import Floats, Ints
from superarm.problem import Problem
from superarm.rewards import Reward, Terms, initial_states, join_arm, value_of_states


def tabulate(problem: Problem) -> tuple[Ints, Ints]:
    """All batches of a small action set, one row per batch, padded with -1; and their sizes.

    >>> import superarm as sa
    >>> tabulate(sa.Problem(n_arms=3, n_items=1, reward=sa.Coverage(), actions=sa.Subsets(2)))[0].tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    if isinstance(problem.actions, Explicit):
        return problem.actions.table, problem.actions.sizes
    batches = list(problem.actions.batches(problem.n_arms))
    sizes = np.array([len(batch) for batch in batches], np.int64)
    if (sizes == sizes.max()).all():
        return np.array(batches, np.int64), sizes
    table = np.full((len(batches), int(sizes.max())), -1, np.int64)
    for row, batch in zip(table, batches, strict=True):
        row[: len(batch)] = batch
    return table, sizes


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
