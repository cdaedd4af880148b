"""Rewards, values and derivatives of many slates, by one compiled call each. A slate is padded with -1."""

from typing import Any

import numpy as np

from superarm._jit import kernel
from superarm.arrays import Bools, Floats, Ints
from superarm.rewards.base import Terms, derivative, initial_states, join, join_arm, start, value, worth
from superarm.support import item, span


def fill_padding(n: int, width: int, round: Ints, slot: Ints, arm: Ints) -> Ints:
    """Slates (n, width) from one row per arm, -1 where a slate is shorter.

    >>> fill_padding(2, 2, np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([5, 3, 4])).tolist()
    [[5, 3], [4, -1]]
    """
    slates = np.full((n, width), -1)
    slates[round, slot] = arm
    return slates


def gains_of_rows(problem: Any, rows: Any) -> Floats:
    """What each row of a log added to the realised reward of the slots before it; outcomes not seen count as 0."""
    starts = np.searchsorted(rows.round, np.arange(int(rows.round.max(initial=-1)) + 2))
    inside = support_table(problem)[rows.arm] if problem.n_entries < problem.n_arms * problem.n_items else None
    within = np.ones(rows.outcome.shape, bool) if inside is None else inside
    seen = np.where(rows.seen, rows.outcome, 0.0)
    return realised_gains(problem.reward, problem.weights, starts, rows.slot, seen, within)


def support_table(problem: Any) -> Bools:
    """Whether each arm can touch each item, (n_arms, n_items)."""
    table = np.zeros((problem.n_arms, problem.n_items), bool)
    for j in range(problem.n_arms):
        first, last = (int(end) for end in span(problem.support, j))
        table[j, [int(item(problem.support, first, o)) for o in range(last - first)]] = True
    return table


@kernel
def realised_gains(reward: Any, weights: Floats, starts: Ints, slot: Ints, outcome: Floats, inside: Bools) -> Floats:
    """The gain of each row over the rows before it in its round; rounds are ``starts[n]:starts[n + 1]``."""
    added = np.zeros(len(outcome))
    states = np.empty(len(weights))
    for n in range(len(starts) - 1):
        for i in range(len(weights)):
            states[i] = start(reward, weights[i])
        for row in range(starts[n], starts[n + 1]):
            if slot[row] < 0:
                continue
            for i in range(len(weights)):
                if inside[row, i]:
                    after = join(reward, states[i], outcome[row, i])
                    added[row] += worth(reward, weights[i], after) - worth(reward, weights[i], states[i])
                    states[i] = after
    return added


@kernel
def value_each_slate(reward: Any, terms: Terms, q: Floats, slates: Ints) -> Floats:
    """r(A; q) of each slate."""
    values = np.empty(len(slates))
    for n in range(len(slates)):
        values[n] = value(reward, terms, q, slates[n][slates[n] >= 0])
    return values


@kernel
def add_gradients(reward: Any, terms: Terms, q: Floats, slates: Ints, shares: Floats) -> Floats:
    """The derivatives of the mean of r(A; q) over slates with these shares, (n_entries,)."""
    result = np.zeros(len(q))
    for n in range(len(slates)):
        if shares[n] > 0.0:
            for place in range(slates.shape[1]):
                if slates[n, place] >= 0:
                    _add_arm(reward, terms, q, slates[n], place, shares[n], result)
    return result


@kernel
def _add_arm(reward: Any, terms: Terms, q: Floats, slate: Ints, place: int, share: float, result: Floats) -> None:
    """Add the derivatives in the parameters of one arm of the slate, times ``share``, to those of its entries."""
    states = initial_states(reward, terms)
    for other in range(len(slate)):
        if other != place and slate[other] >= 0:
            join_arm(reward, terms, states, q, slate[other])
    first, last = span(terms.support, slate[place])
    for o in range(last - first):
        i = item(terms.support, first, o)
        result[first + o] += share * derivative(reward, terms.weights[i], states[i], q[first + o])


@kernel
def row_derivatives(reward: Any, terms: Terms, q: Floats, groups: Ints, starts: Ints, arm: Ints, slot: Ints) -> Floats:
    """The derivative of each round's value in the parameters of each row's arm, (n_rows, n_items).

    ``q`` has one row of parameters per group, ``groups`` says which of them a round has; arms outside of the slate
    (slot -1) have derivative 0.
    """
    slopes = np.zeros((len(arm), len(terms.weights)))
    for n in range(len(starts) - 1):
        own = q[groups[n]]
        for row in range(starts[n], starts[n + 1]):
            if slot[row] < 0:
                continue
            states = initial_states(reward, terms)
            for other in range(starts[n], starts[n + 1]):
                if other != row and slot[other] >= 0:
                    join_arm(reward, terms, states, own, arm[other])
            first, last = span(terms.support, arm[row])
            for o in range(last - first):
                i = item(terms.support, first, o)
                slopes[row, i] = derivative(reward, terms.weights[i], states[i], own[first + o])
    return slopes
