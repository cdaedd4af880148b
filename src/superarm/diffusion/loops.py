"""The independent cascade on a graph: cascades, reverse-reachable sets, their selection, and condensation.

A graph has the entries ``start``, ``items``: the edges that leave node u are ``start[u]:start[u + 1]``, to ``items``.
``arc_start``, ``arc_source``, ``arc_entry`` are the same edges sorted by the node that they enter. Sets of nodes are in
one array: set s is ``nodes[start[s]:start[s + 1]]``. ``state`` (1,) is that of a sequence of random numbers.
"""

# mypy: ignore-errors
import numpy as np

try:
    from numba import njit

    kernel = njit(cache=True, nogil=True, error_model="numpy")
except ImportError:  # plain Python

    def kernel(function):
        return function


STEP, ROUND, INDEX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1342543DE82EF95), np.uint64(0xAF251AF3B0F025B5)
MIX1, MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31 = (np.uint64(n) for n in (11, 27, 30, 31))


@kernel
def mix(z):
    """The finaliser of SplitMix64, [Steele2014]_."""
    z = (z ^ (z >> _30)) * MIX1
    z = (z ^ (z >> _27)) * MIX2
    return z ^ (z >> _31)


@kernel
def number(z):
    """The uniform number of a state, as those of ``superarm.random``."""
    return float(mix(z) >> _11) * 2.0**-53


@kernel
def following(state):
    state[0] += STEP
    return number(state[0])


@kernel
def diffuse(start, items, p, seeds, t, key, outcome, active, awake):
    """Simulate the cascade of round ``t`` from ``seeds``; return how many nodes become active.

    Every active node tries each edge that leaves it once, also those to nodes that are active already: all of them are
    observed, in ``outcome`` (n_nodes, widest). Numbers depend on (t, node) alone. ``active`` gets the nodes in order;
    ``awake`` must be False everywhere, and is so again afterwards.
    """
    n = 0
    for j in seeds:
        if j >= 0 and not awake[j]:
            awake[j] = True
            active[n] = j
            n += 1
    base, head = mix(key ^ np.uint64(t) * ROUND), 0
    while head < n:
        u = active[head]
        s = mix(base + np.uint64(u) * INDEX)
        for o in range(start[u + 1] - start[u]):
            live = number(s + np.uint64(o + 1) * STEP) < p[start[u] + o]
            outcome[head, o] = 1.0 if live else 0.0
            v = items[start[u] + o]
            if live and not awake[v]:
                awake[v] = True
                active[n] = v
                n += 1
        head += 1
    for m in range(n):
        awake[active[m]] = False
    return n


@kernel
def mean_spread(start, items, p, weights, seeds, simulations, key):
    """The mean weight of the active nodes over ``simulations`` cascades, with the random numbers of ``key``."""
    n_nodes, widest = len(weights), 0
    for u in range(n_nodes):
        widest = max(widest, start[u + 1] - start[u])
    outcome, active = np.empty((n_nodes, widest)), np.empty(n_nodes, np.int64)
    awake, total = np.zeros(n_nodes, np.bool_), 0.0
    for s in range(simulations):
        n = diffuse(start, items, p, seeds, s, key, outcome, active, awake)
        for m in range(n):
            total += weights[active[m]]
    return total / simulations


@kernel
def sample_sets(arc_start, arc_source, arc_entry, p, weights, n_sets, state):
    """Draw ``n_sets`` independent reverse-reachable sets: their starts and their nodes."""
    n_nodes, total = len(weights), 0.0
    mass = np.empty(n_nodes)
    for v in range(n_nodes):
        total += weights[v]
        mass[v] = total
    start, nodes, size = np.zeros(n_sets + 1, np.int64), np.empty(4 * n_nodes, np.int32), 0
    last = np.full(n_nodes, -1)  # the set that a node joined last
    for s in range(n_sets):
        if size + n_nodes > len(nodes):
            larger = np.empty(2 * len(nodes), np.int32)
            larger[:size] = nodes[:size]
            nodes = larger
        root = min(int(np.searchsorted(mass, following(state) * total, side="right")), n_nodes - 1)
        head, last[root] = size, s
        nodes[size] = root
        size += 1
        while head < size:
            v = nodes[head]
            head += 1
            for a in range(arc_start[v], arc_start[v + 1]):
                u = arc_source[a]
                if last[u] != s and following(state) < p[arc_entry[a]]:
                    last[u] = s
                    nodes[size] = u
                    size += 1
        start[s + 1] = size
    return start, nodes[:size].copy()


@kernel
def sets_by_node(start, nodes, n_nodes):
    """The sets that each node is in, laid out like sets of nodes."""
    first = np.zeros(n_nodes + 1, np.int64)
    for v in nodes:
        first[v + 1] += 1
    for v in range(n_nodes):
        first[v + 1] += first[v]
    at, held = first[:-1].copy(), np.empty(len(nodes), np.int32)
    for s in range(len(start) - 1):
        for m in range(start[s], start[s + 1]):
            held[at[nodes[m]]] = s
            at[nodes[m]] += 1
    return first, held


@kernel
def hit_worth(first, held, worth, seeds):
    """The total worth of the sets that ``seeds`` hit; ``first``, ``held`` are the sets of each node."""
    hit, total = np.zeros(len(worth), np.bool_), 0.0
    for u in seeds:
        if u >= 0:
            for m in range(first[u], first[u + 1]):
                if not hit[held[m]]:
                    hit[held[m]] = True
                    total += worth[held[m]]
    return total


@kernel
def select_seeds(start, nodes, home, counts, eligible, size, chosen):
    """Fill ``chosen`` from ``size`` on with the eligible nodes that hit most sets not hit yet; return the share hit.

    ``home`` (n_nodes,) is the number by which each node appears in the sets: that of its group, or its own. Greedy
    maximum coverage, [TangShiXiao2015]_ (Algorithm 1). Ties go to the node with fewest pulls, then the lowest.
    """
    n_groups = int(home.max()) + 1
    first, held = sets_by_node(start, nodes, n_groups)
    left, free, hit, done = np.diff(first), eligible.copy(), np.zeros(len(start) - 1, np.bool_), 0
    for place in range(len(chosen)):
        if place >= size:
            best = -1
            for u in range(len(home)):
                more = 1 if best < 0 else left[home[u]] - left[home[best]]
                if free[u] and (more > 0 or (more == 0 and counts[u] < counts[best])):
                    best = u
            chosen[place] = best
        taken = home[chosen[place]]
        free[chosen[place]] = False
        for m in range(first[taken], first[taken + 1]):
            s = held[m]
            if not hit[s]:
                hit[s] = True
                done += 1
                for w in range(start[s], start[s + 1]):
                    left[nodes[w]] -= 1
    return done / (len(start) - 1)
