import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.actions.base import heaviest, total_weight
from superarm.actions.enumeration import tally_up
from superarm.actions.graph import (
    components,
    ends_of,
    forests,
    nodes_of,
    one_edge_per_arm,
    stays_acyclic,
    without_loops,
)
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates


class _Graph(NamedTuple):
    n_nodes: int
    ends: Ints
    k: int


@component
class GraphicMatroid(_Graph):
    """Any edges of a graph that close no circle: its forests. Arms are edges, in the order given.

    ``edges`` are pairs of nodes 0 to n_nodes - 1; two edges may join the same nodes. A matroid, whose greedy
    algorithm is [Kruskal1956]_'s. ``SpanningTrees`` plays complete trees only.

    >>> list(GraphicMatroid(3, [(0, 1), (1, 2), (0, 2)]).batches(3))
    [(0, 1), (0, 2), (1, 2)]
    """

    __slots__ = ()

    def __new__(cls, n_nodes: int, edges: Iterable[tuple[int, int]]) -> "GraphicMatroid":
        nodes = nodes_of(n_nodes, "n_nodes", "GraphicMatroid")
        ends = without_loops(ends_of(edges, nodes, nodes, "GraphicMatroid"), "GraphicMatroid")
        return super().__new__(cls, nodes, ends, nodes - components(ends, nodes))

    @property
    def matroid(self) -> bool:
        return True

    def capacity(self, n_arms: int) -> int:
        return self.k

    def admits(self, chosen: Ints, size: int, arm: int) -> bool:
        return stays_acyclic(self.ends, self.n_nodes, chosen, size, arm)

    def ceiling(self, weights: Floats, candidates: Candidates) -> float:
        return total_weight(weights, heaviest(self, weights, candidates))

    @interpreted
    def includes(self, action: Ints) -> bool:
        edges = self.ends[np.asarray(action, np.int64)]
        return len(edges) > 0 and self.n_nodes - components(edges, self.n_nodes) == len(edges)

    @interpreted
    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        return forests(self.ends, self.n_nodes, self.k)

    @interpreted
    def n_batches(self, n_arms: int) -> float:
        return tally_up([math.comb(len(self.ends), self.k)])

    @interpreted
    def validate(self, n_arms: int) -> None:
        one_edge_per_arm(self.ends, n_arms, "GraphicMatroid")
