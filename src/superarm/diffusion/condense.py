"""Condensation: nodes that reach one another with probability 1 are merged into one.

While most edges are unknown and score 1, this merges most of the graph.
"""

from typing import NamedTuple

import numpy as np

from superarm._jit import kernel
from superarm.arrays import Ints
from superarm.diffusion.sets import Arcs, Network


class Condensed(NamedTuple):
    """A graph whose nodes are groups of nodes of another graph; ``home`` (n_nodes,) is the group of each node."""

    network: Network
    home: Ints


@kernel
def condense(network: Network) -> Condensed:
    """Merge the nodes of each group that edges of probability 1 connect strongly; edges inside a group are dropped.

    A reverse-reachable set of nodes is the union of the groups in a reverse-reachable set of groups, if roots are drawn
    by the weight of the group.
    """
    arcs, p, weights = network
    home, n = _find_groups(network)
    start, mass, n_arcs = np.zeros(n + 1, np.int64), np.zeros(n), 0
    for v in range(len(home)):
        mass[home[v]] += weights[v]
        for a in range(arcs.start[v], arcs.start[v + 1]):
            if home[arcs.source[a]] != home[v] and p[arcs.entry[a]] > 0.0:
                start[home[v] + 1] += 1
                n_arcs += 1
    for group in range(n):
        start[group + 1] += start[group]
    at, source, entry = start[:-1].copy(), np.empty(n_arcs, np.int64), np.empty(n_arcs, np.int64)
    for v in range(len(home)):
        for a in range(arcs.start[v], arcs.start[v + 1]):
            if home[arcs.source[a]] != home[v] and p[arcs.entry[a]] > 0.0:
                source[at[home[v]]], entry[at[home[v]]] = home[arcs.source[a]], arcs.entry[a]
                at[home[v]] += 1
    return Condensed(Network(Arcs(start, source, entry), p, mass), home)


@kernel
def _find_groups(network: Network) -> tuple[Ints, int]:
    """The strongly connected component of each node by edges of probability 1, and their number, [Tarjan1972]_."""
    arcs, p, weights = network
    n = len(weights)
    order, low, home = np.full(n, -1), np.empty(n, np.int64), np.full(n, -1)
    stack, calls, at = np.empty(n, np.int64), np.empty(n, np.int64), arcs.start[:-1].copy()
    seen, held, found = 0, 0, 0
    for root in range(n):
        depth = 0
        if order[root] < 0:
            calls[0], stack[held], order[root], low[root] = root, root, seen, seen
            seen, held, depth = seen + 1, held + 1, 1
        while depth > 0:
            v = calls[depth - 1]
            if at[v] < arcs.start[v + 1]:
                u, certain = arcs.source[at[v]], p[arcs.entry[at[v]]] >= 1.0
                at[v] += 1
                if certain and order[u] < 0:
                    calls[depth], stack[held], order[u], low[u] = u, u, seen, seen
                    seen, held, depth = seen + 1, held + 1, depth + 1
                elif certain and home[u] < 0:
                    low[v] = min(low[v], order[u])
                continue
            depth -= 1
            if depth > 0:
                low[calls[depth - 1]] = min(low[calls[depth - 1]], low[v])
            if low[v] == order[v]:
                while home[v] < 0:
                    held -= 1
                    home[stack[held]] = found
                found += 1
    return home, found
