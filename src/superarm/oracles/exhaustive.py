from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.actions import Batches, Explicit, best_batch, list_batches
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.oracles.base import Guarantee
from superarm.problem import Problem
from superarm.rewards import Reward, Terms, value
from superarm.streams import Stream

MAX_LISTED_BATCHES = 2_000_000
"""The largest number of batches that ``Exhaustive`` lists."""


@component
class RewardAt(NamedTuple):
    """The reward of a batch at the parameters ``q`` (n_entries,)."""

    reward: Reward
    terms: Terms
    q: Floats

    def value_of(self, action: Ints) -> float:
        return value(self.reward, self.terms, self.q, action)


@component
class Exhaustive(NamedTuple):
    """Evaluate every batch: exact, for explicit action sets and small problems.

    If arms are excluded, the eligible part of each batch is evaluated, unless another arm could join it. Equal values
    go to the batch whose least-pulled arm has the fewest pulls, then to the first. The plain definition of Oracle(q) in
    [MerlisMannor2019]_ (section Algorithm) with alpha = beta = 1.
    """

    table: Ints = np.zeros((0, 0), np.int64)
    sizes: Ints = np.zeros(0, np.int64)

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        worth = RewardAt(problem.reward, problem.terms, q)
        return best_batch(worth, problem.actions, Batches(self.table, self.sizes), candidates)

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(1.0, 1.0)

    @interpreted
    def fit(self, problem: Problem) -> "Exhaustive":
        count = problem.actions.n_batches(problem.n_arms)
        if not isinstance(problem.actions, Explicit) and count > MAX_LISTED_BATCHES:
            raise InvalidArgument(
                "oracle", f"{count:.3g} batches to evaluate", f"at most {MAX_LISTED_BATCHES} can be; take Greedy()"
            )
        return Exhaustive(*list_batches(problem.actions, problem.n_arms))
