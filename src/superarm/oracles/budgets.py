"""What the oracles for budgets share: who has one, and the grid that [Bellman1957]_'s table needs."""

import math

import numpy as np

from superarm.actions import budget, cost
from superarm.actions.traits import budgeted
from superarm.arrays import Ints
from superarm.errors import InvalidArgument
from superarm.problem import Problem

CELLS = 20_000_000
"""A table of more cells than this is not filled: about 40 ms."""


def needs_budget(problem: Problem, owner: str) -> None:
    """Refuse a problem without a budget."""
    if not budgeted(problem.actions):
        raise InvalidArgument("oracle", f"{owner} needs a Knapsack", "take Greedy() or Exhaustive()")


def on_grid(problem: Problem) -> tuple[Ints, int] | None:
    """Costs and budget as whole numbers of the coarsest grid of at most three decimals, or None.

    >>> import superarm as sa
    >>> bag = sa.Knapsack([0.5, 1.5, 2.0], budget=3.2)
    >>> on_grid(sa.Problem(n_arms=3, n_items=1, reward=sa.Linear(), actions=bag))
    (array([1, 3, 4]), 6)
    """
    costs = np.array([cost(problem.actions, j) for j in range(problem.n_arms)])
    for scale in (1, 10, 100, 1000):
        steps = costs * scale
        if steps.max() < 2**52 and (np.abs(steps - np.rint(steps)) <= 1e-9 * steps).all():
            units = np.rint(steps).astype(np.int64)
            common = math.gcd(*units.tolist())
            room = math.floor(budget(problem.actions) * scale / common)
            return (units // common, room) if problem.n_arms * (room + 1) <= CELLS else None
    return None
