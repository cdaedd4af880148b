"""Action sets: which batches may be played, as masks over all arms at once.

base · subsets: any k arms · explicit: listed batches, several rules, pinned arms · matroids: groups, families, forests,
trees, slots · graphs: matchings and paths · knapsack: a budget, and several calls of one arm
"""

from superarm.actions.base import Actions
from superarm.actions.explicit import Explicit, Intersection, Pinned
from superarm.actions.graphs import Matching, Paths
from superarm.actions.knapsack import Copies, Knapsack
from superarm.actions.matroids import GraphicMatroid, Laminar, PartitionMatroid, Slots, SpanningTrees
from superarm.actions.subsets import Subsets

__all__ = [
    "Actions",
    "Copies",
    "Explicit",
    "GraphicMatroid",
    "Intersection",
    "Knapsack",
    "Laminar",
    "Matching",
    "PartitionMatroid",
    "Paths",
    "Pinned",
    "Slots",
    "SpanningTrees",
    "Subsets",
]
