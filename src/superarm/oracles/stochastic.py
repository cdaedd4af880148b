import math
from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.actions import capacity, pins
from superarm.actions.traits import uniform
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.oracles.base import GREEDY, Guarantee
from superarm.oracles.gains import wins_tie
from superarm.problem import Problem
from superarm.rewards import gain, initial_states, join_arm
from superarm.streams import Stream, integer


@component
class StochasticGreedy(NamedTuple):
    r"""Greedy that evaluates :math:`\lceil (n/k)\log(1/\epsilon)\rceil` arms per step, drawn without replacement.

    For a monotone submodular reward on ``Subsets(k)``, [MirzasoleimanEtAl2015]_, with
    :math:`a = 1 - 1/e - \epsilon`:

    .. math:: E[r(A; q)] \ge a \max_{A'} r(A'; q)

    This holds in expectation, not with certainty. As r is at most the optimum, Markov's inequality turns it into
    :math:`P(r \ge \alpha\,r_{\max}) \ge (a - \alpha)/(1 - \alpha)` for every :math:`\alpha < a`; ``guarantee`` states
    the pair with the largest product, :math:`\alpha = \beta = 1 - \sqrt{1 - a}`, and ``expected_alpha`` states a.

    Parameters
    ----------
    epsilon
        The loss in a; the number of arms evaluated per step grows with the logarithm of its inverse.

    Examples
    --------
    >>> StochasticGreedy(0.1).expected_alpha()
    0.5321205588285577
    """

    epsilon: float = 0.05

    def _check(self) -> None:
        if not 0.0 < self.epsilon < GREEDY:
            raise InvalidArgument("epsilon", f"{self.epsilon}", "give a number in (0, 1 - 1/e)", "StochasticGreedy")

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
        states = initial_states(problem.reward, problem.terms)
        size = pins(problem.actions, candidates, chosen)
        available = candidates.eligible.copy()
        for j in chosen[: max(size, 0)]:
            join_arm(problem.reward, problem.terms, states, q, j)
            available[j] = False
        arms = np.flatnonzero(available)
        left = len(arms)
        n_drawn = math.ceil(left / max(1, len(chosen) - size) * math.log(1.0 / self.epsilon))
        while 0 <= size < len(chosen) and left > 0:
            best, most = -1, -np.inf
            for n in range(min(n_drawn, left)):  # a partial Fisher-Yates shuffle of the arms that are left
                other = n + integer(stream, left - n)
                arms[n], arms[other] = arms[other], arms[n]
                g = gain(problem.reward, problem.terms, states, q, arms[n])
                if best < 0 or g > most or (g == most and wins_tie(candidates, arms[n], arms[best])):
                    best, most = n, g
            join_arm(problem.reward, problem.terms, states, q, arms[best])
            chosen[size] = arms[best]
            size += 1
            left -= 1
            arms[best] = arms[left]
        return chosen[: max(size, 0)]

    @interpreted
    def expected_alpha(self) -> float:
        """The share of the optimum that is reached in expectation."""
        return GREEDY - self.epsilon

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        if not (problem.reward.submodular and uniform(problem.actions)):
            return Guarantee(0.0, 1.0)
        share = 1.0 - math.sqrt(1.0 - self.expected_alpha())
        return Guarantee(share, share)

    @interpreted
    def fit(self, problem: Problem) -> "StochasticGreedy":
        if not (problem.reward.submodular and uniform(problem.actions)):
            raise InvalidArgument(
                "oracle", "StochasticGreedy needs a submodular reward on Subsets", "take Greedy() or LazyGreedy()"
            )
        return self
