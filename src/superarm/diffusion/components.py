"""Influence on a graph, the independent cascade: spread as a reward, as an environment, and the oracle IMM.

Node ``u`` is an arm, its entries are the edges that leave it. A reverse-reachable set holds the nodes from which a
random root is reached in a random live-edge graph, [BorgsEtAl2014]_: the spread of seeds is proportional to the
probability that they hit a random set.
"""

import importlib
import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm import random
from superarm.actions.subsets import Subsets
from superarm.core.arrays import Floats, Ints, count, floats, probabilities
from superarm.core.errors import InvalidArgument
from superarm.core.support import Sparse
from superarm.environments.base import Answer, Environment
from superarm.oracles.base import Guarantee, Oracle
from superarm.problem import Problem
from superarm.rewards import Coverage, Smoothness

if TYPE_CHECKING:
    from superarm.core.tally import View

MAX_UNSURE_EDGES = 10
"""Up to this many edges with a probability strictly between 0 and 1, all live-edge graphs are enumerated."""

GREEDY = 1.0 - 1.0 / math.e
"""The limit of greedy's alpha for a monotone submodular reward, [NemhauserWolseyFisher1978]_."""

_KEY = np.uint64(0x6A09E667F3BCC909)


silent = np.errstate(over="ignore")
"""For loops in plain Python: words of random numbers wrap around."""


def loop(name: str) -> Any:
    """A compiled loop, or a plain one without numba; numba is imported with the first."""
    return getattr(importlib.import_module("superarm.diffusion.loops"), name)


class Graph(NamedTuple):
    """The edges by the node that they leave, and by the node that they enter."""

    start: Ints
    items: Ints
    arc_start: Ints
    arc_source: Ints
    arc_entry: Ints


def graph_of(support: Any) -> Graph:
    """The graph of a support whose arms and items are the nodes; dense supports are complete graphs."""
    n = support.n_arms
    start = support.start if isinstance(support, Sparse) else np.arange(0, n * n + 1, n)
    items = support.items if isinstance(support, Sparse) else np.tile(np.arange(n), n)
    source = np.repeat(np.arange(n), np.diff(start))
    entry = np.argsort(items, kind="stable")
    arc_start = np.concatenate([[0], np.cumsum(np.bincount(items, minlength=n))])
    return Graph(start, items, arc_start.astype(np.int64), source[entry].astype(np.int64), entry.astype(np.int64))


def flat(support: Any, q: Floats) -> Floats:
    """One replication of entries in the order of edges, by the node that they leave."""
    return np.ascontiguousarray(support.to_user(q).reshape(-1))


class Spread(Coverage):
    r"""The expected weight of the nodes that seeds activate in the independent cascade model on a graph.

    .. math:: \sigma(S; q) = \sum_v w_v\, P\{v \text{ is reached from } S\}

    Arms and items are the nodes; the entries of an arm are the edges that leave it. ``values`` are means over
    ``simulations`` simulated cascades, with the same random numbers for all batches and parameters; ``IMM`` maximises
    it. The reward is not a sum over items: ``start``, ``join`` and ``gain`` describe direct influence only, and so do
    the gains that other oracles add up. They have no guarantee here, so ``submodular`` is False, although spread itself
    is submodular. On a bipartite graph with weights on the targets only, it is ``Coverage``.
    [KempeKleinbergTardos2003]_ (section 2).

    Parameters
    ----------
    simulations
        How many cascades ``values`` averages over.
    """

    simulations: int = 200
    submodular = False
    additive = False
    triggers = True

    def check(self) -> None:
        self.convert("simulations", count(self.simulations, "simulations", 1, "Spread"))

    @silent
    def values(self, problem: Problem, q: Floats, action: Ints) -> Floats:
        graph, spread = graph_of(problem.support), loop("mean_spread")
        edges = [flat(problem.support, one) for one in q]
        return np.array(
            [
                spread(graph.start, graph.items, edges[r % len(q)], problem.weights, seeds, self.simulations, _KEY)
                for r, seeds in enumerate(action)
            ]
        )

    def oracle(self, problem: Problem) -> "IMM | None":
        """``IMM`` for seeds of any kind; None, which lists the batches, for another action set."""
        return IMM() if isinstance(problem.actions, Subsets) else None

    def smoothness(self, k: int) -> Smoothness:
        """The smoothness of direct influence; for spread, no constant is known that does not grow with the graph."""
        return Smoothness(1.0, 0.5)


class IndependentCascade(Environment):
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
    graph
        The edges as a support, if ``p`` is the array of their probabilities; a sparse matrix has both.
    """

    p: Any
    weights: Any = None
    samples: int = 50_000
    seed: int = 0
    graph: Any = None
    own_reward = True

    def check(self) -> None:
        graph = self.graph if isinstance(self.graph, Sparse) else Sparse.of(self.p)
        if graph.n_arms != graph.n_items:
            raise InvalidArgument("p", f"shape {self.p.shape}", "give (n_nodes, n_nodes)", "IndependentCascade")
        chance, n = probabilities(self.p, "p"), graph.n_arms
        high = np.finfo(float).max
        w = np.ones(n) if self.weights is None else floats(self.weights, "weights", low=0.0, high=high)
        if w.shape != (n,) or not w.any():
            raise InvalidArgument("weights", f"shape {w.shape}", f"give {n}, not all 0", "IndependentCascade")
        self.convert("samples", count(self.samples, "samples", 1, "IndependentCascade"))
        sets = exact_sets(graph, chance, w) or self._sample(graph, chance, w)
        for name, value in (("p", chance), ("weights", w), ("graph", graph), ("sets", sets)):
            self.convert(name, value)

    @silent
    def _sample(self, graph: Sparse, p: Floats, weights: Floats) -> tuple[Ints, Any, Floats]:
        edges, state = graph_of(graph), np.random.SeedSequence(self.seed).generate_state(1, np.uint64)
        drawn = loop("sample_sets")(*edges[2:], p, weights, self.samples, state)
        first, held = loop("sets_by_node")(*drawn, graph.n_arms)
        return first, held, np.full(self.samples, float(weights.sum()) / self.samples)

    @silent
    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        n, widest, diffuse = problem.n_arms, problem.support.widest, loop("diffuse")
        outcome, active = np.zeros((len(action), n, widest)), np.full((len(action), n), -1)
        awake, most = np.zeros(n, bool), 1
        for r, seeds in enumerate(action):
            arguments = (self.graph.start, self.graph.items, self.p, seeds, t, keys[r], outcome[r], active[r], awake)
            most = max(most, diffuse(*arguments))
        return Answer(outcome[:, :most], None, active[:, :most])

    def means(self, problem: Problem, t: int) -> Floats:
        return self.entries(problem, self.p)

    def expected(self, problem: Problem, action: Ints, t: int) -> Floats:
        first, held, worth = self.__dict__["sets"]
        hit = loop("hit_worth")
        return np.array([hit(first, held, worth, seeds) for seeds in action])

    def best(self, problem: Problem) -> tuple[float, float]:
        """Lower and upper bound of the best spread: that of the greedy batch, and a bound from its marginal gains."""
        from scipy.sparse import csr_array

        first, held, worth = self.__dict__["sets"]
        table = csr_array((np.ones(len(held)), held, first), shape=(problem.n_arms, len(worth)))
        left, low, high = worth.copy(), 0.0, np.inf
        for _ in range(problem.k):
            gain = table @ left
            high = min(high, low + float(np.sort(gain)[-problem.k :].sum()))
            u = int(np.argmax(gain))
            low += float(gain[u])
            left[held[first[u] : first[u + 1]]] = 0.0
        return low, max(low, min(high, low + float(np.sort(table @ left)[-problem.k :].sum())))

    def validate(self, problem: Problem) -> None:
        if problem.support != self.graph:
            raise InvalidArgument("environment", "its edges are not those of the support", "give both the same graph")


def exact_sets(graph: Sparse, p: Floats, weights: Floats) -> tuple[Ints, Any, Floats] | None:
    """The sets of each node and the worth of each set: its weight times the probability of the live-edge graphs.

    None if more than ``MAX_UNSURE_EDGES`` edges are uncertain. For live-edge graphs see [KempeKleinbergTardos2003]_.
    """
    edges = list(zip(graph.arm_of.tolist(), graph.items.tolist(), p.tolist(), strict=True))
    sure, unsure = [edge[:2] for edge in edges if edge[2] == 1.0], [edge for edge in edges if 0.0 < edge[2] < 1.0]
    if len(unsure) > MAX_UNSURE_EDGES:
        return None
    worth: dict[tuple[int, ...], float] = {}
    for live in itertools.product((False, True), repeat=len(unsure)):
        chance = float(np.prod([q if on else 1.0 - q for on, (_, _, q) in zip(live, unsure, strict=True)]))
        live_edges = sure + [edge[:2] for on, edge in zip(live, unsure, strict=True) if on]
        for root in np.flatnonzero(weights).tolist():
            found = _find_ancestors(live_edges, root)
            worth[found] = worth.get(found, 0.0) + chance * float(weights[root])
    pairs = sorted((u, s) for s, found in enumerate(worth) for u in found)
    first = np.searchsorted([u for u, _ in pairs], np.arange(graph.n_arms + 1))
    return first.astype(np.int64), np.array([s for _, s in pairs], np.int32), np.array(list(worth.values()))


def _find_ancestors(live_edges: list[tuple[int, int]], root: int) -> tuple[int, ...]:
    found = {root}
    while True:
        more = {u for u, v in live_edges if v in found} - found
        if not more:
            return tuple(sorted(found))
        found |= more


class Condensed(NamedTuple):
    """A graph whose nodes are groups of nodes; ``home`` (n_nodes,) is the group of each node."""

    arcs: tuple[Ints, Ints, Ints]
    weights: Floats
    home: Ints


def condense(graph: Graph, p: Floats, weights: Floats) -> Condensed:
    """Merge nodes that reach one another with probability 1; edges inside a group are dropped.

    While most edges are unknown and score 1, this merges most of the graph. A reverse-reachable set of nodes is the
    union of the groups in a reverse-reachable set of groups, if roots are drawn by the weight of the group.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = len(weights)
    source, target = np.repeat(np.arange(n), np.diff(graph.start)), graph.items
    certain = p >= 1.0
    links = csr_array((np.ones(int(certain.sum())), (source[certain], target[certain])), shape=(n, n))
    n_groups, home = connected_components(links, directed=True, connection="strong")
    home = home.astype(np.int64)
    kept = np.flatnonzero((home[source] != home[target]) & (p > 0.0))
    order = kept[np.argsort(home[target[kept]], kind="stable")]
    starts = np.concatenate([[0], np.cumsum(np.bincount(home[target[kept]], minlength=n_groups))]).astype(np.int64)
    mass: Any = np.bincount(home, weights, n_groups)
    return Condensed((starts, home[source[order]], order), mass, home)


class IMM(Oracle):
    r"""Seeds of large spread by reverse-reachable sets: influence maximisation via martingales.

    With probability :math:`1 - n^{-\ell}` the spread is at least :math:`(1 - 1/e - \epsilon)` times the best. First,
    for x = 1/2, 1/4, ..., enough sets are sampled to decide whether the best seeds reach a share x of the graph. The
    first x that greedy seeds confirm gives a lower bound LB of the optimum, and LB gives the number of sets,

    .. math:: \theta = \frac{2\bigl((1 - 1/e)\,a + b\bigr)^2}{\epsilon^2\,LB},
              \quad a^2 = \ell' \log n + \log 2,
              \quad b^2 = (1 - \tfrac1e)\Bigl(\log\tbinom{n}{k} + \ell' \log n + \log 2\Bigr)

    with LB as a share of the total weight and :math:`\ell' = \ell(1 + \log 2/\log n)`. Greedy maximum coverage of
    :math:`\theta` sets picks the seeds. Implements [TangShiXiao2015]_ (Algorithms 1 to 3). Differs: sets are drawn anew
    for the last step, as [Chen2018]_ shows to be needed, and for every x; roots are drawn by weight; nodes that reach
    one another with probability 1 are merged.

    Parameters
    ----------
    epsilon
        The loss in alpha; the number of sets grows with its inverse square.
    ell
        The exponent of the probability of failure.
    """

    epsilon: float = 0.5
    ell: float = 1.0

    def check(self) -> None:
        self.require("ell", 0.0 < self.ell < math.inf, "give a finite number > 0")
        self.require("epsilon", 0.0 < self.epsilon < GREEDY, "give a number in (0, 1 - 1/e)")

    @silent
    def maximize(self, problem: Problem, q: Floats, view: "View") -> Ints:
        out, edges = np.full((len(view), problem.k), -1), graph_of(problem.support)
        for r in range(len(view)):
            pinned = view.pinned[r]
            if not view.eligible[r, pinned].all():
                continue
            chosen = np.empty(min(problem.k, int(view.eligible[r].sum())), np.int64)
            chosen[: len(pinned)] = pinned
            graph = condense(edges, flat(problem.support, q[r if len(q) > 1 else 0]), problem.weights)
            p = flat(problem.support, q[r if len(q) > 1 else 0])
            state = random.states(view.keys[r : r + 1], view.t, np.array([random.SHARED]))[0]
            fill = (graph.home, view.counts[r], view.eligible[r], len(pinned), chosen)
            least = self._lower_bound(problem, graph, p, fill, state)
            n_sets = math.ceil(_sets_at_full_spread(problem.n_arms, len(chosen), self.epsilon, self.ell) / least)
            sets = loop("sample_sets")(*graph.arcs, p, graph.weights, n_sets, state)
            loop("select_seeds")(*sets, *fill)
            out[r, : len(chosen)] = chosen
        return out

    def _lower_bound(self, problem: Problem, graph: Condensed, p: Floats, fill: Any, state: Any) -> float:
        """A lower bound of the share of the weight that the best seeds reach: Algorithm 2 of the paper."""
        home, _, eligible, _, chosen = fill
        n, epsilon = problem.n_arms, math.sqrt(2.0) * self.epsilon  # epsilon-prime of the paper
        log_terms = _log_terms(n, len(chosen), self.ell) + math.log(max(1.0, math.log2(n)))
        base = (2.0 + 2.0 * epsilon / 3.0) * log_terms / (epsilon * epsilon)  # lambda-prime (equation 9), over n
        share = 0.5
        while share * n >= 2.0:
            sets = loop("sample_sets")(*graph.arcs, p, graph.weights, math.ceil(base / share), state)
            reached = loop("select_seeds")(*sets, *fill)
            if reached >= (1.0 + epsilon) * share:
                return float(reached / (1.0 + epsilon))
            share *= 0.5
        largest = float(np.where(eligible, graph.weights[home], 0.0).max())
        return max(largest / float(graph.weights.sum()), 1.0 / (n * n))

    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(GREEDY - self.epsilon, 1.0 - problem.n_arms**-self.ell)

    def validate(self, problem: Problem) -> None:
        square = problem.n_arms == problem.n_items >= 2
        if not (isinstance(problem.reward, Spread) and square and problem.actions.uniform):
            wrong = "IMM needs the reward Spread, nodes as arms and items, and Subsets(k)"
            raise InvalidArgument("oracle", wrong, "take Greedy()")


def _log_terms(n: int, k: int, ell: float) -> float:
    """The logarithm of the number of batches divided by the probability of failure."""
    batches = math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)
    return batches + ell * (math.log(n) + math.log(2.0))


def _sets_at_full_spread(n: int, k: int, epsilon: float, ell: float) -> float:
    """How many sets suffice if the best seeds reach all nodes: the lambda-star of the paper (equation 6), over n."""
    a = math.sqrt(ell * (math.log(n) + math.log(2.0)) + math.log(2.0))
    b = math.sqrt(GREEDY * (_log_terms(n, k, ell) + math.log(2.0)))
    return 2.0 * (GREEDY * a + b) ** 2 / (epsilon * epsilon)
