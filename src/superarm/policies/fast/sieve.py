from typing import NamedTuple

import numpy as np

from superarm._jit import component, inlined, interpreted, lean
from superarm._lanes import WIDTH
from superarm.actions import Subsets, capacity
from superarm.arrays import Bools, Floats, Ints
from superarm.indices import Index, monotone
from superarm.intake import Intake
from superarm.oracles import Greedy, Guarantee, LazyGreedy, Oracle
from superarm.policies.base import Round
from superarm.policies.fast.tiles import Tiles, lay, reach, tiles
from superarm.policies.fast.tournament import Order, before, fill_in_order, order, place
from superarm.policies.scoring import ArmView, Estimates, estimate_arms, score_arm
from superarm.problem import Problem
from superarm.rewards import gain, join_arm
from superarm.rewards.base import has_bound_slope, reset_states
from superarm.streams import Stream
from superarm.support import Dense
from superarm.tally import Feedback, Tally, estimate, record

_LARGE = 2_000
"""Entries from which on sieving pays: (20, 10) is faster plain, (100, 50) sieved (``python -m benchmarks.rounds``)."""

_STRIDE, _SHORTEST = 128, 32
"""Bounds hold for t / 128 rounds, at least 32: log t moves by 1/128 meanwhile, less than arms differ by."""


class Sifted(NamedTuple):
    """What a sieve carries over rounds; all of it follows from the tally.

    ``screen`` bounds every parameter up to round ``until`` (1,), ``line`` orders the arms for ties. ``stamp`` (n_arms,)
    tells in which call, counted by ``calls`` (1,), an arm's exact scores were last computed; ``states`` (n_items,) and
    ``chosen`` (k,) are room for the batch under construction, ``ones`` (n_items,) the scores of an unknown arm; ``odd``
    (1,) tells that the line is not the tally's; ``counted`` (n_arms,) are the pulls that an arm's bounds are made for.
    """

    estimates: Estimates
    screen: Tiles
    line: Order
    until: Ints
    stamp: Ints
    calls: Ints
    states: Floats
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
            estimate_arms(problem, tally),
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

    def choose(self, problem: Problem, current: Round, memory: Sifted, stream: Stream) -> Ints:
        return memory.chosen[: _assemble(self.confidence, problem, current, memory, stream)].copy()

    @lean
    def learn(
        self, problem: Problem, tally: Tally, memory: Sifted, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        record(tally, problem.terms.support, feedback, self.intake, stream, sign)
        _revise(self.confidence, problem, tally, memory, feedback.action, stream)

    @interpreted
    def fit(self, problem: Problem) -> "Sieve":
        return self

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


def sieves(confidence: Index, oracle: Oracle, problem: Problem) -> bool:
    """Whether a sieve decides as the plain policy does, and pays."""
    same = monotone(confidence) and isinstance(oracle, Greedy | LazyGreedy) and has_bound_slope(problem.reward)
    return (
        same
        and isinstance(problem.actions, Subsets)
        and isinstance(problem.support, Dense)
        and problem.n_arms >= WIDTH
        and problem.n_entries >= _LARGE
    )


@lean
def _assemble(confidence: Index, problem: Problem, current: Round, memory: Sifted, stream: Stream) -> int:
    """Write the batch to play into ``memory.chosen``; its size."""
    line, chosen, closed = memory.line, memory.chosen, memory.screen.start
    _align(confidence, problem, current, memory, stream)
    size = 0
    if line.key[line.winner[1]] > 0.0:
        if current.t > memory.until[0]:
            _look_ahead(confidence, problem, current, memory, stream)
        memory.calls[0] += 1
        reset_states(problem.reward, problem.terms, memory.states)
        while size < len(chosen) and line.key[line.winner[1]] < np.inf:
            best = _pick(confidence, problem, current, memory, stream)
            if best < 0:
                break
            join_arm(problem.reward, problem.terms, memory.states, memory.estimates.q, best)
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
def _revise(confidence: Index, problem: Problem, tally: Tally, memory: Sifted, action: Ints, stream: Stream) -> None:
    """Bring estimates, line and bounds of the arms of ``action`` up to date."""
    for j in action:
        estimate(tally, problem.terms.support, j, memory.estimates.mean, memory.estimates.deviation)
        place(memory.line, j, tally.pulls[j], 0.0)
        _bound(confidence, problem, tally, memory, ArmView(j, tally.pulls[j], memory.until[0], 1.0), stream)


@lean
def _align(confidence: Index, problem: Problem, current: Round, memory: Sifted, stream: Stream) -> None:
    """Let the line be that of ``current.candidates``. If those are the tally's pulls, only the last batch stands aside.

    Pulls under way tighten an arm's bounds, and loosen them again if they are taken back.
    """
    line, candidates = memory.line, current.candidates
    eligible = 0
    for j in range(len(candidates.eligible)):
        eligible += candidates.eligible[j]
    odd = eligible < len(candidates.eligible) or candidates.counts is not current.tally.pulls
    if odd or memory.odd[0]:
        for j in range(len(candidates.counts)):
            place(line, j, candidates.counts[j] if candidates.eligible[j] else np.inf, 0.0)
            memory.screen.start[j] = np.float32(0.0 if candidates.eligible[j] else -np.inf)
            if candidates.counts[j] != memory.counted[j]:
                _bound(
                    confidence,
                    problem,
                    current.tally,
                    memory,
                    ArmView(j, candidates.counts[j], memory.until[0], 1.0),
                    stream,
                )
    else:
        for j in memory.chosen:
            if j >= 0:
                place(line, j, candidates.counts[j], 0.0)
    memory.odd[0] = odd


@lean
def _look_ahead(confidence: Index, problem: Problem, current: Round, memory: Sifted, stream: Stream) -> None:
    """Bound all parameters for some rounds to come. Bounds of 1 stay."""
    memory.until[0] = current.t + max(_SHORTEST, current.t // _STRIDE)
    for j in range(problem.n_arms):
        if not memory.screen.all_one[j]:
            _bound(
                confidence,
                problem,
                current.tally,
                memory,
                ArmView(j, current.candidates.counts[j], memory.until[0], 1.0),
                stream,
            )


@inlined
def _bound(confidence: Index, problem: Problem, tally: Tally, memory: Sifted, glance: ArmView, stream: Stream) -> None:
    """Bound an arm's parameters for all rounds up to ``glance.t``, while it is counted as pulled that often."""
    glance = ArmView(glance.arm, glance.pulls, max(1, glance.t), glance.scale)
    score_arm(confidence, problem, tally, memory.estimates, glance, stream)
    lay(memory.screen, problem.reward, glance.arm, memory.estimates.q)
    counted = memory.counted
    counted[glance.arm] = glance.pulls


@lean
def _pick(confidence: Index, problem: Problem, current: Round, memory: Sifted, stream: Stream) -> int:
    """The open arm with the largest gain, first in line among equals; -1 if all gains are 0."""
    screen, line = memory.screen, memory.line
    largest = gain(problem.reward, problem.terms, memory.states, memory.ones, 0)  # no arm can gain more
    if largest == 0.0:
        return -1
    best = line.winner[1]
    if screen.all_one[best] and _gain(confidence, problem, current, memory, best, stream) == largest:
        return best  # type: ignore[no-any-return]
    scale = reach(screen, problem.reward, problem.terms, memory.states)  # type: ignore[arg-type]
    best = _highest(screen)
    if screen.reach[best] == 0.0:
        return -1
    most = _gain(confidence, problem, current, memory, best, stream)
    enough = np.float32(most / scale * (1.0 - 1.2e-7))
    for tile in range(len(screen.top)):
        if screen.top[tile] < enough:
            continue
        for j in range(tile * WIDTH, (tile + 1) * WIDTH):
            if screen.reach[j] >= enough and j != best:
                g = _gain(confidence, problem, current, memory, j, stream)
                if g > most or (g == most and before(line, j, best)):
                    best, most = j, g
                    enough = np.float32(most / scale * (1.0 - 1.2e-7))
    return best


@inlined
def _gain(confidence: Index, problem: Problem, current: Round, memory: Sifted, arm: int, stream: Stream) -> float:
    """The exact gain, from exact scores that are computed once a call."""
    estimates, stamp = memory.estimates, memory.stamp
    if stamp[arm] != memory.calls[0]:
        stamp[arm] = memory.calls[0]
        glance = ArmView(arm, current.candidates.counts[arm], current.t, 1.0)
        score_arm(confidence, problem, current.tally, estimates, glance, stream)
    return gain(problem.reward, problem.terms, memory.states, estimates.q, arm)


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
