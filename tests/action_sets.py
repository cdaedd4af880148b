"""Random small action sets of every kind, and the slow, obvious way to list their batches."""

import itertools

import numpy as np

import superarm as sa
from superarm.candidates import Candidates


def _explicit(n, rng):
    batches = [rng.choice(n, rng.integers(1, min(n, 4)), replace=False).tolist() for _ in range(4)]
    return sa.Explicit([*batches, *([j] for j in range(n))])


def _laminar(n, rng):
    cut = int(rng.integers(1, n))
    return sa.Laminar([(range(cut), int(rng.integers(1, 3))), (range(min(n, cut + 2)), int(rng.integers(1, 4)))])


def _edges(n_nodes, n, rng):
    return [tuple(rng.choice(n_nodes, 2, replace=False).tolist()) for _ in range(n)]


def _matching(n, rng):
    cells = rng.choice(9, n, replace=False)
    return sa.Matching(3, 3, [(int(c) // 3, int(c) % 3) for c in cells])


def _paths(n, rng):
    """Three stages between four nodes, with short cuts, as many edges as asked for."""
    spare = [(0, 1), (1, 2), (2, 3), (0, 2), (1, 3), (0, 3)]
    more = [spare[int(rng.integers(6))] for _ in range(n - 3)]
    return sa.Paths(4, [*spare[:3], *more], 0, 3)


def _knapsack(n, rng):
    costs = rng.integers(1, 6, n) / 2.0
    return sa.Knapsack(costs, costs.max() + float(rng.integers(0, 7)) / 2.0)


def _off_grid(n, rng):
    costs = rng.uniform(0.1, 1.0, n)
    return sa.Knapsack(costs, costs.max() + rng.random())


def _slots(n, rng):
    allowed = rng.random((3, n)) < 0.5
    allowed[rng.integers(0, 3, n), np.arange(n)] = True
    return sa.Slots(allowed[allowed.any(axis=1)])


KINDS = {
    "subsets": lambda n, rng: sa.Subsets(int(rng.integers(1, n))),
    "explicit": _explicit,
    "partition": lambda n, rng: sa.PartitionMatroid([0, 1, 2, *rng.integers(0, 3, n - 3)], rng.integers(1, 3, 3)),
    "laminar": _laminar,
    "graphic": lambda n, rng: sa.GraphicMatroid(5, _edges(5, n, rng)),
    "trees": lambda n, rng: sa.SpanningTrees(4, [(0, 1), (1, 2), (2, 3), *_edges(4, n - 3, rng)]),
    "matching": _matching,
    "paths": _paths,
    "knapsack": _knapsack,
    "off-grid": _off_grid,
    "slots": _slots,
}
PINNED = [f"pinned {kind}" for kind in KINDS]
ALL = [*KINDS, *PINNED]


def random_set(kind, rng):
    """A random action set of the kind, and how many arms it has."""
    n = int(rng.integers(5, 8))
    plain = KINDS[kind.removeprefix("pinned ")](n, rng)
    if not kind.startswith("pinned "):
        return plain, n
    batches = list(plain.batches(n))
    batch = batches[rng.integers(len(batches))]
    return sa.Pinned(plain, batch[: rng.integers(1, max(2, len(batch)))]), n


def playable(actions, n_arms, eligible=None):
    """Every batch that may be played by eligible arms, by asking about every set of arms."""
    arms = range(n_arms) if eligible is None else np.flatnonzero(eligible)
    sets = itertools.chain(*(itertools.combinations(arms, size) for size in range(1, n_arms + 1)))
    return [batch for batch in sets if actions.includes(np.array(batch))]


def random_ranks(n, rng):
    """Everyone eligible, or nearly everyone; few pulls, so that ties are common."""
    eligible = rng.random(n) < rng.choice([0.8, 1.0])
    return Candidates(rng.integers(0, 3, n).astype(float), eligible)
