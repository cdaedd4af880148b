from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.actions import capacity, contains, fill, pins
from superarm.actions.traits import budgeted
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument
from superarm.oracles.base import Guarantee
from superarm.oracles.budgets import check_budget, find_grid
from superarm.oracles.gains import gains
from superarm.problem import Problem
from superarm.rewards import initial_states
from superarm.streams import Stream


@component
class KnapsackTable(NamedTuple):
    r"""Dynamic programming over the money spent: exact for a modular reward under a budget, if costs lie on a grid.

    .. math:: V_n(s) = \max\{V_{n-1}(s),\ V_{n-1}(s - units_n) + r(\{n\}; q)\}

    where ``units`` (n_arms,) are the costs and ``room`` is the budget in steps of the grid, which ``fit`` finds: costs
    are whole numbers, or decimals of up to three places. Equal values go to the fewest pulls in total. Time and memory
    are O(n_arms · room). Implements [Bellman1957]_ (dynamic programming for the knapsack).

    >>> import superarm as sa
    >>> bag = sa.Knapsack([1.0, 2.0, 3.0], budget=4.0)
    >>> problem = sa.Problem(n_arms=3, n_items=2, reward=sa.Linear(), actions=bag)
    >>> KnapsackTable().fit(problem)
    KnapsackTable(units=array([1, 2, 3]), room=4)
    """

    units: Ints = np.zeros(0, np.int64)
    room: int = 0

    def maximize(self, problem: Problem, q: Floats, candidates: Candidates, stream: Stream) -> Ints:
        weights = gains(problem, initial_states(problem.reward, problem.terms), q, candidates)
        chosen = np.empty(capacity(problem.actions, problem.n_arms), np.int64)
        size = pins(problem.actions, candidates, chosen)
        if size < 0:
            return chosen[:0]
        room = self.room
        for j in chosen[:size]:
            room -= self.units[j]
        taken = _fill_table(self.units, room, weights, candidates, chosen[:size].copy())
        for j in range(problem.n_arms - 1, -1, -1):
            if taken[j, room]:
                chosen[size] = j
                size += 1
                room -= self.units[j]
        return chosen[: fill(problem.actions, candidates, chosen, size)]

    @interpreted
    def guarantee(self, problem: Problem) -> Guarantee:
        fits = problem.reward.modular and budgeted(problem.actions) and len(self.units) == problem.n_arms
        return Guarantee(1.0 if fits else 0.0, 1.0)

    @interpreted
    def fit(self, problem: Problem) -> "KnapsackTable":
        check_budget(problem, "KnapsackTable")
        found = find_grid(problem)
        if found is None:
            raise InvalidArgument(
                "oracle", "KnapsackTable needs costs on a grid that is not too fine", "take KnapsackScheme()"
            )
        return KnapsackTable(*found)


@kernel
def _fill_table(units: Ints, room: int, weights: Floats, candidates: Candidates, pinned: Ints) -> Any:
    """Whether the best choice among arms 0..j that spends at most s contains j: (n_arms, room + 1)."""
    most, pulls = np.zeros(room + 1), np.zeros(room + 1)
    taken = np.zeros((len(units), room + 1), np.uint8)
    for j in range(len(units)):
        if not candidates.eligible[j] or weights[j] <= 0.0 or contains(pinned, len(pinned), j):
            continue
        w, n = weights[j], candidates.counts[j]
        for spent in range(room, units[j] - 1, -1):
            before = spent - units[j]
            value, total_pulls = most[before] + w, pulls[before] + n
            if value > most[spent] or (value == most[spent] and total_pulls < pulls[spent]):
                most[spent], pulls[spent] = value, total_pulls
                taken[j, spent] = 1
    return taken
