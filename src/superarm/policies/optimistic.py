from typing import NamedTuple

from superarm._jit import component, interpreted
from superarm.arrays import Ints
from superarm.indices import Index
from superarm.intake import Exact, Intake
from superarm.oracles import Default, Guarantee, Oracle, maximize
from superarm.policies.base import Round
from superarm.policies.scoring import Estimates, estimate_arms, score_arms
from superarm.problem import Problem
from superarm.streams import Stream
from superarm.tally import Feedback, Tally, estimate, record


@component
class Optimistic(NamedTuple):
    r"""Score every entry, then maximise, from the first round on: for arms that are triggered.

    .. math:: q_{ij}(t) = score(\hat p_{ij}(t-1), \hat V_{ij}(t-1), N_j(t-1), t), \qquad A_t = Oracle(q(t))

    where :math:`N_j` counts how often arm j was observed, in the batch or triggered by it. An arm that was never
    observed scores 1 and is not played for its own sake: most of a graph is seen without ever being a seed, and
    :class:`IndexPolicy` would play each node once. Implements [WangChen2017]_ (Algorithm 1), for any index and oracle.
    """

    confidence: Index
    oracle: Oracle = Default()
    intake: Intake = Exact()

    def prepare(self, problem: Problem, tally: Tally) -> Estimates:
        return estimate_arms(problem, tally)

    def choose(self, problem: Problem, current: Round, memory: Estimates, stream: Stream) -> Ints:
        score_arms(self.confidence, problem, current, memory, stream)
        return maximize(self.oracle, problem, memory.q, current.candidates, stream)

    def learn(
        self, problem: Problem, tally: Tally, memory: Estimates, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        record(tally, problem.terms.support, feedback, self.intake, stream, sign)
        for j in feedback.action:
            estimate(tally, problem.terms.support, j, memory.mean, memory.deviation)

    @interpreted
    def fit(self, problem: Problem) -> "Optimistic":
        return self._replace(oracle=self.oracle.fit(problem))

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)
