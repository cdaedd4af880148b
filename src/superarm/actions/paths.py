from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.actions.base import heaviest, total_weight, whole_or_nothing
from superarm.actions.enumeration import tally_up
from superarm.actions.graph import ends_of, nodes_of, one_edge_per_arm
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
    """The paths from ``source`` to ``target`` in a directed graph without circles. Arms are edges (from, to).

    A batch is a whole path, its edges in any order. The heaviest path is found in one sweep over the edges, by
    Bellman's recursion in topological order. ``sweep`` holds the edges in that order, ``k`` is the length of the
    longest path. Every edge must lie on some path.

    >>> list(Paths(4, [(0, 1), (0, 2), (1, 3), (2, 3)], source=0, target=3).batches(4))
    [(0, 2), (1, 3)]
    """

    __slots__ = ()

    def __new__(cls, n_nodes: int, edges: Iterable[tuple[int, int]], source: int, target: int) -> "Paths":
        nodes = nodes_of(n_nodes, "n_nodes", "Paths")
        ends = ends_of(edges, nodes, nodes, "Paths")
        for name, node in (("source", source), ("target", target)):
            if not isinstance(node, int | np.integer) or not 0 <= node < nodes:
                raise InvalidArgument(name, f"{node!r} is not a node", f"nodes are 0 to {nodes - 1}", "Paths")
        if source == target:
            raise InvalidArgument("target", "the same as source", "give another node", "Paths")
        sweep = _topological(ends, nodes)
        everyone = np.ones(len(ends), np.bool_)
        before = _farthest(ends, sweep, np.zeros(len(ends)), everyone, int(source), nodes)
        after = _farthest(ends[:, ::-1].copy(), sweep[::-1].copy(), np.zeros(len(ends)), everyone, int(target), nodes)
        stray = np.flatnonzero((before[ends[:, 0]] == -np.inf) | (after[ends[:, 1]] == -np.inf))
        if stray.size:
            raise InvalidArgument(
                "edges", f"edge {stray[0]} lies on no path from {source} to {target}", "drop it", "Paths"
            )
        k = _farthest(ends, sweep, np.ones(len(ends)), everyone, int(source), nodes)[int(target)]
        return super().__new__(cls, nodes, ends, int(source), int(target), sweep, int(k))

    @property
    def matroid(self) -> bool:
        return False

    @property
    def tractable(self) -> bool:
        return True

    def capacity(self, n_arms: int) -> int:
        return self.k

    def admits(self, chosen: Ints, size: int, arm: int) -> bool:
        return _threads(self, np.ones(len(self.ends), np.bool_), chosen, size, arm)

    def joins(self, candidates: Candidates, chosen: Ints, size: int, arm: int) -> bool:
        return _threads(self, candidates.eligible, chosen, size, arm)

    def remnant(self, batch: Ints, candidates: Candidates) -> Ints:
        return whole_or_nothing(batch, candidates)

    def heaviest(self, weights: Floats, candidates: Candidates) -> Ints:
        return _longest(self, weights, candidates)

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
        return tally_up([ways[self.target]])

    @interpreted
    def validate(self, n_arms: int) -> None:
        one_edge_per_arm(self.ends, n_arms, "Paths")


def _topological(ends: Ints, n_nodes: int) -> Ints:
    """The edges in an order in which no edge into a node comes after one out of it."""
    waiting = np.bincount(ends[:, 1], minlength=n_nodes)
    leaving: list[list[int]] = [[] for _ in range(n_nodes)]
    for j, (tail, _) in enumerate(ends.tolist()):
        leaving[tail].append(j)
    ready = np.flatnonzero(waiting == 0).tolist()
    swept: list[int] = []
    while ready:
        for j in leaving[ready.pop()]:
            swept.append(j)
            waiting[ends[j, 1]] -= 1
            if waiting[ends[j, 1]] == 0:
                ready.append(int(ends[j, 1]))
    if len(swept) < len(ends):
        raise InvalidArgument("edges", "the graph has a circle", "drop an edge of it", "Paths")
    return np.array(swept, np.int64)


@kernel
def _farthest(ends: Ints, sweep: Ints, weights: Floats, eligible: Bools, source: int, n_nodes: int) -> Floats:
    """The weight of the heaviest path from ``source`` to each node, -inf where there is none, [Bellman1958]_."""
    far = np.full(n_nodes, -np.inf)
    far[source] = 0.0
    for j in sweep:
        if eligible[j]:
            far[ends[j, 1]] = max(far[ends[j, 1]], far[ends[j, 0]] + weights[j])
    return far


@kernel
def _threads(paths: Paths, eligible: Bools, chosen: Ints, size: int, arm: int) -> bool:
    """Whether some path of eligible edges runs through the first ``size`` of ``chosen`` and ``arm``."""
    marks = np.zeros(len(paths.ends))
    marks[arm] = 1.0
    for n in range(size):
        marks[chosen[n]] = 1.0
    far = _farthest(paths.ends, paths.sweep, marks, eligible, paths.source, paths.n_nodes)
    return far[paths.target] == size + 1.0  # type: ignore[no-any-return]


@kernel
def _longest(paths: Paths, weights: Floats, candidates: Candidates) -> Ints:
    """The heaviest path of eligible edges; among equals the one with the fewest pulls in total."""
    far, fewest = np.full(paths.n_nodes, -np.inf), np.zeros(paths.n_nodes)
    via = np.full(paths.n_nodes, -1)
    far[paths.source] = 0.0
    for j in paths.sweep:
        tail, head = paths.ends[j, 0], paths.ends[j, 1]
        if not candidates.eligible[j] or far[tail] == -np.inf:
            continue
        w, pulls = far[tail] + weights[j], fewest[tail] + candidates.counts[j]
        if w > far[head] or (w == far[head] and pulls < fewest[head]):
            far[head], fewest[head], via[head] = w, pulls, j
    path = np.empty(paths.k, np.int64)
    node, size = paths.target, 0
    while via[node] >= 0:
        path[size] = via[node]
        node = paths.ends[via[node], 0]
        size += 1
    return path[:size][::-1].copy()
