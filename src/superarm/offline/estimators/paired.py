"""Bounds of r(A; p) - r(B; p) over a box of parameters, in which the arms that both slates hold cancel."""

from typing import Any

import numpy as np

from superarm._jit import kernel
from superarm.arrays import Floats, Ints
from superarm.rewards import ClippedLinear, Conjunctive, Coverage, Linear, Logistic
from superarm.rewards.base import Terms, initial_states, join, join_arm, value, worth
from superarm.support import item, span


def shared_arms_cancel(reward: Any) -> bool:
    r"""Whether :func:`difference_bounds` may treat the arms that two slates share together.

    Let s be the state of an item after the shared arms have joined, and d(s) the difference of the item's worth between
    the two slates. The bounds take d at the two extreme states of the box, which is right if d is monotone in s. It is
    for the rewards that are linear in the state (coverage, conjunctive) or modular, and for the logistic reward with
    c <= 1: a concave f of the sum x has a monotone f(x + a) - f(x + b). Of other rewards nothing is assumed.
    """
    concave = isinstance(reward, Logistic) and reward.c <= 1.0
    return concave or isinstance(reward, Coverage | Conjunctive | Linear | ClippedLinear)


@kernel
def difference_bounds(
    reward: Any, terms: Terms, low: Floats, high: Floats, slate: Ints, others: Ints, paired: bool
) -> tuple[Floats, Floats]:
    """Lower and upper bounds of r(slate; p) - r(other; p) for low <= p <= high, for each row of ``others``.

    Slates are padded with -1. Without ``paired``, only equal slates cancel.
    """
    least, most = np.zeros(len(others)), np.zeros(len(others))
    own = slate[slate >= 0]
    for n in range(len(others)):
        other = others[n][others[n] >= 0]
        if _same_arms(own, other):
            continue
        if paired:
            least[n], most[n] = _paired_bounds(reward, terms, low, high, own, other)
        else:
            least[n] = value(reward, terms, low, own) - value(reward, terms, high, other)
            most[n] = value(reward, terms, high, own) - value(reward, terms, low, other)
    return least, most


@kernel
def _paired_bounds(reward: Any, terms: Terms, low: Floats, high: Floats, own: Ints, other: Ints) -> tuple[float, float]:
    weights = terms.weights
    shared_low, shared_high = initial_states(reward, terms), initial_states(reward, terms)
    for j in own:
        if _contains(other, j):
            join_arm(reward, terms, shared_low, low, j)
            join_arm(reward, terms, shared_high, high, j)
    own_at_low, own_at_high = shared_low.copy(), shared_low.copy()
    own_up_low, own_up_high = shared_high.copy(), shared_high.copy()
    other_at_low, other_at_high = shared_low.copy(), shared_low.copy()
    other_up_low, other_up_high = shared_high.copy(), shared_high.copy()
    _join_rest(reward, terms, low, own, other, own_at_low, own_up_low)
    _join_rest(reward, terms, high, own, other, own_at_high, own_up_high)
    _join_rest(reward, terms, low, other, own, other_at_low, other_up_low)
    _join_rest(reward, terms, high, other, own, other_at_high, other_up_high)
    least, most = 0.0, 0.0
    for i in range(len(weights)):
        w = weights[i]
        least += min(
            worth(reward, w, own_at_low[i]) - worth(reward, w, other_at_high[i]),
            worth(reward, w, own_up_low[i]) - worth(reward, w, other_up_high[i]),
        )
        most += max(
            worth(reward, w, own_at_high[i]) - worth(reward, w, other_at_low[i]),
            worth(reward, w, own_up_high[i]) - worth(reward, w, other_up_low[i]),
        )
    return least, most


@kernel
def _join_rest(reward: Any, terms: Terms, q: Floats, own: Ints, other: Ints, at: Floats, up: Floats) -> None:
    """Let the arms of ``own`` that ``other`` does not hold join both states, with parameters ``q``."""
    for j in own:
        if not _contains(other, j):
            first, last = span(terms.support, j)
            for o in range(last - first):
                i = item(terms.support, first, o)
                at[i] = join(reward, at[i], q[first + o])
                up[i] = join(reward, up[i], q[first + o])


@kernel
def _contains(slate: Ints, arm: int) -> bool:
    for j in slate:
        if j == arm:
            return True
    return False


@kernel
def _same_arms(own: Ints, other: Ints) -> bool:
    if len(own) != len(other):
        return False
    for j in own:
        if not _contains(other, j):
            return False
    return True
