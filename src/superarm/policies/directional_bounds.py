"""The confidence bound of what an arm would add to a batch, and a number that it does not exceed.

The bound is the index of [CappeEtAl2013]_ for a weighted sum of the arm's items: see ``DirectionalPolicy``.
"""

from typing import Any

import numpy as np

from superarm._jit import kernel, lean
from superarm.actions import capacity
from superarm.arrays import Bools, Floats
from superarm.indices import level
from superarm.indices.two_moments import steepness, two_moment_bound, two_moment_roof
from superarm.policies.base import Round
from superarm.policies.directions import Direction, largest, peak_ratio, turn, variance
from superarm.policies.scoring import ArmView, score_arm
from superarm.problem import Problem
from superarm.rewards.base import derivative
from superarm.streams import Stream
from superarm.support import item, span
from superarm.tally import Tally

SLACK = 1.0 + 1e-7
"""More than rounding, and the last step of the iteration in a bound, can add to it."""


@kernel
def point(problem: Problem, states: Floats, tally: Tally, direction: Direction) -> None:
    """Let ``direction`` be that of the next step: what a unit of each item would add to the batch."""
    for i in range(len(states)):
        direction.c[i] = derivative(problem.reward, problem.terms.weights[i], states[i], 0.0)
    if tally.reference.size > 0:
        turn(direction, tally.reference)


@lean
def bound_arm(
    policy: Any, problem: Problem, current: Round, memory: Any, direction: Direction, stream: Stream, arm: int
) -> float:
    """The upper confidence bound of what ``arm`` would add to the batch.

    ``policy`` has a ``confidence`` and a ``spread``, ``memory`` has ``estimates`` and a ``sample``.
    """
    support, reference, sample = problem.terms.support, current.tally.reference, memory.sample
    first, last = span(support, arm)
    observed, whole = current.tally.pulls[arm], sample.pulls[arm]
    weight, total = 0.0, 0.0
    for o in range(last - first):
        c = direction.c[item(support, first, o)]
        weight += c
        total += c * sample.mean[first + o]
    if observed <= 0.0 or weight <= 0.0:
        return weight
    bound = weight
    if whole > 0.0:
        x = whole_level(policy, problem, current, memory, arm)
        v = variance(policy.spread, support, sample, reference, direction, arm) / (weight * weight)
        h = largest(support, sample, reference, direction, arm) / weight
        bound = weight * two_moment_bound(total / weight, v, h, x)
    if whole < observed:
        view = ArmView(arm, current.candidates.counts[arm], current.t, 1.0)
        score_arm(policy.confidence, problem, current.tally, memory.estimates, view, stream)
        entries = 0.0
        for o in range(last - first):
            entries += direction.c[item(support, first, o)] * memory.estimates.q[first + o]
        bound = min(bound, entries)
    return bound


@lean
def whole_level(policy: Any, problem: Problem, current: Round, memory: Any, arm: int) -> float:
    """The level of an arm of which some pulls were seen whole: those that were not do not count."""
    share = capacity(problem.actions, problem.n_arms) / problem.n_arms
    unseen = current.tally.pulls[arm] - memory.sample.pulls[arm]
    return level(policy.confidence, current.candidates.counts[arm] - unseen, current.t, share)


@lean
def raise_roof(
    policy: Any, problem: Problem, current: Round, memory: Any, direction: Direction, taken: Bools, roof: Floats
) -> int:
    r"""Write a number that its bound does not exceed into ``roof`` for every arm not taken; the arm of the largest.

    The mean, the deviation and the largest value of an arm's sum enter :func:`two_moment_roof`. The deviation is at
    most :math:`aS_j + \sum_i|c_i - au_i|\sqrt{\hat V_{ij}}` for any a, and the largest value at most
    :math:`a'H_j + \sum_i(c_i - a'u_i)^+x_{ij}` for any a'; here one a and one a' serve all arms. This takes a small
    part of the time of the bound itself, which only the arms that may win then need.
    """
    support, reference, sample = problem.terms.support, current.tally.reference, memory.sample
    a = direction.breaks[len(direction.breaks) // 2]
    peak = peak_ratio(direction, reference, np.mean(sample.peak))
    highest = -1
    for j in range(problem.n_arms):
        if taken[j]:
            continue
        first, last = span(support, j)
        weight, total, rest, most = 0.0, 0.0, 0.0, 0.0
        if current.tally.pulls[j] > 0.0 and sample.pulls[j] > 0.0:
            x = whole_level(policy, problem, current, memory, j)
            for o in range(last - first):
                i = item(support, first, o)
                weight += direction.c[i]
                total += direction.c[i] * sample.mean[first + o]
                rest += abs(direction.c[i] - a * reference[i]) * sample.deviation[first + o]
                most += max(0.0, direction.c[i] - peak * reference[i]) * sample.top[first + o]
            share = 1.0 / weight if weight > 0.0 else 0.0
            deviation = share * (a * sample.spread[j] + rest)
            height = min(1.0, share * (peak * sample.peak[j] + most))
            roof[j] = weight * SLACK * two_moment_roof(share * total, share * total, deviation, height, x, steepness(x))
        else:
            roof[j] = np.inf
        if highest < 0 or roof[j] > roof[highest]:
            highest = j
    return highest
