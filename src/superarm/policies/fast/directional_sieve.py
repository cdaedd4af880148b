from typing import NamedTuple

import numpy as np

from superarm._jit import component, for_kernels, inlined, interpreted, lean
from superarm._lanes import WIDTH
from superarm.actions import Subsets, capacity
from superarm.arrays import Floats, Ints
from superarm.indices import Index, level
from superarm.intake import Exact
from superarm.moments import Moments, Sample, new_sample, update_sample, update_samples
from superarm.oracles import Guarantee, Oracle
from superarm.oracles.gains import wins_tie
from superarm.policies.base import MomentsAsked, Round, first_batch
from superarm.policies.directional_bounds import bound_arm, point
from superarm.policies.directions import Direction, SampleVariance, new_direction
from superarm.policies.fast.moment_tiles import MomentTiles, new_moment_tiles, write_all_moments, write_moments
from superarm.policies.fast.roofs import Roofs, new_roofs, raise_roofs, set_level
from superarm.policies.fast.tiles import largest_reach, next_reaching
from superarm.policies.scoring import Estimates, estimate_arms, update_estimates
from superarm.problem import Problem
from superarm.rewards import join_arm
from superarm.rewards.base import reset_states
from superarm.streams import Stream
from superarm.support import Dense
from superarm.tally import Feedback, Tally, moments_of

_MIN_ENTRIES = 2_000
"""The fewest entries for which sieving pays, as for ``Sieve``."""

_STRIDE_DIVISOR = 512
"""Levels hold for t / 512 rounds: log t grows by 1/512 in that time, and computing them takes as long as a step."""

_DOWN = 1.0 - 1.2e-7
"""More than rounding to single precision adds to a bound."""


class SiftedDirections(NamedTuple):
    """The estimates and the sample of :class:`DirectionalPolicy`'s memory, in tiles too, and buffers for a choice.

    ``counted`` (n_arms,) are the pulls for which levels were computed, and ``until`` (1,) the round. ``states`` is
    (n_items,), ``chosen`` is (k,).
    """

    estimates: Estimates
    sample: Sample
    tiles: MomentTiles
    direction: Direction
    roofs: Roofs
    counted: Floats
    until: Ints
    states: Floats
    chosen: Ints


@component
class DirectionalSieve(NamedTuple):
    r"""A directional policy that computes the bounds of the arms that could win only, with the same decisions.

    The bound of an arm does not exceed the closed form of :func:`two_moment_roof`, which grows with the deviation and
    the largest value of the arm's sum. One pass in single precision gives the means of all sums, a second one bounds
    their deviations, and a third number, the largest value, follows from the arm's peak and from the weights alone. The
    arm with the largest closed form is evaluated first, and then those whose closed form reaches the best bound found,
    as in the lazy evaluation of [Minoux1978]_. :class:`DirectionalPolicy` says what the bound is.
    """

    confidence: Index
    spread: SampleVariance
    oracle: Oracle

    @for_kernels
    def prepare(self, problem: Problem, tally: Tally) -> SiftedDirections:
        n, size = problem.n_arms, problem.n_items
        memory = SiftedDirections(
            estimate_arms(problem, tally),
            new_sample(n, len(tally.total), tally.products.size),
            new_moment_tiles(n, size),
            new_direction(size),
            new_roofs(n),
            np.full(n, -1.0),
            np.zeros(1, np.int64),
            np.zeros(size),
            np.zeros(capacity(problem.actions, n), np.int64),
        )
        if tally.moments.any():
            update_samples(moments_of(tally), problem.terms.support, memory.sample)
            write_all_moments(memory.tiles, memory.sample)
        return memory

    def choose(self, problem: Problem, current: Round, memory: SiftedDirections, stream: Stream) -> Ints:
        action = first_batch(problem.actions, current.candidates)
        if len(action) > 0:
            return action
        return memory.chosen[: _choose_batch(self, problem, current, memory, stream)].copy()

    @lean
    def learn(
        self, problem: Problem, tally: Tally, memory: SiftedDirections, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        update_estimates(tally, problem.terms.support, feedback, Exact(), stream, sign, memory.estimates)
        if tally.moments.size > 0:
            moments = Moments(tally.reference, tally.moments, tally.products)
            for j in feedback.action:
                update_sample(moments, problem.terms.support, j, memory.sample)
                write_moments(memory.tiles, memory.sample, j)

    @interpreted
    def moments(self, problem: Problem) -> MomentsAsked:
        return MomentsAsked(True, self.spread.products)

    @interpreted
    def fit(self, problem: Problem) -> "DirectionalSieve":
        return self

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


def suits_directional_sieve(problem: Problem) -> bool:
    """Whether a sieve is faster than the plain policy on this problem, where greedy serves it and gains are linear."""
    large = problem.n_arms >= WIDTH and problem.n_entries >= _MIN_ENTRIES
    return large and isinstance(problem.support, Dense) and isinstance(problem.actions, Subsets)


@lean
def _choose_batch(
    policy: DirectionalSieve, problem: Problem, current: Round, memory: SiftedDirections, stream: Stream
) -> int:
    """Write the batch to play into ``memory.chosen`` and return its size."""
    chosen, fixed, states = memory.chosen, memory.roofs.fixed, memory.states
    _level_arms(policy, problem, current, memory)
    reset_states(problem.reward, problem.terms, states)
    size, peak = 0, float(np.mean(memory.sample.peak))
    while size < len(chosen):
        point(problem, states, current.tally, memory.direction)
        best = _pick(policy, problem, current, memory, stream, peak)
        if best < 0:
            break
        join_arm(problem.reward, problem.terms, states, memory.estimates.mean, best)
        chosen[size] = best
        fixed[best] = -np.inf
        size += 1
    return size


@inlined
def _level_arms(policy: DirectionalSieve, problem: Problem, current: Round, memory: SiftedDirections) -> None:
    """Bound the level of every arm, and mark those that may not join and those that a roof does not serve.

    The level for a later round bounds those before. It is computed anew after that round, or if the pulls have changed.
    """
    roofs, counted, until, whole = memory.roofs, memory.counted, memory.until, memory.sample.pulls
    fixed, share = roofs.fixed, capacity(problem.actions, problem.n_arms) / problem.n_arms
    if current.t > until[0]:
        until[0] = current.t + current.t // _STRIDE_DIVISOR
        counted[:] = -1.0
    for j in range(problem.n_arms):
        fixed[j] = -np.inf
        if current.candidates.eligible[j]:
            observed = current.tally.pulls[j]
            fixed[j] = 0.0 if observed > 0.0 and whole[j] > 0.0 else np.inf
            pulls = current.candidates.counts[j] - (observed - whole[j])
            if fixed[j] == 0.0 and pulls != counted[j]:
                set_level(roofs, j, level(policy.confidence, pulls, until[0], share))
                counted[j] = pulls


@lean
def _pick(
    policy: DirectionalSieve,
    problem: Problem,
    current: Round,
    memory: SiftedDirections,
    stream: Stream,
    typical_peak: float,
) -> int:
    """The arm with the largest bound among those that may join, ties as of the plain policy; -1 if there is none."""
    roofs, candidates, direction = memory.roofs, current.candidates, memory.direction
    raise_roofs(roofs, memory.tiles, direction, current.tally.reference, typical_peak)
    reach, top = roofs.reach, roofs.top
    best = largest_reach(reach, top)
    if reach[best] == -np.inf:
        return -1
    first, most = best, bound_arm(policy, problem, current, memory, direction, stream, best)
    j = next_reaching(reach, top, 0, np.float32(most * _DOWN))
    while j >= 0:
        if j != first:
            bound = bound_arm(policy, problem, current, memory, direction, stream, j)
            if bound > most or (bound == most and wins_tie(candidates, j, best)):
                best, most = j, bound
        j = next_reaching(reach, top, j + 1, np.float32(most * _DOWN))
    return best
