import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.actions.assignment import solve_assignment
from superarm.actions.base import fill, heaviest
from superarm.actions.enumeration import enumerate_maximal, sum_counts
from superarm.actions.graph import check_one_edge_per_arm, parse_edges, parse_n_nodes
from superarm.actions.weights import total_weight
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument


class _Bipartite(NamedTuple):
    left: int
    right: int
    ends: Ints
    k: int


@component
class Matching(_Bipartite):
    """Pairs of left and right nodes, each node in at most one pair: offers to customers, workers to tasks.

    The intersection of two partition matroids, hence a 2-system: greedy has alpha = 1/3 for monotone submodular
    rewards, [FisherNemhauserWolsey1978]_. Finding the heaviest matching is an assignment problem, [Kuhn1955]_.

    Parameters
    ----------
    left, right
        How many nodes there are on either side.
    edges
        One pair (l, r) with l < ``left`` and r < ``right`` per arm, no pair twice.

    Examples
    --------
    >>> list(Matching(2, 2, [(0, 0), (0, 1), (1, 0)]).batches(3))
    [(0,), (1, 2)]
    """

    __slots__ = ()

    matroid = False
    tractable = True
    exchange = 2.0

    def __new__(cls, left: int, right: int, edges: Iterable[tuple[int, int]]) -> "Matching":
        n, m = parse_n_nodes(left, "left", "Matching"), parse_n_nodes(right, "right", "Matching")
        ends = parse_edges(edges, n, m, "Matching")
        if np.unique(ends, axis=0).shape[0] < ends.shape[0]:
            raise InvalidArgument("edges", "the same edge appears twice", "give each pair once", "Matching")
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_bipartite_matching

        graph = csr_array((np.ones(len(ends), np.int8), (ends[:, 0], ends[:, 1])), shape=(n, m))
        return super().__new__(cls, n, m, ends, int((maximum_bipartite_matching(graph) >= 0).sum()))

    def capacity(self, n_arms: int) -> int:
        return self.k

    def admits(self, chosen: Ints, size: int, arm: int) -> bool:
        for n in range(size):
            if self.ends[chosen[n], 0] == self.ends[arm, 0] or self.ends[chosen[n], 1] == self.ends[arm, 1]:
                return False
        return True

    def heaviest(self, weights: Floats, candidates: Candidates) -> Ints:
        flip = 1 if self.left > self.right else 0
        shape = (min(self.left, self.right), max(self.left, self.right))
        gain, pulls, arm_of = np.zeros(shape), np.zeros(shape), np.full(shape, -1)
        for j in range(len(self.ends)):
            if candidates.eligible[j]:
                row, column = self.ends[j, flip], self.ends[j, 1 - flip]
                gain[row, column], pulls[row, column], arm_of[row, column] = weights[j], candidates.counts[j], j
        column_of = solve_assignment(gain, pulls)
        chosen = np.empty(self.k, np.int64)
        size = 0
        for row in range(len(column_of)):
            j = arm_of[row, column_of[row]]
            if j >= 0 and weights[j] > 0.0:  # arms of weight 0 join below, those with the fewest pulls first
                chosen[size] = j
                size += 1
        return chosen[: fill(self, candidates, chosen, size)]

    def ceiling(self, weights: Floats, candidates: Candidates) -> float:
        return total_weight(weights, heaviest(self, weights, candidates))

    @interpreted
    def includes(self, action: Ints) -> bool:
        edges = self.ends[np.asarray(action, np.int64)]
        return len(edges) > 0 and all(np.unique(edges[:, side]).size == len(edges) for side in (0, 1))

    @interpreted
    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        return enumerate_maximal(self, n_arms)

    @interpreted
    def n_batches(self, n_arms: int) -> float:
        sides = (np.bincount(self.ends[:, side]) for side in (0, 1))
        return sum_counts([min(math.prod(1 + int(n) for n in degrees) for degrees in sides)])

    @interpreted
    def validate(self, n_arms: int) -> None:
        check_one_edge_per_arm(self.ends, n_arms, "Matching")
