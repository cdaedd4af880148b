"""Action sets: which batches may be played.

``base`` holds the family, its verbs and the defaults of its hooks, ``traits`` the optional properties; ``subsets``,
``partition``, ``laminar``, ``graphic``, ``trees``, ``paths``, ``matching``, ``knapsack``, ``slots``, ``explicit`` and
``pinned`` hold one action set each. ``weights``, ``graph``, ``assignment``, ``enumeration`` and ``listed``
are shared by them.
"""

from superarm._renamed import old_names
from superarm.actions.base import (
    Actions,
    admits,
    all_eligible,
    budget,
    capacity,
    ceiling,
    complete,
    contains,
    cost,
    cover,
    fill,
    heaviest,
    joins,
    pins,
    remnant,
    sample,
)
from superarm.actions.explicit import Explicit, list_batches
from superarm.actions.graphic import GraphicMatroid
from superarm.actions.knapsack import Knapsack
from superarm.actions.laminar import Laminar
from superarm.actions.listed import Batches, best_batch, value_of
from superarm.actions.matching import Matching
from superarm.actions.partition import PartitionMatroid
from superarm.actions.paths import Paths
from superarm.actions.pinned import Pinned
from superarm.actions.slots import Slots
from superarm.actions.subsets import Subsets
from superarm.actions.trees import SpanningTrees
from superarm.candidates import Candidates

__all__ = [
    "Actions",
    "Batches",
    "Candidates",
    "Explicit",
    "GraphicMatroid",
    "Knapsack",
    "Laminar",
    "Matching",
    "PartitionMatroid",
    "Paths",
    "Pinned",
    "Slots",
    "SpanningTrees",
    "Subsets",
    "admits",
    "all_eligible",
    "best_batch",
    "budget",
    "capacity",
    "ceiling",
    "complete",
    "contains",
    "cost",
    "cover",
    "fill",
    "heaviest",
    "joins",
    "list_batches",
    "pins",
    "remnant",
    "sample",
    "value_of",
]

__getattr__ = old_names(
    __name__, {"Ranks": "superarm.candidates:Candidates", "holds": "contains", "playable": "all_eligible"}
)
