"""Linear policies with one parameter vector per entry that evaluate only the arms that could win."""

import math
from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component, inlined, interpreted, kernel, lean
from superarm._lanes import WIDTH, weighted_sums
from superarm.actions import Subsets, capacity
from superarm.arrays import Bools, Floats, Ints
from superarm.context.design import PER_ENTRY, fill_own_features
from superarm.context.observations import ContextRound, ContextTally
from superarm.oracles import Greedy, Guarantee, LazyGreedy
from superarm.policies.base import choose, fill_weights, learn, position_share
from superarm.policies.contextual.ridge import Ridge, empty_ridge, no_correction, refresh
from superarm.policies.contextual.rules import clip_scores, radius
from superarm.policies.contextual.scoring import score_entry
from superarm.problem import Problem
from superarm.rewards import gain, initial_states, join_arm
from superarm.rewards.traits import linear_gain
from superarm.streams import Stream
from superarm.support import Support, span

_MIN_ENTRIES = 2_000
"""The fewest entries for which the sieve is taken, as in ``Sieve``."""

_ULP = 2.0**-24
"""The largest relative error of rounding to single precision."""


class EntryTiles(NamedTuple):
    """Bounds of all estimates and squared widths in single precision, ``WIDTH`` entries at a time.

    ``inverse`` holds the triangles of the inverses and ``theta`` the parameter vectors: tile after tile, in a tile
    coordinate after coordinate, in a coordinate entry after entry. ``square_slack`` and ``mean_slack`` (n_tiles *
    WIDTH,) are more than the rounding errors of the sums ``square`` and ``mean``. ``products`` and ``user`` are the
    products of the user's features and the features.
    """

    inverse: Any
    theta: Any
    square_slack: Any
    mean_slack: Any
    square: Any
    mean: Any
    products: Any
    user: Any


class LinearSifted(NamedTuple):
    """What the sieve keeps between rounds; all of it follows from the tally.

    ``fresh`` (n_entries,) is a buffer for the numbers of entries. While a batch is built, ``reach`` (n_arms,) bounds
    the gain of each arm, and is -1 for arms that may not join; it is the gain itself where ``exact`` (n_arms,) says
    that the scores of the arm are exact. ``user`` (d,) and ``spread`` (1,) are what the last scores were computed from.
    """

    ridge: Ridge
    tiles: EntryTiles
    fresh: Ints
    reach: Floats
    exact: Bools
    user: Floats
    spread: Floats


@component
class LinearSieve(NamedTuple):
    r"""A linear policy with the greedy oracle that evaluates only arms that could win, with the same decisions.

    One pass in single precision bounds :math:`\langle\phi, \hat\theta\rangle` and :math:`\lVert\phi\rVert_{G^{-1}}` of
    every entry from above. Gains grow with the parameters, so an arm whose gain, computed exactly, is at least the
    bounds of all others is the one that greedy takes. After [Minoux1978]_. While decisions are pending, the plain
    policy chooses.
    """

    policy: Any

    @property
    def caveat(self) -> str:
        return str(self.policy.caveat)

    def prepare(self, problem: Problem, tally: ContextTally) -> LinearSifted:
        n, d = len(tally.total), tally.response.shape[1]
        size, room = tally.precision.shape[1], (n + WIDTH - 1) // WIDTH * WIDTH
        tiles = EntryTiles(
            np.zeros(room * size, np.float32),
            np.zeros(room * d, np.float32),
            np.zeros(room, np.float32),
            np.zeros(room, np.float32),
            np.zeros(room, np.float32),
            np.zeros(room, np.float32),
            np.zeros(size, np.float32),
            np.zeros(d, np.float32),
        )
        n_arms = problem.n_arms
        reach, exact = np.zeros(n_arms), np.zeros(n_arms, np.bool_)
        return LinearSifted(empty_ridge(tally), tiles, np.zeros(n, np.int64), reach, exact, np.zeros(d), np.zeros(1))

    def choose(self, problem: Problem, current: Any, memory: LinearSifted, stream: Stream) -> Ints:
        _renew(memory, current.tally, self.policy.ridge)
        if current.pending.size > 0:
            memory.exact[:] = True
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
            if not memory.exact[j]:  # an arm that the sieve did not choose
                _score_exactly(support, memory.ridge, j, memory.user, memory.spread[0])
                memory.exact[j] = True
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
    def coefficients(self, tally: ContextTally, memory: LinearSifted) -> Floats:
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
    greedy = isinstance(policy.oracle, Greedy | LazyGreedy) and isinstance(problem.actions, Subsets)
    alone = policy.design.sharing == PER_ENTRY and not policy.design.n_pair and not policy.rule.sampled()
    return bool(greedy and alone and linear_gain(problem.reward) and problem.n_entries >= _MIN_ENTRIES)


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
        _write_tile(memory.tiles, estimates, memory.fresh[at])


@lean
def _write_tile(tiles: EntryTiles, estimates: Ridge, entry: int) -> None:
    """Write one entry to its tile, and how far the sums of its tile may be off.

    With features in [-1, 1], a sum of n products has an error of at most (n + 4) ULP times the sum of the absolute
    values of the numbers, and no coordinate of an inverse is larger than the roots of its two diagonal ones multiplied.
    """
    size, d = estimates.inverse.shape[1], estimates.theta.shape[1]
    tile, lane = entry // WIDTH, entry % WIDTH
    first = tile * size * WIDTH + lane
    for at in range(size):
        tiles.inverse[first + at * WIDTH] = np.float32(estimates.inverse[entry, at])
    roots, total, at = 0.0, 0.0, 0
    first = tile * d * WIDTH + lane
    for r in range(d):
        tiles.theta[first + r * WIDTH] = np.float32(estimates.theta[entry, r])
        total += abs(estimates.theta[entry, r])
        roots += math.sqrt(max(0.0, estimates.inverse[entry, at + r]))
        at += r + 1
    tiles.square_slack[entry] = np.float32(1.1 * (size + 8) * _ULP * roots * roots)
    tiles.mean_slack[entry] = np.float32(1.1 * (d + 8) * _ULP * total)


@lean
def _bound_entries(tiles: EntryTiles, u: Floats, spread: float, q: Floats) -> None:
    """Write numbers to ``q`` that are at least the optimistic parameters of all entries, clipped to [0, 1]."""
    d, at = len(u), 0
    for r in range(d):
        tiles.user[r] = np.float32(u[r])
        for c in range(r):
            tiles.products[at + c] = np.float32(2.0 * u[r] * u[c])
        tiles.products[at + r] = np.float32(u[r] * u[r])
        at += r + 1
    for tile in range(len(tiles.square) // WIDTH):
        place = tile * WIDTH
        weighted_sums(tiles.inverse, place * at, tiles.products, tiles.square_slack, place, tiles.square)
        weighted_sums(tiles.theta, place * d, tiles.user, tiles.mean_slack, place, tiles.mean)
    for e in range(len(q)):
        bonus = spread * math.sqrt(max(0.0, float(tiles.square[e])))
        q[e] = min(1.0, max(0.0, float(tiles.mean[e]) + bonus * (1.0 + 1e-9) + 1e-12))


@kernel
def _choose_lazily(policy: Any, problem: Problem, current: ContextRound, memory: LinearSifted) -> Ints:
    """Greedy, where the scores of an arm are computed exactly only when the bound of its gain is the largest."""
    reach, q, u = memory.reach, memory.ridge.q, memory.user
    fill_own_features(policy.design, current.context, 0, u)
    spread = radius(policy.rule, len(u), 1, current.t)
    memory.spread[0] = spread
    _bound_entries(memory.tiles, u, spread, q)
    states = initial_states(problem.reward, problem.terms)
    for j in range(problem.n_arms):
        memory.exact[j] = False
        reach[j] = 0.0 if current.candidates.eligible[j] else -1.0
    chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
    size = 0
    while size < len(chosen):
        for j in range(problem.n_arms):
            if reach[j] >= 0.0:
                reach[j] = gain(problem.reward, problem.terms, states, q, j)
        best = _first(reach, current.candidates.counts)
        while best >= 0 and not memory.exact[best]:
            _score_exactly(problem.terms.support, memory.ridge, best, u, spread)
            reach[best] = gain(problem.reward, problem.terms, states, q, best)
            memory.exact[best] = True
            best = _first(reach, current.candidates.counts)
        if best < 0:
            break
        join_arm(problem.reward, problem.terms, states, q, best)
        reach[best] = -1.0
        chosen[size] = best
        size += 1
    return chosen[:size]


@inlined
def _first(reach: Floats, counts: Floats) -> int:
    """The arm of the largest number, ties to the fewest pulls, then the lowest number; -1 if no arm may join."""
    best, most = -1, -1.0
    for j in range(len(reach)):
        if reach[j] > most or (reach[j] == most and best >= 0 and counts[j] < counts[best]):
            best, most = j, reach[j]
    return best


@lean
def _score_exactly(support: Support, estimates: Ridge, arm: int, u: Floats, spread: float) -> None:
    """Write the optimistic parameters of an arm's entries, as the plain policy computes them."""
    first, last = span(support, arm)
    for e in range(first, last):
        score_entry(estimates, e, u, spread)
    clip_scores(estimates.q, first, last)
