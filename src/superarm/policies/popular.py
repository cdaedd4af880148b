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
from superarm.rewards.base import form, slope, start
from superarm.support import item, span

_MOST = 256
"""How many items are popular: what is left of them fits next to the processor."""

_SLACK = 1.0 + 1e-9
"""A sum times this is not below the same sum in another order."""


class Popular(NamedTuple):
    """``items`` (n_popular,) are those of most weight times arms; ``left`` (n_popular,) is the slope of each now.

    Arm j's entries of popular items are ``entry[first[j]:first[j + 1]]``, in order; ``place`` (same) tells where the
    item of each stands in ``items``, ``z`` (same) is form(q) of each. ``rest`` (n_arms,) is the arm's second sum.
    """

    items: Ints
    left: Floats
    first: Ints
    entry: Ints
    place: Ints
    z: Floats
    rest: Floats


@kernel
def popular(problem: Problem) -> Popular:
    """The popular items of a problem; ``promise`` must be called for every arm before ``limit``."""
    support = problem.terms.support
    mass = np.zeros(problem.n_items)
    for j in range(problem.n_arms):
        begin, end = span(support, j)
        for o in range(end - begin):
            i = item(support, begin, o)
            mass[i] += problem.terms.weights[i]
    items = np.argsort(-mass)[:_MOST].copy()
    place_of = np.full(problem.n_items, -1)
    for n in range(len(items)):
        place_of[items[n]] = n
    first = np.zeros(problem.n_arms + 1, np.int64)
    for j in range(problem.n_arms):
        begin, end = span(support, j)
        first[j + 1] = first[j]
        for o in range(end - begin):
            first[j + 1] += place_of[item(support, begin, o)] >= 0
    entry, place = np.empty(first[-1], np.int64), np.empty(first[-1], np.int64)
    at = 0
    for j in range(problem.n_arms):
        begin, end = span(support, j)
        for o in range(end - begin):
            n = place_of[item(support, begin, o)]
            if n >= 0:
                entry[at], place[at] = begin + o, n
                at += 1
    return Popular(items, np.zeros(len(items)), first, entry, place, np.zeros(len(entry)), np.zeros(problem.n_arms))


@inlined
def promise(problem: Problem, shared: Popular, q: Floats, arm: int) -> None:
    """Take in the parameters ``q`` (n_entries,) of ``arm``."""
    support, weights, z, entry = problem.terms.support, problem.terms.weights, shared.z, shared.entry
    begin, end = span(support, arm)
    at, rest = shared.first[arm], 0.0
    for e in range(begin, end):
        share = form(problem.reward, q[e])
        if at < shared.first[arm + 1] and entry[at] == e:
            z[at] = share
            at += 1
        else:
            weight = weights[item(support, begin, e - begin)]
            rest += slope(problem.reward, weight, start(problem.reward, weight)) * share  # type: ignore[arg-type]
    shared.rest[arm] = rest


@inlined
def look(problem: Problem, shared: Popular, memo: Floats) -> None:
    """Take in what is left of the popular items at the state ``memo``."""
    weights, items, left = problem.terms.weights, shared.items, shared.left
    for n in range(len(items)):
        left[n] = slope(problem.reward, weights[items[n]], memo[items[n]])  # type: ignore[arg-type]


@inlined
def limit(shared: Popular, arm: int) -> float:
    """What ``arm`` adds at most to the state last looked at."""
    z, place, left = shared.z, shared.place, shared.left
    total = shared.rest[arm]
    for at in range(shared.first[arm], shared.first[arm + 1]):
        total += z[at] * left[place[at]]
    return total * _SLACK  # type: ignore[no-any-return]
