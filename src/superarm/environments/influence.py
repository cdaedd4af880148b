from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.arrays import Bools, Floats, Ints, count, floats, probabilities
from superarm.diffusion import Network, Sets, SpreadTrace, by_node, covered, diffuse, exact_sets, reverse, sample_sets
from superarm.diffusion.sets import Shorts
from superarm.environments.base import AnswerBuffer, flip
from superarm.errors import InvalidArgument
from superarm.streams import Stream, new_stream
from superarm.support import Sparse, Support, size


class _Graph(NamedTuple):
    p: Floats
    start: Ints
    held: Shorts
    worth: Floats


@component
class IndependentCascade(_Graph):
    r"""The independent cascade: an active node tries to activate each neighbour once, with the probability of the edge.

    A batch is a set of seeds, the nodes that are active at first. Every node that becomes active is observed, with the
    outcome of each edge that leaves it, so nodes outside of the batch are triggered arms. The model of
    [KempeKleinbergTardos2003]_ with the feedback of [ChenEtAl2016]_ (section 4.2).

    The expected reward of a batch is its expected spread, the weight of the nodes that become active. It is exact on
    graphs with at most ten uncertain edges. On larger ones it is estimated by a fixed collection of reverse-reachable
    sets at the true ``p``, the same for all policies, with a standard error of at most ``W / (2 sqrt(samples))``, where
    W is the total weight.

    Parameters
    ----------
    p
        A SciPy sparse matrix, (n_nodes, n_nodes): ``p[u, v]`` is the probability of the edge from u to v.
    weights
        The weights of the problem, (n_nodes,); 1 by default.
    samples
        How many reverse-reachable sets are drawn on larger graphs.
    seed
        The seed of the random numbers for these sets.
    """

    __slots__ = ()

    def __new__(cls, p: Any, weights: Any = None, samples: int = 50_000, seed: int = 0) -> "IndependentCascade":
        graph = Sparse(p)
        if graph.n_arms != graph.n_items:
            raise InvalidArgument("p", f"shape {p.shape}", "give (n_nodes, n_nodes)", "IndependentCascade")
        n_samples = count(samples, "samples", 1, "IndependentCascade")
        chance, n = probabilities(p, "p"), graph.n_arms
        w = np.ones(n) if weights is None else floats(weights, "weights", low=0.0, high=np.finfo(float).max)
        if w.shape != (n,) or not w.any():
            raise InvalidArgument("weights", f"shape {w.shape}", f"give {n}, not all 0", "IndependentCascade")
        sets, worth = exact_sets(graph, chance, w) or _sample_worth(graph, chance, w, n_samples, seed)
        held = by_node(sets, n)
        return super().__new__(cls, chance, held.start, held.nodes, worth)

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        flip(support, self.p, action, t, stream, outcome)

    def means(self, t: int) -> Floats:
        return self.p

    def answer(self, support: Support, action: Ints, t: int, stream: Stream, sheet: AnswerBuffer) -> int:
        awake = np.zeros(len(self.start) - 1, np.bool_)
        return diffuse(support, self.p, action, t, stream, SpreadTrace(sheet.outcome, sheet.observed, awake))

    def max_answer_entries(self, support: Support, n_arms: int, k: int) -> int:
        return size(support)

    def expected_reward(self, weights: Floats, support: Support, action: Ints, t: int, default: float) -> float:
        return covered(Sets(self.start, self.held), self.worth, action)

    @interpreted
    def best(self, problem: Any) -> tuple[float, float]:
        """Lower and upper bound of the best spread: that of the greedy batch, and a bound from its marginal gains."""
        from scipy.sparse import csr_array

        table = csr_array((np.ones(len(self.held)), self.held, self.start), shape=(problem.n_arms, len(self.worth)))
        left, low, high = self.worth.copy(), 0.0, np.inf
        for _ in range(problem.k):
            gain = table @ left
            high = min(high, low + float(np.sort(gain)[-problem.k :].sum()))
            u = int(np.argmax(gain))
            low += float(gain[u])
            left[self.held[self.start[u] : self.start[u + 1]]] = 0.0
        return low, max(low, min(high, low + float(np.sort(table @ left)[-problem.k :].sum())))


def _sample_worth(graph: Sparse, p: Floats, weights: Floats, samples: int, seed: int) -> tuple[Sets, Floats]:
    sets = sample_sets(Network(reverse(graph), p, weights), samples, new_stream(np.random.SeedSequence(seed)))
    return sets, np.full(samples, float(weights.sum()) / samples)
