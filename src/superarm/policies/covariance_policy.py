from typing import NamedTuple

import numpy as np

from superarm._jit import component, for_kernels, interpreted
from superarm.arrays import Ints
from superarm.errors import InvalidArgument
from superarm.intake import Exact
from superarm.moments import Sample, new_sample, update_sample, update_samples
from superarm.oracles import Guarantee
from superarm.oracles.default import MAX_ENUMERATED_BATCHES
from superarm.oracles.gains import gains
from superarm.policies.base import MomentsAsked, Round, first_batch
from superarm.policies.covariance_regions import Region, width
from superarm.policies.scoring import Estimates, estimate_arms, update_estimates
from superarm.policies.set_search import Ascent, SetSearch, search, suitable
from superarm.problem import Problem
from superarm.rewards import initial_states
from superarm.rewards.traits import linear_gain
from superarm.streams import Stream
from superarm.tally import Feedback, Tally, moments_of, most_missed


class CovarianceMemory(NamedTuple):
    """The estimates of every entry from all pulls, and the covariances of every arm from those seen whole."""

    estimates: Estimates
    sample: Sample


@component
class CovariancePolicy(NamedTuple):
    r"""One bonus per batch that uses the estimated covariance of each arm's items: for rewards that add up.

    .. math:: A_t \in \arg\max_A \sum_{j \in A} \hat r_j + \sqrt{\sum_{j \in A} b_j^2}

    where :math:`\hat r_j` is what arm j is worth at its empirical means, and :math:`b_j` how much more the confidence
    region of ``region`` lets it be worth. After [PerraultPerchetValko2020]_ and [ZhouEtAl2024]_, whose base arms are
    the entries. For batches of one arm this is their index. Differs: for larger batches arms are taken as
    independent of one another, since covariances of entries of two arms are not recorded. Then the joint bonus of
    :class:`CovarianceEllipsoid` is the root above, and that of :class:`CovarianceBox` is at most the root.

    It needs a reward that is linear in the parameters of a batch: ``Linear``, or ``Coverage`` with one arm per batch.
    ``fit`` chooses the search as for :class:`SetBonus`. An arm that was never seen whole, or an entry never seen,
    counts as worth all it can be.
    """

    region: Region
    finder: SetSearch = Ascent()

    @property
    def caveat(self) -> str:
        return "Its bonus assumes that arms are independent of one another; the items of an arm may depend."

    @for_kernels
    def prepare(self, problem: Problem, tally: Tally) -> CovarianceMemory:
        sample = new_sample(problem.n_arms, len(tally.total), tally.products.size)
        if tally.moments.any():
            update_samples(moments_of(tally), problem.terms.support, sample)
        return CovarianceMemory(estimate_arms(problem, tally), sample)

    def choose(self, problem: Problem, current: Round, memory: CovarianceMemory, stream: Stream) -> Ints:
        action = first_batch(problem.actions, current.candidates)
        if len(action) > 0:
            return action
        start = initial_states(problem.reward, problem.terms)
        worth = gains(problem, start, memory.estimates.mean, current.candidates)
        most = gains(problem, start, np.ones(len(memory.estimates.mean)), current.candidates)
        spread = np.zeros(problem.n_arms)
        for j in range(problem.n_arms):
            missed = most_missed(current.tally, problem.terms.support, j)
            if memory.sample.pulls[j] <= 0.0 or current.tally.pulls[j] <= missed:
                worth[j] = most[j]
            pulls = max(1.0, current.candidates.counts[j] - missed)
            bonus = width(self.region, problem.terms.support, problem.terms.weights, memory.sample, j, current.t, pulls)
            spread[j] = bonus * bonus
        return search(self.finder, problem, worth, spread, current.candidates)

    def learn(
        self, problem: Problem, tally: Tally, memory: CovarianceMemory, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        update_estimates(tally, problem.terms.support, feedback, Exact(), stream, sign, memory.estimates)
        for j in feedback.action:
            update_sample(moments_of(tally), problem.terms.support, j, memory.sample)

    @interpreted
    def moments(self, problem: Problem) -> MomentsAsked:
        return MomentsAsked(True, True)

    @interpreted
    def fit(self, problem: Problem) -> "CovariancePolicy":
        if not (problem.reward.modular or (problem.k == 1 and linear_gain(problem.reward))):
            raise InvalidArgument(
                "policy",
                "escb_c and ols_ucb_c need a reward that is linear in the parameters of a batch",
                "take directional_kl_moss(), the reward Linear(), or batches of one arm",
            )
        finder = suitable(problem, MAX_ENUMERATED_BATCHES)
        return self._replace(region=self.region.fit(problem), finder=finder)

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.finder.guarantee(problem)
