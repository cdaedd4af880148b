import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.actions.base import heaviest
from superarm.actions.enumeration import sum_counts
from superarm.actions.graph import (
    check_one_edge_per_arm,
    count_components,
    enumerate_forests,
    parse_edges,
    parse_n_nodes,
    reject_loops,
    stays_acyclic,
)
from superarm.actions.weights import total_weight
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates


class _ForestFields(NamedTuple):
    n_nodes: int
    ends: Ints
    k: int


@component
class GraphicMatroid(_ForestFields):
    """The forests of a graph: any edges that form no cycle. Arms are edges, in the order given.

    A matroid, whose greedy algorithm is that of [Kruskal1956]_. ``SpanningTrees`` plays complete trees only.

    Parameters
    ----------
    n_nodes
        How many nodes the graph has.
    edges
        One pair of nodes, 0 to n_nodes - 1, per arm; two edges may join the same nodes.

    Examples
    --------
    >>> list(GraphicMatroid(3, [(0, 1), (1, 2), (0, 2)]).batches(3))
    [(0, 1), (0, 2), (1, 2)]
    """

    __slots__ = ()

    matroid = True

    def __new__(cls, n_nodes: int, edges: Iterable[tuple[int, int]]) -> "GraphicMatroid":
        nodes = parse_n_nodes(n_nodes, "n_nodes", "GraphicMatroid")
        ends = reject_loops(parse_edges(edges, nodes, nodes, "GraphicMatroid"), "GraphicMatroid")
        return super().__new__(cls, nodes, ends, nodes - count_components(ends, nodes))

    def capacity(self, n_arms: int) -> int:
        return self.k

    def admits(self, chosen: Ints, size: int, arm: int) -> bool:
        return stays_acyclic(self.ends, self.n_nodes, chosen, size, arm)

    def ceiling(self, weights: Floats, candidates: Candidates) -> float:
        return total_weight(weights, heaviest(self, weights, candidates))

    @interpreted
    def includes(self, action: Ints) -> bool:
        edges = self.ends[np.asarray(action, np.int64)]
        return len(edges) > 0 and self.n_nodes - count_components(edges, self.n_nodes) == len(edges)

    @interpreted
    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        return enumerate_forests(self.ends, self.n_nodes, self.k)

    @interpreted
    def n_batches(self, n_arms: int) -> float:
        return sum_counts([math.comb(len(self.ends), self.k)])

    @interpreted
    def validate(self, n_arms: int) -> None:
        check_one_edge_per_arm(self.ends, n_arms, "GraphicMatroid")
