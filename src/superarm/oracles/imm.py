import math
from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.actions import capacity, pins
from superarm.actions.traits import uniform
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.diffusion import Arcs, Condensed, Network, condense, reverse, sample_sets, select
from superarm.errors import InvalidArgument
from superarm.oracles.base import GREEDY, Guarantee
from superarm.parameters import positive
from superarm.problem import Problem
from superarm.rewards import Spread
from superarm.streams import Stream

_EMPTY = np.zeros(0, np.int64)


@component
class IMM(NamedTuple):
    r"""Seeds of large spread by reverse-reachable sets: influence maximisation via martingales.

    With probability :math:`1 - n^{-\ell}` the spread is at least :math:`(1 - 1/e - \epsilon)` times the best. First,
    for x = 1/2, 1/4, ..., enough sets are sampled to decide whether the best seeds reach a share x of the graph. The
    first x that greedy seeds confirm gives a lower bound LB of the optimum, and LB gives the number of sets,

    .. math:: \theta = \frac{2\bigl((1 - 1/e)\,a + b\bigr)^2}{\epsilon^2\,LB},
              \quad a^2 = \ell' \log n + \log 2,
              \quad b^2 = (1 - \tfrac1e)\Bigl(\log\tbinom{n}{k} + \ell' \log n + \log 2\Bigr)

    with LB as a share of the total weight and :math:`\ell' = \ell(1 + \log 2/\log n)`. Greedy maximum coverage of
    :math:`\theta` sets picks the seeds. Implements [TangShiXiao2015]_ (Algorithms 1 to 3). Differs: sets are drawn anew
    for the last step, as [Chen2018]_ shows to be needed, and for every x; roots are drawn by weight; nodes that
    reach one another with probability 1 are merged. ``start``, ``source`` and ``entry`` are set by ``fit``.

    Parameters
    ----------
    epsilon
        The loss in alpha; the number of sets grows with its inverse square.
    ell
        The exponent of the probability of failure.
    """

    epsilon: float = 0.5
    ell: float = 1.0
    start: Ints = _EMPTY
    source: Ints = _EMPTY
    entry: Ints = _EMPTY

    def _check(self) -> None:
        positive(self, "ell")
        if not 0.0 < self.epsilon < GREEDY:
            raise InvalidArgument("epsilon", f"{self.epsilon}", "give a number in (0, 1 - 1/e)", "IMM")

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        eligible = 0
        for j in range(problem.n_arms):
            eligible += 1 if candidates.eligible[j] else 0
        chosen = np.empty(min(capacity(problem.actions, problem.n_arms), eligible), np.int64)
        held = pins(problem.actions, candidates, chosen)
        if held < 0 or len(chosen) == 0:
            return chosen[:0]
        graph = condense(Network(Arcs(self.start, self.source, self.entry), q, problem.terms.weights))
        least = _lower_bound(self, graph, candidates, chosen, held, stream)
        n_sets = math.ceil(_sets_at_full_spread(problem.n_arms, len(chosen), self.epsilon, self.ell) / least)
        select(sample_sets(graph.network, n_sets, stream), graph.home, candidates, chosen, held)
        return chosen

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(GREEDY - self.epsilon, 1.0 - problem.n_arms**-self.ell)

    @interpreted
    def fit(self, problem: Problem) -> "IMM":
        square = problem.n_arms == problem.n_items >= 2
        if not (isinstance(problem.reward, Spread) and square and uniform(problem.actions)):
            raise InvalidArgument(
                "oracle", "IMM needs the reward Spread, nodes as arms and items, and Subsets(k)", "take Greedy()"
            )
        return IMM(self.epsilon, self.ell, *reverse(problem.support))


@kernel
def _log_terms(n: int, k: int, ell: float) -> float:
    """The logarithm of the number of batches divided by the probability of failure."""
    batches = math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)
    return batches + ell * (math.log(n) + math.log(2.0))


@kernel
def _sets_at_full_spread(n: int, k: int, epsilon: float, ell: float) -> float:
    """How many sets suffice if the best seeds reach all nodes: the lambda-star of the paper (equation 6), over n."""
    a = math.sqrt(ell * (math.log(n) + math.log(2.0)) + math.log(2.0))
    b = math.sqrt(GREEDY * (_log_terms(n, k, ell) + math.log(2.0)))
    return 2.0 * (GREEDY * a + b) ** 2 / (epsilon * epsilon)


@kernel
def _lower_bound(
    oracle: IMM, graph: Condensed, candidates: Candidates, chosen: Ints, held: int, stream: Stream
) -> float:
    """A lower bound of the share of the weight that the best seeds reach: Algorithm 2 of the paper."""
    n, epsilon = len(graph.home), math.sqrt(2.0) * oracle.epsilon  # epsilon-prime of the paper
    log_terms = _log_terms(n, len(chosen), oracle.ell) + math.log(max(1.0, math.log2(n)))
    base = (2.0 + 2.0 * epsilon / 3.0) * log_terms / (epsilon * epsilon)  # lambda-prime (equation 9), over n
    share = 1.0
    while True:
        share *= 0.5
        if share * n < 2.0:
            break
        sets = sample_sets(graph.network, math.ceil(base / share), stream)
        reached = select(sets, graph.home, candidates, chosen, held)
        if reached >= (1.0 + epsilon) * share:
            return reached / (1.0 + epsilon)
    largest, total = 0.0, 0.0
    for mass in graph.network.weights:
        total += mass
    for v in range(n):
        largest = max(largest, graph.network.weights[graph.home[v]] if candidates.eligible[v] else 0.0)
    return max(largest / total, 1.0 / (n * n))
