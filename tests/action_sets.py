"""Small action sets of every kind, and the slow, obvious way to list their batches."""

import itertools

import numpy as np

from superarm.actions import (
    Explicit,
    GraphicMatroid,
    Knapsack,
    Laminar,
    Matching,
    PartitionMatroid,
    Paths,
    Pinned,
    Slots,
    SpanningTrees,
    Subsets,
)

K4 = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]
HEXAGON = [(0, 0), (0, 1), (1, 1), (1, 2), (2, 0), (2, 2)]
WAYS = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)]

PLAIN = {
    "subsets": (Subsets(3), 6),
    "explicit": (Explicit([[0, 1], [2], [3, 4, 5], [1, 3]]), 6),
    "partition": (PartitionMatroid([0, 0, 1, 1, 1, 2], [1, 2, 1]), 6),
    "laminar": (Laminar([([0, 1], 1), ([0, 1, 2, 3], 2)]), 6),
    "graphic": (GraphicMatroid(5, K4), 6),
    "trees": (SpanningTrees(4, K4), 6),
    "matching": (Matching(3, 3, HEXAGON), 6),
    "paths": (Paths(5, WAYS, 0, 4), 7),
    "knapsack": (Knapsack([1.0, 2.0, 3.0, 2.5, 0.5, 1.7], 4.0), 6),
    "off-grid": (Knapsack([1.00003, 2.0, 3.1, 2.5, 0.5, 1.7], 4.0), 6),
    "slots": (Slots([[0, 1, 2], [2, 3], [3, 4, 5]]), 6),
}
PINNED = {f"pinned {name}": (Pinned(PLAIN[name][0], [2]), PLAIN[name][1]) for name in PLAIN}
SETS = PLAIN | PINNED


def playable(actions, n_arms, eligible=None):
    """Every batch that may be played by eligible arms, by asking about every set of arms."""
    arms = range(n_arms) if eligible is None else np.flatnonzero(eligible)
    sets = itertools.chain(*(itertools.combinations(arms, size) for size in range(1, n_arms + 1)))
    return [batch for batch in sets if actions.includes(np.array(batch))]
