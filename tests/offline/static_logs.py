"""Logs with known truth, drawn fast: slates explored around a fixed one, binary outcomes, any mean function."""

import numpy as np

import superarm as sa
from superarm.offline.inclusion import explored_inclusion, explored_positions
from superarm.offline.simulated import explore_slates


def draw_log(problem, p, queue, share, n, rng, means=None, groups=None):
    """A log of ``n`` rounds; ``means(slates, p)`` gives the mean outcomes (n, k, n_items), ``p[slates]`` by default."""
    slates, chain = explore_slates(problem.n_arms, np.asarray(queue), share, n, rng)
    q = p[slates] if means is None else means(slates, p)
    outcomes = (rng.random(q.shape) < q).astype(float)
    inclusion = explored_inclusion(problem.n_arms, np.asarray(queue), share)[slates]
    marginal = explored_positions(problem.n_arms, np.asarray(queue), share)[slates, np.arange(problem.k)]
    return sa.offline.Log.from_arrays(
        problem,
        slates,
        outcomes,
        propensity=chain,
        position_propensity=marginal,
        inclusion=inclusion,
        groups=groups,
    )


def coverage_problem(n_arms=6, n_items=2, k=2):
    return sa.Problem(n_arms=n_arms, n_items=n_items, reward=sa.Coverage(), actions=sa.Subsets(k))
