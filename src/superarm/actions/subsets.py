import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

from superarm._jit import component, for_kernels, interpreted
from superarm.actions.base import greedy_heaviest
from superarm.actions.enumeration import sum_counts
from superarm.actions.weights import heaviest_arms
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument


@component
class Subsets(NamedTuple):
    """Any ``k`` arms: the uniform matroid.

    Parameters
    ----------
    k
        How many arms a batch has, at most.

    Examples
    --------
    >>> list(Subsets(2).batches(3))
    [(0, 1), (0, 2), (1, 2)]
    """

    k: int

    def _check(self) -> None:
        if self.k < 1:
            raise InvalidArgument("k", f"{self.k} is below 1", "a batch has at least one arm", "Subsets")

    @property
    def matroid(self) -> bool:
        return True

    @property
    def uniform(self) -> bool:
        return True

    @for_kernels
    def capacity(self, n_arms: int) -> int:
        return self.k

    def admits(self, chosen: Ints, size: int, arm: int) -> bool:
        return size < self.k

    def heaviest(self, weights: Floats, candidates: Candidates) -> Ints:
        # Inserting into a sorted list of k arms takes at most k moves: while k² is below n_arms, that is cheaper than
        # sorting all arms.
        if self.k * self.k > len(weights):
            return greedy_heaviest(self, weights, candidates)
        return heaviest_arms(self.k, weights, candidates)

    @interpreted
    def includes(self, action: Ints) -> bool:
        return 0 < len(action) <= self.k

    @interpreted
    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        return itertools.combinations(range(n_arms), self.k)

    @interpreted
    def n_batches(self, n_arms: int) -> float:
        return sum_counts([math.comb(n_arms, self.k)])

    @interpreted
    def validate(self, n_arms: int) -> None:
        if self.k > n_arms:
            raise InvalidArgument("k", f"{self.k} arms of {n_arms}", f"choose k <= n_arms = {n_arms}", "Subsets")
