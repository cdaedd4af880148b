from typing import NamedTuple

import numpy as np

from superarm._jit import component, for_kernels, inlined, interpreted, kernel, lean
from superarm.actions import capacity
from superarm.arrays import Bools, Floats, Ints
from superarm.indices import Index
from superarm.intake import Intake
from superarm.oracles import Guarantee, Oracle
from superarm.policies.base import Round
from superarm.policies.fast.arm_blocks import (
    LEADING_ITEMS,
    ArmBlocks,
    mark_played,
    new_blocks,
    raise_limits,
    restore_all,
    restore_changed,
    sort_into_blocks,
    tighten_bounds,
)
from superarm.policies.fast.popular_items import (
    SLACK,
    PopularItems,
    find_popular_items,
    set_parameters,
    update_slopes,
)
from superarm.policies.fast.sieving import align_tournament, decides_alike, is_overridden, largest_gains
from superarm.policies.fast.sparse_picking import pick_sparse_arm
from superarm.policies.fast.tournament import Tournament, fill_in_order, new_tournament, update_key
from superarm.policies.scoring import ArmView, Estimates, estimate_arms, score_arm
from superarm.problem import Problem
from superarm.rewards import clear_batch, initial_states, join_arm
from superarm.rewards.traits import gains_shrink
from superarm.streams import Stream
from superarm.support import Sparse, span
from superarm.tally import Feedback, Tally, estimate, record

_MIN_ARMS = 1_000
"""The fewest arms for which keeping bounds pays."""

_MAX_UNSORTED_SHARE = 1.0 / 16.0
"""Up to this share of arms with new bounds, arms stay in their blocks: sorting takes longer than making the bounds.

Arms whose scores are all 1, as most are in the first rounds, have no new bounds.
"""

_MIN_STRIDE = 16
"""The fewest rounds that bounds are made for."""


class SparseMemory(NamedTuple):
    """What a sparse sieve keeps between rounds; all of it follows from the tally.

    ``optimistic`` (n_entries,) is a buffer for the scores of round ``until`` (1,); ``rows`` bounds what arms add with
    these scores, and ``shared`` holds the popular items. ``ceiling`` (n_arms,) is what an arm adds to the empty batch
    if all its scores are 1, and ``clipped`` (n_arms,) says that they are. ``tournament`` orders the arms by pulls.
    ``stamp`` (n_arms,) is the call, counted by ``calls`` (1,), in which an arm's exact scores were computed,
    ``closely`` (1,) how many were in this call. ``states`` (n_items,) are the item states of the batch under
    construction, ``chosen`` (k,), and those of the empty batch between rounds. ``peak`` (n_blocks,) is a buffer for the
    bounds of the blocks that a pick has visited. ``stride`` (1,) is for how many rounds bounds are made, ``wasted``
    (1,) how many evaluations they have cost at first picks. ``overridden`` (1,) says that the last call used counts or
    eligibility other than the tally's.
    """

    estimates: Estimates
    optimistic: Floats
    shared: PopularItems
    rows: ArmBlocks
    ceiling: Floats
    clipped: Bools
    tournament: Tournament
    stamp: Ints
    states: Floats
    chosen: Ints
    peak: Floats
    closely: Ints
    calls: Ints
    until: Ints
    stride: Ints
    wasted: Ints
    overridden: Bools


@component
class SparseSieve(NamedTuple):
    r"""An index policy with greedy picks that evaluates only arms that could win, for sparse supports.

    What an arm adds to the empty batch at a later round :math:`t'` bounds what it adds to any batch until then. Similar
    arms are in blocks, whose bounds follow the current slopes of the most popular items (``arm_blocks``); a pick visits
    blocks from the top of their order while their bound reaches the best exact gain, and no work depends on the number
    of items. Bounds are made anew when :math:`t'` has passed, or when evaluations beyond the batch have cost as much as
    making them (as in the ski-rental problem); :math:`t'` moves away in the first case, unless a quarter of that was
    spent, and closer in the second. [MerlisMannor2019]_ (Algorithm 1) with an oracle after [Minoux1978]_ whose bounds
    are carried over rounds. A gain times ``slack`` bounds that of a later pick; ``fit`` sets it to 1 if
    ``gains_shrink`` holds for the reward.
    """

    confidence: Index
    oracle: Oracle
    intake: Intake
    slack: float = SLACK

    @for_kernels
    def prepare(self, problem: Problem, tally: Tally) -> SparseMemory:
        one, rows = np.zeros(1, np.int64), new_blocks(problem.n_arms)
        return SparseMemory(
            estimate_arms(problem, tally),
            np.ones(len(tally.total)),
            find_popular_items(problem),
            rows,
            largest_gains(problem, len(tally.total)),
            np.zeros(problem.n_arms, np.bool_),
            new_tournament(tally.pulls, np.zeros(problem.n_arms)),
            np.zeros(problem.n_arms, np.int64),
            initial_states(problem.reward, problem.terms),
            np.full(capacity(problem.actions, problem.n_arms), -1),
            np.zeros(len(rows.rest)),
            one.copy(),
            one.copy(),
            one.copy(),
            one + _MIN_STRIDE,
            one.copy(),
            np.zeros(1, np.bool_),
        )

    def choose(self, problem: Problem, current: Round, memory: SparseMemory, stream: Stream) -> Ints:
        if _synchronise(memory, current) and (current.t > memory.until[0] or 2 * memory.wasted[0] > problem.n_arms):
            _renew_bounds(self.confidence, problem, current, memory, stream)
        return memory.chosen[: _choose_batch(self, problem, current, memory, stream)].copy()

    @lean
    def learn(
        self, problem: Problem, tally: Tally, memory: SparseMemory, feedback: Feedback, stream: Stream, sign: float
    ) -> None:
        record(tally, problem.terms.support, feedback, self.intake, stream, sign)
        _update_arms(self.confidence, problem, tally, memory, feedback.action, stream)

    @interpreted
    def fit(self, problem: Problem) -> "SparseSieve":
        return self._replace(slack=1.0) if gains_shrink(problem.reward) else self

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)


def suits_sparse_sieve(confidence: Index, oracle: Oracle, problem: Problem) -> bool:
    """Whether a sparse sieve decides as the plain policy does, and pays."""
    many = isinstance(problem.support, Sparse) and problem.n_arms >= _MIN_ARMS
    return many and decides_alike(confidence, oracle, problem)


@lean
def _update_arms(
    confidence: Index, problem: Problem, tally: Tally, memory: SparseMemory, action: Ints, stream: Stream
) -> None:
    """Bring estimates and bounds of the arms of ``action`` up to date."""
    for j in action:
        estimate(tally, problem.terms.support, j, memory.estimates.mean, memory.estimates.deviation)
        update_key(memory.tournament, j, tally.pulls[j], 0.0)
        if memory.until[0] > 0:
            _bound(confidence, problem, tally, memory, j, stream)
            raise_limits(memory.rows, memory.shared, memory.rows.at[j])
            mark_played(memory.rows, memory.rows.at[j])


@lean
def _synchronise(memory: SparseMemory, current: Round) -> bool:
    """Synchronise the tournament with ``current.candidates``; return whether every arm in it has been pulled."""
    candidates, tournament, overridden = current.candidates, memory.tournament, is_overridden(current)
    every_arm = overridden or memory.overridden[0]
    align_tournament(tournament, candidates, memory.chosen, every_arm)
    if every_arm:
        restore_all(memory.rows, candidates.eligible, candidates.counts)
    else:
        restore_changed(memory.rows, candidates.eligible, candidates.counts)
    memory.overridden[0] = overridden
    return tournament.key[tournament.winner[1]] > 0.0  # type: ignore[no-any-return]


@lean
def _choose_batch(policy: SparseSieve, problem: Problem, current: Round, memory: SparseMemory, stream: Stream) -> int:
    """Write the batch to play into ``memory.chosen``; its size."""
    tournament, chosen, rows, shared = memory.tournament, memory.chosen, memory.rows, memory.shared
    size = 0
    memory.calls[0] += 1
    memory.closely[0] = 0
    if tournament.key[tournament.winner[1]] > 0.0:
        while size < len(chosen):
            best = pick_sparse_arm(policy, problem, current, memory, stream)
            if size == 0:  # later picks also waste evaluations on overlap, which new bounds would not mend
                memory.wasted[0] += memory.closely[0] - 1
            if best < 0:
                break
            join_arm(problem.reward, problem.terms, memory.states, memory.estimates.q, best)
            chosen[size] = best
            size += 1
            update_key(tournament, best, np.inf, 0.0)
            rows.now[rows.at[best]] = -1.0
            first = update_slopes(problem, shared, memory.states, rows.at[best])
            if 0 <= first < LEADING_ITEMS:
                tighten_bounds(rows, shared)
        clear_batch(problem.reward, problem.terms, memory.states, chosen[:size])
        for j in chosen[:size]:
            update_slopes(problem, shared, memory.states, rows.at[j])
    size = fill_in_order(tournament, chosen, size)
    chosen[size:] = -1
    return size


@kernel
def _renew_bounds(confidence: Index, problem: Problem, current: Round, memory: SparseMemory, stream: Stream) -> None:
    """Bound what every arm can add for some rounds to come."""
    t, stride, begins = current.t, memory.stride, memory.until[0] == 0
    if begins:
        stride[0] = max(_MIN_STRIDE, t // 2048)
    elif 2 * memory.wasted[0] > problem.n_arms:
        stride[0] = max(_MIN_STRIDE, stride[0] // 2)
    elif 8 * memory.wasted[0] < problem.n_arms:
        stride[0] = min(max(_MIN_STRIDE, t // 8), 2 * stride[0])
    memory.until[0] = t + stride[0]
    memory.wasted[0] = 0
    sorts = begins or problem.n_arms - memory.clipped.sum() > _MAX_UNSORTED_SHARE * problem.n_arms
    for j in range(problem.n_arms):
        if not memory.clipped[j]:  # scores that are 1 remain 1 while their arm is not played
            _bound(confidence, problem, current.tally, memory, j, stream)
            if not sorts:
                raise_limits(memory.rows, memory.shared, memory.rows.at[j])
    if sorts:
        sort_into_blocks(memory.rows, memory.shared)
    restore_all(memory.rows, current.candidates.eligible, current.candidates.counts)


@inlined
def _bound(confidence: Index, problem: Problem, tally: Tally, memory: SparseMemory, arm: int, stream: Stream) -> None:
    """What ``arm`` can add until ``memory.until``; to the last bit if all its scores are 1, else a little more."""
    optimistic, clipped, rows = memory.optimistic, memory.clipped, memory.rows
    later = Estimates(memory.estimates.mean, memory.estimates.deviation, optimistic)
    score_arm(confidence, problem, tally, later, ArmView(arm, tally.pulls[arm], memory.until[0], 1.0), stream)
    first, last = span(problem.terms.support, arm)
    least = 1.0
    for o in range(np.uint64(last - first)):
        least = min(least, optimistic[np.uint64(first) + o])
    clipped[arm] = least >= 1.0
    position = rows.at[arm]
    most = set_parameters(problem, memory.shared, optimistic, arm, position)
    rows.bound[position] = memory.ceiling[arm] if least >= 1.0 else most
