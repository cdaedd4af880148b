"""Certificates: upper bounds of the optimum, which show how far from it a batch can be at most; and exact search."""

import heapq
import itertools
import math
import time
from typing import Any, NamedTuple

import numpy as np

from superarm.actions.base import take_rows
from superarm.core.arrays import Floats, Ints, arms
from superarm.core.errors import InvalidArgument
from superarm.core.streams import seed_sequence
from superarm.core.tally import View
from superarm.oracles.base import Guarantee, Oracle
from superarm.oracles.greedy import greedy_by_steps
from superarm.problem import Problem

TARGET_STAGES = 8
"""At about how many stages of building a batch the bound is computed; the smallest one counts."""

_TOLERANCE = 1e-12
"""A bound that exceeds the best value by less than this share of it is taken as equal: rounding."""

_AT_ONCE = 16
"""How many nodes of the search are split at once."""


class Certificate(NamedTuple):
    """The value of a batch, and an upper ``bound`` of the value of any batch at the same parameters.

    ``measured_alpha`` holds for these parameters only; it is not the oracle's guarantee, and regret does not use it.
    """

    value: float
    bound: float

    @property
    def measured_alpha(self) -> float:
        """The batch has at least this share of the optimum."""
        return min(1.0, self.value / self.bound) if self.bound > 0.0 else 1.0

    @property
    def gap(self) -> float:
        """The value of the batch is below the optimum by at most this."""
        return max(0.0, self.bound - self.value)


class Solution(NamedTuple):
    """A batch, the guarantee of the oracle that found it, and the certificate of this batch."""

    action: Ints
    guarantee: Guarantee
    certificate: Certificate


def certified(problem: Problem, p: Any, oracle: Oracle, eligible: Any = None, seed: Any = 0) -> Solution:
    """Find a batch for known parameters, together with its certificate.

    Parameters
    ----------
    problem
        Arms, items, reward and action set.
    p
        The parameters, (n_arms, n_items).
    oracle
        The algorithm.
    eligible
        The arms that may be played; all by default.
    seed
        For oracles that draw random numbers.

    Raises
    ------
    InvalidArgument
        If the reward is not a sum over items, or the oracle does not apply.

    Examples
    --------
    >>> from superarm import oracles, rewards
    >>> from superarm.actions import Subsets
    >>> from superarm.problem import Problem
    >>> problem = Problem(n_arms=3, n_items=2, reward=rewards.Coverage(), actions=Subsets(2))
    >>> found = certified(problem, [[0.9, 0.0], [0.8, 0.0], [0.0, 0.5]], oracles.Greedy())
    >>> found.action, found.guarantee.alpha, round(found.certificate.measured_alpha, 3)
    (array([0, 2]), 0.75, 0.946)
    """
    oracle.validate(problem)
    q, view = problem.entries(p), _view(problem, eligible, seed)
    batch = oracle.maximize(problem, q, view)[0]
    action = batch[batch >= 0]
    return Solution(action, oracle.guarantee(problem), _certificate(problem, q, view, action))


def certify(problem: Problem, p: Any, action: Any, eligible: Any = None) -> Certificate:
    """The certificate of ``action``, however it was found.

    Parameters
    ----------
    problem
        Arms, items, reward and action set.
    p
        The parameters, (n_arms, n_items).
    action
        The arms of a batch.
    eligible
        The arms that may be played; all by default.

    Examples
    --------
    >>> from superarm import rewards
    >>> from superarm.actions import Subsets
    >>> from superarm.problem import Problem
    >>> problem = Problem(n_arms=3, n_items=1, reward=rewards.Linear(), actions=Subsets(2))
    >>> certify(problem, [[0.5], [0.25], [0.125]], [0, 2])
    Certificate(value=0.625, bound=0.75)
    """
    return _certificate(problem, problem.entries(p), _view(problem, eligible), problem.action(action))


def upper_bound(problem: Problem, p: Any, action: Any) -> float:
    r"""An upper bound of the optimum, from the marginal gains at the stages of building ``action``.

    .. math:: r_{\max} \le \min_n \Bigl\{ r(A_n; p)
              + \max_{B} \sum_{j \in B \setminus A_n} [r(A_n + j; p) - r(A_n; p)] \Bigr\}

    for a monotone submodular reward, where :math:`A_n` is the first n arms of ``action`` and B any batch of the action
    set, or of a relaxation where the heaviest batch is hard to find, [NemhauserWolseyFisher1978]_ (section 4). For
    every monotone reward, the value of all arms together is a bound, too.

    >>> from superarm import rewards
    >>> from superarm.actions import Subsets
    >>> from superarm.problem import Problem
    >>> problem = Problem(n_arms=3, n_items=1, reward=rewards.Coverage(), actions=Subsets(2))
    >>> upper_bound(problem, [[0.5], [0.5], [0.5]], [0, 1])
    0.875
    """
    return certify(problem, p, action).bound


def _view(problem: Problem, eligible: Any, seed: Any = 0) -> View:
    view = problem.view(keys=seed_sequence(seed).generate_state(1, np.uint64))
    if eligible is not None:
        view.eligible[:] = False
        view.eligible[0, arms(eligible, "eligible", problem.n_arms)] = True
    return view


def _certificate(problem: Problem, q: Floats, view: View, action: Ints) -> Certificate:
    if not problem.reward.additive:
        raise InvalidArgument("problem", "its reward is not a sum over items", "certificates need such a reward")
    # If arms raise the value, all of them together are a bound; if they lower it, the empty batch is.
    all_or_none = np.flatnonzero(view.eligible[0]) if problem.reward.monotone else np.empty(0, np.int64)
    value, high = (float(problem.values(q, batch[None])[0]) for batch in (action, all_or_none))
    if problem.reward.submodular:
        high = min(high, float(_bounds(problem, q, view, action[None], np.zeros(1, np.int64))[0]))
    return Certificate(value, max(value, high))


def _bounds(problem: Problem, q: Floats, view: View, action: Ints, held: Ints) -> Floats:
    """Upper bounds (R,) of the value of any batch of eligible arms that contains the first ``held`` arms of ``action``.

    For submodular rewards only. The value of such a batch B is at most r(C) plus the gains at C of its arms outside of
    C, for every stage C of building ``action``. The first ``held`` (R,) arms get so large a weight that no batch
    without them attains the maximum.
    """
    reward, states, sizes = problem.reward, problem.reward.empty_states(problem, len(action)), (action >= 0).sum(1)
    rows, stride = np.arange(len(action)), np.maximum(1, (sizes - held) // TARGET_STAGES)
    least = np.full(len(action), np.inf)
    within, kept = np.zeros(view.eligible.shape, bool), np.zeros(view.eligible.shape, bool)
    for n in range(action.shape[1] + 1):
        stage = (n >= held) & (n <= sizes) & ((n == sizes) | ((n - held) % stride == 0))
        if stage.any():
            weights = np.maximum(0.0, reward.gains(problem, states, q))
            weights[within | ~view.eligible] = 0.0
            bonus = np.where(held > 0, 1.0 + weights.sum(1), 0.0)
            weights += np.where(kept, bonus[:, None], 0.0)
            rest = problem.actions.ceiling(weights, view) - held * bonus
            value = reward.worth(problem.weights, states).sum(1)
            least = np.where(stage, np.minimum(least, value + rest), least)
        if n < action.shape[1]:
            there = action[:, n] >= 0
            problem.support.join(states, q, action[:, n], reward.join)
            within[rows[there], action[there, n]] = True
            kept[rows[there], action[there, n]] |= n < held[there]
    return least


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
        When to stop at the latest.
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
    >>> from superarm import rewards
    >>> from superarm.actions import Subsets
    >>> from superarm.problem import Problem
    >>> problem = Problem(n_arms=3, n_items=2, reward=rewards.Coverage(), actions=Subsets(2))
    >>> found = exact(problem, [[0.6, 0.6], [1.0, 0.0], [0.0, 1.0]])
    >>> sorted(found.action.tolist()), found.certificate, found.guarantee.alpha
    ([1, 2], Certificate(value=2.0, bound=2.0), 1.0)
    """
    if not problem.reward.submodular:
        raise InvalidArgument("problem", "its reward is not submodular", "take Exhaustive()")
    if not seconds > 0.0 or not 0.0 <= gap < 1.0:
        raise InvalidArgument("seconds", f"{seconds} seconds, gap {gap}", "give seconds > 0 and 0 <= gap < 1")
    search, deadline = _BranchSearch(problem, problem.entries(p)), time.monotonic() + seconds
    search.add_nodes([(tuple(problem.actions.pins), ())])
    while search.bound > search.most / (1.0 - gap) and search.may_improve and time.monotonic() < deadline:
        search.split_nodes()
    high = search.bound if search.may_improve else search.most
    return Solution(search.best, Guarantee(float(not search.may_improve)), Certificate(search.most, high))


class _BranchSearch:
    """The best batch so far, its value, and the nodes that may contain better ones, best bound first.

    A node is the batches that contain some arms and not others: (-bound, number, included, excluded, arm to branch on).
    """

    def __init__(self, problem: Problem, q: Floats) -> None:
        self.problem, self.q, self.view = problem, q, problem.view()
        self.best, self.most = np.empty(0, np.int64), -math.inf
        self.nodes: list[tuple[float, int, tuple[int, ...], tuple[int, ...], int]] = []
        self.numbers = itertools.count()

    @property
    def bound(self) -> float:
        """An upper bound of the value of every batch."""
        return max(self.most, -self.nodes[0][0]) if self.nodes else self.most

    @property
    def may_improve(self) -> bool:
        """Whether there may be a better batch than the best so far, beyond rounding."""
        return self.bound > self.most + _TOLERANCE * abs(self.most)

    def split_nodes(self) -> None:
        """Split the nodes with the largest bounds into those with and without their branching arm."""
        parents = [heapq.heappop(self.nodes) for _ in range(min(_AT_ONCE, len(self.nodes)))]
        inside = [((*included, arm), excluded) for _, _, included, excluded, arm in parents]
        self.add_nodes(inside + [(included, (*excluded, arm)) for _, _, included, excluded, arm in parents])

    def add_nodes(self, nodes: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> None:
        """Complete and bound the batches with and without the given arms; keep them if one may be better."""
        problem, q, size = self.problem, self.q, len(nodes)
        view, start = take_rows(self.view, np.zeros(size, np.int64)), np.full((size, problem.k), -1)
        for r, (included, excluded) in enumerate(nodes):
            start[r, : len(included)] = included
            view.eligible[r, list(excluded)] = False
        batches = greedy_by_steps(problem, q, view, start)
        values = problem.values(q, batches)
        bounds = _bounds(problem, q, view, batches, np.array([len(included) for included, _ in nodes]))
        for (included, excluded), batch, value, high in zip(nodes, batches, values, bounds, strict=True):
            action = batch[batch >= 0]
            if not problem.actions.includes(action, problem.n_arms):
                continue
            if value > self.most:
                self.best, self.most = action, float(value)
            if high > self.most + _TOLERANCE * abs(self.most) and len(action) > len(included):
                node = (-float(high), next(self.numbers), included, excluded, int(action[len(included)]))
                heapq.heappush(self.nodes, node)
