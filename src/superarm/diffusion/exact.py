"""All reverse-reachable sets of a small graph with their probabilities: the exact spread, without sampling."""

import itertools

import numpy as np

from superarm.arrays import Floats
from superarm.diffusion.sets import Sets
from superarm.support import Support, item, span

MAX_UNSURE_EDGES = 10
"""Up to this many edges with a probability strictly between 0 and 1, all live-edge graphs are enumerated."""


def exact_sets(support: Support, p: Floats, weights: Floats) -> tuple[Sets, Floats] | None:
    """All sets, and the worth (n_sets,) of each: the weight of the roots times the probability of the live-edge graphs.

    None if more than ``MAX_UNSURE_EDGES`` edges are uncertain. For live-edge graphs see [KempeKleinbergTardos2003]_.
    """
    edges = [
        (u, int(item(support, first, o)), float(p[first + o]))
        for u in range(support.n_arms)
        for first, last in [span(support, u)]
        for o in range(last - first)
    ]
    sure = [(u, v) for u, v, chance in edges if chance == 1.0]
    unsure = [edge for edge in edges if 0.0 < edge[2] < 1.0]
    if len(unsure) > MAX_UNSURE_EDGES:
        return None
    worth: dict[tuple[int, ...], float] = {}
    for live in itertools.product((False, True), repeat=len(unsure)):
        chance = float(np.prod([q if on else 1.0 - q for on, (_, _, q) in zip(live, unsure, strict=True)]))
        live_edges = sure + [(u, v) for on, (u, v, _) in zip(live, unsure, strict=True) if on]
        for root in np.flatnonzero(weights):
            found = _find_ancestors(live_edges, int(root))
            worth[found] = worth.get(found, 0.0) + chance * float(weights[root])
    sizes = [len(found) for found in worth]
    nodes = np.array([u for found in worth for u in found], np.int32)
    return Sets(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), nodes), np.array(list(worth.values()))


def _find_ancestors(live_edges: list[tuple[int, int]], root: int) -> tuple[int, ...]:
    found = {root}
    while True:
        more = {u for u, v in live_edges if v in found} - found
        if not more:
            return tuple(sorted(found))
        found |= more
