"""Random small action sets of every kind, each with the slow, obvious definition of what may be played."""

import itertools

import numpy as np

from superarm import actions as sets
from superarm.actions import Actions
from superarm.core.tally import View


class NoNeighbours(Actions):
    """An action set of a user's own: no two arms side by side. Its ``join`` does something for -1."""

    k: int

    def capacity(self, n_arms):
        return self.k

    def start(self, eligible):
        return eligible.copy()

    def joinable(self, free, eligible):
        return free

    def join(self, free, arm):
        return free & (np.abs(np.arange(free.shape[1]) - arm[:, None]) > 1)


def _subsets(n, rng):
    k = int(rng.integers(1, n))
    return sets.Subsets(k), lambda batch: len(batch) <= k


def _explicit(n, rng):
    listed = [rng.choice(n, rng.integers(1, min(n, 4)), replace=False).tolist() for _ in range(4)]
    listed += [[j] for j in range(n)]
    return sets.Explicit(listed), lambda batch: set(batch) in map(set, listed)


def _within(families):
    """Whether a batch has at most so many arms of each family."""
    return lambda batch: all(len(set(batch) & set(arms)) <= limit for arms, limit in families)


def _partition(n, rng):
    groups, limits = [0, 1, 2, *rng.integers(0, 3, n - 3).tolist()], rng.integers(1, 3, 3).tolist()
    families = [([j for j in range(n) if groups[j] == g], limits[g]) for g in range(3)]
    return sets.PartitionMatroid(groups, limits), _within(families)


def _counted(n, rng):
    """At most so many of each of two groups, at least one of the first, and k in all; places are kept for minimums."""
    groups, k = [0, 1, *rng.integers(0, 2, n - 2).tolist()], int(rng.integers(3, 5))
    most, least = int(rng.integers(1, 3)), {0: 1, 1: int(rng.integers(0, 2))}
    limits, minimums = {0: most}, {g: number for g, number in least.items() if number}

    def may_play(batch):
        numbers = [sum(groups[j] == g for j in batch) for g in (0, 1)]
        lacking = sum(max(0, least[g] - numbers[g]) for g in (0, 1))
        return numbers[0] <= most and len(batch) + lacking <= k

    return sets.PartitionMatroid(groups, limits, k, minimums), may_play


def _rules(n, rng):
    """A rule by groups, one by families, and at most k arms."""
    (one, first), (two, second), (three, third) = _partition(n, rng), _laminar(n, rng), _subsets(n, rng)
    return sets.Intersection([one, two, three]), lambda batch: first(batch) and second(batch) and third(batch)


def _laminar(n, rng):
    cut = int(rng.integers(1, n))
    families = [(range(cut), int(rng.integers(1, 3))), (range(min(n, cut + 2)), int(rng.integers(1, 4)))]
    return sets.Laminar(families), _within(families)


def _n_parts(n_nodes, edges):
    """How many connected parts a graph has."""
    part = list(range(n_nodes))
    for a, b in edges:
        part = [part[a] if p == part[b] else p for p in part]
    return len(set(part))


def _edges(n_nodes, n, rng):
    return [tuple(rng.choice(n_nodes, 2, replace=False).tolist()) for _ in range(n)]


def _graphic(n, rng):
    edges = _edges(5, n, rng)
    return sets.GraphicMatroid(5, edges), lambda batch: _n_parts(5, [edges[j] for j in batch]) == 5 - len(batch)


def _trees(n, rng):
    edges = [(0, 1), (1, 2), (2, 3), *_edges(4, n - 3, rng)]
    return sets.SpanningTrees(4, edges), lambda b: len(b) == 3 and _n_parts(4, [edges[j] for j in b]) == 1


def _matching(n, rng):
    edges = [(int(c) // 3, int(c) % 3) for c in rng.choice(9, n, replace=False)]
    ends = [[(0, a), (1, b)] for a, b in edges]
    return sets.Matching(3, 3, edges), lambda batch: len({end for j in batch for end in ends[j]}) == 2 * len(batch)


def _paths(n, rng):
    """Three stages between four nodes, with short cuts, as many edges as asked for."""
    spare = [(0, 1), (1, 2), (2, 3), (0, 2), (1, 3), (0, 3)]
    edges = [*spare[:3], *(spare[int(rng.integers(6))] for _ in range(n - 3))]

    def is_path(batch):
        line = sorted(edges[j] for j in batch)
        joined = all(a[1] == b[0] for a, b in itertools.pairwise(line))
        return joined and line[0][0] == 0 and line[-1][1] == 3

    return sets.Paths(4, edges, 0, 3), is_path


def _bag(costs, budget):
    return sets.Knapsack(costs, budget), lambda batch: sum(costs[j] for j in batch) <= budget * (1.0 + 1e-9)


def _knapsack(n, rng):
    costs = rng.integers(1, 6, n) / 2.0
    return _bag(costs, costs.max() + float(rng.integers(0, 7)) / 2.0)


def _off_grid(n, rng):
    costs = rng.uniform(0.1, 1.0, n)
    return _bag(costs, costs.max() + rng.random())


def _copies(n, rng):
    """Of two arms, with prices or without."""
    first = int(rng.integers(1, n))
    if rng.random() < 0.5:
        k = int(rng.integers(1, n + 1))
        return sets.Copies({"a": first, "b": n - first}, k), lambda batch: len(batch) <= k
    prices = {"a": 1.0, "b": 2.5}
    costs = [1.0] * first + [2.5] * (n - first)
    budget = 2.5 + float(rng.integers(0, 5)) / 2.0
    return sets.Copies(
        {"a": first, "b": n - first}, budget, prices
    ), lambda batch: sum(costs[j] for j in batch) <= budget


def _slots(n, rng):
    allowed = rng.random((3, n)) < 0.5
    allowed[rng.integers(0, 3, n), np.arange(n)] = True
    allowed = allowed[allowed.any(axis=1)]

    def fits(batch):
        seats = itertools.permutations(range(len(allowed)), len(batch))
        return any(all(allowed[s, j] for s, j in zip(seat, batch, strict=True)) for seat in seats)

    return sets.Slots(allowed), fits


KINDS = {
    "subsets": _subsets,
    "explicit": _explicit,
    "partition": _partition,
    "counted": _counted,
    "rules": _rules,
    "laminar": _laminar,
    "graphic": _graphic,
    "trees": _trees,
    "matching": _matching,
    "paths": _paths,
    "knapsack": _knapsack,
    "off-grid": _off_grid,
    "copies": _copies,
    "slots": _slots,
}
PINNED = [f"pinned {kind}" for kind in KINDS]
ALL = [*KINDS, *PINNED]


def random_set(kind, rng):
    """A random action set of the kind, how many arms it has, and whether a set of arms may be played."""
    n = int(rng.integers(5, 8))
    plain, may_play = KINDS[kind.removeprefix("pinned ")](n, rng)
    if not kind.startswith("pinned "):
        return plain, n, may_play
    batches = list(plain.batches(n))
    batch = batches[rng.integers(len(batches))]
    pins = batch[: rng.integers(1, max(2, len(batch)))]
    return sets.Pinned(plain, pins), n, lambda other: set(pins) <= set(other) and may_play(other)


def playable(may_play, n_arms, eligible=None):
    """Every batch that may be played by eligible arms, by asking about every set of arms."""
    arms = range(n_arms) if eligible is None else np.flatnonzero(eligible).tolist()
    batches = itertools.chain(*(itertools.combinations(arms, size) for size in range(1, n_arms + 1)))
    return [batch for batch in batches if may_play(batch)]


def random_view(problem, rng, rows=1, share=(0.6, 0.8, 1.0), distinct=False):
    """A random view: few pulls, so that ties are common, unless they are to be distinct."""
    made, n = problem.view(), problem.n_arms
    counts = rng.integers(0, 3, (rows, n)) if not distinct else np.array([rng.permutation(n) for _ in range(rows)])
    eligible = rng.random((rows, n)) < rng.choice(share, (rows, 1))
    keys = np.random.default_rng(0).integers(0, 2**63, rows).astype(np.uint64)
    return View(made.t, made.tally, keys, counts.astype(float), eligible, np.repeat(made.pinned, rows, 0))


def arms(batch):
    """A row of a batch without its padding, as a list."""
    return batch[batch >= 0].tolist()
