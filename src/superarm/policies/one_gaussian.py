import math
from typing import NamedTuple

from superarm._jit import component, for_kernels, interpreted
from superarm.arrays import Ints
from superarm.errors import InvalidArgument
from superarm.intake import Exact
from superarm.oracles import Guarantee, Oracle, TopArms, maximize
from superarm.oracles.traits import ranking
from superarm.policies.base import Round
from superarm.policies.scoring import Estimates, estimate_arms, update_estimates
from superarm.problem import Problem
from superarm.streams import Stream, normal
from superarm.tally import Feedback, Tally


@component
class OneGaussian(NamedTuple):
    r"""TS-Cascade: Thompson sampling with one Gaussian number per round, scaled differently for every arm.

    .. math:: \theta_j = \hat p_j + Z_t \max\Bigl\{\sqrt{\frac{\hat p_j (1 - \hat p_j) \log(t + 1)}{N_j + 1}},
              \frac{\log(t + 1)}{N_j + 1}\Bigr\}, \qquad Z_t \sim N(0, 1)

    There are no initial rounds: an arm that was never observed has :math:`\hat p_j = N_j = 0`. Implements
    [CheungTanZhong2019]_ (Algorithm 1). Pending pulls count in :math:`N_j`, not in
    :math:`\hat p_j`.
    """

    oracle: Oracle = TopArms()

    @for_kernels
    def prepare(self, problem: Problem, tally: Tally) -> Estimates:
        return estimate_arms(problem, tally)

    def choose(self, problem: Problem, current: Round, memory: Estimates, stream: Stream) -> Ints:
        z, log_t = normal(stream), math.log(current.t + 1)
        for j in range(problem.n_arms):
            mean, narrow = memory.mean[j], log_t / (current.candidates.counts[j] + 1.0)
            memory.q[j] = mean + z * max(math.sqrt(mean * (1.0 - mean) * narrow), narrow)
        return maximize(self.oracle, problem, memory.q, current.candidates, stream)

    def learn(
        self, problem: Problem, tally: Tally, memory: Estimates, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        update_estimates(tally, problem.terms.support, feedback, Exact(), stream, sign, memory)

    @interpreted
    def fit(self, problem: Problem) -> "OneGaussian":
        if not ranking(self.oracle):
            raise InvalidArgument(
                "oracle", "samples lie outside [0, 1]", "take one that only ranks arms, as TopArms() does"
            )
        return OneGaussian(self.oracle.fit(problem))

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)
