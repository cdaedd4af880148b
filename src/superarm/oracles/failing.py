from typing import NamedTuple

from superarm._jit import component, interpreted
from superarm.actions import sample
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.oracles.base import Guarantee, Oracle, maximize
from superarm.parameters import fraction
from superarm.problem import Problem
from superarm.streams import Stream, uniform


@component
class Failing(NamedTuple):
    """Another oracle that returns a random batch instead of its own with probability ``1 - beta``.

    For experiments with (alpha, beta) oracles, [MerlisMannor2019]_ (section Preliminaries).

    Parameters
    ----------
    oracle
        The oracle to degrade.
    beta
        With which probability its own batch is returned.
    """

    oracle: Oracle
    beta: float

    def _check(self) -> None:
        fraction(self, "beta")

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        if uniform(stream) < self.beta:
            return maximize(self.oracle, problem, q, candidates, stream)
        return sample(problem.actions, candidates, stream)

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        inner = self.oracle.guarantee(problem)
        return Guarantee(inner.alpha, inner.beta * self.beta)

    @interpreted
    def fit(self, problem: Problem) -> "Failing":
        return Failing(self.oracle.fit(problem), self.beta)
