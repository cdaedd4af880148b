"""Logs with known truth: slates explored around a fixed one, binary outcomes, any mean function."""

import numpy as np

from superarm.offline import simulated
from tests.next import names as sa


def draw_log(problem, p, queue, share, n, rng, means=None, groups=None):
    """A log of ``n`` rounds; ``means(slates, p)`` gives the mean outcomes (n, k, n_items), ``p[slates]`` by default."""
    queues = np.tile(np.asarray(queue), (n, 1))
    return simulated.draw_log(
        problem, lambda slates: p[slates] if means is None else means(slates, p), queues, share, rng, groups
    )


def coverage_problem(n_arms=6, n_items=2, k=2):
    return sa.Problem(n_arms=n_arms, n_items=n_items, reward=sa.Coverage(), actions=sa.Subsets(k))
