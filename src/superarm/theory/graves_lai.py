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

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, linprog

from superarm.actions import Explicit
from superarm.core.arrays import Bools, Floats
from superarm.core.errors import InvalidArgument
from superarm.core.support import Dense
from superarm.environments import Bernoulli, Comonotone
from superarm.rewards import Coverage, Linear
from superarm.simulation.instances import Instance
from superarm.simulation.regret import Bracket
from superarm.theory.gaps import batch_values, list_batches
from superarm.theory.search import ROUNDING

_MIN_PULL_SHARE = 1e-9
"""An arm that is never played counts as played this often, relative to the others, so that its cut is defined."""


MAX_BATCHES = 400
"""Every batch has a constraint of its own, and every cutting plane costs a bisection per batch."""


class _Case(NamedTuple):
    """p (n_arms, n_items), weights, batches as a boolean (n_batches, n_arms), gaps, free arms (outside of O), r_max."""

    p: Floats
    weights: Floats
    holds: Bools
    gap: Floats
    free: Bools
    r_max: float
    linear: bool


def graves_lai(instance: Instance, rounds: int = 200, precision: float = 1e-6) -> Bracket:
    r"""The Graves-Lai constant of an instance, in a bracket of relative width ``precision``.

    The reward is ``Coverage`` or ``Linear``, the action set ``Explicit``, or another one with at most 400 batches.

    ``low`` is a valid rate for a lower bound, :math:`\liminf R(T)/\log T \ge low`. The environment is ``Bernoulli``
    (all entries independent) or ``Comonotone`` with equal parameters in a row (the items of an arm identical). At most
    ``rounds`` cutting planes are added per batch. Implements [GravesLai1997]_ in the form of [CombesEtAl2015]_ for
    semi-bandits; on the instance of [MerlisMannor2019]_ it is the bound of Lai and Robbins.

    >>> from superarm.simulation import instances
    >>> rate = graves_lai(instances.lower_bound(12, 3, epsilon=0.1))
    >>> round(rate.low, 3), round(rate.high, 3)
    (44.697, 44.697)
    """
    case = _read_case(instance)
    suboptimal = np.flatnonzero(case.gap > 0.0)
    suboptimal = suboptimal[(case.holds[suboptimal] & case.free).any(axis=1)]
    if not suboptimal.size:
        return Bracket(0.0, 0.0)
    eta = np.ones(len(case.gap))
    cuts: list[Floats] = []
    low, high = 0.0, np.inf
    for _ in range(rounds):
        pulls = case.holds.T @ eta
        found = [_separate(case, int(a), pulls) for a in suboptimal]
        worst = min(information for information, _ in found)
        if worst > 0.0:
            high = min(high, float(eta @ case.gap) / worst)
        if high - low <= precision * high:
            break
        new = [cut for information, cut in found if np.isfinite(information) and (not cuts or information < 1.0)]
        if not cuts and not new:
            return Bracket(0.0, 0.0)  # no batch can be as good as an optimal one
        cuts += new
        solved = linprog(
            case.gap[suboptimal],
            A_ub=-np.array(cuts) @ case.holds[suboptimal].T,
            b_ub=-np.ones(len(cuts)),
            method="highs",
        )
        low = max(low, float(solved.fun))
        eta = np.zeros(len(case.gap))
        eta[suboptimal] = solved.x
    return Bracket(min(low, high), high)


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
    table = list_batches(problem)
    value = batch_values(problem, instance.p, table)
    best = float(value.max())
    gap = np.where(value < best - ROUNDING * best, best - value, 0.0)
    holds = (table[:, :, None] == np.arange(problem.n_arms)).any(1)
    free = ~holds[gap == 0.0].any(axis=0)
    linear = isinstance(problem.reward, Linear)
    return _Case(np.minimum(p, 1.0 - 1e-15), weights, holds, gap, free, best, linear)


def _separate(case: _Case, batch: int, pulls: Floats) -> tuple[float, Floats]:
    """The least information that distinguishes ``batch`` from an optimal one, and its amount per pull of each arm."""
    arms = case.holds[batch] & case.free
    known = case.holds[batch] & ~case.free
    n = np.maximum(pulls[arms], _MIN_PULL_SHARE * pulls.max())
    p = case.p[arms]
    price = np.zeros(len(pulls))
    if case.linear:
        needed = case.r_max - float((case.p[known] @ case.weights).sum())
        if needed >= len(p) * float(case.weights.sum()):
            return np.inf, price
        lam = cheapest_sum(p, n, case.weights, needed)
    else:
        fixed = np.prod(1.0 - case.p[known], axis=0) * case.weights
        left = float(case.weights.sum()) - case.r_max  # the largest weight that may stay uncovered
        lam = _cheapest_parameters(p, n, fixed, left)
    price[arms] = divergences(p, lam).sum(axis=1)
    return float(price @ pulls), price


def cheapest_sum(p: Floats, n: Floats, weights: Floats, needed: float) -> Floats:
    r"""The cheapest :math:`\lambda` with :math:`\sum_{ij} w_i\lambda_{ij} \ge needed`.

    By the optimality conditions
    :math:`n_j(\lambda_{ij} - p_{ij}) / (\lambda_{ij}(1 - \lambda_{ij})) = \nu w_i`: a quadratic for every entry, whose
    root grows with :math:`\nu`.
    """

    def solve(log_nu: float) -> Floats:
        slope = np.exp(log_nu) * weights[None, :] / n[:, None]
        root = np.sqrt((1.0 - slope) ** 2 + 4.0 * slope * p)
        steep = slope > 1.0  # each form of the root where it does not cancel
        lam = np.where(steep, slope - 1.0 + root, 2.0 * p) / np.where(steep, 2.0 * slope, 1.0 - slope + root)
        return np.asarray(np.clip(lam, p, 1.0 - 1e-15))

    def missing(log_nu: float) -> float:
        return float((solve(log_nu) @ weights).sum()) - needed

    low, high = -60.0, 60.0
    return solve(high if missing(high) < 0.0 else brentq(missing, low, high, xtol=1e-11))


def _cheapest_parameters(p: Floats, n: Floats, fixed: Floats, left: float) -> Floats:
    r"""The cheapest :math:`\lambda` with :math:`\sum_i fixed_i\prod_j(1 - \lambda_{ij}) \le left`.

    By the optimality conditions :math:`n_j(1 - p_{ij}/\lambda_{ij}) = \nu\, fixed_i\prod_j(1 - \lambda_{ij})` with one
    multiplier :math:`\nu`: the left side grows with :math:`\lambda`, the right falls, so both are found by bisection.
    """

    def uncovered(log_nu: float) -> float:
        return float(_uncovered(_lambdas(p, n, fixed, np.exp(log_nu)), fixed).sum()) - left

    low, high = -60.0, 60.0
    if uncovered(high) > 0.0:
        return _lambdas(p, n, fixed, float(np.exp(high)))
    return _lambdas(p, n, fixed, float(np.exp(brentq(uncovered, low, high, xtol=1e-11))))


def _uncovered(lam: Floats, fixed: Floats) -> Floats:
    return np.asarray(fixed * np.prod(1.0 - lam, axis=0))


def _lambdas(p: Floats, n: Floats, fixed: Floats, nu: float) -> Floats:
    """The parameters at multiplier ``nu``, item by item: bisection on the common slope mu of the item's arms."""
    low, high = np.zeros(p.shape[1]), np.full(p.shape[1], n.min())
    for _ in range(60):
        mu = 0.5 * (low + high)
        short = mu < nu * _uncovered(_at(p, n, mu), fixed)
        low, high = np.where(short, mu, low), np.where(short, high, mu)
    return _take_excess(_at(p, n, 0.5 * (low + high)), n, fixed, nu)


def _at(p: Floats, n: Floats, mu: Floats) -> Floats:
    lam = p / np.maximum(1.0 - mu[None, :] / n[:, None], 1e-300)
    return np.clip(lam, p, 1.0 - 1e-15)


def _take_excess(lam: Floats, n: Floats, fixed: Floats, nu: float) -> Floats:
    """Where no multiplier balances an item, its cheapest arm takes the rest: kl is linear at p = 0."""
    cheapest = int(np.argmin(n))
    over = nu * _uncovered(lam, fixed) / n[cheapest]
    excess = over > 1.0 + 1e-9
    lam = lam.copy()
    lam[cheapest, excess] = 1.0 - (1.0 - lam[cheapest, excess]) / over[excess]
    return lam


def divergences(p: Floats, lam: Floats) -> Floats:
    """kl(p, lam) of Bernoulli parameters, entry by entry, for lam < 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(p > 0.0, p * np.log(p / lam), 0.0)
    return np.asarray(np.maximum(0.0, first + (1.0 - p) * (np.log1p(-p) - np.log1p(-lam))))
