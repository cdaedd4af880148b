"""Linear policies with one parameter vector for all entries that evaluate only the arms that could win."""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel, lean
from superarm.actions import Subsets, capacity
from superarm.arrays import Floats, Ints
from superarm.context.design import SHARED, feature_size, most_observations
from superarm.context.observations import ContextRound, ContextTally
from superarm.oracles import Guarantee
from superarm.oracles.traits import greedy
from superarm.policies.base import fill_weights, learn
from superarm.policies.contextual.ridge import Ridge, empty_ridge, no_correction, refresh, widen
from superarm.policies.contextual.rules import clip_scores, radius
from superarm.policies.contextual.shared_scores import (
    ARMS_AT_ONCE,
    ArmBlock,
    Reduced,
    reduce_parameters,
    score_arms,
    score_shared_arm,
)
from superarm.policies.fast.gain_sums import GainSums, bound_block, sum_slopes
from superarm.policies.fast.reaches import Reaches, bound_blocks, no_reaches, pick_by_reach, score_arm
from superarm.problem import Problem
from superarm.rewards import gain, initial_states, join_arm
from superarm.rewards.traits import gains_shrink, linear_gain
from superarm.streams import Stream
from superarm.support import Dense, Support, span

_MIN_ENTRIES = 2_000
"""The fewest entries for which the sieve is taken, as in ``Sieve``."""


class SharedSifted(NamedTuple):
    """What the sieve keeps between rounds; all of it follows from the tally and the features of the arms.

    ``v`` (n_blocks, m, ARMS_AT_ONCE) are the numbers of the arms, block after block. ``mean``, ``own`` and ``total``
    (n_arms,) are those of ``ArmBlock``. ``reduced`` and ``spread`` (1,) are what the last scores were computed from,
    and ``ones`` (n_items,) the largest parameters of an arm.
    """

    ridge: Ridge
    reaches: Reaches
    v: Floats
    mean: Floats
    own: Floats
    total: Floats
    reduced: Reduced
    spread: Floats
    ones: Floats


@component
class SharedScorer(NamedTuple):
    """Scores of the arms of a shared model, for one user and a radius."""

    design: Any
    memory: Any

    @lean
    def score_arm(self, support: Support, arm: int) -> None:
        memory, first = self.memory, arm // ARMS_AT_ONCE * ARMS_AT_ONCE
        mean, own, total = memory.mean[first:], memory.own[first:], memory.total[first:]
        block = ArmBlock(first, memory.v[arm // ARMS_AT_ONCE], mean, own, total)
        score_shared_arm(self.design, support, memory.reduced, arm, block, memory.ridge, memory.spread[0])
        start, end = span(support, arm)
        clip_scores(memory.ridge.q, start, end)

    @lean
    def bound_gain(self, problem: Problem, states: Floats, arm: int, reach: float) -> float:
        return reach


@component
class SharedSieve(NamedTuple):
    r"""A linear policy with a shared model and the greedy oracle that evaluates only arms that could win.

    Its decisions are those of the policy. One root per arm bounds its gain (``gain_sums``), and gains shrink as the
    batch grows, so an arm whose gain, computed exactly, is at least the bounds of all others is the one that greedy
    takes. After [Minoux1978]_.
    """

    policy: Any

    @property
    def caveat(self) -> str:
        return str(self.policy.caveat)

    def prepare(self, problem: Problem, tally: ContextTally) -> SharedSifted:
        n, arms = problem.n_arms, self.policy.design.arms
        m, n_item = arms.shape[1], self.policy.design.n_item
        v = np.zeros(((n + ARMS_AT_ONCE - 1) // ARMS_AT_ONCE, m, ARMS_AT_ONCE))
        for j in range(n):
            for k in range(m):
                v[j // ARMS_AT_ONCE, k, j % ARMS_AT_ONCE] = arms[j, k]
        reduced = Reduced(np.zeros(m), np.zeros((m, m)), np.zeros(n_item), np.zeros((m, n_item)), np.zeros(n_item))
        mean, own, total, ones = np.zeros(n), np.zeros(n), np.zeros(n), np.ones(problem.n_items)
        return SharedSifted(empty_ridge(tally), no_reaches(n), v, mean, own, total, reduced, np.zeros(1), ones)

    def choose(self, problem: Problem, current: Any, memory: SharedSifted, stream: Stream) -> Ints:
        policy, tally = self.policy, current.tally
        nothing = no_correction(tally)
        refresh(memory.ridge, tally, nothing, policy.ridge)
        inverse = widen(memory.ridge, tally, nothing, current.pending, policy.ridge)
        k = capacity(problem.actions, problem.n_arms)
        n_observed = most_observations(policy.design, k, problem.n_items)
        memory.spread[0] = radius(policy.rule, feature_size(policy.design), n_observed, current.t)
        _keep(memory.reduced, reduce_parameters(policy.design, current, memory.ridge.theta[0], inverse[0]))
        _score_blocks(memory)
        return _grow_lazily(policy.design, problem, current, memory)

    def learn(
        self,
        problem: Problem,
        tally: Any,
        memory: SharedSifted,
        feedback: Any,
        stream: Stream,
        sign: float,
    ) -> None:
        learn(self.policy, problem, tally, memory.ridge, feedback, stream, sign)

    def fill_weights(
        self, memory: SharedSifted, support: Support, action: Ints, weights: Floats, shifts: Floats
    ) -> None:
        for j in action:
            if not memory.reaches.exact[j]:  # an arm that the sieve did not choose
                score_arm(SharedScorer(self.policy.design, memory), support, j)
                memory.reaches.exact[j] = True
        fill_weights(self.policy, memory.ridge, support, action, weights, shifts)

    @interpreted
    def parameters(
        self, problem: Problem, current: ContextRound, memory: SharedSifted, stream: Stream
    ) -> tuple[Floats, Floats]:
        """The regression's estimates, and the optimistic parameters."""
        found: tuple[Floats, Floats] = self.policy.parameters(problem, current, memory.ridge, stream)
        return found

    @interpreted
    def coefficients(self, problem: Problem, tally: ContextTally, memory: SharedSifted) -> Floats:
        """The ridge estimate of the parameter vector."""
        found: Floats = self.policy.coefficients(problem, tally, memory.ridge)
        return found

    @interpreted
    def learns_from(self, model: Any) -> bool:
        """Whether the policy reads contexts of this model."""
        return bool(self.policy.learns_from(model))

    @interpreted
    def fit(self, problem: Problem) -> "SharedSieve":
        return self._replace(policy=self.policy.plain(problem))

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        found: Guarantee = self.policy.guarantee(problem)
        return found


def suits_shared_sieve(policy: Any, problem: Problem) -> bool:
    """Whether a sieve makes the decisions of ``policy``, made ready for ``problem``, and is faster."""
    design = policy.design
    greedily = greedy(policy.oracle) and isinstance(problem.actions, Subsets)
    bounded = linear_gain(problem.reward) and gains_shrink(problem.reward) and isinstance(problem.support, Dense)
    alike = design.sharing == SHARED and not design.n_pair and not policy.rule.sampled() and policy.discount == 1.0
    return bool(greedily and bounded and alike and problem.n_entries >= _MIN_ENTRIES)


@lean
def _keep(kept: Reduced, found: Reduced) -> None:
    for k in range(len(found.mean)):
        kept.mean[k] = found.mean[k]
        for h in range(len(found.mean)):
            kept.square[k, h] = found.square[k, h]
        for i in range(len(found.item_square)):
            kept.cross[k, i] = found.cross[k, i]
    for i in range(len(found.item_square)):
        kept.item_mean[i], kept.item_square[i] = found.item_mean[i], found.item_square[i]


@lean
def _score_blocks(memory: SharedSifted) -> None:
    """Compute what of the scores of all arms does not depend on the item."""
    n_arms = len(memory.mean)
    for number in range(len(memory.v)):
        first, last = number * ARMS_AT_ONCE, min((number + 1) * ARMS_AT_ONCE, n_arms)
        own, total = memory.own[first:last], memory.total[first:last]
        score_arms(memory.reduced, ArmBlock(first, memory.v[number], memory.mean[first:last], own, total))


@lean
def _bound_gains(memory: SharedSifted, sums: GainSums) -> None:
    """Bound the gains of all arms, and of each block of arms."""
    reaches, n_arms = memory.reaches, len(memory.mean)
    for number in range(len(memory.v)):
        first, last = number * ARMS_AT_ONCE, min((number + 1) * ARMS_AT_ONCE, n_arms)
        own, total = memory.own[first:last], memory.total[first:last]
        block = ArmBlock(first, memory.v[number], memory.mean[first:last], own, total)
        bound_block(sums, block, memory.spread[0], reaches.arm)
    bound_blocks(reaches)


@kernel
def _grow_lazily(design: Any, problem: Problem, current: ContextRound, memory: SharedSifted) -> Ints:
    """Greedy, where the scores of an arm are computed exactly only when the bound of its gain could be the largest."""
    reaches, q, reward, terms = memory.reaches, memory.ridge.q, problem.reward, problem.terms
    states = initial_states(reward, terms)
    for j in range(problem.n_arms):
        reaches.exact[j] = False
        reaches.arm[j] = np.inf if current.candidates.eligible[j] else -1.0
    chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
    size, scorer, cross = 0, SharedScorer(design, memory), np.zeros(len(memory.reduced.mean))
    while size < len(chosen):
        largest = gain(reward, terms, states, memory.ones, 0)
        _bound_gains(memory, sum_slopes(reward, terms, states, memory.reduced, largest, cross))
        best = pick_by_reach(problem, current.candidates, reaches, states, q, scorer)
        if best < 0:
            break
        join_arm(reward, terms, states, q, best)
        reaches.arm[best] = -1.0
        chosen[size] = best
        size += 1
    return chosen[:size]
