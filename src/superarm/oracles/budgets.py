"""Shared by the oracles for budgets: a check that there is one, and the grid that [Bellman1957]_'s table needs."""

import math

import numpy as np

from superarm.actions import budget, cost
from superarm.actions.traits import budgeted
from superarm.arrays import Ints
from superarm.errors import InvalidArgument
from superarm.problem import Problem

MAX_TABLE_CELLS = 20_000_000
"""The largest table that dynamic programming fills; it takes about 40 ms."""


def check_budget(problem: Problem, owner: str) -> None:
    """Refuse a problem without a budget."""
    if not budgeted(problem.actions):
        raise InvalidArgument("oracle", f"{owner} needs a Knapsack", "take Greedy() or Exhaustive()")


def find_grid(problem: Problem) -> tuple[Ints, int] | None:
    """Express costs and budget as whole multiples of a common step; None if there is no suitable step.

    The coarsest step of at most three decimals is taken, and none whose table would exceed ``MAX_TABLE_CELLS``.

    >>> import superarm as sa
    >>> bag = sa.Knapsack([0.5, 1.5, 2.0], budget=3.2)
    >>> find_grid(sa.Problem(n_arms=3, n_items=1, reward=sa.Linear(), actions=bag))
    (array([1, 3, 4]), 6)
    """
    costs = np.array([cost(problem.actions, j) for j in range(problem.n_arms)])
    for scale in (1, 10, 100, 1000):
        steps = costs * scale
        if steps.max() < 2**52 and (np.abs(steps - np.rint(steps)) <= 1e-9 * steps).all():
            units = np.rint(steps).astype(np.int64)
            common = math.gcd(*units.tolist())
            room = math.floor(budget(problem.actions) * scale / common)
            return (units // common, room) if problem.n_arms * (room + 1) <= MAX_TABLE_CELLS else None
    return None
