"""What slates are worth: as they turned out, and as the estimates have it, with intervals."""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import kernel
from superarm.arrays import Floats, Ints
from superarm.rewards import Reward, Terms, gain, initial_states, join_arm
from superarm.rewards.base import reset_states, value_of_states

_Z = 1.96
"""Of a normal variable, 95 % lie within so many standard deviations."""


@kernel
def gains_each(reward: Reward, terms: Terms, q: Floats, sizes: Ints) -> tuple[Floats, float]:
    """What each row of ``q`` adds to those before it in its slate, and what an empty slate is worth.

    ``q`` lies flat, a row of n_items an arm, slate after slate; ``sizes`` says how many rows each slate has.
    """
    gains = np.zeros(sizes.sum())
    memo = initial_states(reward, terms)
    nothing = value_of_states(reward, terms, memo)
    row = 0
    for size in sizes:
        reset_states(reward, terms, memo)
        for _ in range(size):
            gains[row] = gain(reward, terms, memo, q, row)
            join_arm(reward, terms, memo, q, row)
            row += 1
    return gains, nothing


class Band(NamedTuple):
    """Lower ends, estimates and upper ends, of one shape."""

    low: Floats
    mean: Floats
    high: Floats


def wilson(tally: Any, n_items: int, arms: Ints) -> Band:
    r"""The parameters of some arms, (len(arms), n_items), each with its 95 % interval.

    .. math:: \frac{\hat p + z^2/2n \pm z \sqrt{\hat p (1 - \hat p) / n + z^2 / 4n^2}}{1 + z^2/n}

    Wilson's; for outcomes between 0 and 1 it is wider than need be. Nothing known: from 0 to 1.
    """
    rows = (arms[:, None] * n_items + np.arange(n_items)).reshape(-1)
    n = np.repeat(tally.pulls[arms], n_items)
    if tally.missed.size:
        n = n - tally.missed[rows]
    known = np.maximum(n, 1.0)
    p = tally.total[rows] / known
    middle = p + _Z**2 / (2.0 * known)
    reach = _Z * np.sqrt(p * (1.0 - p) / known + _Z**2 / (4.0 * known**2))
    low, high = ((middle + sign * reach) / (1.0 + _Z**2 / known) for sign in (-1.0, 1.0))
    shape = (len(arms), n_items)
    ends = ((np.clip(low, 0.0, 1.0), 0.0), (p, 0.0), (np.clip(high, 0.0, 1.0), 1.0))
    return Band(*(np.where(n > 0.0, part, unknown).reshape(shape) for part, unknown in ends))


def value_each_arm(problem: Any, band: Band) -> Band:
    """What each arm is worth on its own, from the lowest to the highest its parameters may be."""
    sizes = np.ones(len(band.mean), np.int64)
    return Band(*(_gains(problem, part, sizes)[0] for part in band))


def value_in_order(problem: Any, band: Band) -> tuple[Floats, Band]:
    """What each arm adds to those before it, at the estimates, and what all of them are worth together."""
    sizes = np.array([len(band.mean)], np.int64)
    totals = []
    for part in band:
        gains, nothing = _gains(problem, part, sizes)
        totals.append(np.array([nothing + gains.sum()]))
    return _gains(problem, band.mean, sizes)[0], Band(*totals)


def _gains(problem: Any, q: Floats, sizes: Ints) -> tuple[Floats, float]:
    return gains_each(problem.reward, problem.terms, np.ascontiguousarray(q).reshape(-1), sizes)
