"""How influence spreads on a graph: node ``u`` is an arm, its entries are the edges that leave it, items their ends."""

from superarm.diffusion.condense import Condensed, condense
from superarm.diffusion.exact import MOST_EDGES, exact_sets
from superarm.diffusion.forward import Trace, diffuse, expected_spread
from superarm.diffusion.sets import Arcs, Network, Sets, by_node, covered, reverse, sample_sets, select

__all__ = [
    "MOST_EDGES",
    "Arcs",
    "Condensed",
    "Network",
    "Sets",
    "Trace",
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
