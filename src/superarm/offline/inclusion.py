"""Slates whose slots are explored at random, and how likely they contain an arm, in any slot or in a given one."""

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.errors import InvalidArgument


def explored_inclusion(n_arms: int, queue: Ints, share: float) -> Floats:
    r"""The probability of each arm to be in a slate whose slots are explored, (n_arms,).

    The slate is filled slot by slot: with probability ``share`` by any arm that is left, each alike; otherwise by the
    first arm of the policy's ``queue`` that is left. With s slots and n arms left, the arm at rank k of the queue is
    included with probability

    .. math:: f(s, k) = (1 - \epsilon)\,[k = 1\ ?\ 1 : f(s-1, k-1)]
              + \epsilon \Bigl[\frac1n + \frac{k-1}n f(s-1, k-1) + \frac{n-k}n f(s-1, k)\Bigr], \qquad f(0, k) = 0

    and an arm outside of the queue with :math:`1 - \prod_s (1 - \epsilon/n_s)`. Derived for superarm; the tests compare
    it with enumeration.

    Parameters
    ----------
    n_arms
        How many arms may be in the slate.
    queue
        The slate that the policy would show without exploration, (k,).
    share
        The probability of a random arm in each slot.

    Examples
    --------
    >>> explored_inclusion(4, np.array([2, 0]), 0.5).round(4).tolist()
    [0.5833, 0.2708, 0.875, 0.2708]
    """
    k = _check(n_arms, queue, share)
    ranks = np.zeros(k)  # f(s, rank) of ranks 1 to k
    outside = 1.0
    for s in range(1, k + 1):
        n = n_arms - k + s
        outside *= 1.0 - share / n
        ahead = np.arange(k)  # how many arms of the queue come before each rank
        moved_up = np.concatenate([[0.0], ranks[:-1]])
        explored = (1.0 + ahead * moved_up + (n - 1 - ahead) * ranks) / n
        ranks = (1.0 - share) * np.where(ahead == 0, 1.0, moved_up) + share * explored
    result = np.full(n_arms, 1.0 - outside)
    result[np.asarray(queue)] = ranks
    return result


def explored_positions(n_arms: int, queue: Ints, share: float) -> Floats:
    """The probability of each arm in each slot of a slate that is explored as in :func:`explored_inclusion`.

    The result is (n_arms, k); its rows add up to the inclusion probabilities, its columns to 1.

    >>> explored_positions(3, np.array([1, 0]), 0.5).round(4).tolist()
    [[0.1667, 0.5417], [0.6667, 0.25], [0.1667, 0.2083]]
    """
    k = _check(n_arms, queue, share)
    shown = np.zeros((k + 1, k))  # one row per rank in the queue, the last for arms outside of it
    where = np.eye(k + 1)  # of an arm that began at each rank: the probability of its rank now, if not shown yet
    for slot in range(k):
        n, length = n_arms - slot, k - slot
        leads = np.arange(k + 1) == 0
        here = np.where(leads, (1.0 - share) + share / n, share / n)
        shown[:, slot] = where @ here
        where = where @ _moves(k, n, length, share)
    result = np.tile(shown[k], (n_arms, 1))
    result[np.asarray(queue)] = shown[:k]
    return result


def _moves(k: int, n: int, length: int, share: float) -> Floats:
    """The probabilities that an arm that is not shown in this slot goes from one rank to another, (k + 1, k + 1).

    Ranks from ``length`` on are outside of the queue, as is the last row.
    """
    moves = np.zeros((k + 1, k + 1))
    for rank in range(k + 1):
        inside = rank < length
        ahead = rank if inside else length
        up = (1.0 - share) * (rank > 0) + share * ahead / n if inside else 0.0
        stays = share * (length - 1 - rank) / n if inside else 1.0 - share / n
        if inside and rank > 0:
            moves[rank, rank - 1] += up
        moves[rank, rank] += stays
        if inside:  # an arm outside of the queue was drawn, and the last of the queue is dropped
            moves[rank, k if rank == length - 1 else rank] += share * (n - length) / n
    return moves


def explore_slates(n_arms: int, queues: Ints, share: float, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Slates that explore around ``queues`` (n, k), and the probability of each slot given those before it, (n, k)."""
    n, k = queues.shape
    slates, chances = np.zeros((n, k), np.int64), np.zeros((n, k))
    free = np.ones((n, n_arms), bool)
    waiting = queues.copy()
    every = np.arange(n)
    for slot in range(k):
        left, leader = n_arms - slot, waiting[:, 0]
        place: Ints = np.asarray(rng.integers(left, size=n))  # the arm at this place among those that are left
        drawn = np.argmax(np.cumsum(free, axis=1) == place[:, None] + 1, axis=1)
        arm = np.where(rng.random(n) < share, drawn, leader)
        slates[:, slot], chances[:, slot] = arm, share / left + (1.0 - share) * (arm == leader)
        free[every, arm] = False
        gone = waiting == arm[:, None]
        gone[:, -1] |= ~gone.any(axis=1)  # the policy goes on without its last pick
        waiting = waiting[~gone].reshape(n, k - slot - 1)
    return slates, chances


def _check(n_arms: int, queue: Ints, share: float) -> int:
    if not 0.0 <= share <= 1.0:
        raise InvalidArgument("share", f"{share!r}", "give a probability")
    if not 1 <= len(queue) <= n_arms:
        raise InvalidArgument("queue", f"{len(queue)} of {n_arms} arms", "give 1 to n_arms arms")
    return len(queue)
