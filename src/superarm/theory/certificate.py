r"""Smoothness parameters by computation: lower estimates by maximisation, upper bounds by interval arithmetic.

Maximisation runs from many starts and returns the maximiser; interval arithmetic bounds a partition of the cube, which
is refined where the bound is largest. The definition is that of [MerlisMannor2019]_ (section Preliminaries):

.. math:: \gamma_\infty = \sup_{x, i}\frac{\partial f}{\partial x_i}, \qquad
          \gamma_g = \sup_x\sqrt{\sum_i x_i(1 - x_i)\Bigl(\frac{\partial f}{\partial x_i}\Bigr)^2}
"""

import heapq
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from superarm.core.arrays import Floats
from superarm.rewards import Reward
from superarm.theory.intervals import Interval, interval

RANDOM_STARTS = 24
"""Random starts of a maximisation, beside the fixed ones."""
MAX_BOXES = 3000
"""How often a box of the partition is halved."""


def slopes(reward: Any, k: int) -> Callable[[Floats], Floats]:
    """The gradient of one item's reward for a batch of ``k`` arms, as a function of their parameters (k,).

    ``reward`` is a component, or any function of the parameters, which is differentiated numerically.

    >>> from superarm.rewards import Coverage
    >>> slopes(Coverage(), 2)(np.array([0.5, 0.25]))
    array([0.75, 0.5 ])
    """
    if isinstance(reward, Reward):
        return lambda x: leave_one_out(reward, x)

    def differences(x: Floats) -> Floats:
        g = np.empty(k)
        for i in range(k):
            h = 1e-6
            up, down = x.copy(), x.copy()
            up[i], down[i] = min(1.0, x[i] + h), max(0.0, x[i] - h)
            g[i] = (float(reward(up)) - float(reward(down))) / (up[i] - down[i])
        return g

    return differences


def leave_one_out(reward: Reward, x: Floats) -> Floats:
    """The derivative with respect to each parameter, after all others have joined; for an item of weight 1."""
    ones = np.ones(len(x))
    states = np.asarray(reward.start(ones), float)
    for n in range(len(x)):
        states = np.where(np.arange(len(x)) == n, states, reward.join(states, np.full(len(x), x[n])))
    return np.broadcast_to(np.asarray(reward.derivative(ones, states, x), float), x.shape)


def maximise_slopes(gradient: Callable[[Floats], Floats], k: int, seed: int = 0) -> tuple[float, Floats, float, Floats]:
    """The largest slope and Gini-weighted slope found by maximisation, each with the point (k,) where it is attained.

    Starts are the middle of the cube, points near corners, single free coordinates (where rewards such as coverage are
    steepest) and random points.

    >>> from superarm.rewards import Coverage
    >>> found = maximise_slopes(slopes(Coverage(), 3), 3)
    >>> round(found[0], 6), round(found[2], 6)
    (1.0, 0.5)
    """
    rng = np.random.default_rng(seed)
    starts = [np.full(k, 0.5), np.full(k, 1e-3), np.full(k, 0.5 / k), np.full(k, 1.0 - 1e-3)]
    starts += [np.where(np.arange(k) == i, 0.5, corner) for i in {0, k - 1} for corner in (1e-3, 1.0 - 1e-3)]
    starts += list(rng.uniform(size=(RANDOM_STARTS, k)) ** rng.choice([1.0, 4.0], size=(RANDOM_STARTS, 1)))

    def gini(x: Floats) -> float:
        return -float(np.sum(x * (1.0 - x) * gradient(x) ** 2))

    def steep(x: Floats) -> float:
        return -float(gradient(x).max())

    top, where = _maximise(steep, starts)
    square, at = _maximise(gini, starts)
    return top, where, math.sqrt(max(0.0, square)), at


def _maximise(loss: Callable[[Floats], float], starts: list[Floats]) -> tuple[float, Floats]:
    best, where = -math.inf, starts[0]
    for start in starts:
        found = minimize(loss, start, bounds=[(0.0, 1.0)] * len(start), method="L-BFGS-B", options={"maxiter": 200})
        for x in (np.round(found.x, 9), found.x, start):
            if -loss(x) > best:
                best, where = -loss(x), np.clip(x, 0.0, 1.0)
    return best, where


def bound_slopes(reward: Reward, k: int, boxes: int = MAX_BOXES) -> tuple[float, float] | None:
    """Proven upper bounds of gamma_inf and gamma_g; None if the reward's code does not run on intervals.

    >>> from superarm.rewards import Coverage
    >>> gamma_inf, gamma_g = bound_slopes(Coverage(), 2)
    >>> round(gamma_inf, 6), 0.5 <= gamma_g < 0.52
    (1.0, True)
    """
    found = enclose_slopes(reward, k, boxes)
    return None if found is None else found[:2]


def enclose_slopes(reward: Reward, k: int, boxes: int = MAX_BOXES) -> tuple[float, float, Floats, Floats] | None:
    """The bounds of ``bound_slopes``, and the middle of the boxes that have them, where a larger slope may be found."""
    try:
        steep, at = _refine(lambda box: max(d.high for d in _slopes(reward, box)), k, boxes)
        square, at_gini = _refine(lambda box: _gini(_slopes(reward, box), box), k, boxes)
    except (TypeError, ArithmeticError, AttributeError, ValueError):
        return None
    gamma_inf = max(0.0, steep)
    return gamma_inf, min(math.sqrt(max(0.0, square)), math.sqrt(k) * gamma_inf / 2.0), at, at_gini


def _slopes(reward: Reward, box: list[Interval]) -> list[Interval]:
    result = []
    for i, x in enumerate(box):
        state = reward.start(1.0)
        for other in (*box[:i], *box[i + 1 :]):
            state = reward.join(state, other)
        result.append(interval(reward.derivative(1.0, state, x)))
    return result


def _gini(slopes: list[Interval], box: list[Interval]) -> float:
    bound = 0.0
    for d, x in zip(slopes, box, strict=True):
        nearest = min(max(0.5, x.low), x.high)  # x (1 - x) is largest where x is closest to 1/2
        bound += nearest * (1.0 - nearest) * max(d.low**2, d.high**2)
    return bound * (1.0 + 1e-12)


def _refine(bound: Callable[[list[Interval]], float], k: int, boxes: int) -> tuple[float, Floats]:
    """The largest bound over a partition of the cube, whose box with it is halved again and again, and its middle."""
    whole = [Interval(0.0, 1.0)] * k
    heap = [(-bound(whole), 0, whole)]
    for n in range(boxes):
        _, _, box = heap[0]
        widest = max(range(k), key=lambda i: box[i].high - box[i].low)
        low, high = box[widest].low, box[widest].high
        middle = 0.5 * (low + high)
        heapq.heappop(heap)
        for number, half in enumerate((Interval(low, middle), Interval(middle, high))):
            part = [*box[:widest], half, *box[widest + 1 :]]
            heapq.heappush(heap, (-bound(part), 2 * n + number + 1, part))
    return -heap[0][0], np.array([0.5 * (x.low + x.high) for x in heap[0][2]])
