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
    """Another oracle that, with probability ``1 - beta``, answers with a batch at random instead.

    A way to exercise the regret of an (alpha, beta) oracle, [MerlisMannor2019]_ (section Preliminaries).
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
