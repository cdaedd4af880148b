from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.actions import capacity, joins, pins
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.intake import Exact
from superarm.oracles import Guarantee
from superarm.oracles.gains import wins_tie
from superarm.policies import traits
from superarm.policies.base import Round, first_batch
from superarm.policies.batch_bonus import Bonus, bonus, extend, spare
from superarm.policies.scoring import Estimates, estimate_arms, update_estimates
from superarm.problem import Problem
from superarm.rewards import gain, initial_states, join_arm
from superarm.streams import Stream
from superarm.support import span
from superarm.tally import Feedback, Tally, seen_count


@component
class BatchPolicy(NamedTuple):
    r"""The batch with the largest empirical reward plus one joint bonus, grown greedily: for rewards of any shape.

    .. math:: A_t \approx \arg\max_A\ r(A; \hat p) + bonus(A)

    After ESCB of [CombesEtAl2015]_ (Algorithm 1), where r is a sum and the search is exact. Each arm that joins is the
    one with the largest value of the batch with it, as in [NemhauserWolseyFisher1978]_; equal values go to the arm with
    fewest pulls. An entry that was never seen, though its arm was pulled, counts as 1. The bonuses are in
    ``superarm.policies.batch_bonus``.
    """

    hope: Bonus

    @property
    def caveat(self) -> str:
        return traits.caveat(self.hope)

    def prepare(self, problem: Problem, tally: Tally) -> Estimates:
        memory = estimate_arms(problem, tally)
        for j in range(problem.n_arms):
            _fill_unseen(problem, tally, memory.mean, j)
        return memory

    def choose(self, problem: Problem, current: Round, memory: Estimates, stream: Stream) -> Ints:
        action = first_batch(problem.actions, current.candidates)
        if len(action) > 0:
            return action
        return _grow(self.hope, problem, current, memory.mean)

    def learn(
        self, problem: Problem, tally: Tally, memory: Estimates, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        update_estimates(tally, problem.terms.support, feedback, Exact(), stream, sign, memory)
        for j in feedback.action:
            _fill_unseen(problem, tally, memory.mean, j)

    @interpreted
    def fit(self, problem: Problem) -> "BatchPolicy":
        return self._replace(hope=self.hope.fit(problem))

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(0.0, 1.0)


@kernel
def _fill_unseen(problem: Problem, tally: Tally, mean: Floats, arm: int) -> None:
    first, last = span(problem.terms.support, arm)
    for e in range(first, last):
        if seen_count(tally, arm, e) <= 0.0:
            mean[e] = 1.0


@kernel
def _grow(hope: Bonus, problem: Problem, current: Round, mean: Floats) -> Ints:
    """Let arms join by the value of the batch with each, until none may."""
    candidates: Candidates = current.candidates
    chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
    size = pins(problem.actions, candidates, chosen)
    taken = ~candidates.eligible
    states, room = initial_states(problem.reward, problem.terms), spare(hope, problem)
    for j in chosen[: max(size, 0)]:
        taken[j] = True
        extend(hope, problem, current, mean, states, room, j)
        join_arm(problem.reward, problem.terms, states, mean, j)
    while 0 <= size < len(chosen):
        best, most = -1, -np.inf
        for j in range(problem.n_arms):
            if taken[j]:
                continue
            h = gain(problem.reward, problem.terms, states, mean, j) + bonus(
                hope, problem, current, mean, states, room, j
            )
            if best < 0 or h > most or (h == most and wins_tie(candidates, j, best)):
                if joins(problem.actions, candidates, chosen, size, j):
                    best, most = j, h
                else:
                    taken[j] = True
        if best < 0:
            break
        extend(hope, problem, current, mean, states, room, best)
        join_arm(problem.reward, problem.terms, states, mean, best)
        chosen[size] = best
        taken[best] = True
        size += 1
    return chosen[: max(size, 0)]
