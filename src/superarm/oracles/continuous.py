from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.actions import capacity, contains, joins, pins
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.oracles.base import Guarantee
from superarm.oracles.gains import wins_tie
from superarm.problem import Problem
from superarm.rewards import Coverage
from superarm.streams import Stream
from superarm.support import item, span


@component
class ContinuousGreedy(NamedTuple):
    r"""Raise fractional shares of arms, then round: alpha close to :math:`1 - 1/e` for ``Coverage`` on any matroid.

    The expected coverage by arms that are present independently with probabilities y has a closed form,

    .. math:: F(y) = \sum_i w_i \Bigl[1 - \prod_j (1 - y_j q_{ij})\Bigr]

    In each of ``steps`` = T steps a batch is built greedily by :math:`F(y; y_j = 1) - F(y)`, and the share of each arm
    that joins is raised by 1/T at once; hence :math:`F(y_{t+1}) - F(y_t) \ge (r_{\max} - F(y_{t+1}))/T` and
    :math:`\alpha = 1 - (1 + 1/T)^{-T}`, [BadanidiyuruVondrak2014]_, without its thresholds. The T batches are
    merged by exchanging arms, each time in the direction in which F does not fall, which exists since F is convex
    along it, [ChekuriVondrakZenklusen2010]_ (swap rounding). Differs: rounding chooses the better direction instead
    of a random one.

    Parameters
    ----------
    steps
        T: more steps raise alpha towards 1 - 1/e, and the time in proportion.

    Examples
    --------
    >>> round(1 - (1 + 1 / 10) ** -10, 3)
    0.614
    """

    steps: int = 10

    def _check(self) -> None:
        if self.steps < 1:
            raise InvalidArgument("steps", f"{self.steps}", "give at least 1", "ContinuousGreedy")

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        k = capacity(problem.actions, problem.n_arms)
        share = np.zeros(problem.n_arms)
        bases = np.empty((self.steps, k), np.int64)
        size = 0
        for step in range(self.steps):
            size = _build_batch(problem, q, candidates, share, 1.0 / self.steps, bases[step])
        for step in range(1, self.steps):
            _swap_round(problem, q, candidates, share, bases[:, :size], step)
        return bases[0, :size].copy()

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        if not (isinstance(problem.reward, Coverage) and problem.actions.matroid):
            return Guarantee(0.0, 1.0)
        return Guarantee(1.0 - (1.0 + 1.0 / self.steps) ** -self.steps, 1.0)

    @interpreted
    def fit(self, problem: Problem) -> "ContinuousGreedy":
        if not (isinstance(problem.reward, Coverage) and problem.actions.matroid):
            raise InvalidArgument("oracle", "ContinuousGreedy needs Coverage on a matroid", "take Greedy()")
        return self


@kernel
def _uncovered_weights(problem: Problem, q: Floats, share: Floats) -> Floats:
    """The expected uncovered weight of each item."""
    uncovered = problem.terms.weights.copy()
    for j in range(problem.n_arms):
        if share[j] > 0.0:
            _reduce_uncovered(problem, q, j, share[j], uncovered)
    return uncovered


@kernel
def _reduce_uncovered(problem: Problem, q: Floats, arm: int, part: float, uncovered: Floats) -> None:
    first, last = span(problem.terms.support, arm)
    for o in range(last - first):
        uncovered[item(problem.terms.support, first, o)] *= 1.0 - part * q[first + o]


@kernel
def _total_uncovered(problem: Problem, q: Floats, share: Floats) -> float:
    """The expected uncovered weight of all items: the sum of the weights minus F."""
    left = 0.0
    for b in _uncovered_weights(problem, q, share):
        left += b
    return left


@kernel
def _marginal_gain(problem: Problem, q: Floats, uncovered: Floats, arm: int, part: float) -> float:
    """By how much F grows if ``arm``, present with probability ``part`` < 1, is present for certain."""
    first, last = span(problem.terms.support, arm)
    total = 0.0
    for o in range(last - first):
        p = q[first + o]
        total += uncovered[item(problem.terms.support, first, o)] * p * (1.0 - part) / (1.0 - part * p)
    return total


@kernel
def _build_batch(problem: Problem, q: Floats, candidates: Candidates, share: Floats, part: float, chosen: Ints) -> int:
    """Build a batch in ``chosen``, raise the share of each of its arms by ``part``, and return its size."""
    size = max(0, pins(problem.actions, candidates, chosen))
    for j in chosen[:size]:
        share[j] = min(1.0, share[j] + part)
    uncovered = _uncovered_weights(problem, q, share)
    taken = ~candidates.eligible
    while size < len(chosen):
        best, most = -1, -np.inf
        for j in range(problem.n_arms):
            if taken[j] or contains(chosen, size, j):
                continue
            g = _marginal_gain(problem, q, uncovered, j, share[j]) if share[j] < 1.0 else 0.0
            if best < 0 or g > most or (g == most and wins_tie(candidates, j, best)):
                if joins(problem.actions, candidates, chosen, size, j):
                    best, most = j, g
                else:
                    taken[j] = True
        if best < 0:
            break
        share[best] = min(1.0, share[best] + part)
        uncovered = _uncovered_weights(problem, q, share)
        chosen[size] = best
        size += 1
    return size


@kernel
def _swap_round(problem: Problem, q: Floats, candidates: Candidates, share: Floats, bases: Ints, step: int) -> None:
    """Exchange arms between base 0, the result of merging ``step`` bases, and base ``step``, until they are equal."""
    a, b, heavy, light = bases[0], bases[step], step / len(bases), 1.0 / len(bases)
    last = len(a) - 1
    for n in range(len(a)):
        i = a[n]
        if contains(b, len(b), i):
            continue
        for m in range(len(b)):
            j = b[m]
            if contains(a, len(a), j):
                continue
            rest_a, rest_b = a.copy(), b.copy()
            rest_a[n], rest_b[m] = a[last], b[last]
            fits = joins(problem.actions, candidates, rest_a, last, j)
            if fits and joins(problem.actions, candidates, rest_b, last, i):
                to_i, to_j = share.copy(), share.copy()
                to_i[i], to_i[j] = min(1.0, share[i] + light), max(0.0, share[j] - light)
                to_j[i], to_j[j] = max(0.0, share[i] - heavy), min(1.0, share[j] + heavy)
                if _total_uncovered(problem, q, to_i) <= _total_uncovered(problem, q, to_j):
                    b[m] = i
                    share[:] = to_i
                else:
                    a[n] = j
                    share[:] = to_j
                break
