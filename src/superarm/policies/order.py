"""Who stands first among equals, kept up to date: arms by fewest pulls, then lowest number."""

from typing import NamedTuple

import numpy as np

from superarm._jit import inlined, kernel, lean
from superarm.arrays import Floats, Ints


class Order(NamedTuple):
    """A tournament of the arms that stand in line: node n of ``winner`` is won by one of the nodes 2n and 2n + 1.

    ``key`` (n_leaves,) holds an arm's pulls, infinite for one that stands aside; n_leaves is a power of two, and leaf
    n_leaves + j is arm j.
    """

    key: Floats
    winner: Ints


@kernel
def order(pulls: Floats) -> Order:
    """All arms in line."""
    leaves = 2
    while leaves < len(pulls):
        leaves *= 2
    line = Order(np.full(leaves, np.inf), np.empty(2 * leaves, np.int64))
    line.key[: len(pulls)] = pulls
    for j in range(leaves):
        line.winner[leaves + j] = j
    for node in range(leaves - 1, 0, -1):
        line.winner[node] = _better(line, node)
    return line


@inlined
def _better(line: Order, node: int) -> int:
    left, right = line.winner[2 * node], line.winner[2 * node + 1]
    return left if line.key[left] <= line.key[right] else right  # type: ignore[no-any-return]


@lean
def place(line: Order, arm: int, key: float) -> None:
    """Let ``arm`` stand in line with ``key`` pulls, or aside if infinite."""
    keys, winner = line.key, line.winner
    if keys[arm] == key:
        return
    keys[arm] = key
    node = (len(keys) + arm) // 2
    while node > 0:
        better = _better(line, node)
        if better == winner[node] and better != arm:
            return
        winner[node] = better
        node //= 2


@lean
def fill_in_order(line: Order, chosen: Ints, size: int) -> int:
    """Let arms step out of line into ``chosen`` until it is full or the line is empty; the new size."""
    while size < len(chosen) and line.key[line.winner[1]] < np.inf:
        chosen[size] = line.winner[1]
        place(line, chosen[size], np.inf)
        size += 1
    return size
