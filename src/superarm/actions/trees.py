from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.actions.base import heaviest, keep_if_eligible
from superarm.actions.graph import (
    check_one_edge_per_arm,
    connects,
    count_components,
    count_spanning_trees,
    enumerate_forests,
    parse_edges,
    parse_n_nodes,
    reject_loops,
    stays_acyclic,
)
from superarm.actions.weights import total_weight
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument


class _TreeFields(NamedTuple):
    n_nodes: int
    ends: Ints


@component
class SpanningTrees(_TreeFields):
    """The spanning trees of a connected graph: n_nodes - 1 edges that connect all nodes. Arms are edges.

    They are the bases of the graphic matroid, so greedy is exact for modular rewards, [Kruskal1956]_. If the eligible
    edges do not connect the graph, no batch can be played.

    Parameters
    ----------
    n_nodes
        How many nodes the graph has.
    edges
        One pair of nodes, 0 to n_nodes - 1, per arm.

    Examples
    --------
    >>> list(SpanningTrees(3, [(0, 1), (1, 2), (0, 2)]).batches(3))
    [(0, 1), (0, 2), (1, 2)]
    """

    __slots__ = ()

    matroid = True

    def __new__(cls, n_nodes: int, edges: Iterable[tuple[int, int]]) -> "SpanningTrees":
        nodes = parse_n_nodes(n_nodes, "n_nodes", "SpanningTrees")
        ends = reject_loops(parse_edges(edges, nodes, nodes, "SpanningTrees"), "SpanningTrees")
        if count_components(ends, nodes) > 1:
            raise InvalidArgument(
                "edges", "the graph is not connected", "add edges, or take GraphicMatroid", "SpanningTrees"
            )
        return super().__new__(cls, nodes, ends)

    def capacity(self, n_arms: int) -> int:
        return self.n_nodes - 1

    def admits(self, chosen: Ints, size: int, arm: int) -> bool:
        return stays_acyclic(self.ends, self.n_nodes, chosen, size, arm)

    def joins(self, candidates: Candidates, chosen: Ints, size: int, arm: int) -> bool:
        return stays_acyclic(self.ends, self.n_nodes, chosen, size, arm) and connects(
            self.ends, self.n_nodes, candidates.eligible
        )

    def remnant(self, batch: Ints, candidates: Candidates) -> Ints:
        return keep_if_eligible(batch, candidates)

    def ceiling(self, weights: Floats, candidates: Candidates) -> float:
        return total_weight(weights, heaviest(self, weights, candidates))

    @interpreted
    def includes(self, action: Ints) -> bool:
        edges = self.ends[np.asarray(action, np.int64)]
        return len(edges) == self.n_nodes - 1 and count_components(edges, self.n_nodes) == 1

    @interpreted
    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        return enumerate_forests(self.ends, self.n_nodes, self.n_nodes - 1)

    @interpreted
    def n_batches(self, n_arms: int) -> float:
        return count_spanning_trees(self.ends, self.n_nodes)

    @interpreted
    def validate(self, n_arms: int) -> None:
        check_one_edge_per_arm(self.ends, n_arms, "SpanningTrees")
