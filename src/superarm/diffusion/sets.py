r"""Reverse-reachable sets: the nodes from which a random root is reached in a random live-edge graph, [BorgsEtAl2014]_.

.. math:: \sigma(S; p) = W \cdot P\{S \cap R \ne \emptyset\}

where R is the set of a root drawn with probability proportional to its weight, and W the sum of the weights. So the
spread of S is proportional to the probability that S hits a random set.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from superarm._jit import kernel
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.streams import Stream, uniform
from superarm.support import Sparse, Support

Shorts: TypeAlias = NDArray[np.int32]


class Arcs(NamedTuple):
    """The edges that enter each node v: ``start[v]:start[v + 1]``, from ``source``, with the parameter at ``entry``."""

    start: Ints
    source: Ints
    entry: Ints


class Network(NamedTuple):
    """A graph with the probability of each edge (n_entries,) and the weight of each node."""

    arcs: Arcs
    p: Floats
    weights: Floats


class Sets(NamedTuple):
    """Sets of nodes in one array: set s is ``nodes[start[s]:start[s + 1]]``. ``by_node`` swaps nodes and sets."""

    start: Ints
    nodes: Shorts


def reverse(support: Support) -> Arcs:
    """Sort the edges of a graph by the node that they enter."""
    n = support.n_arms
    if isinstance(support, Sparse):
        source, target = np.repeat(np.arange(n), np.diff(support.start)), support.items
    else:
        source, target = np.repeat(np.arange(n), support.n_items), np.tile(np.arange(support.n_items), n)
    entry = np.argsort(target, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=support.n_items))])
    return Arcs(start.astype(np.int64), source[entry].astype(np.int64), entry.astype(np.int64))


@kernel
def sample_sets(network: Network, n_sets: int, stream: Stream) -> Sets:
    """Draw ``n_sets`` independent reverse-reachable sets from ``stream``, from its current position on."""
    arcs, p, weights = network
    n_nodes = len(weights)
    mass = np.empty(n_nodes)
    total = 0.0
    for v in range(n_nodes):
        total += weights[v]
        mass[v] = total
    start, nodes, size = np.zeros(n_sets + 1, np.int64), np.empty(4 * n_nodes, np.int32), 0
    last = np.full(n_nodes, -1)  # the set that a node joined last
    for s in range(n_sets):
        if size + n_nodes > len(nodes):
            larger = np.empty(2 * len(nodes), np.int32)
            larger[:size] = nodes[:size]
            nodes = larger
        root = min(int(np.searchsorted(mass, uniform(stream) * total, side="right")), n_nodes - 1)
        head, last[root] = size, s
        nodes[size] = root
        size += 1
        while head < size:
            v = nodes[head]
            head += 1
            for a in range(arcs.start[v], arcs.start[v + 1]):
                u = arcs.source[a]
                if last[u] != s and uniform(stream) < p[arcs.entry[a]]:
                    last[u] = s
                    nodes[size] = u
                    size += 1
        start[s + 1] = size
    return Sets(start, nodes[:size].copy())


@kernel
def by_node(sets: Sets, n_nodes: int) -> Sets:
    """The sets that each node is in."""
    start = np.zeros(n_nodes + 1, np.int64)
    for v in sets.nodes:
        start[v + 1] += 1
    for v in range(n_nodes):
        start[v + 1] += start[v]
    at, held = start[:-1].copy(), np.empty(len(sets.nodes), np.int32)
    for s in range(len(sets.start) - 1):
        for m in range(sets.start[s], sets.start[s + 1]):
            v = sets.nodes[m]
            held[at[v]] = s
            at[v] += 1
    return Sets(start, held)


@kernel
def covered(held: Sets, worth: Floats, seeds: Ints) -> float:
    """The total worth of the sets that ``seeds`` hit; ``worth`` is (n_sets,), ``held`` has the sets of each node."""
    hit = np.zeros(len(worth), np.bool_)
    total = 0.0
    for u in seeds:
        for m in range(held.start[u], held.start[u + 1]):
            s = held.nodes[m]
            if not hit[s]:
                hit[s] = True
                total += worth[s]
    return total


@kernel
def select(sets: Sets, home: Ints, candidates: Candidates, chosen: Ints, size: int) -> float:
    """Fill ``chosen`` from ``size`` on with the eligible nodes that hit most sets not hit yet; return the share hit.

    ``home`` (n_nodes,) is the number by which each node appears in the sets: that of its group, or its own.

    Greedy maximum coverage, [TangShiXiao2015]_ (Algorithm 1). Ties go to the node with fewest pulls, then the lowest.
    """
    n_nodes, n_sets, n_groups = len(home), len(sets.start) - 1, int(home.max()) + 1
    held = by_node(sets, n_groups)
    count, free, hit = np.empty(n_groups, np.int64), candidates.eligible.copy(), np.zeros(n_sets, np.bool_)
    for group in range(n_groups):
        count[group] = held.start[group + 1] - held.start[group]
    done = 0
    for place in range(len(chosen)):
        if place >= size:
            best = -1
            for u in range(n_nodes):
                more = 1 if best < 0 else count[home[u]] - count[home[best]]
                if free[u] and (more > 0 or (more == 0 and candidates.counts[u] < candidates.counts[best])):
                    best = u
            chosen[place] = best
        taken = home[chosen[place]]
        free[chosen[place]] = False
        for m in range(held.start[taken], held.start[taken + 1]):
            s = held.nodes[m]
            if not hit[s]:
                hit[s] = True
                done += 1
                for w in range(sets.start[s], sets.start[s + 1]):
                    count[sets.nodes[w]] -= 1
    return done / n_sets
