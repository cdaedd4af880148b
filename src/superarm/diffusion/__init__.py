"""How influence spreads on a graph: node ``u`` is an arm, its entries are the edges that leave it, items their ends."""

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
