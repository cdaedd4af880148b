from typing import NamedTuple

import numpy as np

from superarm._jit import component, for_kernels, interpreted, kernel
from superarm.actions import capacity, joins, pins
from superarm.arrays import Ints
from superarm.errors import InvalidArgument
from superarm.indices import Index, monotone
from superarm.intake import Exact
from superarm.moments import Sample, new_sample, update_sample, update_samples
from superarm.oracles import Default, Guarantee, Modular, Oracle
from superarm.oracles.gains import wins_tie
from superarm.oracles.traits import greedy
from superarm.policies.base import MomentsAsked, Policy, Round, first_batch
from superarm.policies.directional_bounds import bound_arm, point, raise_roof
from superarm.policies.directions import SampleVariance, Triangle, new_direction
from superarm.policies.fast.directional_sieve import DirectionalSieve, suits_directional_sieve
from superarm.policies.index_policy import IndexPolicy
from superarm.policies.scoring import Estimates, estimate_arms, update_estimates
from superarm.problem import Problem
from superarm.rewards import initial_states, join_arm
from superarm.rewards.traits import linear_gain
from superarm.streams import Stream
from superarm.tally import Feedback, Tally, moments_of

_TRIANGLE, _DEFAULT = Triangle(), Default()


class DirectionalMemory(NamedTuple):
    """The estimates of every entry from all pulls, and the moments of every arm from those seen whole."""

    estimates: Estimates
    sample: Sample


@component
class DirectionalPolicy(NamedTuple):
    r"""Greedy with one confidence bound per arm, on the sum that the arm would add to the batch.

    For a reward whose gain is linear in the arm's parameters, an arm adds :math:`\sum_i c_i p_{ij}` to a batch, with
    weights c that depend on the batch alone (for coverage, :math:`c_i = w_i\prod_l(1 - p_{il})` over the arms l chosen
    so far). The sum :math:`\sum_i c_i X_{ij}` was observed in every pull of arm j, so that its mean has a bound of its
    own, which knows how the items of the arm vary together. Each step adds the arm with the largest

    .. math:: U_j = b\,U\bigl(\tfrac{m_j}{b}, \tfrac{v_j}{b^2}, \tfrac{h_j}{b}, x_j\bigr), \qquad b = \sum_i c_i,\
              x_j = level(N_j, t)

    where m, v and h are the empirical mean of the sum, a bound of its empirical variance (``spread``) and one of its
    largest value, U is the bound of :mod:`superarm.indices.two_moments`, and c is computed at the empirical means.
    Derived for superarm from the index of [CappeEtAl2013]_ and greedy, [NemhauserWolseyFisher1978]_; what is proved is
    in ``docs/theory/directional.md``.

    With one binary item, or equal items that always agree, this is the index policy itself. An arm with pulls of which
    an entry was not seen, or that the moments do not hold, has the smaller of this bound from the pulls they hold and
    of the sum of the bounds of its entries from all pulls. On a reward whose gain is not linear, or an action set that
    greedy does not serve, ``fit`` returns the index policy with bounds per entry.

    Parameters
    ----------
    confidence
        The index whose ``level`` is used, and whose ``score`` where bounds per entry are needed.
    spread
        How the variance of a sum is computed: ``Triangle()`` or ``Covariance()``.
    oracle
        The oracle that suits the problem decides whether greedy serves it.
    """

    confidence: Index
    spread: SampleVariance = _TRIANGLE
    oracle: Oracle = _DEFAULT

    @property
    def caveat(self) -> str:
        return (
            "On rewards whose gain is not linear in the parameters of an arm, and on action sets that greedy does not "
            "serve, its bounds are those of single entries, as those of the index policy."
        )

    @for_kernels
    def prepare(self, problem: Problem, tally: Tally) -> DirectionalMemory:
        sample = new_sample(problem.n_arms, len(tally.total), tally.products.size)
        if tally.moments.any():
            update_samples(moments_of(tally), problem.terms.support, sample)
        return DirectionalMemory(estimate_arms(problem, tally), sample)

    def choose(self, problem: Problem, current: Round, memory: DirectionalMemory, stream: Stream) -> Ints:
        action = first_batch(problem.actions, current.candidates)
        if len(action) > 0:
            return action
        chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
        size = pins(problem.actions, current.candidates, chosen)
        if size < 0:
            return chosen[:0]
        return chosen[: _grow(self, problem, current, memory, stream, chosen, size)]

    def learn(
        self, problem: Problem, tally: Tally, memory: DirectionalMemory, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        update_estimates(tally, problem.terms.support, feedback, Exact(), stream, sign, memory.estimates)
        if tally.moments.size > 0:
            for j in feedback.action:
                update_sample(moments_of(tally), problem.terms.support, j, memory.sample)

    @interpreted
    def moments(self, problem: Problem) -> MomentsAsked:
        return MomentsAsked(True, self.spread.products)

    @interpreted
    def fit(self, problem: Problem) -> Policy:
        if not monotone(self.confidence):
            raise InvalidArgument(
                "confidence", "a sampled index has no level", "take e.g. KLMoss()", "DirectionalPolicy"
            )
        oracle = self.oracle.fit(problem)
        greedily = greedy(oracle) or (isinstance(oracle, Modular) and problem.actions.matroid)
        if not (greedily and linear_gain(problem.reward)):
            return IndexPolicy(self.confidence, self.oracle).fit(problem)
        if suits_directional_sieve(problem):
            return DirectionalSieve(self.confidence, self.spread, oracle)
        return self._replace(oracle=oracle)

    @interpreted
    def plain(self, problem: Problem) -> Policy:
        """The policy made ready for this problem without any device for speed."""
        fitted = self.fit(problem)
        return self._replace(oracle=fitted.oracle) if isinstance(fitted, DirectionalSieve) else fitted

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


@kernel
def _grow(
    policy: DirectionalPolicy,
    problem: Problem,
    current: Round,
    memory: DirectionalMemory,
    stream: Stream,
    chosen: Ints,
    size: int,
) -> int:
    """Add arms to the first ``size`` of ``chosen``, the largest bound first, until none may join; the new size."""
    candidates, mean = current.candidates, memory.estimates.mean
    taken = ~candidates.eligible
    states, direction = initial_states(problem.reward, problem.terms), new_direction(problem.n_items)
    for j in chosen[:size]:
        taken[j] = True
        join_arm(problem.reward, problem.terms, states, mean, j)
    roof = np.empty(problem.n_arms)
    while size < len(chosen):
        point(problem, states, current.tally, direction)
        first = raise_roof(policy, problem, current, memory, direction, taken, roof)
        best, most = -1, -np.inf
        for n in range(-1, problem.n_arms):
            j = first if n < 0 else n
            if j < 0 or taken[j] or roof[j] < most or (n >= 0 and j == first):
                continue
            bound = bound_arm(policy, problem, current, memory, direction, stream, j)
            if best < 0 or bound > most or (bound == most and wins_tie(candidates, j, best)):
                if joins(problem.actions, candidates, chosen, size, j):
                    best, most = j, bound
                else:
                    taken[j] = True  # an arm that may not join now may not join later
        if best < 0:
            break
        join_arm(problem.reward, problem.terms, states, mean, best)
        chosen[size] = best
        taken[best] = True
        size += 1
    return size
