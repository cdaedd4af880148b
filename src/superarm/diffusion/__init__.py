"""How influence spreads on a graph: node ``u`` is an arm, its entries are the edges that leave it, items their ends."""

from superarm.diffusion.exact import MOST_EDGES, exact_sets
from superarm.diffusion.forward import Trace, diffuse, expected_spread
from superarm.diffusion.sets import Arcs, Network, Sets, by_node, covered, reverse, sample_sets, select

__all__ = [
    "MOST_EDGES",
    "Arcs",
    "Network",
    "Sets",
    "Trace",
    "by_node",
    "covered",
    "diffuse",
    "exact_sets",
    "expected_spread",
    "reverse",
    "sample_sets",
    "select",
]
