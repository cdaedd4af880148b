"""Oracles that ask the action set for its heaviest batch: for modular rewards, for rankings, and step by step."""

from typing import Any

import numpy as np

from superarm.actions.base import pack
from superarm.core.arrays import Bools, Floats, Ints, count, floats
from superarm.core.errors import InvalidArgument
from superarm.core.support import Dense
from superarm.core.tally import View
from superarm.oracles.base import Guarantee, Oracle, worth_alone
from superarm.oracles.greedy import Greedy
from superarm.problem import Problem

_BISECTIONS = 30
"""They find the worth of a success to nine digits."""


class Modular(Oracle):
    r"""The heaviest batch, where the weight of an arm is its reward alone: exact for modular rewards.

    .. math:: A \in \arg\max_{A} \sum_{j \in A} r(\{j\}; q)

    The action set finds it: greedily on a matroid, [Edmonds1971]_; as an assignment on a ``Matching``, [Kuhn1955]_; in
    one pass over the edges on ``Paths``, [Bellman1958]_; by evaluating all batches of ``Explicit``.

    >>> from superarm import oracles, rewards
    >>> from superarm.actions import Matching
    >>> from superarm.problem import Problem
    >>> problem = Problem(3, 1, rewards.Linear(), Matching(2, 2, [(0, 0), (0, 1), (1, 0)]))
    >>> oracles.solve(problem, [[0.9], [0.5], [0.6]], Modular())
    array([1, 2])
    """

    def maximize(self, problem: Problem, q: Floats, view: View) -> Ints:
        return problem.actions.heaviest(worth_alone(problem, q, view), view)

    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(1.0 if problem.reward.modular and problem.actions.tractable else 0.0)

    def validate(self, problem: Problem) -> None:
        right = problem.reward.modular and problem.actions.tractable
        self.needs(right, "a modular reward, and a matroid, matching, paths or a list of batches")


class TopArms(Oracle):
    """The arms with the largest parameters, the largest first: the list of a cascading bandit.

    For problems with one item. Exact on a matroid for every reward that is increasing and symmetric in the parameters,
    [KvetonEtAl2015]_ (section 4); the order of picking is the order on the page. Parameters may be any numbers, such as
    those of an index that is not clipped. Equal ones go to the arm with the fewest pulls, then the lowest.

    >>> from superarm import oracles, rewards
    >>> from superarm.actions import Subsets
    >>> from superarm.problem import Problem
    >>> problem = Problem(n_arms=3, n_items=1, reward=rewards.Coverage(), actions=Subsets(2))
    >>> oracles.solve(problem, [[0.1], [0.3], [0.2]], TopArms())
    array([1, 2])
    """

    ranking = True
    cascade = True

    def maximize(self, problem: Problem, q: Floats, view: View) -> Ints:
        worth = np.ascontiguousarray(np.broadcast_to(q[:, 0, :], view.counts.shape))
        return problem.actions.heaviest(worth, view)

    def guarantee(self, problem: Problem) -> Guarantee:
        return Guarantee(1.0)

    def validate(self, problem: Problem) -> None:
        right = problem.n_items == 1 and isinstance(problem.support, Dense) and problem.actions.matroid
        self.needs(right, "one item and a matroid, e.g. Subsets(k)")


class Reversed(Oracle):
    """The batch of another oracle in the opposite order: the best arm last.

    A cascade with the worst arm first shows more of its arms for the same reward; [KvetonEtAl2015]_ compare both
    orders.

    >>> from superarm import oracles, rewards
    >>> from superarm.actions import Subsets
    >>> from superarm.problem import Problem
    >>> problem = Problem(n_arms=3, n_items=1, reward=rewards.Coverage(), actions=Subsets(2))
    >>> oracles.solve(problem, [[0.1], [0.3], [0.2]], Reversed(TopArms()))
    array([2, 1])
    """

    oracle: Oracle = TopArms()

    @property
    def ranking(self) -> bool:  # type: ignore[override]
        return self.oracle.ranking

    @property
    def cascade(self) -> bool:  # type: ignore[override]
        return self.oracle.cascade

    def maximize(self, problem: Problem, q: Floats, view: View) -> Ints:
        return pack(self.oracle.maximize(problem, q, view)[:, ::-1])

    def guarantee(self, problem: Problem) -> Guarantee:
        return self.oracle.guarantee(problem)

    def validate(self, problem: Problem) -> None:
        self.oracle.validate(problem)


class Ladder(Oracle):
    r"""The list whose arms are tried from the top until one succeeds, and each of which costs something: net worth.

    .. math:: A \in \arg\max_{A} \sum_n (q_{a_n} - c_{a_n}) \prod_{m < n} (1 - q_{a_m})

    The best order of any set of arms is that of q / c, so that the best list follows from one pass over the arms in
    that order; it has at least one arm, also if none is worth its cost. Without a limit on the length it has the arms
    with q > c, [ZhouEtAl2018]_ (Theorem 1). It is exact for net worth, and guarantees nothing for the reward of the
    problem, which knows no costs.

    Parameters
    ----------
    costs
        What it costs to try each arm, (n_arms,), in units of what a success is worth. Without them, costs are learnt:
        the problem has a second item, whose outcome is the share of ``scale`` that a try did *not* cost.
    scale
        The largest cost, where costs are learnt.

    Examples
    --------
    >>> from superarm import oracles, rewards
    >>> from superarm.actions import Subsets
    >>> from superarm.problem import Problem
    >>> problem = Problem(n_arms=3, n_items=1, reward=rewards.Coverage(), actions=Subsets(2))
    >>> oracles.solve(problem, [[0.8], [0.5], [0.6]], Ladder([0.5, 0.1, 0.2]))  # the cheap one first
    array([1, 2])
    """

    costs: Any = None
    scale: float = 1.0
    cascade = True

    def check(self) -> None:
        self.require("scale", 0.0 < self.scale < np.inf, "give a finite number > 0")
        if self.costs is not None:
            self.convert("costs", floats(self.costs, "costs", low=0.0, high=np.inf))

    def maximize(self, problem: Problem, q: Floats, view: View) -> Ints:
        p = np.clip(np.broadcast_to(q[:, 0], view.counts.shape), 0.0, 1.0)
        costs = self.scale * (1.0 - q[:, 1]) if self.costs is None else self.costs
        out = np.full((len(p), problem.k), -1)
        rows = zip(p, np.broadcast_to(costs, p.shape), np.broadcast_to(view.eligible, p.shape), strict=True)
        for row, (own, cost, eligible) in zip(out, rows, strict=True):
            batch = climb(own, cost, eligible, problem.k)
            if not batch and eligible.any():
                batch = [int(np.where(eligible, own - cost, -np.inf).argmax())]
            row[: len(batch)] = batch
        return out

    def validate(self, problem: Problem) -> None:
        items, given = (
            (1, "one item") if self.costs is not None else (2, "two items, success and saving, to learn costs")
        )
        right = problem.n_items == items and isinstance(problem.support, Dense) and problem.actions.uniform
        self.needs(right, f"{given}, and Subsets(k)", "give Ladder(costs) with one item, or Ladder() with two")
        if self.costs is not None and self.costs.shape != (problem.n_arms,):
            way = 'agent.change_policy("kl_ucb"), add_arms(…), change_policy(ladder(all costs))'
            remedy = f"give {problem.n_arms}, one per arm; to add arms to an agent: {way}"
            raise InvalidArgument("costs", f"shape {self.costs.shape}", remedy)


def ladder_order(p: Floats, costs: Floats) -> Ints:
    """The arms by success per cost, along the last axis: the best order of any ladder of them."""
    return np.argsort(-p / np.maximum(costs, 1e-12), axis=-1, kind="stable")


def climb(p: Floats, costs: Floats, eligible: Bools, k: int) -> list[int]:
    """The list of the largest net worth of at most ``k`` arms, in the order of trying; empty if none is worth its cost.

    >>> climb(np.array([0.8, 0.5, 0.6]), np.array([0.5, 0.1, 0.2]), np.ones(3, bool), 2)
    [1, 2]
    """
    order = [j for j in ladder_order(p, costs).tolist() if eligible[j]]
    worth, taken = np.zeros((len(order) + 1, k + 1)), np.zeros((len(order), k + 1), bool)
    for n in range(len(order) - 1, -1, -1):
        j = order[n]
        trying = p[j] - costs[j] + (1.0 - p[j]) * worth[n + 1, :-1]
        taken[n, 1:] = trying > worth[n + 1, 1:]
        worth[n, 1:] = np.maximum(trying, worth[n + 1, 1:])
    batch: list[int] = []
    for n, j in enumerate(order):
        if taken[n, k - len(batch)]:
            batch.append(j)
    return batch


def expected_costs(p: Floats, costs: Floats, batch: Any) -> Floats:
    """What a ladder costs in the mean up to each of its arms: an arm is paid if all before it fail.

    >>> expected_costs(np.array([0.8, 0.5]), np.array([0.5, 0.1]), [1, 0])
    array([0.1 , 0.35])
    """
    fails = 1.0 - p[batch]
    return np.cumsum(costs[batch] * np.cumprod(np.concatenate([[1.0], fails[:-1]])))


def ladders_around(p: Floats, costs: Floats, eligible: Bools, k: int, money: float) -> tuple[list[int], list[int]]:
    """The dearest ladder within ``money`` in the mean, and the next dearer one, of those that are best for some worth.

    For each worth of a success one ladder has the largest net worth; a larger worth gives a dearer one. Without a limit
    on the length these are the first n arms by success per cost; otherwise the worth is found by bisection.

    >>> ladders_around(np.array([0.8, 0.5, 0.6]), np.array([0.5, 0.1, 0.2]), np.ones(3, bool), 3, 0.3)
    ([1, 2], [1, 2, 0])
    """
    order = [j for j in ladder_order(p, costs).tolist() if eligible[j]]
    if len(order) <= k:
        n = int((expected_costs(p, costs, order) <= money).sum())
        return order[:n], order[: n + 1]
    high = float((p / costs).max())
    within, above, low = list[int](), climb(p, 1e-9 * high * costs, eligible, k), 0.0
    if expected_costs(p, costs, above)[-1] <= money:
        return above, above
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        found = climb(p, middle * costs, eligible, k)
        if not found or expected_costs(p, costs, found)[-1] <= money:
            within, high = found, middle
        else:
            above, low = found, middle
    return within, above


class Linearised(Oracle):
    r"""Heaviest batches for weights that approach the gains: a heuristic for nonlinear rewards, e.g. on ``Paths``.

    .. math:: A_n = \arg\max_A \sum_{j \in A} v_n(j), \qquad
              v_{n+1}(j) = \tfrac12 v_n(j) + \tfrac12 [r(A_n \cup \{j\}; q) - r(A_n \setminus \{j\}; q)]

    starting with :math:`v_0(j) = r(\{j\}; q)`. Returns the best of ``start``'s batch and :math:`A_0, A_1, …`, and stops
    when a batch is no better than the one before it. The guarantee is that of ``start``; a certificate shows how good
    the batch is. The averaging is that of [FrankWolfe1956]_.

    Parameters
    ----------
    start
        The oracle that finds the first batch.
    rounds
        How many heaviest batches are tried at most.

    Examples
    --------
    >>> from superarm import oracles, rewards
    >>> from superarm.actions import Paths
    >>> from superarm.problem import Problem
    >>> ways = Paths(3, [(0, 1), (0, 1), (1, 2), (1, 2)], source=0, target=2)
    >>> problem = Problem(n_arms=4, n_items=2, reward=rewards.Coverage(), actions=ways)
    >>> oracles.solve(problem, [[0.9, 0.0], [0.0, 0.8], [0.9, 0.0], [0.0, 0.8]], Linearised())
    array([0, 3])
    """

    start: Oracle = Greedy()
    rounds: int = 8

    def check(self) -> None:
        self.require_family("start", Oracle, "Greedy()")
        self.convert("rounds", count(self.rounds, "rounds", 1, "Linearised"))

    def maximize(self, problem: Problem, q: Floats, view: View) -> Ints:
        best = self.start.maximize(problem, q, view)
        most, previous = problem.values(q, best), np.full(len(view), -np.inf)
        weights, going = worth_alone(problem, q, view), np.ones(len(view), bool)
        for _ in range(self.rounds):
            action = problem.actions.heaviest(weights, view)
            r = problem.values(q, action)
            better = going & (r > most)
            best, most = np.where(better[:, None], action, best), np.where(better, r, most)
            going &= r > previous
            if not going.any():
                break
            previous = r
            weights = 0.5 * weights + 0.5 * _gains_at(problem, q, action)
        return best

    def guarantee(self, problem: Problem) -> Guarantee:
        return self.start.guarantee(problem)

    def validate(self, problem: Problem) -> None:
        self.start.validate(problem)


def _gains_at(problem: Problem, q: Floats, action: Ints) -> Floats:
    """What each arm adds to the batch, or to the rest of it if the arm belongs to it, at least 0: (R, n_arms)."""
    reward, rows = problem.reward, np.arange(len(action))
    target = reward.gains(problem, reward.states(problem, q, action), q)
    for place, arm in enumerate(action.T):
        rest = reward.states(problem, q, np.delete(action, place, 1))
        there = arm >= 0
        target[rows[there], arm[there]] = reward.gains(problem, rest, q)[rows[there], arm[there]]
    return np.maximum(0.0, target)
