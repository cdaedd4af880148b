"""Forward simulation of the independent cascade, [KempeKleinbergTardos2003]_ (section 2)."""

from typing import NamedTuple

import numpy as np

from superarm._jit import kernel
from superarm.arrays import Bools, Floats, Ints
from superarm.streams import Stream, seek, uniform
from superarm.support import Support, item, size, span

_KEY = np.uint64(0x6A09E667F3BCC909)


class SpreadTrace(NamedTuple):
    """Buffers for a cascade: the outcomes of edges, row after row; the active nodes in order; and which are active."""

    outcome: Floats
    active: Ints
    awake: Bools


@kernel
def diffuse(support: Support, p: Floats, seeds: Ints, t: int, stream: Stream, trace: SpreadTrace) -> int:
    """Simulate the cascade of round ``t`` from ``seeds`` and return how many nodes become active.

    Every active node tries each edge that leaves it once, also those to nodes that are active already: all of them are
    observed. The random numbers depend on (t, node) alone, so they are the same for all seeds. ``trace.awake`` must be
    False everywhere, and is so again afterwards.
    """
    outcome, active, awake = trace
    n = 0
    for j in seeds:
        if not awake[j]:
            awake[j] = True
            active[n] = j
            n += 1
    at, head = 0, 0
    while head < n:
        u = active[head]
        head += 1
        seek(stream, t, u)
        first, last = span(support, u)
        for o in range(last - first):
            live = uniform(stream) < p[first + o]
            outcome[at] = 1.0 if live else 0.0
            at += 1
            v = item(support, first, o)
            if live and not awake[v]:
                awake[v] = True
                active[n] = v
                n += 1
    for m in range(n):
        awake[active[m]] = False
    return n


@kernel
def expected_spread(support: Support, p: Floats, weights: Floats, seeds: Ints, simulations: int) -> float:
    r"""The mean weight of the active nodes over ``simulations`` cascades, with fixed random numbers.

    .. math:: \hat\sigma(S; p) = \frac{1}{n}\sum_{s \le n} w(R_s(S))

    where :math:`R_s(S)` are the nodes that S activates in cascade s. Monotone and submodular in S, as each term is.
    """
    n_nodes = len(weights)
    trace = SpreadTrace(np.empty(size(support)), np.empty(n_nodes, np.int64), np.zeros(n_nodes, np.bool_))
    stream = Stream(np.full(1, _KEY), np.full(1, _KEY))
    total = 0.0
    for s in range(simulations):
        n = diffuse(support, p, seeds, s, stream, trace)
        for m in range(n):
            total += weights[trace.active[m]]
    return total / simulations
