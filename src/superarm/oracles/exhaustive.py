from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.actions import Explicit, Ranks, remnant
from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.noise import Noise
from superarm.oracles.base import Guarantee
from superarm.problem import Problem
from superarm.rewards import value

MOST = 2_000_000
"""More batches than this are not enumerated."""


@component
class Exhaustive(NamedTuple):
    """Try every batch: exact, for explicit action sets and small problems.

    Where arms are excluded, what is left of each batch is tried. Equal values go to the batch whose least-pulled arm
    has the fewest pulls, then to the first. The plain definition of Oracle(q) in [MerlisMannor2019]_ (section
    Algorithm) with alpha = beta = 1.
    """

    table: Ints = np.zeros((0, 0), np.int64)
    sizes: Ints = np.zeros(0, np.int64)

    def maximize(self, problem: Problem, q: Floats, ranks: Ranks, noise: Noise) -> Ints:
        best, most, fewest = np.empty(0, np.int64), -np.inf, np.inf
        for row in range(len(self.sizes)):
            action = remnant(problem.actions, self.table[row, : self.sizes[row]], ranks)
            if len(action) == 0:
                continue
            r = value(problem.reward, problem.terms, q, action)
            pulls = np.inf
            for j in action:
                pulls = min(pulls, ranks.pulls[j])
            if r > most or (r == most and pulls < fewest):
                best, most, fewest = action, r, pulls
        return best

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(1.0, 1.0)

    @interpreted
    def fit(self, problem: Problem) -> "Exhaustive":
        if isinstance(problem.actions, Explicit):
            return Exhaustive(problem.actions.table, problem.actions.sizes)
        count = problem.actions.n_batches(problem.n_arms)
        if count > MOST:
            raise InvalidArgument("oracle", f"{count:.3g} batches to try", f"at most {MOST} are; take Greedy()")
        listed = Explicit(problem.actions.batches(problem.n_arms))
        return Exhaustive(listed.table, listed.sizes)
