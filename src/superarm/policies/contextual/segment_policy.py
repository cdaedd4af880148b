"""Any policy on the tally of the user's segment."""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.arrays import Ints
from superarm.candidates import Candidates
from superarm.context import Segments
from superarm.context.observations import ContextFeedback, ContextRound
from superarm.errors import InvalidArgument
from superarm.intake import Exact, Intake
from superarm.oracles import Guarantee
from superarm.parameters import nonnegative
from superarm.policies import traits
from superarm.policies.base import Policy, Round, choose, prepare
from superarm.policies.policy_state import forgets
from superarm.problem import Problem
from superarm.streams import Stream
from superarm.support import Support, span
from superarm.tally import Feedback, Tally, record


class SegmentSums(NamedTuple):
    """The memory of a segment policy: the sums over all segments, empty where nothing is pooled."""

    sums: Tally


@component
class SegmentPolicy(NamedTuple):
    r"""Any policy on segments: it chooses from the tally of the user's segment.

    With ``pooling`` c > 0 the tally of segment s is

    .. math:: N_j = N_j^{(s)} + f_j N_j^{(-s)}, \qquad \sum X_{ij} = \sum X_{ij}^{(s)} + f_j \sum X_{ij}^{(-s)},
              \qquad f_j = \min\{1, c / N_j^{(-s)}\}

    where (-s) are all other segments together: what they observed counts as at most c pulls of an arm. Partial pooling
    after [EfronMorris1975]_, with a strength that is given, not estimated.
    """

    policy: Policy
    pooling: float = 0.0
    intake: Intake = Exact()

    def _check(self) -> None:
        nonnegative(self, "pooling")

    @property
    def caveat(self) -> str:
        pooled = "it is biased towards what other segments prefer while a segment has few observations"
        own = traits.caveat(self.policy)
        return own if not self.pooling else f"{own}; {pooled}" if own else pooled

    def prepare(self, problem: Problem, tally: Tally) -> SegmentSums:
        return SegmentSums(_sum_segments(tally, problem.n_arms, self.pooling > 0.0))

    def choose(self, problem: Problem, current: ContextRound, memory: SegmentSums, stream: Stream) -> Ints:
        now = segment_round(problem, current, memory, self.pooling)
        return choose(self.policy, problem, now, prepare(self.policy, problem, now.tally), stream)

    def learn(
        self,
        problem: Problem,
        tally: Tally,
        memory: SegmentSums,
        feedback: ContextFeedback,
        stream: Stream,
        sign: float,
    ) -> None:
        plain = Feedback(feedback.t, feedback.action, feedback.outcome, feedback.seen)
        own = segment_tally(tally, problem.n_arms, feedback.context.segment)
        record(own, problem.terms.support, plain, self.intake, stream, sign)
        if self.pooling > 0.0:
            record(memory.sums, problem.terms.support, plain, self.intake, stream, sign)

    @interpreted
    def parameters(self, problem: Problem, current: ContextRound, memory: SegmentSums, stream: Stream) -> Any:
        """Those of the policy on the segment."""
        now, policy = segment_round(problem, current, memory, self.pooling), self.policy
        if not traits.explains(policy):
            wrong = f"{type(policy).__name__} chooses batches by other things than parameters of entries"
            raise InvalidArgument("policy", wrong, "explain decisions of index policies")
        hooks: Any = policy
        return hooks.parameters(problem, now, prepare(policy, problem, now.tally), stream)

    @interpreted
    def learns_from(self, model: Any) -> bool:
        """Whether the policy reads contexts of this model."""
        return isinstance(model, Segments)

    @interpreted
    def fit(self, problem: Problem) -> "SegmentPolicy":
        if forgets(self.policy):
            raise InvalidArgument("policy", "it forgets", "put the window around the policy on segments", "Segments")
        plain = traits.plain(self.policy, problem)
        if traits.moments(plain, problem).recorded:
            wrong = f"{type(plain).__name__} needs moments of items, which segments do not keep"
            raise InvalidArgument("policy", wrong, "take an index policy, e.g. kl_ucb()")
        return self._replace(policy=plain)

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.policy.guarantee(problem)


@kernel
def segment_round(problem: Problem, current: ContextRound, memory: SegmentSums, pooling: float) -> Round:
    """The round as the policy of the segment sees it."""
    own = segment_tally(current.tally, problem.n_arms, current.context.segment)
    counts = current.candidates.counts
    if pooling > 0.0:
        waiting = counts - own.pulls
        own = _pool(own, memory.sums, problem.terms.support, pooling)
        counts = own.pulls + waiting
    return Round(current.t, own, Candidates(counts, current.candidates.eligible))


@kernel
def segment_tally(tally: Tally, n_arms: int, segment: int) -> Tally:
    """The part of ``tally`` that belongs to ``segment``; it shares its memory."""
    arms, entries = n_arms, len(tally.total) // (len(tally.pulls) // n_arms)
    missed = tally.missed[segment * entries : (segment + 1) * entries]  # empty if nothing was missed
    return Tally(
        tally.pulls[segment * arms : (segment + 1) * arms],
        tally.total[segment * entries : (segment + 1) * entries],
        tally.square[segment * entries : (segment + 1) * entries],
        missed,
        tally.joint[3 * segment * arms : 3 * (segment + 1) * arms],
        tally.reference,
        tally.moments,
        tally.products,
    )


@kernel
def _sum_segments(tally: Tally, n_arms: int, pooled: bool) -> Tally:
    """The sum of all segments' tallies; of no length if nothing is pooled."""
    if not pooled:
        none = np.zeros(0)
        return Tally(none, none, none, none, none, none, none, none)
    first = segment_tally(tally, n_arms, 0)
    sums = Tally(
        first.pulls.copy(),
        first.total.copy(),
        first.square.copy(),
        np.zeros(len(first.total)),
        np.zeros(len(first.joint)),
        first.reference,
        first.moments,
        first.products,
    )
    for n in range(len(tally.pulls) // n_arms):
        part = segment_tally(tally, n_arms, n)
        if n > 0:
            sums.pulls[:] += part.pulls
            sums.total[:] += part.total
            sums.square[:] += part.square
        if len(part.missed) > 0:
            sums.missed[:] += part.missed
        sums.joint[:] += part.joint
    return sums


@kernel
def _pool(own: Tally, sums: Tally, support: Support, strength: float) -> Tally:
    """The tally of one segment, and of the others counted as at most ``strength`` pulls per arm."""
    entries = len(own.total)
    pooled = Tally(
        own.pulls.copy(),
        own.total.copy(),
        own.square.copy(),
        np.zeros(entries),
        own.joint.copy(),
        own.reference,
        own.moments,
        own.products,
    )
    for j in range(len(own.pulls)):
        others = sums.pulls[j] - own.pulls[j]
        share = min(1.0, strength / others) if others > 0.0 else 0.0
        pooled.pulls[j] += share * others
        first, last = span(support, j)
        for e in range(first, last):
            missed = own.missed[e] if len(own.missed) > 0 else 0.0
            pooled.total[e] += share * (sums.total[e] - own.total[e])
            pooled.square[e] += share * (sums.square[e] - own.square[e])
            pooled.missed[e] = missed + share * (sums.missed[e] - missed)
        for n in range(3 * j, 3 * j + 3):
            pooled.joint[n] += share * (sums.joint[n] - own.joint[n])
    return pooled
