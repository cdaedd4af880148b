"""The first of many arms, kept up to date: by smallest key, then smallest rank, then lowest number.

This is a tournament tree, [Knuth1998]_ (section 5.2.3, tree selection).
"""

from typing import NamedTuple

import numpy as np

from superarm._jit import for_kernels, inlined, lean
from superarm.arrays import Floats, Ints


class Tournament(NamedTuple):
    """A tournament tree over arms: the winner of node n is the winner of node 2n or that of node 2n + 1.

    ``key`` and ``rank`` are (n_leaves,); an arm with an infinite key does not take part. n_leaves is a power of two,
    and leaf n_leaves + j is arm j.
    """

    key: Floats
    rank: Floats
    winner: Ints


@for_kernels
def new_tournament(keys: Floats, ranks: Floats) -> Tournament:
    """A tournament of all arms."""
    leaves = 2
    while leaves < len(keys):
        leaves *= 2
    tournament = Tournament(np.full(leaves, np.inf), np.zeros(leaves), np.arange(-leaves, leaves))
    tournament.key[: len(keys)] = keys
    tournament.rank[: len(ranks)] = ranks
    rebuild(tournament)
    return tournament


@inlined
def precedes(tournament: Tournament, a: int, b: int) -> bool:
    """Whether arm ``a`` comes before arm ``b``."""
    if tournament.key[a] != tournament.key[b]:
        return tournament.key[a] < tournament.key[b]  # type: ignore[no-any-return]
    return tournament.rank[a] < tournament.rank[b] or (tournament.rank[a] == tournament.rank[b] and a < b)


@inlined
def _winner_of(tournament: Tournament, node: int) -> int:
    left, right = tournament.winner[2 * node], tournament.winner[2 * node + 1]
    return right if precedes(tournament, right, left) else left  # type: ignore[no-any-return]


@lean
def rebuild(tournament: Tournament) -> None:
    """Compute all winners, after keys or ranks were written."""
    for node in range(len(tournament.key) - 1, 0, -1):
        tournament.winner[node] = _winner_of(tournament, node)


@lean
def update_key(tournament: Tournament, arm: int, key: float, rank: float) -> None:
    """Give ``arm`` this key and rank; an infinite key takes it out of the tournament."""
    keys, ranks, winner = tournament
    if keys[arm] == key and ranks[arm] == rank:
        return
    keys[arm], ranks[arm] = key, rank
    node = (len(keys) + arm) // 2
    while node > 0:
        better = _winner_of(tournament, node)
        if better == winner[node] and better != arm:
            return
        winner[node] = better
        node //= 2


@lean
def fill_in_order(tournament: Tournament, chosen: Ints, size: int) -> int:
    """Move arms from the tournament into ``chosen``, in order, until it is full or none is left; the new size."""
    while size < len(chosen) and tournament.key[tournament.winner[1]] < np.inf:
        chosen[size] = tournament.winner[1]
        update_key(tournament, chosen[size], np.inf, 0.0)
        size += 1
    return size
