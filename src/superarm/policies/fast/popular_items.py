"""Popular items apart: a bound on what an arm adds that reads only what is left of the items that many arms share.

Where arms share a few items, the first picks cover them, and bounds that know nothing of these picks promise too much.
Other items are hardly ever covered twice. So an arm adds at most

.. math:: \\sum_{i\\ popular} slope_i\\, form(q_{ij}) + \\sum_{i\\ other} slope_i(\\emptyset)\\, form(q_{ij})

whose second sum is carried over rounds, while the first reads a small array. Bounds that let greedy picking pass over
arms are [Minoux1978]_'s.
"""

from typing import NamedTuple

import numpy as np

from superarm._jit import inlined, kernel
from superarm.arrays import Floats, Ints
from superarm.problem import Problem
from superarm.rewards.base import bound_argument, bound_slope, start
from superarm.support import item, size, span

_MOST = 256
"""How many items are popular: what is left of them fits next to the processor."""

SLACK = 1.0 + 1e-9
"""Scores grow with t, gains shrink with the batch and sums do not depend on their order, all up to rounding: a bound
times this holds in floating point."""


class Popular(NamedTuple):
    """``items`` (n_popular,) are those of most weight times arms, the greatest first.

    ``left`` (n_popular,) is the slope of each now, ``whole`` (n_entries,) that of every entry's item at the empty
    batch: reading it there, in order, is many times as fast as by item. What is known of an arm lies at its place, so
    that neighbours are read together: ``entry[first[p]:first[p + 1]]`` are the entries of popular items of the arm at
    place p, in order; ``rank`` (same) tells where the item of each stands in ``items``, ``z`` (same) is form(q) of
    each. ``rest`` (n_arms,) is the arm's second sum.
    """

    items: Ints
    left: Floats
    whole: Floats
    first: Ints
    entry: Ints
    rank: Ints
    z: Floats
    rest: Floats


@kernel
def popular(problem: Problem) -> Popular:
    """The popular items of a problem, arms at the places of their numbers.

    ``promise`` must be called for every arm before ``limit``.
    """
    support, weights = problem.terms.support, problem.terms.weights
    mass = np.zeros(problem.n_items)
    for j in range(problem.n_arms):
        begin, end = span(support, j)
        for o in range(end - begin):
            i = item(support, begin, o)
            mass[i] += weights[i]
    items = np.argsort(-mass)[:_MOST].copy()
    left, rank_of = np.zeros(len(items)), np.full(problem.n_items, -1)
    for n in range(len(items)):
        rank_of[items[n]] = n
        left[n] = _untouched(problem, items[n])
    first, whole = np.zeros(problem.n_arms + 1, np.int64), np.empty(size(support))
    for j in range(problem.n_arms):
        begin, end = span(support, j)
        first[j + 1] = first[j]
        for o in range(end - begin):
            i = item(support, begin, o)
            first[j + 1] += rank_of[i] >= 0
            whole[begin + o] = _untouched(problem, i)
    entry, rank = np.empty(first[-1], np.int64), np.empty(first[-1], np.int64)
    at = 0
    for j in range(problem.n_arms):
        begin, end = span(support, j)
        for o in range(end - begin):
            n = rank_of[item(support, begin, o)]
            if n >= 0:
                entry[at], rank[at] = begin + o, n
                at += 1
    return Popular(items, left, whole, first, entry, rank, np.zeros(len(entry)), np.zeros(problem.n_arms))


@inlined
def _untouched(problem: Problem, i: int) -> float:
    """The slope of item ``i`` at the empty batch."""
    weight = problem.terms.weights[i]
    return bound_slope(problem.reward, weight, start(problem.reward, weight))  # type: ignore[arg-type]


@inlined
def promise(problem: Problem, shared: Popular, q: Floats, arm: int, place: int) -> float:
    """Take in the parameters ``q`` (n_entries,) of the arm at ``place``; what it adds at most to the empty batch."""
    z, entry, whole = shared.z, shared.entry, shared.whole
    begin, end = span(problem.terms.support, arm)
    at, rest, most = shared.first[place], 0.0, 0.0
    for e in range(begin, end):
        share = bound_argument(problem.reward, q[e])
        if at < shared.first[place + 1] and entry[at] == e:
            z[at] = share
            most += whole[e] * share
            at += 1
        else:
            rest += whole[e] * share
    shared.rest[place] = rest
    return (rest + most) * SLACK


@inlined
def look(problem: Problem, shared: Popular, states: Floats, place: int) -> int:
    """Take in what is left at the state ``states`` of the popular items of an arm; the rank of the first, or -1."""
    weights, items, left, rank = problem.terms.weights, shared.items, shared.left, shared.rank
    least = -1
    for at in range(shared.first[place], shared.first[place + 1]):
        n = rank[at]
        left[n] = bound_slope(problem.reward, weights[items[n]], states[items[n]])  # type: ignore[arg-type]
        least = n if least < 0 else min(least, n)
    return least


@inlined
def limit(shared: Popular, place: int) -> float:
    """What the arm at ``place`` adds at most to the state last looked at."""
    z, rank, left = shared.z, shared.rank, shared.left
    total = shared.rest[place]
    for at in range(np.uint64(shared.first[place]), np.uint64(shared.first[place + 1])):
        total += z[at] * left[np.uint64(rank[at])]
    return total * SLACK  # type: ignore[no-any-return]


@kernel
def move(shared: Popular, came: Ints) -> None:
    """Let the arm that was at place ``came[p]`` stand at place p."""
    first, entry, rank = shared.first.copy(), shared.entry.copy(), shared.rank.copy()
    z, rest = shared.z.copy(), shared.rest.copy()
    at = 0
    for p in range(len(came)):
        shared.first[p], shared.rest[p] = at, rest[came[p]]
        for old in range(first[came[p]], first[came[p] + 1]):
            shared.entry[at], shared.rank[at], shared.z[at] = entry[old], rank[old], z[old]
            at += 1
