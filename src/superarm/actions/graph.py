"""Graphs whose edges are arms: how they are read, and which edges close no circle."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from superarm._jit import kernel
from superarm.actions.enumeration import tally_up
from superarm.arrays import Bools, Ints, count
from superarm.errors import InvalidArgument


def ends_of(edges: Iterable[tuple[int, int]], left: int, right: int, owner: str) -> Ints:
    """``edges`` as (n_edges, 2), after checking that they run from 0..left-1 to 0..right-1."""
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


def nodes_of(n_nodes: Any, name: str, owner: str) -> int:
    """``n_nodes`` as a positive int."""
    return count(n_nodes, name, 1, owner)


def one_edge_per_arm(ends: Ints, n_arms: int, owner: str) -> None:
    """Refuse a graph whose edges are not the arms."""
    if len(ends) != n_arms:
        raise InvalidArgument("edges", f"{len(ends)} edges for {n_arms} arms", "give one edge per arm", owner)


def without_loops(ends: Ints, owner: str) -> Ints:
    """``ends``, after checking that no edge runs from a node to itself."""
    loops = np.flatnonzero(ends[:, 0] == ends[:, 1])
    if loops.size:
        raise InvalidArgument("edges", f"edge {loops[0]} runs from a node to itself", "drop it", owner)
    return ends


@kernel
def stays_acyclic(ends: Ints, n_nodes: int, chosen: Ints, size: int, arm: int) -> bool:
    """Whether the first ``size`` edges of ``chosen``, a forest, stay one with ``arm``: union-find, [Kruskal1956]_."""
    parent = np.arange(n_nodes)
    for n in range(size):
        parent[_root(parent, ends[chosen[n], 0])] = _root(parent, ends[chosen[n], 1])
    return _root(parent, ends[arm, 0]) != _root(parent, ends[arm, 1])


@kernel
def connects(ends: Ints, n_nodes: int, eligible: Bools) -> bool:
    """Whether the eligible edges reach every node of a connected graph."""
    if eligible.all():
        return True
    parent = np.arange(n_nodes)
    parts = n_nodes
    for j in range(len(ends)):
        a, b = _root(parent, ends[j, 0]), _root(parent, ends[j, 1])
        if eligible[j] and a != b:
            parent[a] = b
            parts -= 1
    return parts == 1


@kernel
def _root(parent: Ints, node: int) -> int:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


def components(ends: Ints, n_nodes: int) -> int:
    """Into how many parts the graph falls."""
    parent = np.arange(n_nodes)
    for a, b in ends:
        parent[_root(parent, int(a))] = _root(parent, int(b))
    return sum(1 for v in range(n_nodes) if _root(parent, v) == v)


def forests(ends: Ints, n_nodes: int, k: int) -> Iterator[tuple[int, ...]]:
    """Every forest of ``k`` edges, ``k`` being the most there are, in lexical order."""
    for arms in itertools.combinations(range(len(ends)), k):
        if n_nodes - components(ends[list(arms)], n_nodes) == k:
            yield arms


def n_trees(ends: Ints, n_nodes: int) -> float:
    """How many spanning trees a connected graph has, by Kirchhoff's theorem; infinite from 1e15 on."""
    laplacian = np.zeros((n_nodes, n_nodes))
    for a, b in ends:
        laplacian[a, a] += 1.0
        laplacian[b, b] += 1.0
        laplacian[a, b] -= 1.0
        laplacian[b, a] -= 1.0
    _, logarithm = np.linalg.slogdet(laplacian[1:, 1:])
    return tally_up([round(float(np.exp(logarithm)))] if logarithm < 34.0 else [10**16])
