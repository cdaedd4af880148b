"""Linear policies with one parameter vector per entry that evaluate only the arms that could win."""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel, lean
from superarm.actions import Subsets, capacity
from superarm.arrays import Floats, Ints
from superarm.context.design import PER_ENTRY, fill_own_features
from superarm.context.observations import ContextRound, ContextTally
from superarm.oracles import Guarantee
from superarm.oracles.traits import greedy
from superarm.policies.base import choose, fill_weights, learn, position_share
from superarm.policies.contextual.ridge import Ridge, empty_ridge, no_correction, refresh
from superarm.policies.contextual.rules import clip_scores, radius
from superarm.policies.contextual.scoring import score_entry
from superarm.policies.fast.entry_tiles import EntryTiles, bound_entries, empty_tiles, write_entry
from superarm.policies.fast.reaches import Reaches, bound_blocks, no_reaches, pick_by_reach, score_arm
from superarm.problem import Problem
from superarm.rewards import gain, initial_states, join_arm
from superarm.rewards.traits import gains_shrink, linear_gain
from superarm.streams import Stream
from superarm.support import Support, span

_MIN_ENTRIES = 2_000
"""The fewest entries for which the sieve is taken, as in ``Sieve``."""


@component
class EntryScorer(NamedTuple):
    """Scores of the arms of a model with one parameter vector per entry, for a user's features and a radius."""

    ridge: Any
    user: Any
    spread: float

    @lean
    def score_arm(self, support: Support, arm: int) -> None:
        first, last = span(support, arm)
        for e in range(first, last):
            score_entry(self.ridge, e, self.user, self.spread)
        clip_scores(self.ridge.q, first, last)

    @lean
    def bound_gain(self, problem: Problem, states: Floats, arm: int, reach: float) -> float:
        return gain(problem.reward, problem.terms, states, self.ridge.q, arm)


class LinearSifted(NamedTuple):
    """What the sieve keeps between rounds; all of it follows from the tally.

    ``fresh`` (n_entries,) is a buffer for the numbers of entries. ``user`` (d,) and ``spread`` (1,) are what the last
    scores were computed from.
    """

    ridge: Ridge
    tiles: EntryTiles
    fresh: Ints
    reaches: Reaches
    user: Floats
    spread: Floats


@component
class LinearSieve(NamedTuple):
    r"""A linear policy with the greedy oracle that evaluates only arms that could win, with the same decisions.

    One pass over rounded numbers bounds :math:`\langle\phi, \hat\theta\rangle` and :math:`\lVert\phi\rVert_{G^{-1}}` of
    every entry from above. Gains grow with the parameters and shrink as the batch grows, so an arm whose gain, computed
    exactly, is at least the bounds of all others is the one that greedy takes. After [Minoux1978]_. While decisions are
    pending, the plain policy chooses.
    """

    policy: Any

    @property
    def caveat(self) -> str:
        return str(self.policy.caveat)

    def prepare(self, problem: Problem, tally: ContextTally) -> LinearSifted:
        n, d = len(tally.total), tally.response.shape[1]
        return LinearSifted(
            empty_ridge(tally),
            empty_tiles(n, d),
            np.zeros(n, np.int64),
            no_reaches(problem.n_arms),
            np.zeros(d),
            np.zeros(1),
        )

    def choose(self, problem: Problem, current: Any, memory: LinearSifted, stream: Stream) -> Ints:
        _renew(memory, current.tally, self.policy.ridge)
        if current.pending.size > 0:
            memory.reaches.exact[:] = True
            return choose(self.policy, problem, current, memory.ridge, stream)
        return _choose_lazily(self.policy, problem, current, memory)

    def learn(
        self,
        problem: Problem,
        tally: Any,
        memory: LinearSifted,
        feedback: Any,
        stream: Stream,
        sign: float,
    ) -> None:
        learn(self.policy, problem, tally, memory.ridge, feedback, stream, sign)

    def fill_weights(
        self, memory: LinearSifted, support: Support, action: Ints, weights: Floats, shifts: Floats
    ) -> None:
        for j in action:
            if not memory.reaches.exact[j]:  # an arm that the sieve did not choose
                score_arm(EntryScorer(memory.ridge, memory.user, memory.spread[0]), support, j)
                memory.reaches.exact[j] = True
        fill_weights(self.policy, memory.ridge, support, action, weights, shifts)

    def position_share(self, position: int) -> float:
        return float(position_share(self.policy, position))

    @interpreted
    def parameters(
        self, problem: Problem, current: ContextRound, memory: LinearSifted, stream: Stream
    ) -> tuple[Floats, Floats]:
        """The regression's estimates, and the optimistic parameters."""
        _renew(memory, current.tally, self.policy.ridge)
        found: tuple[Floats, Floats] = self.policy.parameters(problem, current, memory.ridge, stream)
        return found

    @interpreted
    def coefficients(self, problem: Problem, tally: ContextTally, memory: LinearSifted) -> Floats:
        """The ridge estimate of every parameter vector."""
        _renew(memory, tally, self.policy.ridge)
        return memory.ridge.theta

    @interpreted
    def learns_from(self, model: Any) -> bool:
        """Whether the policy reads contexts of this model."""
        return bool(self.policy.learns_from(model))

    @interpreted
    def fit(self, problem: Problem) -> "LinearSieve":
        return self._replace(policy=self.policy.plain(problem))

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        found: Guarantee = self.policy.guarantee(problem)
        return found


def suits_linear_sieve(policy: Any, problem: Problem) -> bool:
    """Whether a sieve makes the decisions of ``policy``, made ready for ``problem``, and is faster."""
    greedily = greedy(policy.oracle) and isinstance(problem.actions, Subsets)
    alone = policy.design.sharing == PER_ENTRY and not policy.design.n_pair and not policy.rule.sampled()
    bounded = linear_gain(problem.reward) and gains_shrink(problem.reward)
    return bool(greedily and alone and bounded and problem.n_entries >= _MIN_ENTRIES)


@kernel
def _renew(memory: LinearSifted, tally: ContextTally, ridge: float) -> None:
    """Estimate the parameter vectors of which something new was observed, and write their bounds."""
    estimates, n = memory.ridge, 0
    for e in range(len(estimates.stale)):
        if estimates.stale[e]:
            memory.fresh[n] = e
            n += 1
    refresh(estimates, tally, no_correction(tally), ridge)
    for at in range(n):
        write_entry(memory.tiles, estimates, memory.fresh[at])


@kernel
def _choose_lazily(policy: Any, problem: Problem, current: ContextRound, memory: LinearSifted) -> Ints:
    """Greedy, where the scores of an arm are computed exactly only when the bound of its gain could be the largest."""
    reaches, q, u = memory.reaches, memory.ridge.q, memory.user
    fill_own_features(policy.design, current.context, 0, u)
    memory.spread[0] = radius(policy.rule, len(u), 1, current.t)
    bound_entries(memory.tiles, u, memory.spread[0], q)
    states = initial_states(problem.reward, problem.terms)
    for j in range(problem.n_arms):
        reaches.exact[j] = False
        reaches.arm[j] = gain(problem.reward, problem.terms, states, q, j) if current.candidates.eligible[j] else -1.0
    bound_blocks(reaches)
    chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
    size, scorer = 0, EntryScorer(memory.ridge, u, memory.spread[0])
    while size < len(chosen):
        best = pick_by_reach(problem, current.candidates, reaches, states, q, scorer)
        if best < 0:
            break
        join_arm(problem.reward, problem.terms, states, q, best)
        reaches.arm[best] = -1.0
        chosen[size] = best
        size += 1
    return chosen[:size]
