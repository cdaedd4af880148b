"""Graphs: edge lists, and matrices of the probability that one node activates another."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from superarm.core.errors import InvalidArgument, MissingExtra
from superarm.data.files import open_text

_NETWORKX_GRAPHS = ("davis_southern_women", "florentine_families", "karate_club", "les_miserables")


def read_edges(path: str | Path) -> Counter[tuple[int, int]]:
    """How often an edge list (of SNAP, of NetHEPT) lists each pair of nodes, in the direction that it is listed.

    A first line with the number of nodes and the number of the following lines is a header, not an edge.
    """
    pairs = []
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            words = line.split("#", 1)[0].split()
            if not words:
                continue
            try:
                pairs.append((int(words[0]), int(words[1])))
            except (ValueError, IndexError):
                raise InvalidArgument(
                    "path", f"line {number} is not a pair of nodes: {line.strip()!r}", "give two integers per line"
                ) from None
    if pairs and _is_header(pairs):
        del pairs[0]
    if not pairs:
        raise InvalidArgument("path", f"{path} has no edges", "give two integers per line")
    return Counter(pairs)


def _is_header(pairs: list[tuple[int, int]]) -> bool:
    nodes, edges = pairs[0]
    return edges == len(pairs) - 1 and nodes >= len({node for pair in pairs[1:] for node in pair})


def load_edges(path: str, name: str) -> Any:
    """How often each pair is listed in the edge list at ``path``, or in the graph ``name`` of networkx."""
    if bool(path) == bool(name):
        raise InvalidArgument(
            "path", "neither or both of path and name are given", "give the path of an edge list, or a name"
        )
    if path:
        return read_edges(path)
    try:
        import networkx
    except ImportError:
        raise MissingExtra("networkx", "data") from None
    if name not in _NETWORKX_GRAPHS:
        raise InvalidArgument("name", f"unknown graph {name!r}", f"give one of {', '.join(_NETWORKX_GRAPHS)}")
    graph = networkx.convert_node_labels_to_integers(getattr(networkx, f"{name}_graph")(), ordering="sorted")
    return dict.fromkeys(graph.edges(), 1)


def count_edges(graph: Any) -> tuple[Counter[tuple[int, int]], int]:
    """Count the edges from each node to each other node, and the nodes; nodes are numbered from 0.

    ``graph`` is a networkx graph or an edge list: pairs of nodes, or a mapping from pairs to how often each is listed.
    Edges of an edge list and of an undirected graph count in both directions, parallel edges count separately, and
    edges from a node to itself are left out. The nodes of an edge list are numbered in the sorted order of their
    labels, those of a networkx graph in the order of the graph.
    """
    if hasattr(graph, "is_directed"):
        nodes, pairs = list(graph.nodes()), Counter((u, v) for u, v, *_ in graph.edges())
        both = not graph.is_directed()
    else:
        pairs = Counter(graph) if isinstance(graph, Mapping) else Counter(tuple(pair) for pair in graph)
        nodes, both = sorted({node for pair in pairs for node in pair}), True
    number = {node: n for n, node in enumerate(nodes)}
    found: Counter[tuple[int, int]] = Counter()
    for (a, b), times in pairs.items():
        for u, v in ((a, b), (b, a)) if both else ((a, b),):
            if u != v:
                found[number[u], number[v]] += times
    if not found:
        raise InvalidArgument("graph", "has no edges", "give pairs of different nodes")
    return found, len(nodes)


def constant_chance(graph: Any, chance: float = 0.1) -> csr_array:
    """Every edge activates with the same probability: ``1 - (1 - chance)**m`` where it is listed m times.

    >>> constant_chance([(0, 1), (1, 2)], 0.5).toarray().tolist()
    [[0.0, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.0]]
    """
    if not 0.0 <= chance <= 1.0:
        raise InvalidArgument("chance", f"{chance} is outside [0, 1]", "give a probability")
    counts, n = count_edges(graph)
    return _matrix(counts, [1.0 - (1.0 - chance) ** times for times in counts.values()], n)


def weighted_by_degree(graph: Any) -> csr_array:
    """The weighted cascade: each edge that enters a node activates it with probability 1 over the number of such edges.

    >>> weighted_by_degree([(0, 1), (1, 2)]).toarray().tolist()
    [[0.0, 0.5, 0.0], [1.0, 0.0, 1.0], [0.0, 0.5, 0.0]]
    """
    counts, n = count_edges(graph)
    entering: Counter[int] = Counter()
    for (_, v), times in counts.items():
        entering[v] += times
    return _matrix(counts, [times / entering[v] for (_, v), times in counts.items()], n)


def _matrix(counts: Iterable[tuple[int, int]], p: list[float], n: int) -> csr_array:
    row, column = np.array(list(counts)).T
    return csr_array((p, (row, column)), shape=(n, n))
