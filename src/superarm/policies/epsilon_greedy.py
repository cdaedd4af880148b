import math
from typing import Any, NamedTuple

from superarm._jit import component, for_kernels, interpreted
from superarm.actions import sample
from superarm.arrays import Ints
from superarm.intake import Intake
from superarm.oracles import Guarantee
from superarm.parameters import fraction, nonnegative
from superarm.policies import traits
from superarm.policies.base import MomentsAsked, Policy, Round, choose, learn, prepare
from superarm.problem import Problem
from superarm.streams import Stream, uniform
from superarm.tally import Feedback, Tally


@component
class EpsilonGreedy(NamedTuple):
    r"""With probability :math:`\min\{1, \epsilon\, t^{-decay}\}` a random batch, otherwise that of ``leader``.

    The baseline of [AuerCesaBianchiFischer2002]_, for batches.
    """

    leader: Policy
    epsilon: float = 0.1
    decay: float = 0.0

    def _check(self) -> None:
        fraction(self, "epsilon")
        nonnegative(self, "decay")

    @property
    def intake(self) -> Intake:
        return traits.intake(self.leader)

    @for_kernels
    def prepare(self, problem: Problem, tally: Tally) -> Any:
        return prepare(self.leader, problem, tally)

    def choose(self, problem: Problem, current: Round, memory: Any, stream: Stream) -> Ints:
        if uniform(stream) < self.epsilon * math.pow(current.t, -self.decay):
            return sample(problem.actions, current.candidates, stream)
        return choose(self.leader, problem, current, memory, stream)

    def learn(
        self, problem: Problem, tally: Tally, memory: Any, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        learn(self.leader, problem, tally, memory, feedback, stream, sign)

    @interpreted
    def moments(self, problem: Problem) -> MomentsAsked:
        return traits.moments(self.leader, problem)

    @interpreted
    def fit(self, problem: Problem) -> "EpsilonGreedy":
        return self._replace(leader=self.leader.fit(problem))

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.leader.guarantee(problem)
