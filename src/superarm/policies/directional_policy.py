import math
from typing import NamedTuple

import numpy as np

from superarm._jit import component, for_kernels, interpreted, kernel, lean
from superarm.actions import capacity, joins, pins
from superarm.arrays import Bools, Floats, Ints
from superarm.errors import InvalidArgument
from superarm.indices import Index, level, monotone
from superarm.indices.two_moments import two_moment_bound
from superarm.intake import Exact
from superarm.moments import Sample, update_sample, update_samples
from superarm.oracles import Default, Greedy, Guarantee, LazyGreedy, Modular, Oracle
from superarm.oracles.gains import wins_tie
from superarm.policies.base import MomentsAsked, Policy, Round, first_batch
from superarm.policies.directions import Direction, SampleVariance, Triangle, largest, new_direction, turn, variance
from superarm.policies.index_policy import IndexPolicy
from superarm.policies.scoring import ArmView, Estimates, estimate_arms, score_arm, update_estimates
from superarm.problem import Problem
from superarm.rewards import initial_states, join_arm
from superarm.rewards.base import derivative
from superarm.rewards.traits import linear_gain
from superarm.streams import Stream
from superarm.support import item, span
from superarm.tally import Feedback, Tally, moments_of

_TRIANGLE, _DEFAULT = Triangle(), Default()

_SLACK = 1.0 + 1e-7
"""More than rounding, and the last step of the iteration in a bound, can add to it."""


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
        n, entries = problem.n_arms, len(tally.total)
        sample = Sample(
            np.zeros(n),
            np.zeros(entries),
            np.zeros(entries),
            np.zeros(entries),
            np.zeros(n),
            np.zeros(n),
            np.zeros(tally.products.size),
        )
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
        greedy = isinstance(oracle, Greedy | LazyGreedy) or (isinstance(oracle, Modular) and problem.actions.matroid)
        if greedy and linear_gain(problem.reward):
            return self._replace(oracle=oracle)
        return IndexPolicy(self.confidence, self.oracle).fit(problem)

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
        _point(problem, states, current.tally, direction)
        first = _raise_roof(policy, problem, current, memory, direction, taken, roof)
        best, most = -1, -np.inf
        for n in range(-1, problem.n_arms):
            j = first if n < 0 else n
            if j < 0 or taken[j] or roof[j] < most or (n >= 0 and j == first):
                continue
            bound = _bound(policy, problem, current, memory, direction, stream, j)
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


@lean
def _raise_roof(
    policy: DirectionalPolicy,
    problem: Problem,
    current: Round,
    memory: DirectionalMemory,
    direction: Direction,
    taken: Bools,
    roof: Floats,
) -> int:
    r"""Write a number that its bound does not exceed into ``roof`` for every arm not taken; the arm of the largest.

    .. math:: \sum_i c_i\hat p_{ij} + \sqrt{2x_j}\Bigl(aS_j + \sum_i|c_i - au_i|\sqrt{\hat V_{ij}}\Bigr) + b\,x_j

    for one a for all arms: the width of the bound (``docs/theory/directional.md``, Lemma 3) with the triangle
    inequality. It takes a small part of the time of the bound itself, which only the arms that may win then need.
    """
    support, reference, sample = problem.terms.support, current.tally.reference, memory.sample
    share = capacity(problem.actions, problem.n_arms) / problem.n_arms
    a = direction.breaks[len(direction.breaks) // 2]
    highest = -1
    for j in range(problem.n_arms):
        if taken[j]:
            continue
        first, last = span(support, j)
        observed, whole = current.tally.pulls[j], sample.pulls[j]
        weight, total, rest = 0.0, 0.0, 0.0
        if observed > 0.0 and whole > 0.0:
            x = level(policy.confidence, current.candidates.counts[j] - observed + whole, current.t, share)
            for o in range(last - first):
                i = item(support, first, o)
                weight += direction.c[i]
                total += direction.c[i] * sample.mean[first + o]
                rest += abs(direction.c[i] - a * reference[i]) * sample.deviation[first + o]
            width = math.sqrt(2.0 * x) * (a * sample.spread[j] + rest) + x * weight
            roof[j] = (total + width) * _SLACK
        else:
            roof[j] = np.inf
        if highest < 0 or roof[j] > roof[highest]:
            highest = j
    return highest


@kernel
def _point(problem: Problem, states: Floats, tally: Tally, direction: Direction) -> None:
    """Let ``direction`` be that of the next step: what a unit of each item would add to the batch."""
    for i in range(len(states)):
        direction.c[i] = derivative(problem.reward, problem.terms.weights[i], states[i], 0.0)
    if tally.reference.size > 0:
        turn(direction, tally.reference)


@lean
def _bound(
    policy: DirectionalPolicy,
    problem: Problem,
    current: Round,
    memory: DirectionalMemory,
    direction: Direction,
    stream: Stream,
    arm: int,
) -> float:
    """The upper confidence bound of what ``arm`` would add to the batch."""
    support, reference, sample = problem.terms.support, current.tally.reference, memory.sample
    first, last = span(support, arm)
    observed, whole = current.tally.pulls[arm], sample.pulls[arm]
    weight, total = 0.0, 0.0
    for o in range(last - first):
        c = direction.c[item(support, first, o)]
        weight += c
        total += c * sample.mean[first + o]
    if observed <= 0.0 or weight <= 0.0:
        return weight
    bound = weight
    if whole > 0.0:
        share = capacity(problem.actions, problem.n_arms) / problem.n_arms
        x = level(policy.confidence, current.candidates.counts[arm] - observed + whole, current.t, share)
        v = variance(policy.spread, support, sample, reference, direction, arm) / (weight * weight)
        h = largest(support, sample, reference, direction, arm) / weight
        bound = weight * two_moment_bound(total / weight, v, h, x)
    if whole < observed:
        view = ArmView(arm, current.candidates.counts[arm], current.t, 1.0)
        score_arm(policy.confidence, problem, current.tally, memory.estimates, view, stream)
        entries = 0.0
        for o in range(last - first):
            entries += direction.c[item(support, first, o)] * memory.estimates.q[first + o]
        bound = min(bound, entries)
    return bound
