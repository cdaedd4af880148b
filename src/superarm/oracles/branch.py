"""Exact search: for moderate sizes, with a time limit and the gap that is left."""

import heapq
import itertools
import time
from typing import Any, NamedTuple

import numpy as np

from superarm.actions import Ranks, capacity
from superarm.arrays import Floats, Ints
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
    ``seconds``; then ``certificate`` tells how much is left, and ``guarantee`` is 1 only if the batch was proved
    best. Implements [NemhauserWolsey1981]_ with the bounds of [NemhauserWolseyFisher1978]_.

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
    q, deadline, births = problem.entries(p), time.monotonic() + seconds, itertools.count()
    best, most = np.empty(0, np.int64), -np.inf
    nodes: list[_Node] = []
    left: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), ())]
    while left or nodes:
        for within, without in left:
            action, r, high = _look(problem, q, within, without)
            if r > most:
                best, most = action, r
            if high > most + _ROUNDING * abs(most) and len(action) > len(within):
                heapq.heappush(nodes, _Node(-high, next(births), within, without, int(action[len(within)])))
        left = []
        if not nodes or -nodes[0].minus_bound <= max(most * (1.0 + _ROUNDING), most / (1.0 - gap)):
            break
        if time.monotonic() > deadline:
            break
        node = heapq.heappop(nodes)
        left = [((*node.within, node.branch), node.without), (node.within, (*node.without, node.branch))]
    high = max([most] + [-node.minus_bound for node in nodes[:1]])
    proved = high <= most * (1.0 + _ROUNDING)
    return Solution(best, Guarantee(1.0 if proved else 0.0, 1.0), Certificate(most, most if proved else high))


def _look(problem: Problem, q: Floats, within: tuple[int, ...], without: tuple[int, ...]) -> tuple[Ints, float, float]:
    """A batch with and without the given arms, its value, and a bound of all such; (…, -inf, -inf) if there is none."""
    ranks = problem.ranks()
    ranks.eligible[list(without)] = False
    chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
    chosen[: len(within)] = within
    action = chosen[: grow(problem, q, ranks, chosen, len(within))].copy()
    if not problem.actions.includes(action):
        return action, -np.inf, -np.inf
    r = value(problem.reward, problem.terms, q, action)
    return action, r, bound(problem, q, Ranks(ranks.pulls, ranks.eligible), action, len(within))
