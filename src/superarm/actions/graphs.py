"""Matchings of a bipartite graph, and paths through a directed one. Arms are edges."""

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from superarm.actions.base import joinable_after, limit_count, new_batches, pack, put_pins_first
from superarm.actions.matroids import EdgeSet, largest_matching
from superarm.core.arrays import Bools, Floats, Ints, count, require_scores
from superarm.core.errors import InvalidArgument
from superarm.core.ops import op
from superarm.core.tally import View


class Matching(EdgeSet):
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

    left: int
    right: int
    edges: Any
    tractable = True
    exchange = 2.0

    def check(self) -> None:
        for name in ("left", "right"):
            self.convert(name, count(getattr(self, name), name, 1, "Matching"))
        self.parse_edges(self.left, self.right)
        if len(np.unique(self.edges, axis=0)) < len(self.edges):
            raise InvalidArgument("edges", "the same edge appears twice", "give each pair once", "Matching")

    @cached_property
    def k(self) -> int:
        """The size of the largest matching."""
        adjacent = np.zeros((self.left, self.right), bool)
        adjacent[tuple(self.edges.T)] = True
        return largest_matching(adjacent)

    def capacity(self, n_arms: int) -> int:
        return self.k

    def start(self, eligible: Bools) -> Any:
        """Which nodes are free, (R, left + right)."""
        return np.ones((len(eligible), self.left + self.right), bool)

    def joinable(self, state: Any, eligible: Bools) -> Bools:
        return eligible & state[:, self.edges[:, 0]] & state[:, self.left + self.edges[:, 1]]

    def join(self, state: Any, arm: Ints) -> Any:
        rows = np.flatnonzero(arm >= 0)
        ends = self.edges[arm[rows]]
        state[rows, ends[:, 0]] = False
        state[rows, self.left + ends[:, 1]] = False
        return state

    def n_batches(self, n_arms: int) -> float:
        sides = (np.bincount(self.edges[:, side]) for side in (0, 1))
        return limit_count(min(math.prod(1 + int(n) for n in degrees) for degrees in sides))

    def heaviest(self, worth: Floats, view: View) -> Ints:
        require_scores(worth)
        short = int(self.left > self.right)  # rows are the side with fewer nodes
        rows, columns = self.edges[:, short], self.edges[:, 1 - short]
        shape = (min(self.left, self.right), max(self.left, self.right))
        arm_of = np.full(shape, -1)
        arm_of[rows, columns] = np.arange(len(self.edges))
        gain, pulls = np.zeros((2, len(view), *shape))
        free = joinable_after(self, view.pinned, view.eligible)
        gain[:, rows, columns] = np.where(free, worth, 0.0)
        pulls[:, rows, columns] = np.where(free, view.counts, 0.0)
        column_of = np.empty((len(view), shape[0]), np.int64)
        op("assignment", 4 * gain.size)(gain, pulls, column_of)
        heavy = np.take_along_axis(gain, column_of[:, :, None], 2)[:, :, 0] > 0.0
        picked = pack(np.where(heavy, arm_of[np.arange(shape[0]), column_of], -1))
        out, held = new_batches(self, view), view.pinned.shape[1]
        out[:, held:] = picked[:, : out.shape[1] - held]
        return self.complete(view, out)  # arms of worth 0 join, those with the fewest pulls first


class Paths(EdgeSet):
    """The paths from ``source`` to ``target`` in a directed graph without cycles. Arms are edges.

    A batch is a whole path, its edges in any order. The heaviest path is found in one pass over the edges, by
    Bellman's recursion in topological order, [Bellman1958]_.

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

    n_nodes: int
    edges: Any
    source: int
    target: int
    tractable = True
    whole = True
    any_worth = True

    def check(self) -> None:
        self.convert("n_nodes", count(self.n_nodes, "n_nodes", 1, "Paths"))
        self.parse_edges(self.n_nodes, self.n_nodes)
        for name in ("source", "target"):
            node = getattr(self, name)
            if not isinstance(node, int | np.integer) or not 0 <= node < self.n_nodes:
                raise InvalidArgument(name, f"{node!r} is not a node", f"nodes are 0 to {self.n_nodes - 1}", "Paths")
            self.convert(name, int(node))
        if self.source == self.target:
            raise InvalidArgument("target", "the same as source", "give another node", "Paths")
        if len(self.sweep) < len(self.edges):
            raise InvalidArgument("edges", "the graph has a cycle", "drop an edge of it", "Paths")
        off_path = np.flatnonzero(~self._between(np.ones(len(self.edges), bool)))
        if off_path.size:
            wrong = f"edge {off_path[0]} lies on no path from {self.source} to {self.target}"
            raise InvalidArgument("edges", wrong, "drop it", "Paths")

    @cached_property
    def _touching(self) -> list[list[list[int]]]:
        """The edges that leave each node, and those that enter it."""
        return [[np.flatnonzero(ends == node).tolist() for node in range(self.n_nodes)] for ends in self.edges.T]

    @cached_property
    def sweep(self) -> Ints:
        """The edges in an order in which no edge into a node comes after one out of it; without those of cycles."""
        incoming = np.bincount(self.edges[:, 1], minlength=self.n_nodes)
        ready, ordered = np.flatnonzero(incoming == 0).tolist(), list[int]()
        while ready:
            for j in self._touching[0][ready.pop()]:
                ordered.append(j)
                head = int(self.edges[j, 1])
                incoming[head] -= 1
                if incoming[head] == 0:
                    ready.append(head)
        return np.array(ordered, np.int64)

    @cached_property
    def k(self) -> int:
        """The length of the longest path."""
        longest = np.zeros(self.n_nodes, np.int64)
        for tail, head in self.edges[self.sweep]:
            longest[head] = max(longest[head], longest[tail] + 1)
        return int(longest[self.target])

    def _reached(self, node: int, usable: Bools, backwards: int) -> Bools:
        """Which nodes can be reached from ``node`` by ``usable`` edges, or from which it can be reached."""
        reached, waiting = np.zeros(self.n_nodes, bool), [node]
        reached[node] = True
        while waiting:
            for j in self._touching[backwards][waiting.pop()]:
                other = self.edges[j, 1 - backwards]
                if usable[j] and not reached[other]:
                    reached[other] = True
                    waiting.append(other)
        return reached

    def _between(self, usable: Bools) -> Bools:
        """Which edges lie on a path of ``usable`` edges."""
        after = self._reached(self.source, usable, 0)[self.edges[:, 0]]
        return usable & after & self._reached(self.target, usable, 1)[self.edges[:, 1]]

    def capacity(self, n_arms: int) -> int:
        return self.k

    def start(self, eligible: Bools) -> Any:
        """The edges that lie on a path of eligible edges through all edges that have joined, (R, n_arms)."""
        return np.array([row if row.all() else self._between(row) for row in eligible])

    def joinable(self, state: Any, eligible: Bools) -> Bools:
        return state

    def join(self, state: Any, arm: Ints) -> Any:
        for r, j in enumerate(arm.tolist()):
            if j >= 0:
                (tail, head), usable = self.edges[j], state[r]
                through = self._reached(head, usable, 0)[self.edges[:, 0]]
                through |= self._reached(tail, usable, 1)[self.edges[:, 1]]
                through[j] = True
                state[r] = usable & through & usable[j]
        return state

    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        def walk(node: int, path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            if node == self.target:
                yield path
                return
            for j in self._touching[0][node]:
                yield from walk(int(self.edges[j, 1]), (*path, j))

        return walk(self.source, ())

    def n_batches(self, n_arms: int) -> float:
        ways = [0] * self.n_nodes
        ways[self.source] = 1
        for tail, head in self.edges[self.sweep].tolist():
            ways[head] += ways[tail]
        return limit_count(ways[self.target])

    def heaviest(self, worth: Floats, view: View) -> Ints:
        require_scores(worth)
        usable = self.start(view.eligible)
        for arm in view.pinned.T:
            usable = self.join(usable, arm)
        out = np.full((len(view), self.k), -1)
        graph = (self.edges, self.sweep, self.n_nodes, self.source, self.target)
        op("heaviest_path", 10 * worth.size)(*graph, worth, view.counts, usable, out)
        return put_pins_first(out, view.pinned)
