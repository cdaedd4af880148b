"""Branch and bound: the best batch of problems of moderate size, with a time limit and the gap that is left."""

import heapq
import itertools
import math
import time
from typing import Any, NamedTuple

import numpy as np

from superarm.actions import capacity
from superarm.arrays import Floats, Ints
from superarm.errors import InvalidArgument
from superarm.oracles.base import Guarantee
from superarm.oracles.certificate import Certificate, Solution, bound
from superarm.oracles.greedy import grow
from superarm.problem import Problem
from superarm.rewards import value

_TOLERANCE = 1e-12
"""A bound that exceeds the best value by less than this share of it is taken as equal: rounding."""


class _Node(NamedTuple):
    """The batches that contain some arms and not others, with their bound; ``number`` breaks ties in the heap."""

    minus_bound: float
    number: int
    included: tuple[int, ...]
    excluded: tuple[int, ...]
    branch: int


def exact(problem: Problem, p: Any, seconds: float = 60.0, gap: float = 0.0) -> Solution:
    """Find the best batch for a monotone submodular reward on any action set.

    Branch and bound, best bound first: a node is completed greedily, bounded by the certificate of that batch, and
    split on the first arm that greedy added. Implements [NemhauserWolsey1981]_ with the bounds of
    [NemhauserWolseyFisher1978]_.

    Parameters
    ----------
    problem
        A problem whose reward is submodular.
    p
        The parameters, (n_arms, n_items).
    seconds
        When to stop at the latest; compiling is not counted.
    gap
        Stop as soon as the optimum is known to this relative gap.

    Returns
    -------
    The best batch found. ``certificate`` bounds the optimum; ``guarantee.alpha`` is 1 only if the batch is optimal.

    Raises
    ------
    InvalidArgument
        If the reward is not submodular, or ``seconds`` or ``gap`` is out of range.

    Examples
    --------
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
    search = _BranchSearch(problem, q)
    search.add_node((), ())  # compiles the kernels before the time is measured
    deadline = time.monotonic() + seconds
    while search.bound > search.most / (1.0 - gap) and not search.proved and time.monotonic() < deadline:
        node = heapq.heappop(search.nodes)
        search.add_node((*node.included, node.branch), node.excluded)
        search.add_node(node.included, (*node.excluded, node.branch))
    proved = Guarantee(1.0 if search.proved else 0.0, 1.0)
    return Solution(search.best, proved, Certificate(search.most, search.most if search.proved else search.bound))


class _BranchSearch:
    """The best batch so far, its value, and the nodes that may contain better ones, best bound first."""

    def __init__(self, problem: Problem, q: Floats) -> None:
        self.problem, self.q = problem, q
        self.best, self.most = np.empty(0, np.int64), -math.inf
        self.nodes: list[_Node] = []
        self._numbers = itertools.count()

    @property
    def bound(self) -> float:
        """An upper bound of the value of every batch."""
        return max(self.most, -self.nodes[0].minus_bound) if self.nodes else self.most

    @property
    def proved(self) -> bool:
        """Whether the best batch so far is optimal, up to rounding."""
        return self.bound <= self.most + _TOLERANCE * abs(self.most)

    def add_node(self, included: tuple[int, ...], excluded: tuple[int, ...]) -> None:
        """Complete and bound the batches with and without the given arms; keep them if one may be better."""
        action, r, high = _complete_node(self.problem, self.q, included, excluded)
        if r > self.most:
            self.best, self.most = action, r
        if high > self.most + _TOLERANCE * abs(self.most) and len(action) > len(included):
            heapq.heappush(
                self.nodes, _Node(-high, next(self._numbers), included, excluded, int(action[len(included)]))
            )


def _complete_node(
    problem: Problem, q: Floats, included: tuple[int, ...], excluded: tuple[int, ...]
) -> tuple[Ints, float, float]:
    """A batch with and without the given arms, its value, and an upper bound of all such batches.

    Value and bound are -inf if there is no such batch.
    """
    candidates = problem.candidates()
    candidates.eligible[list(excluded)] = False
    chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
    chosen[: len(included)] = included
    action = chosen[: grow(problem, q, candidates, chosen, len(included))].copy()
    if not problem.actions.includes(action):
        return action, -np.inf, -np.inf
    r = float(value(problem.reward, problem.terms, q, action))
    return action, r, float(bound(problem, q, candidates, action, len(included)))
