from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.actions.base import heaviest, keep_if_eligible
from superarm.actions.enumeration import sum_counts
from superarm.actions.graph import check_one_edge_per_arm, parse_edges, parse_n_nodes
from superarm.actions.weights import total_weight
from superarm.arrays import Bools, Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument


class _Network(NamedTuple):
    n_nodes: int
    ends: Ints
    source: int
    target: int
    sweep: Ints
    k: int


@component
class Paths(_Network):
    """The paths from ``source`` to ``target`` in a directed graph without cycles. Arms are edges.

    A batch is a whole path, its edges in any order. The heaviest path is found in one pass over the edges, by
    Bellman's recursion in topological order. The field ``sweep`` lists the edges in that order, ``k`` is the length of
    the longest path.

    Parameters
    ----------
    n_nodes
        How many nodes the graph has.
    edges
        One pair (from, to) per arm. Every edge must lie on some path from ``source`` to ``target``.
    source, target
        Where paths begin and end.

    Examples
    --------
    >>> list(Paths(4, [(0, 1), (0, 2), (1, 3), (2, 3)], source=0, target=3).batches(4))
    [(0, 2), (1, 3)]
    """

    __slots__ = ()

    matroid = False
    tractable = True

    def __new__(cls, n_nodes: int, edges: Iterable[tuple[int, int]], source: int, target: int) -> "Paths":
        nodes = parse_n_nodes(n_nodes, "n_nodes", "Paths")
        ends = parse_edges(edges, nodes, nodes, "Paths")
        for name, node in (("source", source), ("target", target)):
            if not isinstance(node, int | np.integer) or not 0 <= node < nodes:
                raise InvalidArgument(name, f"{node!r} is not a node", f"nodes are 0 to {nodes - 1}", "Paths")
        if source == target:
            raise InvalidArgument("target", "the same as source", "give another node", "Paths")
        sweep = _order_edges(ends, nodes)
        all_edges = np.ones(len(ends), np.bool_)
        before = _heaviest_to_nodes(ends, sweep, np.zeros(len(ends)), all_edges, int(source), nodes)
        after = _heaviest_to_nodes(
            ends[:, ::-1].copy(), sweep[::-1].copy(), np.zeros(len(ends)), all_edges, int(target), nodes
        )
        off_path = np.flatnonzero((before[ends[:, 0]] == -np.inf) | (after[ends[:, 1]] == -np.inf))
        if off_path.size:
            raise InvalidArgument(
                "edges", f"edge {off_path[0]} lies on no path from {source} to {target}", "drop it", "Paths"
            )
        k = _heaviest_to_nodes(ends, sweep, np.ones(len(ends)), all_edges, int(source), nodes)[int(target)]
        return super().__new__(cls, nodes, ends, int(source), int(target), sweep, int(k))

    def capacity(self, n_arms: int) -> int:
        return self.k

    def admits(self, chosen: Ints, size: int, arm: int) -> bool:
        return _has_path_through(self, np.ones(len(self.ends), np.bool_), chosen, size, arm)

    def joins(self, candidates: Candidates, chosen: Ints, size: int, arm: int) -> bool:
        return _has_path_through(self, candidates.eligible, chosen, size, arm)

    def remnant(self, batch: Ints, candidates: Candidates) -> Ints:
        return keep_if_eligible(batch, candidates)

    def heaviest(self, weights: Floats, candidates: Candidates) -> Ints:
        return _heaviest_path(self, weights, candidates)

    def ceiling(self, weights: Floats, candidates: Candidates) -> float:
        return total_weight(weights, heaviest(self, weights, candidates))

    @interpreted
    def includes(self, action: Ints) -> bool:
        step = {int(self.ends[j, 0]): int(self.ends[j, 1]) for j in action}
        node, length = self.source, 0
        while node in step and length <= len(action):
            node, length = step[node], length + 1
        return node == self.target and length == len(action)

    @interpreted
    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        leaving: list[list[int]] = [[] for _ in range(self.n_nodes)]
        for j, (tail, _) in enumerate(self.ends.tolist()):
            leaving[tail].append(j)

        def walk(node: int, path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            if node == self.target:
                yield path
                return
            for j in leaving[node]:
                yield from walk(int(self.ends[j, 1]), (*path, j))

        return walk(self.source, ())

    @interpreted
    def n_batches(self, n_arms: int) -> float:
        ways = [0] * self.n_nodes
        ways[self.source] = 1
        for j in self.sweep:
            ways[self.ends[j, 1]] += ways[self.ends[j, 0]]
        return sum_counts([ways[self.target]])

    @interpreted
    def validate(self, n_arms: int) -> None:
        check_one_edge_per_arm(self.ends, n_arms, "Paths")


def _order_edges(ends: Ints, n_nodes: int) -> Ints:
    """Order the edges such that no edge into a node comes after one out of it."""
    incoming = np.bincount(ends[:, 1], minlength=n_nodes)
    leaving: list[list[int]] = [[] for _ in range(n_nodes)]
    for j, (tail, _) in enumerate(ends.tolist()):
        leaving[tail].append(j)
    ready = np.flatnonzero(incoming == 0).tolist()
    ordered: list[int] = []
    while ready:
        for j in leaving[ready.pop()]:
            ordered.append(j)
            incoming[ends[j, 1]] -= 1
            if incoming[ends[j, 1]] == 0:
                ready.append(int(ends[j, 1]))
    if len(ordered) < len(ends):
        raise InvalidArgument("edges", "the graph has a cycle", "drop an edge of it", "Paths")
    return np.array(ordered, np.int64)


@kernel
def _heaviest_to_nodes(ends: Ints, sweep: Ints, weights: Floats, eligible: Bools, source: int, n_nodes: int) -> Floats:
    """The weight of the heaviest path from ``source`` to each node, -inf where there is none, [Bellman1958]_."""
    heaviest_to = np.full(n_nodes, -np.inf)
    heaviest_to[source] = 0.0
    for j in sweep:
        if eligible[j]:
            heaviest_to[ends[j, 1]] = max(heaviest_to[ends[j, 1]], heaviest_to[ends[j, 0]] + weights[j])
    return heaviest_to


@kernel
def _has_path_through(paths: Paths, eligible: Bools, chosen: Ints, size: int, arm: int) -> bool:
    """Whether some path of eligible edges runs through the first ``size`` of ``chosen`` and ``arm``."""
    marks = np.zeros(len(paths.ends))
    marks[arm] = 1.0
    for n in range(size):
        marks[chosen[n]] = 1.0
    heaviest_to = _heaviest_to_nodes(paths.ends, paths.sweep, marks, eligible, paths.source, paths.n_nodes)
    return heaviest_to[paths.target] == size + 1.0  # type: ignore[no-any-return]


@kernel
def _heaviest_path(paths: Paths, weights: Floats, candidates: Candidates) -> Ints:
    """The heaviest path of eligible edges; of several, the one with the fewest pulls in total."""
    heaviest_to, fewest = np.full(paths.n_nodes, -np.inf), np.zeros(paths.n_nodes)
    via = np.full(paths.n_nodes, -1)
    heaviest_to[paths.source] = 0.0
    for j in paths.sweep:
        tail, head = paths.ends[j, 0], paths.ends[j, 1]
        if not candidates.eligible[j] or heaviest_to[tail] == -np.inf:
            continue
        w, pulls = heaviest_to[tail] + weights[j], fewest[tail] + candidates.counts[j]
        if w > heaviest_to[head] or (w == heaviest_to[head] and pulls < fewest[head]):
            heaviest_to[head], fewest[head], via[head] = w, pulls, j
    path = np.empty(paths.k, np.int64)
    node, size = paths.target, 0
    while via[node] >= 0:
        path[size] = via[node]
        node = paths.ends[via[node], 0]
        size += 1
    return path[:size][::-1].copy()
