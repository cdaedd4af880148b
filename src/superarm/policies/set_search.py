"""Searches for the batch with the largest sum plus joint bonus."""

import math
from typing import NamedTuple, Protocol

import numpy as np

from superarm._jit import component, interpreted, kernel, verb
from superarm.actions import Batches, Explicit, best_batch, capacity, heaviest, joins, list_batches, pins
from superarm.actions.traits import exchange, uniform
from superarm.actions.weights import total_weight
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.oracles import Guarantee
from superarm.oracles.base import greedy_alpha
from superarm.oracles.gains import wins_tie
from superarm.problem import Problem


class SetSearch(Protocol):
    r"""A batch with large :math:`\sum_{j \in A} worth_j + \sqrt{\sum_{j \in A} spread_j}`."""

    def search(self, problem: Problem, worth: Floats, spread: Floats, candidates: Candidates) -> Ints:
        """Arms; ``worth`` and ``spread`` are (n_arms,)."""
        ...

    def guarantee(self, problem: Problem) -> Guarantee:
        """What share of the greatest value the search promises."""
        ...


@kernel
def optimistic_value(worth: Floats, spread: Floats, action: Ints) -> float:
    """Sum plus joint bonus of ``action``."""
    return total_weight(worth, action) + math.sqrt(total_weight(spread, action))


@component
class SumAndBonus(NamedTuple):
    """The value of a batch as sum plus joint bonus; ``worth`` and ``spread`` are (n_arms,)."""

    worth: Floats
    spread: Floats

    def value_of(self, action: Ints) -> float:
        return optimistic_value(self.worth, self.spread, action)


@component
class EveryBatch(NamedTuple):
    """Look at every batch of ``table`` (n_actions, k): exact, as [CombesEtAl2015]_ define ESCB."""

    table: Ints
    sizes: Ints

    def search(self, problem: Problem, worth: Floats, spread: Floats, candidates: Candidates) -> Ints:
        return best_batch(SumAndBonus(worth, spread), problem.actions, Batches(self.table, self.sizes), candidates)

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(1.0, 1.0)


@component
class Ascent(NamedTuple):
    r"""Greedy, then heaviest batches for the tangent of the root, ``rounds`` times; the best of these.

    .. math:: v(j) = worth_j + \frac{spread_j}{2\sqrt{\sum_{i \in A} spread_i}}

    The sum plus a root of a sum is monotone submodular, so greedy reaches :math:`1 - (1 - 1/k)^k` on ``Subsets(k)``,
    1/2 on a matroid and 1/(p + 1) on a p-system of the greatest value, [PerraultPerchetValko2019]_; elsewhere
    nothing is promised.
    """

    rounds: int = 3

    def search(self, problem: Problem, worth: Floats, spread: Floats, candidates: Candidates) -> Ints:
        best = _climb(problem, worth, spread, candidates)
        most = optimistic_value(worth, spread, best)
        action = best
        for _ in range(self.rounds):
            root = math.sqrt(total_weight(spread, action))
            if root <= 0.0:
                break
            action = heaviest(problem.actions, worth + spread / (2.0 * root), candidates)
            if optimistic_value(worth, spread, action) <= most:
                break
            best, most = action, optimistic_value(worth, spread, action)
        return best.copy()

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        p = exchange(problem.actions)
        if uniform(problem.actions):
            return Guarantee(greedy_alpha(problem.k), 1.0)
        return Guarantee(0.0 if p == math.inf else 1.0 / (p + 1.0), 1.0)


@kernel
def _climb(problem: Problem, worth: Floats, spread: Floats, candidates: Candidates) -> Ints:
    """Let arms join by what each adds to the sum plus joint bonus until none may."""
    chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
    size = pins(problem.actions, candidates, chosen)
    taken = ~candidates.eligible
    wide = 0.0
    for j in chosen[: max(size, 0)]:
        taken[j] = True
        wide += spread[j]
    while 0 <= size < len(chosen):
        best, most = -1, -np.inf
        for j in range(problem.n_arms):
            if taken[j]:
                continue
            h = worth[j] + math.sqrt(wide + spread[j]) - math.sqrt(wide)
            if best < 0 or h > most or (h == most and wins_tie(candidates, j, best)):
                if joins(problem.actions, candidates, chosen, size, j):
                    best, most = j, h
                else:
                    taken[j] = True
        if best < 0:
            break
        wide += spread[best]
        chosen[size] = best
        taken[best] = True
        size += 1
    return chosen[: max(size, 0)]


search = verb(SetSearch.search)


def suitable(problem: Problem, few: int) -> SetSearch:
    """Every batch where they are listed or at most ``few``, an ascent otherwise."""
    if isinstance(problem.actions, Explicit) or problem.actions.n_batches(problem.n_arms) <= few:
        return EveryBatch(*list_batches(problem.actions, problem.n_arms))
    return Ascent()
