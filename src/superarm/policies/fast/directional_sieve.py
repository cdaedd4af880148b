from typing import NamedTuple

import numpy as np

from superarm._jit import component, for_kernels, inlined, interpreted, lean
from superarm._lanes import WIDTH
from superarm.actions import Subsets, capacity
from superarm.arrays import Floats, Ints
from superarm.indices import Index
from superarm.indices.two_moments import steepness, two_moment_roof
from superarm.intake import Exact
from superarm.moments import Moments, Sample, new_sample, update_sample, update_samples
from superarm.oracles import Guarantee, Oracle
from superarm.oracles.gains import wins_tie
from superarm.policies.base import MomentsAsked, Round, first_batch
from superarm.policies.directional_bounds import SLACK, bound_arm, point, whole_level
from superarm.policies.directions import Direction, SampleVariance, new_direction, peak_ratio
from superarm.policies.fast.fixed_point import bound_rounding, sum_numbers
from superarm.policies.fast.moment_tiles import MomentTiles, new_moment_tiles, write_all_moments, write_moments
from superarm.policies.scoring import Estimates, estimate_arms, update_estimates
from superarm.problem import Problem
from superarm.rewards import join_arm
from superarm.rewards.base import reset_states
from superarm.streams import Stream
from superarm.support import Dense
from superarm.tally import Feedback, Tally, moments_of

_MIN_ENTRIES = 2_000
"""The fewest entries for which sieving pays, as for ``Sieve``."""


class SiftedDirections(NamedTuple):
    """The estimates and the sample of :class:`DirectionalPolicy`'s memory, in tiles too, and buffers for a choice.

    ``levels`` and ``steep`` (n_arms,) are the levels of the arms in this call and their :func:`steepness`. ``fixed``
    (same) is 0, or infinite for an arm whose bound is computed in every step, or minus infinity for one that may not
    join. ``roof`` (same) are the numbers that bounds do not exceed. ``apart`` and ``states`` are (n_items,), ``chosen``
    is (k,).
    """

    estimates: Estimates
    sample: Sample
    tiles: MomentTiles
    direction: Direction
    levels: Floats
    steep: Floats
    fixed: Floats
    roof: Floats
    apart: Floats
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
            np.zeros(n),
            np.zeros(n),
            np.zeros(n),
            np.zeros(n),
            np.zeros(size),
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
    chosen, fixed, states = memory.chosen, memory.fixed, memory.states
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
    """Write the level of every arm, and mark those that may not join and those that a roof does not serve."""
    levels, steep, fixed, pulls = memory.levels, memory.steep, memory.fixed, memory.sample.pulls
    for j in range(problem.n_arms):
        fixed[j] = -np.inf
        if current.candidates.eligible[j]:
            served = pulls[j] > 0.0 and current.tally.pulls[j] > 0.0
            fixed[j] = 0.0 if served else np.inf
            levels[j] = whole_level(policy, problem, current, memory, j) if served else 0.0
            steep[j] = steepness(levels[j])


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
    roof, candidates = memory.roof, current.candidates
    _raise_roof(current.tally, memory, typical_peak)
    best = 0
    for j in range(problem.n_arms):
        best = j if roof[j] > roof[best] else best
    if roof[best] == -np.inf:
        return -1
    first = best
    most = bound_arm(policy, problem, current, memory, memory.direction, stream, best)
    for j in range(problem.n_arms):
        if roof[j] >= most and j != first:
            bound = bound_arm(policy, problem, current, memory, memory.direction, stream, j)
            if bound > most or (bound == most and wins_tie(candidates, j, best)):
                best, most = j, bound
    return best


@inlined
def _raise_roof(tally: Tally, memory: SiftedDirections, typical_peak: float) -> None:
    """Write a number that its bound does not exceed into ``memory.roof`` for every arm."""
    sample, tiles, direction, reference, apart = (
        memory.sample, memory.tiles, memory.direction, tally.reference, memory.apart,
    )  # fmt: skip
    a, peak = direction.breaks[len(direction.breaks) // 2], peak_ratio(direction, reference, typical_peak)
    weight, most = 0.0, 0.0
    for i in range(len(reference)):
        weight += direction.c[i]
        most += max(0.0, direction.c[i] - peak * reference[i])
        apart[i] = abs(direction.c[i] - a * reference[i])
    share = 1.0 / weight if weight > 0.0 else 0.0
    by_mean = share * sum_numbers(tiles.mean, direction.c, tiles.zeros, tiles.total, tiles.top)
    by_rest = share * sum_numbers(tiles.deviation, apart, tiles.zeros, tiles.rest, tiles.top)
    roof, fixed, levels, steep = memory.roof, memory.fixed, memory.levels, memory.steep
    total, rest, spread, peaks = tiles.total, tiles.rest, sample.spread, sample.peak
    a, peak, most, weight = a * share, peak * share, most * share, weight * SLACK
    # These undo rounding up, so that a number does not exceed the mean.
    down, rounding = 1.0 - (len(reference) + 16) * 4e-7, bound_rounding(tiles.mean)
    for tile in range(len(tiles.top)):
        rounded = by_mean * rounding * tiles.mean.unit[tile]
        for j in range(np.uint64(tile * WIDTH), np.uint64(min((tile + 1) * WIDTH, len(roof)))):
            mean, deviation, height = by_mean * total[j], a * spread[j] + by_rest * rest[j], peak * peaks[j] + most
            below = max(0.0, down * mean - rounded)
            value = weight * two_moment_roof(mean, below, deviation, min(1.0, height), levels[j], steep[j])
            roof[j] = value if fixed[j] == 0.0 else fixed[j]
