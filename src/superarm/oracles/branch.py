"""Exact search: for moderate sizes, with a time limit and the gap that is left."""

import heapq
import itertools
import math
import time
from typing import Any, NamedTuple

import numpy as np

from superarm.actions import capacity
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.oracles.base import Guarantee
from superarm.oracles.certificate import Certificate, Solution, bound
from superarm.oracles.greedy import grow
from superarm.problem import Problem
from superarm.rewards import value

_ROUNDING = 1e-12


class _Node(NamedTuple):
    """Batches with some arms and without others: minus their bound, when they were found, and which arms."""

    minus_bound: float
    born: int
    within: tuple[int, ...]
    without: tuple[int, ...]
    branch: int


def exact(problem: Problem, p: Any, seconds: float = 60.0, gap: float = 0.0) -> Solution:
    """The best batch at ``p`` (n_arms, n_items), for any monotone submodular reward on any action set.

    Branch and bound, best bound first: a node is completed greedily, bounded by the certificate of that batch, and
    split on the first arm that greedy added. Stops when the optimum is known to a relative ``gap``, or after
    ``seconds``, compiling not counted; then ``certificate`` tells how much is left, and ``guarantee`` is 1 only if
    the batch was proved best. Implements [NemhauserWolsey1981]_ with the bounds of [NemhauserWolseyFisher1978]_.

    >>> import superarm as sa
    >>> problem = sa.Problem(n_arms=3, n_items=2, reward=sa.Coverage(), actions=sa.Subsets(2))
    >>> found = exact(problem, [[0.6, 0.6], [1.0, 0.0], [0.0, 1.0]])
    >>> sorted(found.action.tolist()), found.certificate, found.guarantee.alpha
    ([1, 2], Certificate(value=2.0, bound=2.0), 1.0)
    """
    if not problem.reward.submodular:
        raise InvalidArgument("problem", "its reward is not submodular", "take Exhaustive()")
    if not seconds > 0.0 or not 0.0 <= gap < 1.0:
        raise InvalidArgument("seconds", f"{seconds} seconds, gap {gap}", "give seconds > 0 and 0 <= gap < 1")
    q = problem.entries(p)
    search = _Search(problem, q)
    search.open((), ())  # compiles, before the clock starts
    deadline = time.monotonic() + seconds
    while search.bound > search.most / (1.0 - gap) and not search.proved and time.monotonic() < deadline:
        node = heapq.heappop(search.nodes)
        search.open((*node.within, node.branch), node.without)
        search.open(node.within, (*node.without, node.branch))
    proved = Guarantee(1.0 if search.proved else 0.0, 1.0)
    return Solution(search.best, proved, Certificate(search.most, search.most if search.proved else search.bound))


class _Search:
    """The best batch so far, its value, and the nodes where better ones may still be, best bound first."""

    def __init__(self, problem: Problem, q: Floats) -> None:
        self.problem, self.q = problem, q
        self.best, self.most = np.empty(0, np.int64), -math.inf
        self.nodes: list[_Node] = []
        self._births = itertools.count()

    @property
    def bound(self) -> float:
        """No batch is worth more than this."""
        return max(self.most, -self.nodes[0].minus_bound) if self.nodes else self.most

    @property
    def proved(self) -> bool:
        """Whether the best batch so far is the best there is, up to rounding."""
        return self.bound <= self.most + _ROUNDING * abs(self.most)

    def open(self, within: tuple[int, ...], without: tuple[int, ...]) -> None:
        """Look at the batches with and without the given arms; keep them as a node if a better one may be there."""
        action, r, high = _look(self.problem, self.q, within, without)
        if r > self.most:
            self.best, self.most = action, r
        if high > self.most + _ROUNDING * abs(self.most) and len(action) > len(within):
            heapq.heappush(self.nodes, _Node(-high, next(self._births), within, without, int(action[len(within)])))


def _look(problem: Problem, q: Floats, within: tuple[int, ...], without: tuple[int, ...]) -> tuple[Ints, float, float]:
    """A batch with and without the given arms, its value, and a bound of all such; (…, -inf, -inf) if there is none."""
    candidates = problem.candidates()
    candidates.eligible[list(without)] = False
    chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
    chosen[: len(within)] = within
    action = chosen[: grow(problem, q, candidates, chosen, len(within))].copy()
    if not problem.actions.includes(action):
        return action, -np.inf, -np.inf
    r = float(value(problem.reward, problem.terms, q, action))
    return action, r, float(bound(problem, q, Candidates(candidates.counts, candidates.eligible), action, len(within)))
