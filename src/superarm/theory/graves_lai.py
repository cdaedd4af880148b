r"""The Graves-Lai constant of a coverage or linear instance, the asymptotic rate of regret, by a linear program.

For every consistent policy :math:`\liminf R(T)/\log T \ge C`, where

.. math:: C = \min_{\eta \ge 0}\sum_A \eta_A\Delta_A \quad\text{such that}\quad
          \inf_\lambda \sum_{j \in A \setminus O} N_j(\eta)\sum_i kl(p_{ij}, \lambda_{ij}) \ge 1
          \quad\text{for every suboptimal } A,

:math:`N_j(\eta) = \sum_{A \ni j}\eta_A`, O the arms of optimal batches, and the infimum over the parameters
:math:`\lambda \ge p` of the arms of A outside of O that give A the value :math:`r_{\max}`: parameters that optimal play
cannot distinguish from p [GravesLai1997]_, [CombesEtAl2015]_.

The infimum is a convex problem, for coverage in :math:`s_{ij} = -\log(1 - \lambda_{ij})`, for a linear reward in
:math:`\lambda_{ij}` itself; a batch that no :math:`\lambda` makes as good as an optimal one has no constraint. So the
program is solved by cutting planes: its value with finitely many :math:`\lambda` is a lower bound of C, and scaling a
solution until it is feasible gives an upper bound. Entries are independent, or the items of each arm identical.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from superarm.actions import Explicit
from superarm.core.arrays import Bools, Floats, Ints
from superarm.core.errors import InvalidArgument
from superarm.core.support import Dense
from superarm.environments import Bernoulli, Comonotone
from superarm.oracles.subset_search import ROUNDING
from superarm.rewards import Coverage, Linear
from superarm.simulation.instances import Instance
from superarm.simulation.regret import Bracket
from superarm.theory.gaps import batch_values, list_batches

_MIN_PULL_SHARE = 1e-9
"""An arm that is never played counts as played this often, relative to the others, so that its cut is defined."""


MAX_BATCHES = 400
"""Every batch has a constraint of its own."""


class _Case(NamedTuple):
    """Suboptimal batches of which some arm is free, that is in no optimal batch: see ``_read_case``.

    ``p`` is (n_batches, k, n_items), ``arms`` (n_batches, k), with the number n_arms and p = 0 where a batch is
    smaller; ``free`` says which arms are, with n_arms + 1 entries; ``holds`` is (n_batches, n_arms + 1).
    """

    p: Floats
    arms: Ints
    free: Bools
    holds: Floats
    gap: Floats
    weights: Floats
    r_max: float
    linear: bool


def graves_lai(instance: Instance, rounds: int = 200, precision: float = 1e-6, margin: float = 0.0) -> Bracket:
    r"""The Graves-Lai constant of an instance, in a bracket of relative width ``precision``.

    The reward is ``Coverage`` or ``Linear``, the action set ``Explicit``, or another one with at most 400 batches.

    ``low`` is a valid rate for a lower bound, :math:`\liminf R(T)/\log T \ge low`. The environment is ``Bernoulli``
    (all entries independent) or ``Comonotone`` with equal parameters in a row (the items of an arm identical). At most
    ``rounds`` cutting planes are added per batch. Implements [GravesLai1997]_ in the form of [CombesEtAl2015]_ for
    semi-bandits; on the instance of [MerlisMannor2019]_ it is the bound of Lai and Robbins. With a ``margin``, the
    infimum is over parameters that give A at least :math:`r_{\max} + margin`.

    >>> from superarm.simulation import instances
    >>> rate = graves_lai(instances.lower_bound(12, 3, epsilon=0.1))
    >>> round(rate.low, 3), round(rate.high, 3)
    (44.697, 44.697)
    """
    case = _read_case(instance)
    case = case._replace(r_max=case.r_max + margin)
    eta, cuts = np.ones(len(case.gap)), np.zeros((0, len(case.free)))
    low, high = 0.0, np.inf
    for _ in range(rounds if len(case.gap) else 0):
        information, prices = _separate(case, case.holds.T @ eta)
        if information.min() > 0.0:
            high = min(high, float(eta @ case.gap / information.min()))
        if high - low <= precision * high:
            break
        cuts = np.concatenate([cuts, prices[np.isfinite(information) & ((information < 1.0) | (len(cuts) == 0))]])
        if not len(cuts):
            return Bracket(0.0, 0.0)  # no batch can be as good as an optimal one
        solved = linprog(case.gap, A_ub=-cuts @ case.holds.T, b_ub=-np.ones(len(cuts)), method="highs")
        low, eta = max(low, float(solved.fun)), solved.x
    return Bracket(min(low, high), high) if len(case.gap) else Bracket(0.0, 0.0)


def _read_case(instance: Instance) -> _Case:
    problem, environment = instance.problem, instance.environment
    if not isinstance(problem.reward, Coverage | Linear) or not isinstance(problem.support, Dense):
        raise InvalidArgument("instance", "its reward is not covered", "give Coverage() or Linear(), without a support")
    n = problem.actions.n_batches(problem.n_arms)
    if not isinstance(problem.actions, Explicit) and n > MAX_BATCHES:
        raise InvalidArgument("instance", f"it has {n:g} batches", f"give one with at most {MAX_BATCHES}")
    p, weights = instance.p, problem.weights
    if isinstance(environment, Comonotone) and (p == p[:, :1]).all():
        p, weights = p[:, :1], weights.sum(keepdims=True)
    elif not isinstance(environment, Bernoulli):
        raise InvalidArgument("instance", "its outcomes are dependent", "give environments.Bernoulli(p)")
    table, n_arms = list_batches(problem), problem.n_arms
    value = batch_values(problem, instance.p, table)
    best = float(value.max())
    arms, optimal = np.where(table >= 0, table, n_arms), value >= best - ROUNDING * best
    free = np.arange(n_arms + 1) < n_arms
    free[arms[optimal]] = False
    kept = ~optimal & free[arms].any(axis=1)
    holds = (arms[kept, :, None] == np.arange(n_arms + 1)).any(axis=1).astype(float)
    padded = np.concatenate([np.minimum(p, 1.0 - 1e-15), np.zeros((1, p.shape[1]))])[arms[kept]]
    linear = isinstance(problem.reward, Linear)
    return _Case(padded, arms[kept], free, holds, best - value[kept], weights, best, linear)


def _separate(case: _Case, pulls: Floats) -> tuple[Floats, Floats]:
    """The least information that makes each batch as good as an optimal one, and its amount per pull of each arm.

    An arm that is not free counts as pulled infinitely often: its parameters stay as they are.
    """
    n = np.where(case.free, np.maximum(pulls, _MIN_PULL_SHARE * pulls.max()), np.inf)[case.arms]
    if case.linear:
        lam = cheapest_sum(case.p, n, case.weights, case.r_max)
        reached = (lam @ case.weights).sum(axis=1) >= case.r_max - 1e-9 * abs(case.r_max)
    else:
        total = float(case.weights.sum())
        lam = np.minimum(_cheapest_parameters(case.p, n, case.weights, total - case.r_max), 1.0 - 1e-15)
        reached = _uncovered(lam, case.weights).sum(axis=1) <= total - case.r_max + 1e-9 * total
    price = np.zeros(case.holds.shape)
    np.put_along_axis(price, case.arms, divergences(case.p, lam).sum(axis=2), axis=1)
    return np.where(reached, price @ pulls, np.inf), price


def _bisect(above: Callable[[Floats], Any], n: int) -> Floats:
    """The numbers (n,) from -60 to 60 from which on ``above`` holds, all at once; 60 if it never does."""
    low, high = np.full(n, -60.0), np.full(n, 60.0)
    for _ in range(50):
        middle = 0.5 * (low + high)
        over = above(middle)
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return high


def cheapest_sum(p: Floats, n: Floats, weights: Floats, needed: float) -> Floats:
    r"""For each batch the cheapest :math:`\lambda` with :math:`\sum_{ij} w_i\lambda_{ij} \ge needed`, if there is one.

    By the optimality conditions
    :math:`n_j(\lambda_{ij} - p_{ij}) / (\lambda_{ij}(1 - \lambda_{ij})) = \nu w_i`: a quadratic for every entry, whose
    root grows with :math:`\nu`. Parameters are (n_batches, k, n_items), pulls ``n`` (n_batches, k).
    """

    def solve(log_nu: Floats) -> Floats:
        slope = np.exp(log_nu)[:, None, None] * weights / n[:, :, None]
        root = np.sqrt((1.0 - slope) ** 2 + 4.0 * slope * p)
        steep = slope > 1.0  # each form of the root where it does not cancel
        lam = np.where(steep, slope - 1.0 + root, 2.0 * p) / np.where(steep, 2.0 * slope, 1.0 - slope + root)
        return np.asarray(np.clip(lam, p, 1.0 - 1e-15))

    return solve(_bisect(lambda log_nu: (solve(log_nu) @ weights).sum(axis=1) >= needed, len(p)))


def _cheapest_parameters(p: Floats, n: Floats, weights: Floats, left: float) -> Floats:
    r"""For each batch the cheapest :math:`\lambda` with :math:`\sum_i w_i\prod_j(1 - \lambda_{ij}) \le left`.

    By the optimality conditions :math:`n_j(1 - p_{ij}/\lambda_{ij}) = \nu\, w_i\prod_j(1 - \lambda_{ij})` with one
    multiplier :math:`\nu`: the left side grows with :math:`\lambda`, the right falls, so both are found by bisection.
    """

    def solve(log_nu: Floats) -> Floats:
        return _lambdas(p, n, weights, np.exp(log_nu))

    return solve(_bisect(lambda log_nu: _uncovered(solve(log_nu), weights).sum(axis=1) <= left, len(p)))


def _uncovered(lam: Floats, weights: Floats) -> Floats:
    return np.asarray(weights * np.prod(1.0 - lam, axis=1))


def _lambdas(p: Floats, n: Floats, weights: Floats, nu: Floats) -> Floats:
    """The parameters at the multipliers ``nu``, item by item: bisection on the common slope mu of the item's arms."""
    low, high = np.zeros((len(p), p.shape[2])), np.repeat(n.min(axis=1)[:, None], p.shape[2], axis=1)
    for _ in range(50):
        mu = 0.5 * (low + high)
        short = mu < nu[:, None] * _uncovered(_at(p, n, mu), weights)
        low, high = np.where(short, mu, low), np.where(short, high, mu)
    return _take_excess(_at(p, n, 0.5 * (low + high)), n, weights, nu)


def _at(p: Floats, n: Floats, mu: Floats) -> Floats:
    lam = p / np.maximum(1.0 - mu[:, None, :] / n[:, :, None], 1e-300)
    return np.clip(lam, p, 1.0 - 1e-15)


def _take_excess(lam: Floats, n: Floats, weights: Floats, nu: Floats) -> Floats:
    """Where no multiplier balances an item, its cheapest arm takes the rest: kl is linear at p = 0."""
    rows, cheapest = np.arange(len(n)), n.argmin(axis=1)
    over = (nu / n[rows, cheapest])[:, None] * _uncovered(lam, weights)
    rest = (1.0 - lam[rows, cheapest]) / np.where(over > 1.0 + 1e-9, over, 1.0)
    lam[rows, cheapest] = 1.0 - rest
    return lam


def divergences(p: Floats, lam: Floats) -> Floats:
    """kl(p, lam) of Bernoulli parameters, entry by entry, for lam < 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(p > 0.0, p * np.log(p / lam), 0.0)
    return np.asarray(np.maximum(0.0, first + (1.0 - p) * (np.log1p(-p) - np.log1p(-lam))))
