"""Influence that spreads along edges, as instances: nodes are arms and items, edges that leave a node are its entries.

All nodes have the same weight, together 100, so that the value of a batch of seeds is the percentage of the nodes that
it activates.
"""

from typing import Any

import numpy as np

from superarm.actions import Subsets
from superarm.core.errors import InvalidArgument
from superarm.core.problem import Problem
from superarm.data.graphs import constant_chance, load_edges, weighted_by_degree
from superarm.diffusion import IndependentCascade, Spread
from superarm.simulation.instances import Instance


def influence(
    path: str = "", name: str = "", k: int = 5, chance: float = 0.1, samples: int = 50_000, seed: int = 0
) -> Instance:
    """Seeds on an edge list (``path``) or on a graph of networkx (``name``), with equal probabilities.

    Edges count in both directions and activate with probability ``chance``. Regret is estimated from ``samples``
    reverse-reachable sets at the true parameters, drawn from ``seed``.
    """
    return _spread_instance(constant_chance(load_edges(path, name), chance), k, samples, seed)


def weighted_cascade(path: str = "", name: str = "", k: int = 5, samples: int = 50_000, seed: int = 0) -> Instance:
    """As ``influence``, but an edge activates with probability 1 over the number of edges that enter its target."""
    return _spread_instance(weighted_by_degree(load_edges(path, name)), k, samples, seed)


def random_influence(n_nodes: int = 60, degree: int = 3, k: int = 3, samples: int = 50_000, seed: int = 0) -> Instance:
    """A random social graph with the weighted cascade: each new node connects to ``degree`` older ones, by popularity.

    >>> random_influence(n_nodes=20, samples=100).problem.n_arms
    20
    """
    if not 1 <= degree < n_nodes:
        raise InvalidArgument("degree", f"{degree} of {n_nodes} nodes", "give 1 <= degree < n_nodes")
    rng, ends, pairs = np.random.default_rng(seed), list(range(degree)), []
    for node in range(degree, n_nodes):
        friends = set[int]()
        while len(friends) < degree:
            friends.add(ends[int(rng.integers(len(ends)))])
        pairs += [(node, friend) for friend in sorted(friends)]
        ends += [*sorted(friends), *[node] * degree]
    return _spread_instance(weighted_by_degree(pairs), k, samples, seed)


def _spread_instance(p: Any, k: int, samples: int, seed: int) -> Instance:
    n = p.shape[0]
    weights = np.full(n, 100.0 / n)
    problem = Problem(n, n, Spread(), Subsets(k), weights, support=p)
    return Instance(problem, IndependentCascade(p, weights, samples, seed))
