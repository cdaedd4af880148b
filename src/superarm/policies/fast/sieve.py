from typing import NamedTuple

import numpy as np

from superarm._jit import component, for_kernels, inlined, interpreted, lean
from superarm._lanes import WIDTH
from superarm.actions import capacity
from superarm.arrays import Bools, Floats, Ints
from superarm.indices import Index, bound_by_tangents
from superarm.intake import Intake
from superarm.oracles import Guarantee, Oracle
from superarm.oracles.base import BatchBuffer
from superarm.policies.base import Round
from superarm.policies.fast.picking import pick_arm
from superarm.policies.fast.sieving import align_tournament, decides_alike, is_overridden
from superarm.policies.fast.tiles import Tiles, begin_renewal, new_tiles, write_bounds
from superarm.policies.fast.tournament import Tournament, fill_in_order, new_tournament, update_key
from superarm.policies.scoring import ArmView, Estimates, arm_level, bound_scores, estimate_arms
from superarm.problem import Problem
from superarm.rewards import join_arm
from superarm.rewards.base import reset_states
from superarm.streams import Stream
from superarm.support import Dense
from superarm.tally import Feedback, Tally, estimate, record

_MIN_ENTRIES = 2_000
"""The fewest entries for which sieving pays: (100, 50) is faster sieved, (20, 10) is not (``benchmarks.rounds``)."""

_STRIDE_DIVISOR, _MIN_STRIDE = 128, 32
"""Bounds hold for t / 128 rounds, at least 32: log t grows by about 1/128 in that time, less than arms differ by.

Half as many if bounds can be extended by tangents, which takes less time. The tiles of arms are renewed at different
rounds, so that no single decision has to wait until all are.
"""

_MAX_EXTENSION = 1.25
"""By which factor a level may grow before its bounds are computed anew; tangents add 1/160 of a width until then."""


class Sifted(NamedTuple):
    """What a sieve keeps between rounds; all of it follows from the tally.

    ``screen`` bounds the parameters of each tile up to its round ``until`` (n_tiles,), and ``tournament`` orders the
    arms for ties. ``stamp`` (n_arms,) is the call, counted by ``calls`` (1,), in which an arm's exact scores were last
    computed. ``states`` (n_items,) and ``chosen`` (k,) are buffers for the batch under construction, ``ones``
    (n_items,) the scores of an unknown arm. ``overridden`` (1,) says that the last call used counts or eligibility
    other than the tally's, and ``counted`` (n_arms,) holds the pull counts for which each arm's bounds were made,
    ``levels`` (same) the levels, and ``solved`` (same) those at which bounds were last computed without tangents.
    ``later.q`` (n_entries,) bounds the scores at these levels, and ``bounded`` (n_arms,) is the call in which an arm's
    scores were last bounded by tangents. An index without tangents shares the buffer of scores.
    """

    estimates: Estimates
    screen: Tiles
    tournament: Tournament
    until: Ints
    stamp: Ints
    calls: Ints
    states: Floats
    ones: Floats
    chosen: Ints
    overridden: Bools
    counted: Floats
    levels: Floats
    solved: Floats
    later: Estimates
    bounded: Ints


@component
class Sieve(NamedTuple):
    r"""An index policy with the greedy oracle that evaluates only arms that could win, with the same decisions.

    While an arm is not played its level grows with t, its score with the level, and gains with the scores. So scores
    computed for a later round :math:`t'` bound all gains until then, and only the arms played in a round change theirs.
    One pass over whole numbers of 16 bits bounds every gain; arms whose bound reaches the best exact gain found are
    evaluated exactly, as :class:`IndexPolicy` with :class:`Greedy` does, and ties go the same way. Gains below 1e-300
    are rounded too coarsely for that: arms that add so little may come in another order. An arm that is
    first in the tie-break order and whose scores are all 1 wins without a pass. Implements [MerlisMannor2019]_
    (Algorithm 1), with the arg max of its oracle taken lazily, after [Minoux1978]_.
    """

    confidence: Index
    oracle: Oracle
    intake: Intake

    @for_kernels
    def prepare(self, problem: Problem, tally: Tally) -> Sifted:
        screen, estimates = new_tiles(problem.n_arms, problem.n_items), estimate_arms(problem, tally)
        mean, deviation, q = estimates
        memory = Sifted(
            estimates,
            screen,
            new_tournament(tally.pulls, np.zeros(problem.n_arms)),
            np.zeros(len(screen.top), np.int64),
            np.zeros(problem.n_arms, np.int64),
            np.zeros(1, np.int64),
            np.empty(problem.n_items),
            np.ones(problem.n_items),
            np.full(capacity(problem.actions, problem.n_arms), -1),
            np.zeros(1, np.bool_),
            tally.pulls.copy(),
            np.zeros(problem.n_arms),
            np.zeros(problem.n_arms),
            Estimates(mean, deviation, np.ones(len(q)) if _has_tangents(self.confidence, estimates) else q),
            np.zeros(problem.n_arms, np.int64),
        )
        return memory

    def choose(self, problem: Problem, current: Round, memory: Sifted, stream: Stream) -> Ints:
        return memory.chosen[: _choose_batch(self.confidence, problem, current, memory, stream)].copy()

    @lean
    def choose_into(self, problem: Problem, current: Round, memory: Sifted, stream: Stream, batch: BatchBuffer) -> int:
        size, chosen = _choose_batch(self.confidence, problem, current, memory, stream), batch.chosen
        for n in range(size):
            chosen[n] = memory.chosen[n]
        return size

    @lean
    def learn(
        self, problem: Problem, tally: Tally, memory: Sifted, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        record(tally, problem.terms.support, feedback, self.intake, stream, sign)
        _update_arms(self.confidence, problem, tally, memory, feedback.action, stream)

    @interpreted
    def fit(self, problem: Problem) -> "Sieve":
        return self

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


def suits_sieve(confidence: Index, oracle: Oracle, problem: Problem) -> bool:
    """Whether a sieve makes the decisions of the plain policy on this problem, and is faster."""
    large = problem.n_arms >= WIDTH and problem.n_entries >= _MIN_ENTRIES
    return large and isinstance(problem.support, Dense) and decides_alike(confidence, oracle, problem)


@inlined
def _has_tangents(confidence: Index, estimates: Estimates) -> bool:
    """Whether the scores of the index can be bounded by tangents."""
    return bound_by_tangents(confidence, estimates.mean, 0, 0, estimates.q, 0.0, estimates.q)


@lean
def _choose_batch(confidence: Index, problem: Problem, current: Round, memory: Sifted, stream: Stream) -> int:
    """Write the batch to play into ``memory.chosen`` and return its size."""
    tournament, chosen, closed = memory.tournament, memory.chosen, memory.screen.start
    _synchronise(confidence, problem, current, memory, stream)
    size = 0
    if tournament.key[tournament.winner[1]] > 0.0:
        _renew_bounds(confidence, problem, current, memory, stream)
        memory.calls[0] += 1
        reset_states(problem.reward, problem.terms, memory.states)
        while size < len(chosen) and tournament.key[tournament.winner[1]] < np.inf:
            best = pick_arm(confidence, problem, current, memory, stream)
            if best < 0:
                break
            join_arm(problem.reward, problem.terms, memory.states, memory.estimates.q, best)
            chosen[size] = best
            size += 1
            update_key(tournament, best, np.inf, 0.0)
            closed[best] = -np.inf
        for n in range(size):
            closed[chosen[n]] = 0.0
    size = fill_in_order(tournament, chosen, size)
    chosen[size:] = -1
    return size


@lean
def _update_arms(
    confidence: Index, problem: Problem, tally: Tally, memory: Sifted, action: Ints, stream: Stream
) -> None:
    """Update estimates, tie-break order and bounds of the arms of ``action``."""
    for j in action:
        estimate(tally, problem.terms.support, j, memory.estimates.mean, memory.estimates.deviation)
        update_key(memory.tournament, j, tally.pulls[j], 0.0)
        _bound(confidence, problem, tally, memory, ArmView(j, tally.pulls[j], memory.until[j // WIDTH], 1.0), stream)


@lean
def _synchronise(confidence: Index, problem: Problem, current: Round, memory: Sifted, stream: Stream) -> None:
    """Synchronise the tie-break tournament with the current counts.

    Usually only the arms of the last batch have changed. Pending pulls tighten an arm's bounds; taking them back
    loosens the bounds again.
    """
    candidates, overridden = current.candidates, is_overridden(current)
    every_arm = overridden or memory.overridden[0]
    align_tournament(memory.tournament, candidates, memory.chosen, every_arm)
    if every_arm:
        for j in range(len(candidates.counts)):
            memory.screen.start[j] = np.float32(0.0 if candidates.eligible[j] else -np.inf)
            if candidates.counts[j] != memory.counted[j]:
                _bound(
                    confidence,
                    problem,
                    current.tally,
                    memory,
                    ArmView(j, candidates.counts[j], memory.until[j // WIDTH], 1.0),
                    stream,
                )
    memory.overridden[0] = overridden


@lean
def _renew_bounds(confidence: Index, problem: Problem, current: Round, memory: Sifted, stream: Stream) -> None:
    """Compute the bounds of the tiles whose rounds are over, for the next rounds. Bounds of 1 stay valid.

    Of several tiles that are due in one round, each gets fewer rounds than the one before, so that they are not due in
    one round again: when all are, as in the first round, they spread over a whole stride.
    """
    stride, renewed, until = current.t // _STRIDE_DIVISOR, 0, memory.until
    stride = stride if stride > _MIN_STRIDE else _MIN_STRIDE
    if _has_tangents(confidence, memory.estimates):
        stride //= 2
    for tile in range(len(until)):
        if current.t <= until[tile]:
            continue
        until[tile] = current.t + stride - renewed * stride // len(until)
        renewed += 1
        begin_renewal(memory.screen, tile)
        last = (tile + 1) * WIDTH
        for j in range(tile * WIDTH, last if last < problem.n_arms else problem.n_arms):
            if not memory.screen.all_one[j]:
                view = ArmView(j, current.candidates.counts[j], until[tile], 1.0)
                if not _extend_bounds(confidence, problem, current, memory, view):
                    _bound(confidence, problem, current.tally, memory, view, stream)


@inlined
def _extend_bounds(confidence: Index, problem: Problem, current: Round, memory: Sifted, view: ArmView) -> bool:
    """Bound an arm's parameters for all rounds up to ``view.t`` by tangents of its last bounds, if that will do."""
    arm, n, levels, bounds = view.arm, problem.n_items, memory.levels, memory.later.q
    if current.tally.missed.size > 0 or view.pulls != memory.counted[arm]:
        return False
    x = arm_level(confidence, problem, view)
    if x > memory.solved[arm] * _MAX_EXTENSION or not bound_by_tangents(
        confidence, memory.estimates.mean, arm * n, n, bounds, levels[arm] - x, bounds
    ):
        return False
    levels[arm] = x
    write_bounds(memory.screen, problem.reward, arm, bounds)
    return True


@inlined
def _bound(confidence: Index, problem: Problem, tally: Tally, memory: Sifted, view: ArmView, stream: Stream) -> None:
    """Bound an arm's parameters for all rounds up to ``view.t``, as long as its pull count is ``view.pulls``."""
    view = ArmView(view.arm, view.pulls, view.t if view.t > 1 else 1, view.scale)
    bound_scores(confidence, problem, tally, memory.later, view, stream)
    write_bounds(memory.screen, problem.reward, view.arm, memory.later.q)
    counted, levels, solved = memory.counted, memory.levels, memory.solved
    counted[view.arm] = view.pulls
    solved[view.arm] = levels[view.arm] = arm_level(confidence, problem, view) if view.pulls > 0.0 else 0.0
