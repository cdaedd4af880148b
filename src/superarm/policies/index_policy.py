import math
from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component, inlined, interpreted, kernel
from superarm.actions import capacity, cover
from superarm.arrays import Floats, Ints
from superarm.indices import Index, level, score
from superarm.intake import Exact, Intake
from superarm.noise import Noise
from superarm.oracles import Default, Guarantee, Oracle, maximize
from superarm.policies.base import Moment, any_unsampled, holds_unsampled
from superarm.problem import Problem
from superarm.support import span
from superarm.tally import Feedback, Tally, estimate, record


class Estimates(NamedTuple):
    """Empirical mean and standard deviation of every entry, and room for the scores: (n_entries,) each."""

    mean: Floats
    deviation: Floats
    q: Floats


@component
class IndexPolicy(NamedTuple):
    r"""Score every entry, then maximise: BC-UCB, CUCB, KL-UCB, CTS and their kin.

    While an arm has no pull, play a batch that contains one. Otherwise

    .. math:: q_{ij}(t) = score(\hat p_{ij}(t-1), \hat V_{ij}(t-1), N_j(t-1), t), \qquad A_t = Oracle(q(t))

    Implements [MerlisMannor2019]_ (Algorithm 1), for any index and oracle. An entry that was never seen, though
    its arm was pulled, scores 1.
    """

    confidence: Index
    oracle: Oracle = Default()
    intake: Intake = Exact()

    def prepare(self, problem: Problem, tally: Tally) -> Estimates:
        entries = len(tally.total)
        memory = Estimates(np.zeros(entries), np.zeros(entries), np.zeros(entries))
        for j in range(problem.n_arms):
            estimate(tally, problem.terms.support, j, memory.mean, memory.deviation)
        return memory

    def choose(self, problem: Problem, moment: Moment, memory: Estimates, noise: Noise) -> Ints:
        if any_unsampled(moment.ranks):
            action = cover(problem.actions, moment.ranks)
            if holds_unsampled(action, moment.ranks):
                return action
        rate(self.confidence, problem, moment, memory, noise)
        return maximize(self.oracle, problem, memory.q, moment.ranks, noise)

    def learn(
        self, problem: Problem, tally: Tally, memory: Estimates, feedback: Feedback, noise: Noise, sign: float
    ) -> None:
        record(tally, problem.terms.support, feedback, self.intake, noise, sign)
        for j in feedback.action:
            estimate(tally, problem.terms.support, j, memory.mean, memory.deviation)

    @interpreted
    def fit(self, problem: Problem) -> "IndexPolicy":
        return self._replace(oracle=self.oracle.fit(problem))

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


@kernel
def rate(confidence: Index, problem: Problem, moment: Moment, memory: Estimates, noise: Noise) -> None:
    """Write the score of every entry of every eligible arm into ``memory.q``; 1 where nothing was told yet."""
    for j in range(problem.n_arms):
        if moment.ranks.eligible[j]:
            rate_arm(confidence, problem, moment, memory, j, moment.t, noise)


@inlined
def rate_arm(
    confidence: Index, problem: Problem, moment: Moment, memory: Any, j: int, t: int, noise: Noise
) -> None:  # fmt: skip
    """Write the scores of arm ``j``'s entries into ``memory.q``, as if it were round ``t``."""
    share = capacity(problem.actions, problem.n_arms) / problem.n_arms
    pulls, told = moment.ranks.pulls[j], moment.tally.pulls[j]
    first, last = span(problem.terms.support, j)
    mean, deviation, q = memory.mean[first:last], memory.deviation[first:last], memory.q[first:last]
    if told == 0.0:
        q[:] = 1.0
    elif moment.tally.missed.size > 0:
        for o in range(last - first):
            missed = moment.tally.missed[first + o]
            x = level(confidence, pulls - missed, t, share) if told > missed else math.inf
            q[o] = score(confidence, mean[o], deviation[o], x, noise) if told > missed else 1.0
    else:
        x = level(confidence, pulls, t, share)
        for o in range(last - first):
            q[o] = score(confidence, mean[o], deviation[o], x, noise)
