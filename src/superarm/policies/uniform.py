from typing import NamedTuple

import numpy as np

from superarm._jit import component, for_kernels, interpreted
from superarm.actions import sample
from superarm.arrays import Floats, Ints
from superarm.intake import Exact
from superarm.oracles import Guarantee
from superarm.policies.base import Round
from superarm.problem import Problem
from superarm.streams import Stream
from superarm.tally import Feedback, Tally, record


class Nothing(NamedTuple):
    """The memory of a policy that needs none."""

    empty: Floats


@component
class Uniform(NamedTuple):
    """A batch at random, whatever was learnt: the floor under every comparison, as in [AuerCesaBianchiFischer2002]_."""

    @for_kernels
    def prepare(self, problem: Problem, tally: Tally) -> Nothing:
        return Nothing(np.zeros(0))

    def choose(self, problem: Problem, current: Round, memory: Nothing, stream: Stream) -> Ints:
        return sample(problem.actions, current.candidates, stream)

    def learn(
        self, problem: Problem, tally: Tally, memory: Nothing, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        record(tally, problem.terms.support, feedback, Exact(), stream, sign)

    @interpreted
    def fit(self, problem: Problem) -> "Uniform":
        return self

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(0.0, 1.0)
