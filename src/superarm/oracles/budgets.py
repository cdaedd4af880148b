"""Oracles for a budget: dynamic programming for modular rewards, gain per cost for submodular ones."""

import math

import numpy as np

from superarm.actions.base import joinable_after, new_batches, pick_arms, take_rows, total_worth
from superarm.core.arrays import Bools, Floats, Ints, best_arms
from superarm.core.tally import View
from superarm.oracles.base import GREEDY, Guarantee, Oracle, held, share_of_optimum, worth_alone
from superarm.oracles.greedy import greedy_by_steps
from superarm.problem import Problem

MAX_TABLE_CELLS = 20_000_000
"""The largest table that dynamic programming fills."""

_ENTRIES = 1 << 21
"""So many gains of entries are computed at once."""


class _BudgetOracle(Oracle):
    """An oracle that needs a budget."""

    def validate(self, problem: Problem) -> None:
        self.needs(problem.actions.budgeted, "a Knapsack")


def find_grid(problem: Problem) -> tuple[Ints, int] | None:
    """Express costs and budget as whole multiples of a common step; None if there is no suitable step.

    The coarsest step of at most three decimals is taken, and none whose table would exceed ``MAX_TABLE_CELLS``.

    >>> from superarm.actions import Knapsack
    >>> from superarm.problem import Problem
    >>> from superarm.rewards import Linear
    >>> find_grid(Problem(3, 1, Linear(), Knapsack([0.5, 1.5, 2.0], budget=3.2)))
    (array([1, 3, 4]), 6)
    """
    costs, money = problem.actions.costs, problem.actions.money  # type: ignore[attr-defined]
    for scale in (1, 10, 100, 1000):
        steps = costs * scale
        if steps.max() < 2**52 and (np.abs(steps - np.rint(steps)) <= 1e-9 * steps).all():
            units = np.rint(steps).astype(np.int64)
            common = math.gcd(*units.tolist())
            room = math.floor(money * scale / common)
            return (units // common, room) if problem.n_arms * (room + 1) <= MAX_TABLE_CELLS else None
    return None


def has_grid(problem: Problem) -> bool:
    """Whether ``KnapsackTable`` applies to this problem with a budget."""
    return held(problem, "_grid", lambda: find_grid(problem)) is not None


class KnapsackTable(_BudgetOracle):
    r"""Dynamic programming over the money spent: exact for a modular reward under a budget, if costs lie on a grid.

    .. math:: V_n(s) = \max\{V_{n-1}(s),\ V_{n-1}(s - units_n) + r(\{n\}; q)\}

    where ``units`` are the costs in steps of the grid: costs are whole numbers, or decimals of up to three places.
    Equal values go to the fewest pulls in total. Time and memory are O(n_arms · budget in steps). Implements
    [Bellman1957]_ (dynamic programming for the knapsack).

    >>> from superarm import oracles, rewards
    >>> from superarm.actions import Knapsack
    >>> from superarm.problem import Problem
    >>> problem = Problem(3, 1, rewards.Linear(), Knapsack([1.0, 2.0, 3.0], budget=4.0))
    >>> oracles.solve(problem, [[0.2], [0.4], [0.5]], KnapsackTable())
    array([2, 0])
    """

    def maximize(self, problem: Problem, q: Floats, view: View) -> Ints:
        weights, out = worth_alone(problem, q, view), new_batches(problem.actions, view)
        units, room = held(problem, "_grid", lambda: find_grid(problem))
        usable = view.eligible & (weights > 0.0)
        np.put_along_axis(usable, view.pinned, False, 1)
        rooms = np.maximum(room - units[view.pinned].sum(1), 0)
        step = max(1, MAX_TABLE_CELLS // (problem.n_arms * (room + 1)))
        for first in range(0, len(view), step):
            rows = slice(first, first + step)
            taken = _fill_table(units, room, np.where(usable, weights, -np.inf)[rows], view.counts[rows])
            _read_table(units, taken, rooms[rows].copy(), out[rows], view.pinned.shape[1])
        return problem.actions.complete(view, out)

    def guarantee(self, problem: Problem) -> Guarantee:
        fits = problem.reward.modular and problem.actions.budgeted and has_grid(problem)
        return Guarantee(1.0 if fits else 0.0)

    def validate(self, problem: Problem) -> None:
        super().validate(problem)
        self.needs(has_grid(problem), "costs on a grid that is not too fine", "take KnapsackScheme()")


def _fill_table(units: Ints, room: int, weights: Floats, counts: Floats) -> Bools:
    """Whether the best choice among arms 0..j that spends at most s contains j: (n_arms, R, room + 1)."""
    most, pulls = np.zeros((2, len(weights), room + 1))
    taken = np.zeros((len(units), len(weights), room + 1), bool)
    for j, cost in enumerate(units.tolist()):
        if cost > room:
            continue
        value, total = most[:, : room + 1 - cost] + weights[:, [j]], pulls[:, : room + 1 - cost] + counts[:, [j]]
        before, fewest = most[:, cost:], pulls[:, cost:]
        better = (value > before) | ((value == before) & (total < fewest))
        taken[j, :, cost:] = better
        most[:, cost:], pulls[:, cost:] = np.where(better, value, before), np.where(better, total, fewest)
    return taken


def _read_table(units: Ints, taken: Bools, room: Ints, out: Ints, size: int) -> None:
    """Write the arms of the best choices into ``out``, from place ``size`` on."""
    rows, sizes = np.arange(len(out)), np.full(len(out), size)
    for j in range(len(units) - 1, -1, -1):
        chosen = rows[taken[j, rows, room]]
        out[chosen, sizes[chosen]] = j
        sizes[chosen] += 1
        room[chosen] -= units[j]


class KnapsackScheme(_BudgetOracle):
    r"""Dynamic programming over rounded values: :math:`\alpha = 1 - \epsilon` for a modular reward under any budget.

    Values are rounded down to multiples of :math:`\epsilon\,low/k`, where ``low`` is the value of the batch that
    ``Knapsack.heaviest`` finds, and k the most arms that the budget buys: together, k roundings lose at most
    :math:`\epsilon\,low`. At most :math:`2k/\epsilon` different values are left, as ``low`` is at least half of the
    optimum. Equal values go to the lower cost. Implements [IbarraKim1975]_ with the rounding of [Lawler1979]_.

    Parameters
    ----------
    epsilon
        The loss in alpha; time and memory grow with its inverse.

    Examples
    --------
    >>> from superarm import oracles, rewards
    >>> from superarm.actions import Knapsack
    >>> from superarm.problem import Problem
    >>> problem = Problem(3, 1, rewards.Linear(), Knapsack([1.01, 2.003, 3.0007], budget=4.1))
    >>> sorted(oracles.solve(problem, [[0.3], [0.4], [0.9]], KnapsackScheme(0.01)).tolist())
    [0, 2]
    """

    epsilon: float = 0.05

    def check(self) -> None:
        self.require("epsilon", 0.0 < self.epsilon < 1.0, "give a number in (0, 1)")

    def maximize(self, problem: Problem, q: Floats, view: View) -> Ints:
        actions, out, size = problem.actions, new_batches(problem.actions, view), view.pinned.shape[1]
        costs = actions.costs  # type: ignore[attr-defined]
        left = actions.money - costs[view.pinned].sum(1)  # type: ignore[attr-defined]
        weights = np.where(view.eligible & (costs <= left[:, None]), worth_alone(problem, q, view), 0.0)
        np.put_along_axis(weights, view.pinned, 0.0, 1)
        low, high = total_worth(weights, actions.heaviest(weights, view)), actions.ceiling(weights, view)
        unit = self.epsilon * low / max(1, problem.k - size)
        for r in np.flatnonzero(unit > 0.0):
            worth = (weights[r] / unit[r]).astype(np.int64)
            found = _solve_rounded(worth, costs, left[r], int(high[r] / unit[r]) + 1)
            out[r, size : size + len(found)] = found
        return problem.actions.complete(view, out)

    def guarantee(self, problem: Problem) -> Guarantee:
        fits = problem.reward.modular and problem.actions.budgeted
        return share_of_optimum(problem, 1.0 - self.epsilon) if fits else Guarantee(0.0)


def _solve_rounded(worth: Ints, costs: Floats, money: float, levels: int) -> Ints:
    """The arms of the largest total ``worth`` within the budget, the last first; of several choices, the cheapest."""
    cheapest = np.full(levels + 1, np.inf)
    cheapest[0] = 0.0
    taken = np.zeros((len(worth), levels + 1), bool)
    for j, w in enumerate(worth.tolist()):
        if 0 < w <= levels:
            price = cheapest[: levels + 1 - w] + costs[j]
            taken[j, w:] = price < cheapest[w:]
            cheapest[w:] = np.minimum(price, cheapest[w:])
    level, found = int(np.flatnonzero(cheapest <= money)[-1]), []
    for j in range(len(worth) - 1, -1, -1):
        if taken[j, level]:
            found.append(j)
            level -= int(worth[j])
    return np.array(found, np.int64)


class GreedyMax(_BudgetOracle):
    r"""Arms by gain per cost; each stage is completed by the arm of the largest gain, and the best of these wins.

    For a monotone submodular reward under a budget :math:`\alpha = 1/2`, [YaroslavtsevZhouAvdiukhin2020]_
    (Greedy+Max). Arms that still fit are added at the end. Twice the work of plain greedy.

    >>> from superarm import oracles, rewards
    >>> from superarm.actions import Knapsack
    >>> from superarm.problem import Problem
    >>> problem = Problem(3, 1, rewards.Coverage(), Knapsack([1.0, 4.0, 1.0], budget=4.0))
    >>> oracles.solve(problem, [[0.3], [1.0], [0.2]], GreedyMax())
    array([1])
    """

    def maximize(self, problem: Problem, q: Floats, view: View) -> Ints:
        costs = problem.actions.costs  # type: ignore[attr-defined]
        best, stage, place, most = new_batches(problem.actions, view), np.full((len(view), problem.k), -1), 0, -np.inf
        reward, states = problem.reward, problem.reward.empty_states(problem, len(view))

        def pick(allowed: Bools) -> Ints:
            nonlocal most
            gains = np.where(allowed, reward.gains(problem, states, q), -np.inf)
            value = reward.worth(problem.weights, states).sum(1) + gains.max(1)
            better, most = value > most, np.maximum(most, value)
            best[better] = stage[better]
            best[better, place] = best_arms(gains, view.counts)[better]
            return best_arms(gains / costs, view.counts)

        def joined(arm: Ints) -> None:
            nonlocal place
            problem.support.join(states, q, arm, reward.join)
            stage[:, place] = arm
            place += 1

        pick_arms(problem.actions, view, pick, joined)
        return greedy_by_steps(problem, q, view, best, costs)

    def guarantee(self, problem: Problem) -> Guarantee:
        fits = problem.reward.submodular and problem.actions.budgeted
        return share_of_optimum(problem, 0.5) if fits else Guarantee(0.0)


class PartialEnumeration(_BudgetOracle):
    r"""The best of all pairs of arms, each completed by gain per cost: :math:`\alpha = 1 - 1/e` under a budget.

    For a monotone submodular reward. [Sviridenko2004]_ proves it for triples; [KulikSchwartzShachnai2021]_
    show that pairs suffice. Takes n_arms² / 2 runs of the greedy algorithm: suitable for a few dozen arms.

    >>> from superarm import rewards
    >>> from superarm.actions import Knapsack
    >>> from superarm.problem import Problem
    >>> problem = Problem(3, 2, rewards.Coverage(), Knapsack([1.0, 2.0, 3.0], budget=4.0))
    >>> round(PartialEnumeration().guarantee(problem).alpha, 4)
    0.6321
    """

    def maximize(self, problem: Problem, q: Floats, view: View) -> Ints:
        costs = problem.actions.costs  # type: ignore[attr-defined]
        out = greedy_by_steps(problem, q, view, None, costs)
        step = max(1, _ENTRIES // problem.n_entries)
        for r in np.flatnonzero((out >= 0).any(1)):
            starts, own, most = _pairs(problem, take_rows(view, [r])), q[[r % len(q)]], -np.inf
            for first in range(0, len(starts), step):
                some = starts[first : first + step]
                found = greedy_by_steps(problem, own, take_rows(view, np.full(len(some), r)), some, costs)
                values = problem.values(own, found)
                if values.max() > most:
                    out[r], most = found[values.argmax()], values.max()
        return out

    def guarantee(self, problem: Problem) -> Guarantee:
        fits = problem.reward.submodular and problem.actions.budgeted
        return share_of_optimum(problem, GREEDY) if fits else Guarantee(0.0)


def _pairs(problem: Problem, view: View) -> Ints:
    """The pinned arms with every further arm, and with every two further arms, that may be played: (n, K)."""
    actions, held_arms = problem.actions, view.pinned.shape[1]
    singles = np.flatnonzero(joinable_after(actions, view.pinned, view.eligible)[0])
    out = np.repeat(new_batches(actions, view), len(singles), 0)
    out[:, held_arms : held_arms + 1] = singles[:, None]
    second = joinable_after(actions, out, np.repeat(view.eligible, len(singles), 0))
    rows, arms = np.nonzero(second & (np.arange(problem.n_arms) > singles[:, None]))
    pairs = out[rows]
    pairs[:, held_arms + 1 : held_arms + 2] = arms[:, None]
    return np.concatenate([out, pairs])
