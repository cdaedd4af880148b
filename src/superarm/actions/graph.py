"""Graphs whose edges are arms: parsing them, and testing for cycles and connectedness."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from superarm._jit import kernel
from superarm.actions.enumeration import sum_counts
from superarm.arrays import Bools, Ints, count
from superarm.errors import InvalidArgument


def parse_edges(edges: Iterable[tuple[int, int]], left: int, right: int, owner: str) -> Ints:
    """Convert ``edges`` to an array (n_edges, 2); refuse ends outside of 0..left-1 and 0..right-1."""
    pairs: Any = list(edges)
    ends = np.asarray(pairs)
    if not pairs:
        raise InvalidArgument("edges", "empty", "give at least one edge", owner)
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        raise InvalidArgument("edges", "not a list of pairs of whole numbers", "give (from, to) for every arm", owner)
    for arm, (a, b) in enumerate(ends.tolist()):
        if not (0 <= a < left and 0 <= b < right):
            raise InvalidArgument(
                "edges", f"edge {arm} is ({a}, {b})", f"give nodes from (0, 0) to ({left - 1}, {right - 1})", owner
            )
    return ends.astype(np.int64)


def parse_n_nodes(n_nodes: Any, name: str, owner: str) -> int:
    """Convert ``n_nodes`` to an int; refuse what is not a positive whole number."""
    return count(n_nodes, name, 1, owner)


def check_one_edge_per_arm(ends: Ints, n_arms: int, owner: str) -> None:
    """Refuse a graph that does not have one edge per arm."""
    if len(ends) != n_arms:
        raise InvalidArgument("edges", f"{len(ends)} edges for {n_arms} arms", "give one edge per arm", owner)


def reject_loops(ends: Ints, owner: str) -> Ints:
    """Return ``ends``; refuse an edge from a node to itself."""
    loops = np.flatnonzero(ends[:, 0] == ends[:, 1])
    if loops.size:
        raise InvalidArgument("edges", f"edge {loops[0]} runs from a node to itself", "drop it", owner)
    return ends


@kernel
def stays_acyclic(ends: Ints, n_nodes: int, chosen: Ints, size: int, arm: int) -> bool:
    """Whether ``arm`` creates no cycle with the first ``size`` edges of ``chosen``: by union-find, [Kruskal1956]_."""
    parent = np.arange(n_nodes)
    for n in range(size):
        parent[_find_root(parent, ends[chosen[n], 0])] = _find_root(parent, ends[chosen[n], 1])
    return _find_root(parent, ends[arm, 0]) != _find_root(parent, ends[arm, 1])


@kernel
def connects(ends: Ints, n_nodes: int, eligible: Bools) -> bool:
    """Whether the eligible edges alone connect all nodes of a connected graph."""
    if eligible.all():
        return True
    parent = np.arange(n_nodes)
    parts = n_nodes
    for j in range(len(ends)):
        a, b = _find_root(parent, ends[j, 0]), _find_root(parent, ends[j, 1])
        if eligible[j] and a != b:
            parent[a] = b
            parts -= 1
    return parts == 1


@kernel
def _find_root(parent: Ints, node: int) -> int:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


def count_components(ends: Ints, n_nodes: int) -> int:
    """Count the connected components of the graph."""
    parent = np.arange(n_nodes)
    for a, b in ends:
        parent[_find_root(parent, int(a))] = _find_root(parent, int(b))
    return sum(1 for v in range(n_nodes) if _find_root(parent, v) == v)


def enumerate_forests(ends: Ints, n_nodes: int, k: int) -> Iterator[tuple[int, ...]]:
    """Yield every forest of ``k`` edges, where ``k`` is the size of the largest forests, in lexicographic order."""
    for arms in itertools.combinations(range(len(ends)), k):
        if n_nodes - count_components(ends[list(arms)], n_nodes) == k:
            yield arms


def count_spanning_trees(ends: Ints, n_nodes: int) -> float:
    """Count the spanning trees of a connected graph by Kirchhoff's theorem; infinite above 1e15."""
    laplacian = np.zeros((n_nodes, n_nodes))
    for a, b in ends:
        laplacian[a, a] += 1.0
        laplacian[b, b] += 1.0
        laplacian[a, b] -= 1.0
        laplacian[b, a] -= 1.0
    _, logarithm = np.linalg.slogdet(laplacian[1:, 1:])
    return sum_counts([round(float(np.exp(logarithm)))] if logarithm < 34.0 else [10**16])
