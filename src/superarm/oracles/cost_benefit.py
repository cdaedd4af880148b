from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.actions import capacity, cost, joins, pins
from superarm.actions.traits import budgeted
from superarm.arrays import Bools, Floats, Ints
from superarm.candidates import Candidates
from superarm.oracles.base import Guarantee
from superarm.oracles.budgets import check_budget
from superarm.oracles.gains import batch_states, wins_tie
from superarm.problem import Problem
from superarm.rewards import gain, join_arm, value
from superarm.streams import Stream


@component
class CostBenefit(NamedTuple):
    r"""The better of two batches: arms by gain per cost, and the best single arm with whatever else fits.

    .. math:: j_n \in \arg\max_{j \text{ that fits}} \frac{r(A_{n-1} + j; q) - r(A_{n-1}; q)}{cost_j}

    For a monotone submodular reward under a budget :math:`\alpha = 0.405`, [TangEtAl2021]_. The often quoted
    :math:`1 - 1/\sqrt e \approx 0.393` of [KhullerMossNaor1999]_ was stated with an incomplete proof, which
    [TangEtAl2021]_ completes; no analysis can give more than 0.42945, [KulikSchwartzShachnai2021]_. ``GreedyMax`` has
    alpha = 1/2 for twice the work.

    >>> import superarm as sa
    >>> bag = sa.Knapsack([1.0, 2.0, 3.0], budget=4.0)
    >>> problem = sa.Problem(n_arms=3, n_items=2, reward=sa.Coverage(), actions=bag)
    >>> CostBenefit().guarantee(problem)
    Guarantee(alpha=0.405, beta=1.0)
    """

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
        size = pins(problem.actions, candidates, chosen)
        if size < 0:
            return chosen[:0]
        single = chosen.copy()
        best, _ = find_best_arm(problem, q, batch_states(problem, q, chosen[:size]), candidates, chosen, size)
        dense = chosen[: add_by_density(problem, q, candidates, chosen, size)]
        if best >= 0:
            single[size] = best
            size += 1
        single = single[: add_by_density(problem, q, candidates, single, size)]
        first = value(problem.reward, problem.terms, q, dense)
        return single if value(problem.reward, problem.terms, q, single) > first else dense

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(0.405 if problem.reward.submodular and budgeted(problem.actions) else 0.0, 1.0)

    @interpreted
    def fit(self, problem: Problem) -> "CostBenefit":
        check_budget(problem, "CostBenefit")
        return self


@kernel
def unavailable_arms(candidates: Candidates, chosen: Ints, size: int) -> Bools:
    """Which arms are not eligible or already in the batch, (n_arms,)."""
    taken = ~candidates.eligible
    for n in range(size):
        taken[chosen[n]] = True
    return taken


@kernel
def find_best_arm(
    problem: Problem, q: Floats, states: Floats, candidates: Candidates, chosen: Ints, size: int
) -> tuple[int, float]:
    """The arm with the largest marginal gain that may join, and its gain; (-1, -inf) if none may.

    ``states`` are the item states of the first ``size`` arms of ``chosen``.
    """
    taken = unavailable_arms(candidates, chosen, size)
    best, most = -1, -np.inf
    for j in range(problem.n_arms):
        if taken[j] or not joins(problem.actions, candidates, chosen, size, j):
            continue
        g = gain(problem.reward, problem.terms, states, q, j)
        if best < 0 or g > most or (g == most and wins_tie(candidates, j, best)):
            best, most = j, g
    return best, most


@kernel
def find_densest_arm(
    problem: Problem, q: Floats, states: Floats, candidates: Candidates, chosen: Ints, size: int, taken: Bools
) -> int:
    """The arm with the largest marginal gain per cost that may join, or -1; arms that do not fit become ``taken``."""
    best, most = -1, -np.inf
    for j in range(problem.n_arms):
        if taken[j]:
            continue
        g = gain(problem.reward, problem.terms, states, q, j) / cost(problem.actions, j)
        if best < 0 or g > most or (g == most and wins_tie(candidates, j, best)):
            if joins(problem.actions, candidates, chosen, size, j):
                best, most = j, g
            else:
                taken[j] = True
    return best


@kernel
def add_by_density(problem: Problem, q: Floats, candidates: Candidates, chosen: Ints, size: int) -> int:
    """Add arms to ``chosen`` by gain per cost until none fits, and return the new size."""
    states = batch_states(problem, q, chosen[:size])
    taken = unavailable_arms(candidates, chosen, size)
    while size < len(chosen):
        j = find_densest_arm(problem, q, states, candidates, chosen, size, taken)
        if j < 0:
            break
        join_arm(problem.reward, problem.terms, states, q, j)
        chosen[size] = j
        taken[j] = True
        size += 1
    return size
