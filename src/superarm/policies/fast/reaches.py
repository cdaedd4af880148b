"""How the sieves of linear policies find the arm with the largest gain, from bounds of all gains: [Minoux1978]_."""

from typing import Any, NamedTuple, Protocol

import numpy as np

from superarm._jit import inlined, kernel, lean, verb
from superarm.arrays import Bools, Floats
from superarm.candidates import Candidates
from superarm.oracles.gains import wins_tie
from superarm.problem import Problem
from superarm.rewards import gain
from superarm.support import Support

ARMS_PER_BLOCK = 64
"""How many neighbouring arms share one bound, so that all are skipped if none of them can win."""

_FIRST_BLOCKS = 2
"""With how many blocks of the largest bounds the search for an arm begins."""


class Reaches(NamedTuple):
    """Bounds of marginal gains while a batch is built.

    ``arm`` (n_arms,) bounds the gain of each arm, and is -1 for arms that may not join; ``block`` (n_blocks,) is the
    largest of each block of arms. ``exact`` (n_arms,) says that the parameters of the arm are exact.
    """

    arm: Floats
    block: Floats
    exact: Bools


class ArmScorer(Protocol):
    """Computes the optimistic parameters of one arm, as the plain policy does."""

    def score_arm(self, support: Support, arm: int) -> None:
        """Write the exact parameters of the entries of ``arm``, clipped to [0, 1]."""
        ...

    def bound_gain(self, problem: Problem, states: Floats, arm: int, reach: float) -> float:
        """A bound of the gain of ``arm`` that may be less than ``reach``, which was one for a smaller batch."""
        ...


score_arm = verb(ArmScorer.score_arm)
bound_gain = verb(ArmScorer.bound_gain)


@kernel
def no_reaches(n_arms: int) -> Reaches:
    """Bounds that are still to be written."""
    blocks = (n_arms + ARMS_PER_BLOCK - 1) // ARMS_PER_BLOCK
    return Reaches(np.zeros(n_arms), np.zeros(blocks), np.zeros(n_arms, np.bool_))


@lean
def pick_by_reach(
    problem: Problem, candidates: Candidates, reaches: Reaches, states: Floats, q: Floats, scorer: Any
) -> int:
    """The arm of the largest gain, ties to the fewest pulls, then the lowest number; -1 if no arm may join.

    ``q`` has the exact parameters of the arms that are ``exact``; those of the others are computed where needed.
    """
    best, most = -1, -1.0
    for n in range(-_FIRST_BLOCKS, len(reaches.block)):
        block = _largest(reaches.block) if n < 0 else n
        if reaches.block[block] >= most:
            highest = -1.0
            for j in range(block * ARMS_PER_BLOCK, min((block + 1) * ARMS_PER_BLOCK, problem.n_arms)):
                if _leads(candidates, j, reaches.arm[j], best, most) and not reaches.exact[j]:
                    reaches.arm[j] = bound_gain(scorer, problem, states, j, reaches.arm[j])
                if _leads(candidates, j, reaches.arm[j], best, most):
                    if not reaches.exact[j]:
                        score_arm(scorer, problem.terms.support, j)
                        reaches.exact[j] = True
                    reaches.arm[j] = gain(problem.reward, problem.terms, states, q, j)
                    if _leads(candidates, j, reaches.arm[j], best, most):
                        best, most = j, reaches.arm[j]
                highest = max(highest, reaches.arm[j])
            reaches.block[block] = highest
    return best


@inlined
def _largest(numbers: Floats) -> int:
    """Where the largest number is, the first of them."""
    at = 0
    for n in range(len(numbers)):
        if numbers[n] > numbers[at]:
            at = n
    return at


@lean
def bound_blocks(reaches: Reaches) -> None:
    """Write the largest bound of each block of arms, by four chains of comparisons that do not wait for one another."""
    arm, n_arms = reaches.arm, len(reaches.arm)
    for block in range(len(reaches.block)):
        first, last = block * ARMS_PER_BLOCK, min((block + 1) * ARMS_PER_BLOCK, n_arms)
        a, b, c, d = -1.0, -1.0, -1.0, -1.0
        for j in range(first, last - 3, 4):
            a, b, c, d = max(a, arm[j]), max(b, arm[j + 1]), max(c, arm[j + 2]), max(d, arm[j + 3])
        for j in range(last - (last - first) % 4, last):
            a = max(a, arm[j])
        reaches.block[block] = max(a, b, c, d)


@inlined
def _leads(candidates: Candidates, arm: int, reach: float, best: int, most: float) -> bool:
    """Whether an arm of that gain precedes the best arm so far."""
    return reach > most or (reach == most and best >= 0 and wins_tie(candidates, arm, best))
