"""A bound on what an arm adds that follows the current slopes of the items that most arms have.

If many arms share a few items, the first picks cover these, and bounds made for the empty batch become too large. Other
items are rarely covered twice. So an arm adds at most

.. math:: \\sum_{i\\ popular} slope_i\\, form(q_{ij}) + \\sum_{i\\ other} slope_i(\\emptyset)\\, form(q_{ij})

whose second sum is kept between rounds, while the first reads a small array. Skipping arms by bounds of their
gains is due to [Minoux1978]_.
"""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import inlined, kernel
from superarm.arrays import Floats, Ints
from superarm.problem import Problem
from superarm.rewards.base import bound_argument, bound_slope, start
from superarm.support import item, size, span

_MAX_POPULAR_ITEMS = 256
"""How many items count as popular: few enough that their slopes stay in the cache of a core, and one byte counts them.

What is stored for each entry of such an item is read for thousands of arms in a round: one byte, and single precision.
"""

_1, _2 = np.uint64(1), np.uint64(2)

SLACK = 1.0 + 1e-9
"""Scores grow with t, gains shrink with the batch and sums do not depend on their order, all up to rounding: a bound
times this holds in floating point."""


class PopularItems(NamedTuple):
    """The items with the largest weight times number of arms, in decreasing order, and what arms have of them.

    ``items`` (n_popular,) are their numbers. ``left`` (n_popular,) is the current slope of each, ``whole`` (n_entries,)
    the slope of every entry's item at the empty batch: reading it by entry, in order, is many times as fast as by item.
    Data of an arm are stored by its position, so that neighbours are read together:
    ``entry[first[p]:first[p + 1]]`` are the entries of popular items of the arm at position p, in order; ``rank`` (same
    length) is the index of each entry's item in ``items``, ``z`` (same) its bound argument of q, rounded up. ``rest``
    (n_arms,) is the arm's second sum.
    """

    items: Ints
    left: Floats
    whole: Floats
    first: Ints
    entry: Ints
    rank: Any
    z: Any
    rest: Floats


@kernel
def find_popular_items(problem: Problem) -> PopularItems:
    """The popular items of a problem, with every arm at the position of its number.

    ``set_parameters`` must be called for every arm before ``bound_gain``.
    """
    support, weights = problem.terms.support, problem.terms.weights
    mass = np.zeros(problem.n_items)
    for j in range(problem.n_arms):
        begin, end = span(support, j)
        for o in range(end - begin):
            i = item(support, begin, o)
            mass[i] += weights[i]
    items = np.argsort(-mass)[:_MAX_POPULAR_ITEMS].copy()
    left, rank_of = np.zeros(len(items)), np.full(problem.n_items, -1)
    for n in range(len(items)):
        rank_of[items[n]] = n
        left[n] = _initial_slope(problem, items[n])
    first, whole = np.zeros(problem.n_arms + 1, np.int64), np.empty(size(support))
    for j in range(problem.n_arms):
        begin, end = span(support, j)
        first[j + 1] = first[j]
        for o in range(end - begin):
            i = item(support, begin, o)
            first[j + 1] += rank_of[i] >= 0
            whole[begin + o] = _initial_slope(problem, i)
    entry, rank = np.empty(first[-1], np.int64), np.empty(first[-1], np.uint8)
    at = 0
    for j in range(problem.n_arms):
        begin, end = span(support, j)
        for o in range(end - begin):
            n = rank_of[item(support, begin, o)]
            if n >= 0:
                entry[at], rank[at] = begin + o, n
                at += 1
    z = np.zeros(len(entry), np.float32)
    return PopularItems(items, left, whole, first, entry, rank, z, np.zeros(problem.n_arms))


@inlined
def _initial_slope(problem: Problem, i: int) -> float:
    """The slope of item ``i`` at the empty batch."""
    weight = problem.terms.weights[i]
    return bound_slope(problem.reward, weight, start(problem.reward, weight))  # type: ignore[arg-type]


@inlined
def set_parameters(problem: Problem, shared: PopularItems, q: Floats, arm: int, position: int) -> float:
    """Store the parameters ``q`` (n_entries,) of an arm; return a bound of what it adds to the empty batch."""
    z, entry, whole = shared.z, shared.entry, shared.whole
    begin, end = span(problem.terms.support, arm)
    at, rest, most = shared.first[position], 0.0, 0.0
    for e in range(begin, end):
        share = bound_argument(problem.reward, q[e])
        if at < shared.first[position + 1] and entry[at] == e:
            z[at] = _round_up(share)
            most += whole[e] * share
            at += 1
        else:
            rest += whole[e] * share
    shared.rest[position] = rest
    return (rest + most) * SLACK


@inlined
def _round_up(x: float) -> Any:
    """A number of single precision that is not less than ``x``, and equal to it where that can be."""
    near = np.float32(x)
    return near if np.float64(near) >= x else np.float32(x * (1.0 + 1.2e-7) + 1e-44)


@inlined
def update_slopes(problem: Problem, shared: PopularItems, states: Floats, position: int) -> int:
    """Update the slopes of the popular items of an arm for item states ``states``; return their lowest rank, or -1."""
    weights, items, left, rank = problem.terms.weights, shared.items, shared.left, shared.rank
    least = -1
    for at in range(shared.first[position], shared.first[position + 1]):
        n = int(rank[at])
        left[n] = bound_slope(problem.reward, weights[items[n]], states[items[n]])  # type: ignore[arg-type]
        least = n if least < 0 else min(least, n)
    return least


@inlined
def bound_gain(shared: PopularItems, position: int) -> float:
    """An upper bound of what the arm at ``position`` adds, at the slopes last updated."""
    z, rank, left = shared.z, shared.rank, shared.left
    at, end = np.uint64(shared.first[position]), np.uint64(shared.first[position + 1])
    even, odd = shared.rest[position], 0.0  # two sums, so that half as many steps wait for the one before
    while at + _1 < end:
        even += z[at] * left[np.uint64(rank[at])]
        odd += z[at + _1] * left[np.uint64(rank[at + _1])]
        at += _2
    if at < end:
        even += z[at] * left[np.uint64(rank[at])]
    return (even + odd) * SLACK  # type: ignore[no-any-return]


@kernel
def permute_arms(shared: PopularItems, came: Ints) -> None:
    """Move the arm at position ``came[p]`` to position p, for every p."""
    first, entry, rank = shared.first.copy(), shared.entry.copy(), shared.rank.copy()
    z, rest = shared.z.copy(), shared.rest.copy()
    at = 0
    for p in range(len(came)):
        shared.first[p], shared.rest[p] = at, rest[came[p]]
        for old in range(first[came[p]], first[came[p] + 1]):
            shared.entry[at], shared.rank[at], shared.z[at] = entry[old], rank[old], z[old]
            at += 1
