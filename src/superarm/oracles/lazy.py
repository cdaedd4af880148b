from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.actions import capacity, joins, pins
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.oracles.base import Guarantee
from superarm.oracles.gains import batch_states, wins_tie
from superarm.oracles.greedy import greedy_guarantee
from superarm.parameters import positive
from superarm.problem import Problem
from superarm.rewards import gain, join_arm
from superarm.rewards.traits import gains_shrink
from superarm.streams import Stream

_BELOW_EVERY_GAIN = -1e300
"""Below every gain, and above minus infinity, the limit of an arm that may not join."""

BLOCK_SIZE = 64
"""How many neighbouring arms share one limit, so that all are skipped if none of them can win."""

_FIRST_BLOCKS = 2
"""With how many blocks of the largest limits the search for an arm begins."""


class GainLimits(NamedTuple):
    """Upper bounds of marginal gains: of each ``arm`` (n_arms,), and the largest of each ``block`` (n_blocks,).

    The bound of an arm that may not join is minus infinity. ``lead`` (n_blocks,) is the arm of each block that wins
    ties against its others. A gain times ``slack`` bounds the later gains of its arm.
    """

    arm: Floats
    block: Floats
    lead: Ints
    slack: float


class PartialBatch(NamedTuple):
    """A batch under construction: the first ``size`` of ``chosen`` (k,), and the items' ``states`` (n_items,)."""

    chosen: Ints
    size: int
    states: Floats


@component
class LazyGreedy(NamedTuple):
    """Greedy that re-evaluates an arm only if its last gain could still win: the same batches, ties included.

    Needs a submodular reward. Implements [Minoux1978]_. The gain of an arm when it was last evaluated, times ``slack``,
    is an upper bound of its gain now. The slack covers rounding; ``fit`` sets it to 1 if the reward ``gains_shrink``.
    Bounds are kept in blocks of neighbouring arms with the largest of each block, not in a heap: if all arms are alike
    and few can be skipped, a pass over blocks costs no more than one over arms. An arm that may not join is skipped
    from then on, as it may not join later either.

    Parameters
    ----------
    slack
        The factor by which a gain may exceed an earlier one by rounding, at least 1.
    """

    slack: float = 1.0 + 1e-9

    @property
    def greedy(self) -> bool:
        return True

    def _check(self) -> None:
        positive(self, "slack")

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
        size = pins(problem.actions, candidates, chosen)
        if size < 0:
            return chosen[:0]
        states = batch_states(problem, q, chosen[:size])
        limits = new_limits(candidates, chosen[:size], self.slack)
        while size < len(chosen):
            if not add_best_arm(problem, q, candidates, PartialBatch(chosen, size, states), limits):
                break
            size += 1
        return chosen[:size]

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return greedy_guarantee(problem)

    @interpreted
    def fit(self, problem: Problem) -> "LazyGreedy":
        if not problem.reward.submodular:
            raise InvalidArgument("oracle", "LazyGreedy needs a submodular reward", "take Greedy() or Exhaustive()")
        return self._replace(slack=1.0) if gains_shrink(problem.reward) else self


@kernel
def new_limits(candidates: Candidates, chosen: Ints, slack: float) -> GainLimits:
    """Infinite bounds of the gains of all arms that may join, beside those of ``chosen``."""
    arm = np.where(candidates.eligible, np.inf, -np.inf)
    for j in chosen:
        arm[j] = -np.inf
    return GainLimits(arm, np.full((len(arm) + BLOCK_SIZE - 1) // BLOCK_SIZE, np.inf), _lead_arms(candidates), slack)


@kernel
def add_best_arm(problem: Problem, q: Floats, candidates: Candidates, batch: PartialBatch, limits: GainLimits) -> bool:
    """Let the arm with the largest gain join, as ``batch.chosen[batch.size]``; False if no arm may join."""
    best = find_best_arm(problem, q, candidates, batch, limits)
    if best < 0:
        return False
    join_arm(problem.reward, problem.terms, batch.states, q, best)
    batch.chosen[batch.size] = best
    limits.arm[best] = -np.inf
    return True


@kernel
def find_best_arm(problem: Problem, q: Floats, candidates: Candidates, batch: PartialBatch, limits: GainLimits) -> int:
    """The arm with the largest gain among those that may join, -1 if there is none; lowers bounds of arms evaluated."""
    best, most, blocks = -1, _BELOW_EVERY_GAIN, limits.block
    for n in range(-_FIRST_BLOCKS, len(blocks)):
        block = int(np.argmax(blocks)) if n < 0 else n  # promising blocks first, so that few other arms are evaluated
        if blocks[block] > most or (blocks[block] == most and wins_tie(candidates, limits.lead[block], best)):
            best, most = _search_block(problem, q, candidates, batch, limits, block, (best, most))
    return best


@kernel
def _lead_arms(candidates: Candidates) -> Ints:
    """The arm of each block that wins ties against its others."""
    lead = np.arange(0, len(candidates.counts), BLOCK_SIZE)
    for j in range(len(candidates.counts)):
        if wins_tie(candidates, j, lead[j // BLOCK_SIZE]):
            lead[j // BLOCK_SIZE] = j
    return lead


@kernel
def _search_block(
    problem: Problem, q: Floats, candidates: Candidates, batch: PartialBatch, limits: GainLimits, block: int,
    leader: tuple[int, float],
) -> tuple[int, float]:  # fmt: skip
    """Search one block and return the better of its arms and the ``leader`` before it, each an arm and its gain."""
    arm, (best, most) = limits.arm, leader
    highest = -np.inf
    for j in range(block * BLOCK_SIZE, min((block + 1) * BLOCK_SIZE, problem.n_arms)):
        if arm[j] > most or (arm[j] == most and wins_tie(candidates, j, best)):
            g = gain(problem.reward, problem.terms, batch.states, q, j)
            arm[j] = max(0.0, g) * limits.slack
            if g > most or (g == most and wins_tie(candidates, j, best)):
                if joins(problem.actions, candidates, batch.chosen, batch.size, j):
                    best, most = j, g
                else:
                    arm[j] = -np.inf
        highest = max(highest, arm[j])
    limits.block[block] = highest
    return best, most
