"""Values and derivatives of many slates, and bounds of their differences. A slate is padded with -1.

Parameters are flat here, (n_entries,), arm after arm, as ``Log.entries`` numbers them.
"""

from typing import Any

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.support import Dense
from superarm.problem import Problem
from superarm.rewards import ClippedLinear, Conjunctive, Coverage, Linear, Logistic

CELLS = 1 << 20
"""So many item states are held at once: 8 MB."""


def gains_of_rows(problem: Problem, rows: Any) -> Floats:
    """What each row of a log added to the realised reward of the slots before it; outcomes not seen count as 0."""
    reward, weights, added = problem.reward, problem.weights, np.zeros(len(rows.arm))
    n_rounds, width = int(rows.round.max(initial=-1)) + 1, int(rows.slot.max(initial=-1)) + 1
    states = reward.empty_states(problem, n_rounds)
    for slot in range(width):
        own = np.flatnonzero(rows.slot == slot)
        at = rows.round[own]
        after = reward.join(states[at], np.where(rows.seen[own], rows.outcome[own], 0.0))
        if not isinstance(problem.support, Dense):
            after = np.where(entry_numbers(problem, rows.arm[own]) >= 0, after, states[at])
        added[own] = (reward.worth(weights, after) - reward.worth(weights, states[at])).sum(1)
        states[at] = after
    return added


def entry_numbers(problem: Problem, arm: Ints) -> Ints:
    """The number of each item's parameter for the arms ``arm`` (n,), (n, n_items); -1 outside of the support."""
    support = problem.support
    if isinstance(support, Dense):
        return np.asarray(arm[:, None] * support.n_items + np.arange(support.n_items))
    inside, numbers = support.row_entries[arm], np.full((len(arm), support.n_items), -1)
    row, place = np.nonzero(inside >= 0)
    numbers[row, support.items[inside[row, place]]] = inside[row, place]
    return numbers


def value_each_slate(problem: Problem, q: Floats, slates: Ints) -> Floats:
    """r(A; q) of each slate, (n,)."""
    entries, step = problem.support.to_entries(q), max(1, CELLS // problem.n_items)
    parts = [problem.values(entries, slates[n : n + step]) for n in range(0, len(slates), step)]
    return np.concatenate([np.empty(0), *parts])


def slate_slopes(problem: Problem, q: Floats, slates: Ints) -> Floats:
    """The derivatives of r(A; q) in the parameters of each place of each slate, (n, k, n_items)."""
    return problem.support.rows_to_items(problem.reward.slopes(problem, problem.support.to_entries(q), slates), slates)


def mean_slopes(problem: Problem, q: Floats, slates: Ints, shares: Floats) -> Floats:
    """The derivatives of the mean of r(A; q) over slates with these shares, (n_entries,)."""
    result, used = np.zeros(problem.n_entries), np.flatnonzero(shares > 0.0)
    step = max(1, CELLS // (problem.n_items * slates.shape[1]))
    for n in range(0, len(used), step):
        some = used[n : n + step]
        slopes = shares[some, None, None] * slate_slopes(problem, q, slates[some])
        row, place = np.nonzero(slates[some] >= 0)
        numbers = entry_numbers(problem, slates[some][row, place])
        np.add.at(result, numbers[numbers >= 0], slopes[row, place][numbers >= 0])
    return result


# --- the difference of two slates, in which shared arms cancel ---


def shared_arms_cancel(reward: Any) -> bool:
    r"""Whether :func:`difference_bounds` may treat the arms that two slates share together.

    Let s be the state of an item after the shared arms have joined, and d(s) the difference of the item's worth between
    the two slates. The bounds take d at the two extreme states of the box, which is right if d is monotone in s. It is
    for the rewards that are linear in the state (coverage, conjunctive) or modular, and for the logistic reward with
    c <= 1: a concave f of the sum x has a monotone f(x + a) - f(x + b). Of other rewards nothing is assumed.
    """
    concave = isinstance(reward, Logistic) and reward.c <= 1.0
    return concave or isinstance(reward, Coverage | Conjunctive | Linear | ClippedLinear)


def difference_bounds(problem: Problem, low: Floats, high: Floats, slate: Ints, others: Ints) -> tuple[Floats, Floats]:
    """Lower and upper bounds of r(slate; p) - r(other; p) for low <= p <= high, for each row of ``others``.

    Slates are padded with -1. If shared arms do not cancel, only equal slates do.
    """
    least, most, step = np.zeros(len(others)), np.zeros(len(others)), max(1, CELLS // problem.n_items)
    bound = _paired_bounds if shared_arms_cancel(problem.reward) else _separate_bounds
    ends = problem.support.to_entries(low), problem.support.to_entries(high)
    for n in range(0, len(others), step):
        other = others[n : n + step]
        own = np.repeat(slate[slate >= 0][None], len(other), 0)
        in_other = (own[:, :, None] == other[:, None, :]).any(2)
        in_own = (own[:, :, None] == other[:, None, :]).any(1)
        same = in_other.all(1) & (in_own | (other < 0)).all(1)
        shared, own_rest = np.where(in_other, own, -1), np.where(in_other, -1, own)
        other_rest = np.where(in_own, -1, other)
        found = bound(problem, *ends, shared, own_rest, other_rest)
        least[n : n + step], most[n : n + step] = (np.where(same, 0.0, end) for end in found)
    return least, most


def _paired_bounds(
    problem: Problem, low: Floats, high: Floats, shared: Ints, own: Ints, other: Ints
) -> tuple[Floats, Floats]:
    """The bounds where the arms ``shared`` join at both ends of the box, and the rest of each slate at its own."""

    def worth(at: Floats, rest: Ints, q: Floats) -> Floats:
        states = problem.reward.states(problem, at, shared)
        for arm in rest.T:
            problem.support.join(states, q, arm, problem.reward.join)
        return np.asarray(problem.reward.worth(problem.weights, states))

    least = [worth(at, own, low) - worth(at, other, high) for at in (low, high)]
    most = [worth(at, own, high) - worth(at, other, low) for at in (low, high)]
    return np.minimum(*least).sum(1), np.maximum(*most).sum(1)


def _separate_bounds(
    problem: Problem, low: Floats, high: Floats, shared: Ints, own: Ints, other: Ints
) -> tuple[Floats, Floats]:
    whole = [np.concatenate([shared, rest], axis=1) for rest in (own, other)]
    (own_low, own_high), (other_low, other_high) = (
        [problem.values(q, slates) for q in (low, high)] for slates in whole
    )
    return own_low - other_high, own_high - other_low
