from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.actions import Ranks, capacity, holds, joins, pins
from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.noise import Noise
from superarm.oracles.base import Guarantee
from superarm.oracles.gains import before, gains
from superarm.oracles.greedy import SLACK, greedy_guarantee
from superarm.problem import Problem
from superarm.rewards import absorb, fresh, gain


@component
class LazyGreedy(NamedTuple):
    """Greedy that re-evaluates an arm only when its last gain could still win: the same batches, ties included.

    Needs a submodular reward. Implements [Minoux1978]_. Gains keep in a heap what they were when last evaluated, an
    upper bound of what they are now. An arm that may not join leaves the heap: it may never again.
    """

    def maximize(self, problem: Problem, q: Floats, ranks: Ranks, noise: Noise) -> Ints:
        chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
        memo = fresh(problem.reward, problem.terms)
        size = pins(problem.actions, ranks, chosen)
        for j in chosen[: max(size, 0)]:
            absorb(problem.reward, problem.terms, memo, q, j)
        heap, bound, waiting = _heap(problem, memo, q, ranks, chosen[: max(size, 0)])
        tried = np.empty(problem.n_arms, np.int64)
        while 0 <= size < len(chosen):
            best, most, n_tried = -1, -np.inf, 0
            while waiting > 0 and bound[heap[0]] >= most:
                j = heap[0]
                waiting -= 1
                heap[0] = heap[waiting]
                _sink(heap, waiting, bound, 0)
                if not joins(problem.actions, ranks, chosen, size, j):
                    continue
                g = gain(problem.reward, problem.terms, memo, q, j)
                bound[j] = g * SLACK
                tried[n_tried] = j
                n_tried += 1
                if g > most or (g == most and before(ranks, j, best)):
                    best, most = j, g
            if best < 0:
                break
            absorb(problem.reward, problem.terms, memo, q, best)
            chosen[size] = best
            size += 1
            for n in range(n_tried):
                if tried[n] != best:
                    _rise(heap, waiting, bound, tried[n])
                    waiting += 1
        return chosen[: max(size, 0)]

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return greedy_guarantee(problem)

    @interpreted
    def fit(self, problem: Problem) -> "LazyGreedy":
        if not problem.reward.submodular:
            raise InvalidArgument("oracle", "LazyGreedy needs a submodular reward", "take Greedy() or Exhaustive()")
        return self


@kernel
def _heap(problem: Problem, memo: Floats, q: Floats, ranks: Ranks, chosen: Ints) -> tuple[Ints, Floats, int]:
    """The eligible arms that are not chosen as a heap, a bound of each one's gain, and how many they are."""
    bound = gains(problem, memo, q, ranks) * SLACK
    heap = np.empty(problem.n_arms, np.int64)
    waiting = 0
    for j in range(problem.n_arms):
        if ranks.eligible[j] and not holds(chosen, len(chosen), j):
            heap[waiting] = j
            waiting += 1
    for place in range(waiting // 2 - 1, -1, -1):
        _sink(heap, waiting, bound, place)
    return heap, bound, waiting


@kernel
def _sink(heap: Ints, size: int, bound: Floats, place: int) -> None:
    """Restore the heap (largest bound on top) below ``place``."""
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and bound[heap[child + 1]] > bound[heap[child]]:
            child += 1
        if bound[heap[child]] <= bound[heap[place]]:
            return
        heap[place], heap[child] = heap[child], heap[place]
        place = child


@kernel
def _rise(heap: Ints, size: int, bound: Floats, arm: int) -> None:
    """Put ``arm`` into the heap."""
    place = size
    heap[place] = arm
    while place > 0 and bound[heap[(place - 1) // 2]] < bound[heap[place]]:
        above = (place - 1) // 2
        heap[place], heap[above] = heap[above], heap[place]
        place = above
