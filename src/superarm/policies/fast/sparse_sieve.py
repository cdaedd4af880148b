from typing import NamedTuple

import numpy as np

from superarm._jit import component, inlined, interpreted, kernel, lean
from superarm.actions import Subsets, capacity
from superarm.arrays import Bools, Floats, Ints
from superarm.indices import Index, monotone
from superarm.intake import Intake
from superarm.oracles import Greedy, Guarantee, LazyGreedy, Oracle
from superarm.policies.base import Round
from superarm.policies.fast.arm_blocks import (
    KEEN,
    Blocks,
    arrange,
    blocks,
    lower,
    mark,
    places,
    position,
    raise_limits,
    restore_all,
    restore_changed,
)
from superarm.policies.fast.popular_items import SLACK, Popular, limit, look, popular, promise
from superarm.policies.fast.tournament import Order, fill_in_order, order, place
from superarm.policies.scoring import ArmView, Estimates, estimate_arms, score_arm
from superarm.problem import Problem
from superarm.rewards import clear_batch, gain, initial_states, join_arm
from superarm.rewards.base import has_bound_slope
from superarm.rewards.traits import gains_shrink
from superarm.streams import Stream
from superarm.support import Sparse, span
from superarm.tally import Feedback, Tally, estimate, record

_MANY = 1_000
"""Arms from which on carrying bounds pays."""

_SHORTEST = 16
"""The fewest rounds that bounds are made for."""


class SparseMemory(NamedTuple):
    """What a sparse sieve carries over rounds; all of it follows from the tally.

    ``hope`` (n_entries,) is room for the scores of round ``until`` (1,); ``rows`` bounds what arms add with them,
    ``shared`` tells popular items apart. ``ceiling`` (n_arms,) is what an arm adds to the empty batch if all its
    scores are 1, and ``clipped`` (n_arms,) tells that they are. ``line`` orders the arms by pulls. ``stamp`` (n_arms,)
    tells in which call, counted by ``calls`` (1,), an arm's exact scores were computed, ``closely`` (1,) how many were
    in this call. ``states`` (n_items,) is the state of the batch under construction ``chosen`` (k,), and that of the
    empty batch between rounds; ``tried`` and ``peak`` (n_blocks,) are room for the blocks of a pick and for what each
    promises after it. ``stride`` (1,) is how far bounds look ahead, ``wasted`` (1,) how many evaluations they have cost
    at first picks; ``odd`` (1,) tells that the line is not the tally's.
    """

    estimates: Estimates
    hope: Floats
    shared: Popular
    rows: Blocks
    ceiling: Floats
    clipped: Bools
    line: Order
    stamp: Ints
    states: Floats
    chosen: Ints
    tried: Ints
    peak: Floats
    closely: Ints
    calls: Ints
    until: Ints
    stride: Ints
    wasted: Ints
    odd: Bools


@component
class SparseSieve(NamedTuple):
    r"""An index policy with greedy picks that looks only at arms that could win, for sparse supports.

    What an arm adds to the empty batch at a later round :math:`t'` bounds what it adds to any batch until then. Arms
    that are alike stand in blocks, whose bounds also know what the batch has left of the most popular items
    (``arm_blocks``); a pick visits blocks from the top of a tournament while their bound reaches the best exact gain,
    and no work depends on the number of items. Bounds are made anew when :math:`t'` has passed, or
    when evaluations beyond the batch have cost as much as making them (as in the ski-rental problem); :math:`t'` moves
    away in the first case, unless a quarter of that was spent, and closer in the second. [MerlisMannor2019]_ (Algorithm
    1) with an oracle after [Minoux1978]_ whose bounds are carried over rounds. A gain times ``slack`` bounds that of a
    later pick; ``fit`` leaves it out where the reward is ``gains_shrink``.
    """

    confidence: Index
    oracle: Oracle
    intake: Intake
    slack: float = SLACK

    def prepare(self, problem: Problem, tally: Tally) -> SparseMemory:
        one, rows = np.zeros(1, np.int64), blocks(problem.n_arms)
        return SparseMemory(
            estimate_arms(problem, tally),
            np.ones(len(tally.total)),
            popular(problem),
            rows,
            _ceiling(problem, len(tally.total)),
            np.zeros(problem.n_arms, np.bool_),
            order(tally.pulls, np.zeros(problem.n_arms)),
            np.zeros(problem.n_arms, np.int64),
            initial_states(problem.reward, problem.terms),
            np.full(capacity(problem.actions, problem.n_arms), -1),
            np.zeros(len(rows.rest), np.int64),
            np.zeros(len(rows.rest)),
            one.copy(),
            one.copy(),
            one.copy(),
            one + _SHORTEST,
            one.copy(),
            np.zeros(1, np.bool_),
        )

    def choose(self, problem: Problem, current: Round, memory: SparseMemory, stream: Stream) -> Ints:
        if _sampled(memory, current) and (current.t > memory.until[0] or 2 * memory.wasted[0] > problem.n_arms):
            _look_ahead(self.confidence, problem, current, memory, stream)
        return memory.chosen[: _assemble(self, problem, current, memory, stream)].copy()

    @lean
    def learn(
        self, problem: Problem, tally: Tally, memory: SparseMemory, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        record(tally, problem.terms.support, feedback, self.intake, stream, sign)
        _revise(self.confidence, problem, tally, memory, feedback.action, stream)

    @interpreted
    def fit(self, problem: Problem) -> "SparseSieve":
        return self._replace(slack=1.0) if gains_shrink(problem.reward) else self

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


def sieves_sparse(confidence: Index, oracle: Oracle, problem: Problem) -> bool:
    """Whether a sparse sieve decides as the plain policy does, and pays."""
    same = monotone(confidence) and isinstance(oracle, Greedy | LazyGreedy)
    fits = isinstance(problem.actions, Subsets) and isinstance(problem.support, Sparse)
    return bool(same and fits and has_bound_slope(problem.reward) and problem.n_arms >= _MANY)


@kernel
def _ceiling(problem: Problem, n_entries: int) -> Floats:
    """What each arm adds to the empty batch if all its parameters are 1."""
    states, ones = initial_states(problem.reward, problem.terms), np.ones(n_entries)
    return np.array([gain(problem.reward, problem.terms, states, ones, j) for j in range(problem.n_arms)])


@lean
def _revise(
    confidence: Index, problem: Problem, tally: Tally, memory: SparseMemory, action: Ints, stream: Stream
) -> None:
    """Bring estimates and bounds of the arms of ``action`` up to date."""
    for j in action:
        estimate(tally, problem.terms.support, j, memory.estimates.mean, memory.estimates.deviation)
        place(memory.line, j, tally.pulls[j], 0.0)
        if memory.until[0] > 0:
            _bound(confidence, problem, tally, memory, j, stream)
            raise_limits(memory.rows, memory.shared, memory.rows.at[j])
            mark(memory.rows, memory.rows.at[j])


@lean
def _sampled(memory: SparseMemory, current: Round) -> bool:
    """Let the line be that of ``current.candidates``; whether all arms in it have been played."""
    candidates, line = current.candidates, memory.line
    odd = candidates.counts is not current.tally.pulls
    for j in range(np.uint64(len(candidates.eligible))):
        odd |= not candidates.eligible[j]
    if odd or memory.odd[0]:
        for j in range(len(candidates.counts)):
            place(line, j, candidates.counts[j] if candidates.eligible[j] else np.inf, 0.0)
        restore_all(memory.rows, candidates.eligible, candidates.counts)
    else:
        for j in memory.chosen:
            if j >= 0:
                place(line, j, candidates.counts[j], 0.0)
        restore_changed(memory.rows, candidates.eligible, candidates.counts)
    memory.odd[0] = odd
    return line.key[line.winner[1]] > 0.0  # type: ignore[no-any-return]


@lean
def _assemble(policy: SparseSieve, problem: Problem, current: Round, memory: SparseMemory, stream: Stream) -> int:
    """Write the batch to play into ``memory.chosen``; its size."""
    line, chosen, rows, shared = memory.line, memory.chosen, memory.rows, memory.shared
    size = 0
    memory.calls[0] += 1
    memory.closely[0] = 0
    if line.key[line.winner[1]] > 0.0:
        while size < len(chosen):
            best = _pick(policy, problem, current, memory, stream)
            if size == 0:  # later picks also waste evaluations on overlap, which new bounds would not mend
                memory.wasted[0] += memory.closely[0] - 1
            if best < 0:
                break
            join_arm(problem.reward, problem.terms, memory.states, memory.estimates.q, best)
            chosen[size] = best
            size += 1
            place(line, best, np.inf, 0.0)
            rows.now[rows.at[best]] = -1.0
            first = look(problem, shared, memory.states, rows.at[best])
            if 0 <= first < KEEN:
                lower(rows, shared)
        clear_batch(problem.reward, problem.terms, memory.states, chosen[:size])
        for j in chosen[:size]:
            look(problem, shared, memory.states, rows.at[j])
    size = fill_in_order(line, chosen, size)
    chosen[size:] = -1
    return size


@kernel
def _look_ahead(confidence: Index, problem: Problem, current: Round, memory: SparseMemory, stream: Stream) -> None:
    """Bound what every arm can add for some rounds to come."""
    t, stride = current.t, memory.stride
    if memory.until[0] == 0:
        stride[0] = max(_SHORTEST, t // 2048)
    elif 2 * memory.wasted[0] > problem.n_arms:
        stride[0] = max(_SHORTEST, stride[0] // 2)
    elif 8 * memory.wasted[0] < problem.n_arms:
        stride[0] = min(max(_SHORTEST, t // 8), 2 * stride[0])
    memory.until[0] = t + stride[0]
    memory.wasted[0] = 0
    for j in range(problem.n_arms):
        if not memory.clipped[j]:  # scores that are 1 remain 1 while their arm is not played
            _bound(confidence, problem, current.tally, memory, j, stream)
    arrange(memory.rows, memory.shared)
    restore_all(memory.rows, current.candidates.eligible, current.candidates.counts)


@inlined
def _bound(confidence: Index, problem: Problem, tally: Tally, memory: SparseMemory, arm: int, stream: Stream) -> None:
    """What ``arm`` can add until ``memory.until``; to the last bit if all its scores are 1, else a little more."""
    hope, clipped, rows = memory.hope, memory.clipped, memory.rows
    later = Estimates(memory.estimates.mean, memory.estimates.deviation, hope)
    score_arm(confidence, problem, tally, later, ArmView(arm, tally.pulls[arm], memory.until[0], 1.0), stream)
    first, last = span(problem.terms.support, arm)
    least = 1.0
    for o in range(np.uint64(last - first)):
        least = min(least, hope[np.uint64(first) + o])
    clipped[arm] = least >= 1.0
    place = rows.at[arm]
    most = promise(problem, memory.shared, hope, arm, place)
    rows.bound[place] = memory.ceiling[arm] if least >= 1.0 else most


@lean
def _pick(policy: SparseSieve, problem: Problem, current: Round, memory: SparseMemory, stream: Stream) -> int:
    """The open arm with the largest gain, first in line among equals, or -1 if all gains are 0."""
    rows, tried, pulls = memory.rows, memory.tried, current.candidates.counts
    podium, best, most, n = rows.podium, -1, 0.0, 0
    while True:
        block = podium.winner[1]
        top = -podium.key[block]
        if top <= 0.0 or top < most or (top == most and podium.rank[block] > position(pulls, best)):
            break
        best, most = _visit(policy, problem, current, memory, stream, block, best, most)
        mark(rows, places(rows, block)[0])
        place(podium, block, np.inf, 0.0)
        tried[n] = block
        n += 1
    for at in range(n):
        place(podium, tried[at], -memory.peak[tried[at]], rows.lead[tried[at]])
    return best


@inlined
def _visit(
    policy: SparseSieve,
    problem: Problem,
    current: Round,
    memory: SparseMemory,
    stream: Stream,
    block: int,
    best: int,
    most: float,
) -> tuple[int, float]:
    """The better of the arms of a block and the best before it, with its gain."""
    arm, now, pulls = memory.rows.arm, memory.rows.now, current.candidates.counts
    first, last = places(memory.rows, block)
    peak = -1.0
    for p in range(first, last):
        j = arm[p]
        if now[p] > 0.0 and _wins(pulls, j, now[p], best, most):
            now[p] = min(now[p], limit(memory.shared, p))
            if _wins(pulls, j, now[p], best, most):
                g = _gain(policy.confidence, problem, current, memory, j, stream)
                now[p] = g * policy.slack
                if _wins(pulls, j, g, best, most):
                    best, most = j, g
        peak = max(peak, now[p])
    memory.peak[block] = peak
    return best, most


@inlined
def _wins(pulls: Floats, arm: int, g: float, best: int, most: float) -> bool:
    """Whether ``arm`` with a gain of ``g`` is chosen rather than ``best`` with ``most``."""
    if g != most:
        return g > most
    return best >= 0 and position(pulls, arm) < position(pulls, best)


@inlined
def _gain(confidence: Index, problem: Problem, current: Round, memory: SparseMemory, arm: int, stream: Stream) -> float:
    """The exact gain, from exact scores that are computed once a call."""
    estimates, stamp, closely = memory.estimates, memory.stamp, memory.closely
    if stamp[arm] != memory.calls[0]:
        stamp[arm] = memory.calls[0]
        closely[0] += 1
        glance = ArmView(arm, current.candidates.counts[arm], current.t, 1.0)
        score_arm(confidence, problem, current.tally, estimates, glance, stream)
    return gain(problem.reward, problem.terms, memory.states, estimates.q, arm)
