"""Who stands first, kept up to date: arms by smallest key, then smallest rank, then lowest number.

A tournament tree, [Knuth1998]_ (section 5.2.3, tree selection).
"""

from typing import NamedTuple

import numpy as np

from superarm._jit import inlined, kernel, lean
from superarm.arrays import Floats, Ints


class Order(NamedTuple):
    """A tournament of the arms that stand in line: node n of ``winner`` is won by one of the nodes 2n and 2n + 1.

    ``key`` and ``rank`` are (n_leaves,); a key is infinite for an arm that stands aside. n_leaves is a power of
    two, and leaf n_leaves + j is arm j.
    """

    key: Floats
    rank: Floats
    winner: Ints


@kernel
def order(keys: Floats, ranks: Floats) -> Order:
    """All arms in line."""
    leaves = 2
    while leaves < len(keys):
        leaves *= 2
    line = Order(np.full(leaves, np.inf), np.zeros(leaves), np.empty(2 * leaves, np.int64))
    line.key[: len(keys)] = keys
    line.rank[: len(ranks)] = ranks
    for j in range(leaves):
        line.winner[leaves + j] = j
    play_off(line)
    return line


@inlined
def before(line: Order, a: int, b: int) -> bool:
    """Whether arm ``a`` stands before arm ``b``."""
    if line.key[a] != line.key[b]:
        return line.key[a] < line.key[b]  # type: ignore[no-any-return]
    return line.rank[a] < line.rank[b] or (line.rank[a] == line.rank[b] and a < b)


@inlined
def _better(line: Order, node: int) -> int:
    left, right = line.winner[2 * node], line.winner[2 * node + 1]
    return right if before(line, right, left) else left  # type: ignore[no-any-return]


@lean
def play_off(line: Order) -> None:
    """Find all winners anew, after keys or ranks were written."""
    for node in range(len(line.key) - 1, 0, -1):
        line.winner[node] = _better(line, node)


@lean
def place(line: Order, arm: int, key: float, rank: float) -> None:
    """Let ``arm`` stand in line with this key and rank, or aside if the key is infinite."""
    keys, ranks, winner = line
    if keys[arm] == key and ranks[arm] == rank:
        return
    keys[arm], ranks[arm] = key, rank
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
        place(line, chosen[size], np.inf, 0.0)
        size += 1
    return size
