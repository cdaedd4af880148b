r"""Regret bounds of the policies on linear models, with K alone or only inside logarithms.

Both theorems are proved in ``docs/theory/context.md``, given that the estimate stays in its ellipsoid; for VAC²-UCB
that event is Lemma 2 of [LiuEtAl2023]_, which is quoted and not proved there.
"""

import math
from typing import Any

import numpy as np

from superarm.context import LinearModel
from superarm.context.models import ALL
from superarm.context.sums import MAX_WEIGHT
from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.problem import Problem
from superarm.rewards import smoothness_of
from superarm.theory.bound import Bound, Term, rounds

ASSUMPTIONS = (
    "parameters that are linear in features of length at most 1, with a parameter vector of length at most 1 (in the "
    "coordinates of the policy, which divides features by the largest length they can have), a monotone reward, and "
    "outcomes of one round that are independent given the past"
)
"""What the theorems assume, in a sentence for reports."""


def information(d: int, n_observations: Any, weight: float, ridge: float) -> Floats:
    r"""The largest possible :math:`\Lambda = \log(\det G_{T+1} / \det G_1) \le d\log(1 + n\,weight/(ridge\,d))`.

    For ``n_observations`` observations of features of length at most 1, of that weight at most [LiuEtAl2023]_.

    >>> round(float(information(10, 1000, 4.0, 1.0)), 3)
    59.94
    """
    return np.asarray(d * np.log1p(np.asarray(n_observations, float) * weight / (ridge * d)))


def upper_bound_c2_ucb(problem: Problem, horizon: Any, ridge: float = 1.0) -> Bound:
    r"""C²-UCB with ``rho=1``: :math:`2\varrho\gamma_\infty\lVert w\rVert_2\sqrt{K T \Lambda / \log 2}` and bad rounds.

    :math:`\varrho` is its radius at T, and :math:`\Lambda` the information of unweighted observations. Proposition 2 of
    ``docs/theory/context.md``, after [QinChenZhu2014]_ and [LiuEtAl2023]_ (Theorem 1).

    >>> from superarm.actions import Subsets
    >>> from superarm.context import Context, Features, models
    >>> from superarm.rewards import Coverage
    >>> context = Context(Features(d=2), np.full((20, 5), 0.1), models.Linear(shared=True, intercept=False))
    >>> problem = Problem(20, 1, Coverage(), Subsets(5), context=context)
    >>> bool(upper_bound_c2_ucb(problem, 10**9).value < 10**9)
    True
    """
    d, k, norm = _numbers(problem)
    steepest = 2.0 * smoothness_of(problem.reward, k).gamma_inf * norm * math.sqrt(k)

    def log_det(t: Floats) -> Floats:
        return information(d, k * problem.n_items * t, 1.0, ridge)

    def factor(t: Floats) -> Floats:
        return np.asarray(steepest * (np.sqrt(log_det(t) + 2.0 * np.log(t)) + math.sqrt(ridge)))

    # the events of round t fail with probability 1 / t
    main, cost = _terms(problem, log_det, factor, lambda t: 1.0 + np.log(t))
    return Bound("upper_bound_c2_ucb", rounds(horizon), (0.0, main, cost), largest_reward(problem))


def upper_bound_vac2_ucb(problem: Problem, horizon: Any, ridge: float = 1.0) -> Bound:
    r"""VAC²-UCB with ``rho=1``: :math:`12.4\,\varrho\gamma_g\lVert w\rVert_2\sqrt{T\Lambda/\log 2}` and bad rounds.

    It is for the radius of the horizon in every round, and means in [1/4000, 1 - 1/4000]; ``vac2_ucb`` has the radius
    of the present round. :math:`\varrho` is the radius of Lemma 2 of [LiuEtAl2023]_ at T (half of the multiplier of the
    width), and
    :math:`\Lambda` the information of observations of weight at most 4096: the batch size enters only inside
    logarithms. Theorem 1 of ``docs/theory/context.md``. Differs from [LiuEtAl2023]_ (Theorem 2): no
    :math:`\gamma \ge 4K`, and no :math:`\sqrt K` in the radius.

    >>> from superarm.actions import Subsets
    >>> from superarm.context import Context, Features, models
    >>> from superarm.rewards import Coverage
    >>> context = Context(Features(d=2), np.full((200, 5), 0.1), models.Linear(shared=True, intercept=False))
    >>> small, large = (Problem(200, 1, Coverage(), Subsets(k), context=context) for k in (4, 64))
    >>> growth = upper_bound_vac2_ucb(large, 1e6).value / upper_bound_vac2_ucb(small, 1e6).value
    >>> bool(growth < 1.5)
    True
    """
    d, k, norm = _numbers(problem)
    gamma_g, k_entries = smoothness_of(problem.reward, k).gamma_g, k * problem.n_items

    def log_det(t: Floats) -> Floats:
        return information(d, k_entries * t, MAX_WEIGHT, ridge)

    def factor(t: Floats) -> Floats:
        log_tn = 2.0 * np.log(t) + d * (np.log(4.0 * d**2) + 4.0 * np.log(float(k_entries) * t))
        radius = 1.0 + math.sqrt(ridge) + 4.0 * np.sqrt(math.log(6.0) + log_tn + np.log(math.log(3.0) + log_tn))
        return np.asarray(12.4 * radius * gamma_g * norm)

    main, cost = _terms(problem, log_det, factor, lambda t: 1.0)
    return Bound("upper_bound_vac2_ucb", rounds(horizon), (main, 0.0, cost), largest_reward(problem))


def _terms(problem: Problem, log_det: Any, factor: Any, failed: Any) -> tuple[Term, Term]:
    r""":math:`factor\sqrt{T\Lambda/\log 2}`, and rounds of much new information or with failed events."""
    largest, log_2 = largest_reward(problem), math.log(2.0)
    return lambda t: factor(t) * np.sqrt(t * log_det(t) / log_2), lambda t: largest * (log_det(t) / log_2 + failed(t))


def _numbers(problem: Problem) -> tuple[int, int, float]:
    """The number of features, the batch size and the length of the weights."""
    context = problem.context
    if context is None or not isinstance(context.model, LinearModel) or context.model.shared != ALL:
        raise InvalidArgument("problem", "it has no shared linear model", "give Context(…, model=Linear(shared=True))")
    return context.dimension(problem.n_items), problem.k, float(np.linalg.norm(problem.weights))


def largest_reward(problem: Problem) -> float:
    """The value of a full batch whose parameters are all 1: no round costs more."""
    reward, weights = problem.reward, problem.weights
    state = reward.start(weights)
    for _ in range(problem.k):
        state = reward.join(state, np.ones(problem.n_items))
    return float(reward.worth(weights, state).sum())
