"""All subsets of k arms."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from superarm.actions.base import Actions, limit_count, new_batches, pins_are_eligible
from superarm.core.arrays import Bools, Floats, Ints, count, require_scores
from superarm.core.errors import InvalidArgument
from superarm.core.ops import op
from superarm.core.tally import View


class Subsets(Actions):
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
    matroid = True
    uniform = True

    def check(self) -> None:
        self.convert("k", count(self.k, "k", 1, "Subsets"))

    def capacity(self, n_arms: int) -> int:
        return self.k

    def start(self, eligible: Bools) -> Any:
        return np.zeros(len(eligible), int)

    def joinable(self, state: Any, eligible: Bools) -> Bools:
        return eligible & (state < self.k)[:, None]

    def join(self, state: Any, arm: Ints) -> Any:
        return state + (arm >= 0)

    def includes(self, action: Ints, n_arms: int) -> bool:
        return 0 < len(action) <= self.k

    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        return itertools.combinations(range(n_arms), self.k)

    def n_batches(self, n_arms: int) -> float:
        return limit_count(math.comb(n_arms, self.k))

    def validate(self, n_arms: int) -> None:
        if self.k > n_arms:
            raise InvalidArgument("k", f"{self.k} arms of {n_arms}", f"choose k <= n_arms = {n_arms}", "Subsets")

    def heaviest(self, worth: Floats, view: View) -> Ints:
        if not pins_are_eligible(view):
            return super().heaviest(worth, view)
        require_scores(worth)
        out = new_batches(self, view)
        op("top_k", worth.size * self.k)(worth, view.counts, view.eligible, view.pinned.shape[1], out)
        return out

    def sample(self, view: View, numbers: Floats) -> Ints:
        return self.heaviest(-numbers, view)
