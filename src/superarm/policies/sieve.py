from typing import NamedTuple

import numpy as np

from superarm._jit import component, inlined, interpreted, lean
from superarm._lanes import WIDTH
from superarm.actions import Subsets, capacity
from superarm.arrays import Bools, Floats, Ints
from superarm.indices import Index, monotone
from superarm.intake import Intake
from superarm.noise import Noise
from superarm.oracles import Greedy, Guarantee, LazyGreedy, Oracle
from superarm.policies.base import Moment
from superarm.policies.order import Order, before, fill_in_order, order, place
from superarm.policies.rating import Estimates, Glance, estimated, rate_arm
from superarm.policies.tiles import Tiles, lay, reach, tiles
from superarm.problem import Problem
from superarm.rewards import absorb, gain
from superarm.rewards.base import has_slope, renew
from superarm.support import Dense
from superarm.tally import Feedback, Tally, estimate, record

_LARGE = 2_000
"""Entries from which on sieving pays: (20, 10) is faster plain, (100, 50) sieved (``python -m benchmarks.rounds``)."""

_STRIDE, _SHORTEST = 128, 32
"""Bounds hold for t / 128 rounds, at least 32: log t moves by 1/128 meanwhile, less than arms differ by."""


class Sifted(NamedTuple):
    """What a sieve carries over rounds; all of it follows from the tally.

    ``screen`` bounds every parameter up to round ``until`` (1,), ``line`` orders the arms for ties. ``stamp`` (n_arms,)
    tells in which call, counted by ``calls`` (1,), an arm's exact scores were last computed; ``memo`` (n_items,) and
    ``chosen`` (k,) are room for the batch under construction, ``ones`` (n_items,) the scores of an unknown arm; ``odd``
    (1,) tells that the line is not the tally's; ``counted`` (n_arms,) are the pulls that an arm's bounds are made for.
    """

    estimates: Estimates
    screen: Tiles
    line: Order
    until: Ints
    stamp: Ints
    calls: Ints
    memo: Floats
    ones: Floats
    chosen: Ints
    odd: Bools
    counted: Floats


@component
class Sieve(NamedTuple):
    r"""An index policy with the greedy oracle that looks closely only at arms that could win: the same decisions.

    While an arm is not played its level grows with t, its score with the level, and gains with the scores. So scores
    computed for a later round :math:`t'` bound all gains until then, and only the arms played in a round change theirs.
    One pass in single precision bounds every gain; arms whose bound reaches the best exact gain found are evaluated
    exactly, as :class:`IndexPolicy` with :class:`Greedy` does, and ties go the same way. An arm first in line whose
    scores are all 1 wins without a pass. [MerlisMannor2019]_ (Algorithm 1) with the arg max of its oracle taken lazily,
    after [Minoux1978]_.
    """

    confidence: Index
    oracle: Oracle
    intake: Intake

    def prepare(self, problem: Problem, tally: Tally) -> Sifted:
        memory = Sifted(
            estimated(problem, tally),
            tiles(problem.n_arms, problem.n_items),
            order(tally.pulls, np.zeros(problem.n_arms)),
            np.zeros(1, np.int64),
            np.zeros(problem.n_arms, np.int64),
            np.zeros(1, np.int64),
            np.empty(problem.n_items),
            np.ones(problem.n_items),
            np.full(capacity(problem.actions, problem.n_arms), -1),
            np.zeros(1, np.bool_),
            tally.pulls.copy(),
        )
        return memory

    def choose(self, problem: Problem, moment: Moment, memory: Sifted, noise: Noise) -> Ints:
        return memory.chosen[: _assemble(self.confidence, problem, moment, memory, noise)].copy()

    @lean
    def learn(
        self, problem: Problem, tally: Tally, memory: Sifted, feedback: Feedback, noise: Noise, sign: float
    ) -> None:
        record(tally, problem.terms.support, feedback, self.intake, noise, sign)
        _revise(self.confidence, problem, tally, memory, feedback.action, noise)

    @interpreted
    def fit(self, problem: Problem) -> "Sieve":
        return self

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


def sieves(confidence: Index, oracle: Oracle, problem: Problem) -> bool:
    """Whether a sieve decides as the plain policy does, and pays."""
    same = monotone(confidence) and isinstance(oracle, Greedy | LazyGreedy) and has_slope(problem.reward)
    return (
        same
        and isinstance(problem.actions, Subsets)
        and isinstance(problem.support, Dense)
        and problem.n_arms >= WIDTH
        and problem.n_entries >= _LARGE
    )


@lean
def _assemble(confidence: Index, problem: Problem, moment: Moment, memory: Sifted, noise: Noise) -> int:
    """Write the batch to play into ``memory.chosen``; its size."""
    line, chosen, closed = memory.line, memory.chosen, memory.screen.start
    _align(confidence, problem, moment, memory, noise)
    size = 0
    if line.key[line.winner[1]] > 0.0:
        if moment.t > memory.until[0]:
            _look_ahead(confidence, problem, moment, memory, noise)
        memory.calls[0] += 1
        renew(problem.reward, problem.terms, memory.memo)
        while size < len(chosen) and line.key[line.winner[1]] < np.inf:
            best = _pick(confidence, problem, moment, memory, noise)
            if best < 0:
                break
            absorb(problem.reward, problem.terms, memory.memo, memory.estimates.q, best)
            chosen[size] = best
            size += 1
            place(line, best, np.inf, 0.0)
            closed[best] = -np.inf
        for n in range(size):
            closed[chosen[n]] = 0.0
    size = fill_in_order(line, chosen, size)
    chosen[size:] = -1
    return size


@lean
def _revise(confidence: Index, problem: Problem, tally: Tally, memory: Sifted, action: Ints, noise: Noise) -> None:
    """Bring estimates, line and bounds of the arms of ``action`` up to date."""
    for j in action:
        estimate(tally, problem.terms.support, j, memory.estimates.mean, memory.estimates.deviation)
        place(memory.line, j, tally.pulls[j], 0.0)
        _bound(confidence, problem, tally, memory, Glance(j, tally.pulls[j], memory.until[0], 1.0), noise)


@lean
def _align(confidence: Index, problem: Problem, moment: Moment, memory: Sifted, noise: Noise) -> None:
    """Let the line be that of ``moment.ranks``. If those are the tally's pulls, only the last batch stands aside.

    Pulls under way tighten an arm's bounds, and loosen them again if they are taken back.
    """
    line, ranks = memory.line, moment.ranks
    eligible = 0
    for j in range(len(ranks.eligible)):
        eligible += ranks.eligible[j]
    odd = eligible < len(ranks.eligible) or ranks.pulls is not moment.tally.pulls
    if odd or memory.odd[0]:
        for j in range(len(ranks.pulls)):
            place(line, j, ranks.pulls[j] if ranks.eligible[j] else np.inf, 0.0)
            memory.screen.start[j] = np.float32(0.0 if ranks.eligible[j] else -np.inf)
            if ranks.pulls[j] != memory.counted[j]:
                _bound(
                    confidence, problem, moment.tally, memory, Glance(j, ranks.pulls[j], memory.until[0], 1.0), noise
                )
    else:
        for j in memory.chosen:
            if j >= 0:
                place(line, j, ranks.pulls[j], 0.0)
    memory.odd[0] = odd


@lean
def _look_ahead(confidence: Index, problem: Problem, moment: Moment, memory: Sifted, noise: Noise) -> None:
    """Bound all parameters for some rounds to come. Bounds of 1 stay."""
    memory.until[0] = moment.t + max(_SHORTEST, moment.t // _STRIDE)
    for j in range(problem.n_arms):
        if not memory.screen.all_one[j]:
            _bound(
                confidence, problem, moment.tally, memory, Glance(j, moment.ranks.pulls[j], memory.until[0], 1.0), noise
            )


@inlined
def _bound(confidence: Index, problem: Problem, tally: Tally, memory: Sifted, glance: Glance, noise: Noise) -> None:
    """Bound an arm's parameters for all rounds up to ``glance.t``, while it is counted as pulled that often."""
    glance = Glance(glance.arm, glance.pulls, max(1, glance.t), glance.scale)
    rate_arm(confidence, problem, tally, memory.estimates, glance, noise)
    lay(memory.screen, problem.reward, glance.arm, memory.estimates.q)
    counted = memory.counted
    counted[glance.arm] = glance.pulls


@lean
def _pick(confidence: Index, problem: Problem, moment: Moment, memory: Sifted, noise: Noise) -> int:
    """The open arm with the largest gain, first in line among equals; -1 if all gains are 0."""
    screen, line = memory.screen, memory.line
    largest = gain(problem.reward, problem.terms, memory.memo, memory.ones, 0)  # no arm can gain more
    if largest == 0.0:
        return -1
    best = line.winner[1]
    if screen.all_one[best] and _gain(confidence, problem, moment, memory, best, noise) == largest:
        return best  # type: ignore[no-any-return]
    scale = reach(screen, problem.reward, problem.terms, memory.memo)  # type: ignore[arg-type]
    best = _highest(screen)
    if screen.reach[best] == 0.0:
        return -1
    most = _gain(confidence, problem, moment, memory, best, noise)
    enough = np.float32(most / scale * (1.0 - 1.2e-7))
    for tile in range(len(screen.top)):
        if screen.top[tile] < enough:
            continue
        for j in range(tile * WIDTH, (tile + 1) * WIDTH):
            if screen.reach[j] >= enough and j != best:
                g = _gain(confidence, problem, moment, memory, j, noise)
                if g > most or (g == most and before(line, j, best)):
                    best, most = j, g
                    enough = np.float32(most / scale * (1.0 - 1.2e-7))
    return best


@inlined
def _gain(confidence: Index, problem: Problem, moment: Moment, memory: Sifted, arm: int, noise: Noise) -> float:
    """The exact gain, from exact scores that are computed once a call."""
    estimates, stamp = memory.estimates, memory.stamp
    if stamp[arm] != memory.calls[0]:
        stamp[arm] = memory.calls[0]
        glance = Glance(arm, moment.ranks.pulls[arm], moment.t, 1.0)
        rate_arm(confidence, problem, moment.tally, estimates, glance, noise)
    return gain(problem.reward, problem.terms, memory.memo, estimates.q, arm)


@inlined
def _highest(screen: Tiles) -> int:
    tile = 0
    for n in range(1, len(screen.top)):
        if screen.top[n] > screen.top[tile]:
            tile = n
    j = tile * WIDTH
    while screen.reach[j] != screen.top[tile]:
        j += 1
    return j
