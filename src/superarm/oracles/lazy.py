from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.actions import capacity, joins, pins
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.oracles.base import Guarantee
from superarm.oracles.gains import batch_states, before
from superarm.oracles.greedy import greedy_guarantee
from superarm.parameters import positive
from superarm.problem import Problem
from superarm.rewards import gain, join_arm
from superarm.rewards.traits import gains_shrink
from superarm.streams import Stream

_LEAST = -1e300
"""Below every gain, and above the limit of an arm that may not join."""

_BLOCK = 64
"""Neighbouring arms that are passed over at once if none of them can win."""

_SEEDS = 2
"""Blocks that a pick begins with: those that promise most."""


class GainLimits(NamedTuple):
    """What arms can add: ``arm`` (n_arms,), minus infinity if it may not join; the largest of each ``block``.

    ``lead`` (n_blocks,) is the arm of a block that stands before its others: who wins if all are equal.
    """

    arm: Floats
    block: Floats
    lead: Ints


@component
class LazyGreedy(NamedTuple):
    """Greedy that re-evaluates an arm only when its last gain could still win: the same batches, ties included.

    Needs a submodular reward. Implements [Minoux1978]_. The gain of an arm when it was last evaluated, times ``slack``,
    is an upper bound of what it adds now. The slack covers rounding; ``fit`` drops it if the reward ``gains_shrink``.
    Limits stand in blocks of neighbours under the largest of each, not in a heap: where all arms are alike and few can
    be passed over, a pass over blocks costs no more than one over arms. An arm that may not join is passed over for
    good: it may never again.
    """

    slack: float = 1.0 + 1e-9

    def _check(self) -> None:
        positive(self, "slack")

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
        size = pins(problem.actions, candidates, chosen)
        if size < 0:
            return chosen[:0]
        states = batch_states(problem, q, chosen[:size])
        blocks = np.full((problem.n_arms + _BLOCK - 1) // _BLOCK, np.inf)
        limits = GainLimits(np.where(candidates.eligible, np.inf, -np.inf), blocks, _leads(candidates))
        for j in chosen[:size]:
            limits.arm[j] = -np.inf
        while size < len(chosen):
            best = -1
            most = _LEAST
            for n in range(-_SEEDS, len(blocks)):
                block = int(np.argmax(blocks)) if n < 0 else n  # good arms first, so that few others are evaluated
                if blocks[block] > most or (blocks[block] == most and before(candidates, limits.lead[block], best)):
                    best, most = _search(
                        problem, states, q, candidates, chosen, size, limits, block, self.slack, best, most
                    )
            if best < 0:
                break
            join_arm(problem.reward, problem.terms, states, q, best)
            chosen[size] = best
            limits.arm[best] = -np.inf
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
def _leads(candidates: Candidates) -> Ints:
    """The arm of each block that stands before its others."""
    lead = np.arange(0, len(candidates.counts), _BLOCK)
    for j in range(len(candidates.counts)):
        if before(candidates, j, lead[j // _BLOCK]):
            lead[j // _BLOCK] = j
    return lead


@kernel
def _search(
    problem: Problem,
    states: Floats,
    q: Floats,
    candidates: Candidates,
    chosen: Ints,
    size: int,
    limits: GainLimits,
    block: int,
    slack: float,
    best: int,
    most: float,
) -> tuple[int, float]:
    """The best arm so far and its gain, after a look at one block."""
    arm = limits.arm
    highest = -np.inf
    for j in range(block * _BLOCK, min((block + 1) * _BLOCK, problem.n_arms)):
        if arm[j] > most or (arm[j] == most and before(candidates, j, best)):
            g = gain(problem.reward, problem.terms, states, q, j)
            arm[j] = max(0.0, g) * slack
            if g > most or (g == most and before(candidates, j, best)):
                if joins(problem.actions, candidates, chosen, size, j):
                    best, most = j, g
                else:
                    arm[j] = -np.inf
        highest = max(highest, arm[j])
    limits.block[block] = highest
    return best, most
