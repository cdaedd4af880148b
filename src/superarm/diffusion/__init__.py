"""The independent cascade model of influence on a graph: node ``u`` is an arm, its entries are the edges that leave it.

``forward`` simulates cascades, ``sets`` samples reverse-reachable sets and selects seeds by them, ``exact`` enumerates
them on small graphs, and ``condense`` merges nodes that reach one another with probability 1.
"""

from superarm._renamed import old_names
from superarm.diffusion.condense import Condensed, condense
from superarm.diffusion.exact import MAX_UNSURE_EDGES, exact_sets
from superarm.diffusion.forward import SpreadTrace, diffuse, expected_spread
from superarm.diffusion.sets import Arcs, Network, Sets, by_node, covered, reverse, sample_sets, select

__all__ = [
    "MAX_UNSURE_EDGES",
    "Arcs",
    "Condensed",
    "Network",
    "Sets",
    "SpreadTrace",
    "by_node",
    "condense",
    "covered",
    "diffuse",
    "exact_sets",
    "expected_spread",
    "reverse",
    "sample_sets",
    "select",
]

__getattr__ = old_names(__name__, {"MOST_EDGES": "MAX_UNSURE_EDGES", "Trace": "SpreadTrace"})
