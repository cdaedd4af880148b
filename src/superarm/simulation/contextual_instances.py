"""Named instances with contexts."""

import numpy as np

from superarm.actions import Subsets
from superarm.context import Context, Features, LinearModel, LogisticModel, Segments
from superarm.context.encoding import to_grid
from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.environments import Gaussian, context_table
from superarm.environments.gaussian import REACH
from superarm.problem import Problem
from superarm.rewards import Coverage, Linear
from superarm.simulation.instances import Instance, grid_paths


def _unit_rows(rng: np.random.Generator, n: int, d: int) -> Floats:
    """``n`` vectors of length 1 with no negative coordinate, on the grid of encoded features."""
    rows = np.abs(rng.normal(size=(n, d)))
    return np.asarray(np.floor(rows / np.linalg.norm(rows, axis=1, keepdims=True) * 1024.0) / 1024.0)


def linear_cascade(
    n_arms: int = 100, k: int = 10, n_user: int = 2, n_arm: int = 5, n_contexts: int = 100, seed: int = 0
) -> Instance:
    r"""Lists of ``k`` arms that are read up to the first click, whose click rates are linear in :math:`x \otimes z_j`.

    The means are of order 1/k, so that a list is clicked with a probability that hardly depends on ``k``:
    :math:`p_j = \frac{2}{k}\langle\theta, x \otimes z_j\rangle` with users x, arms :math:`z_j` and :math:`\theta` of
    length 1 and no negative coordinate. After the linear cascade of [LiuEtAl2023]_ and [LiWangZhangChen2016]_.

    >>> instance = linear_cascade(n_arms=6, k=2, n_contexts=4)
    >>> instance.problem.context.dimension(n_items=1)
    10
    """
    rng = np.random.default_rng(seed)
    users, arms, theta = (
        _unit_rows(rng, n_contexts, n_user),
        _unit_rows(rng, n_arms, n_arm),
        _unit_rows(rng, 1, n_user * n_arm),
    )
    p = np.einsum("cu,ja,ua->cj", users, arms, theta.reshape(n_user, n_arm)) * 2.0 / k
    context = Context(Features(d=n_user), arms, LinearModel(shared=True, intercept=False))
    problem = Problem(n_arms, 1, Coverage(), Subsets(k), context=context)
    return Instance(problem, context_table(problem, list(users), np.minimum(p, 1.0)[:, :, None], cascade=True))


def contextual_coverage(
    n_arms: int = 30,
    n_items: int = 5,
    k: int = 4,
    n_user: int = 2,
    n_arm: int = 3,
    n_contexts: int = 50,
    largest: float | None = None,
    seed: int = 0,
) -> Instance:
    r"""Coverage whose parameters are linear in :math:`x \otimes z_j` plus an effect of the item, at most ``largest``.

    By default that is 1.2 / k, so that what a good batch covers hardly depends on ``k``.

    >>> contextual_coverage(n_arms=5, k=2, n_contexts=3).problem.context.dimension(n_items=5)
    11
    """
    rng = np.random.default_rng(seed)
    users, arms = _unit_rows(rng, n_contexts, n_user), _unit_rows(rng, n_arms, n_arm)
    theta, items = rng.uniform(0.0, 1.0, (n_user, n_arm)), rng.uniform(0.0, 0.5, n_items)
    p = np.einsum("cu,ja,ua->cj", users, arms, theta)[:, :, None] + items
    context = Context(Features(d=n_user), arms, LinearModel(shared=True, intercept=False))
    problem = Problem(n_arms, n_items, Coverage(), Subsets(k), context=context)
    return Instance(
        problem, context_table(problem, list(users), p * (largest if largest is not None else 1.2 / k) / p.max())
    )


def segment_coverage(
    n_arms: int = 30,
    n_items: int = 5,
    k: int = 4,
    n_segments: int = 4,
    spread: float = 1.0,
    pooling: float = 0.0,
    seed: int = 0,
) -> Instance:
    """Coverage with segments of users: log-odds around -2.5 that all have in common, plus ``spread`` of their own.

    >>> segment_coverage(n_arms=5, k=2, n_segments=3).problem.context.n_segments
    3
    """
    if n_segments < 1:
        raise InvalidArgument("n_segments", f"{n_segments}", "give at least 1")
    rng = np.random.default_rng(seed)
    common = -2.5 + rng.normal(size=(1, n_arms, n_items))
    p = 1.0 / (1.0 + np.exp(-common - spread * rng.normal(size=(n_segments, n_arms, n_items))))
    names = [f"segment {n}" for n in range(n_segments)]
    context = Context(Features(categorical={"segment": names}), model=Segments(pooling=pooling))
    problem = Problem(n_arms, n_items, Coverage(), Subsets(k), context=context)
    return Instance(problem, context_table(problem, [{"segment": name} for name in names], p))


def linear_paths(m: int = 4, d: int = 10, prior: float = 10.0, noise: float = 1.0, seed: int = 0) -> Instance:
    r"""Longest paths through a grid of m × m squares whose edges have Gaussian weights, linear in their features.

    Features are standard normal, divided by 8, and parameters :math:`N(0, (8\,prior)^2)`: outcomes have means of
    variance :math:`d\,prior^2` and the standard deviation ``noise``. After [WenKvetonAshkan2015]_ (section 6.1).

    >>> linear_paths(2, d=3).problem.bounds
    (-1024.0, 1024.0)
    """
    grid, rng = grid_paths(m).problem, np.random.default_rng(seed)
    arms = to_grid(rng.normal(size=(grid.n_arms, d)) / 8.0)
    p = arms @ rng.normal(size=d) * 8.0 * prior
    most = 1024.0 * max(1.0, np.ceil((np.abs(p).max() + REACH * noise) / 1024.0))
    context = Context(Features(), arms, LinearModel(shared=True, intercept=False))
    problem = Problem(grid.n_arms, 1, Linear(), grid.actions, context=context, bounds=(-most, most))
    return Instance(problem, Gaussian(p[:, None], noise))


def logistic_coverage(
    n_arms: int = 30, n_items: int = 5, k: int = 4, n_user: int = 2, n_arm: int = 3, n_contexts: int = 50, seed: int = 0
) -> Instance:
    r"""Coverage whose log-odds are linear in :math:`x \otimes z_j` plus an effect of the item, around -2.5.

    >>> logistic_coverage(n_arms=5, k=2, n_contexts=3).problem.context.model.shared
    'all'
    """
    rng = np.random.default_rng(seed)
    users = np.floor(rng.uniform(-1.0, 1.0, (n_contexts, n_user)) * 1024.0) / 1024.0
    arms = np.floor(rng.uniform(-1.0, 1.0, (n_arms, n_arm)) * 1024.0) / 1024.0
    x, z = (np.concatenate([np.ones((len(rows), 1)), rows], axis=1) for rows in (users, arms))
    theta, items = rng.normal(size=(1 + n_user, 1 + n_arm)), rng.normal(size=n_items)
    theta[0, 0] = -2.5
    odds = np.einsum("cu,ja,ua->cj", x, z, theta)[:, :, None] + 0.5 * items
    context = Context(Features(d=n_user), arms, LogisticModel(shared=True, prior_mean=0.1))
    problem = Problem(n_arms, n_items, Coverage(), Subsets(k), context=context)
    return Instance(problem, context_table(problem, list(users), 1.0 / (1.0 + np.exp(-odds))))
