from typing import NamedTuple

from superarm._jit import component, for_kernels, interpreted
from superarm.actions import capacity
from superarm.arrays import Ints
from superarm.errors import InvalidArgument
from superarm.indices import Index, inverts, level, score, unknown
from superarm.intake import Exact
from superarm.oracles import Default, Guarantee, Oracle, maximize
from superarm.policies.base import Round, first_batch
from superarm.policies.scoring import Estimates, estimate_arms, update_estimates
from superarm.problem import Problem
from superarm.streams import Stream
from superarm.support import span
from superarm.tally import Feedback, Tally, missed_count, seen_count

_DEFAULT = Default()


@component
class SharedDraw(NamedTuple):
    r"""Thompson sampling with one uniform number per round, which all entries share.

    .. math:: \theta_{ij} = F_{ij}^{-1}(U_t), \qquad U_t \sim U(0, 1)

    where :math:`F_{ij}` is the law from which the index samples. Every entry has the same marginal law as with draws of
    its own; all are optimistic in the same rounds. After CTS3 of [JinEtAl2026]_, whose theorem is for an exact oracle.
    Pending pulls make :math:`F` narrower and do not move it. An entry that was never seen scores 1.

    Parameters
    ----------
    confidence
        A sampled index whose score is an increasing function of one number: ``GaussianSample`` or ``AnglePosterior``.
    oracle
        The oracle that finds the batch.
    """

    confidence: Index
    oracle: Oracle = _DEFAULT

    @property
    def caveat(self) -> str:
        return "One number per round decides all scores: it explores as if all entries erred together."

    @for_kernels
    def prepare(self, problem: Problem, tally: Tally) -> Estimates:
        return estimate_arms(problem, tally)

    def choose(self, problem: Problem, current: Round, memory: Estimates, stream: Stream) -> Ints:
        action = first_batch(problem.actions, current.candidates)
        if len(action) > 0:
            return action
        share, number = capacity(problem.actions, problem.n_arms) / problem.n_arms, stream.state[0]
        for j in range(problem.n_arms):
            first, last = span(problem.terms.support, j)
            for e in range(first, last):
                memory.q[e] = unknown(self.confidence)
                if current.candidates.eligible[j] and seen_count(current.tally, j, e) > 0.0:
                    pulls = current.candidates.counts[j] - missed_count(current.tally, e)
                    stream.state[0] = number
                    x = level(self.confidence, pulls, current.t, share)
                    memory.q[e] = score(self.confidence, memory.mean[e], memory.deviation[e], x, stream)
        return maximize(self.oracle, problem, memory.q, current.candidates, stream)

    def learn(
        self, problem: Problem, tally: Tally, memory: Estimates, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        update_estimates(tally, problem.terms.support, feedback, Exact(), stream, sign, memory)

    @interpreted
    def fit(self, problem: Problem) -> "SharedDraw":
        if not inverts(self.confidence):
            raise InvalidArgument(
                "confidence", "its score is no increasing function of one number", "take e.g. GaussianSample()"
            )
        return self._replace(oracle=self.oracle.fit(problem))

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)
