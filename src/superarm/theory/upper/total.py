r"""Bounds where only totals are seen: of Thompson sampling, over instances of its prior; and of greedy, then commit.

Of the second, totals are in [0, 1], and the derivation is short. Each of the N = n_arms k means of greedy is within
:math:`r = \sqrt{\log T/(2m)}` of the truth but with probability 2/T, by Hoeffding's inequality. Greedy on values with
errors of at most r loses at most 2 k r against :math:`1 - 1/e` times the best. Exploring costs at most N m, what greedy
loses 2 k r T, and the rare event 2 N.
"""

import math
from typing import Any

import numpy as np

from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.environments import Totals
from superarm.oracles.base import GREEDY
from superarm.policies.total import greedy_plays
from superarm.simulation.instances import Instance
from superarm.simulation.regret import MAX_OPTIMUM_NODES
from superarm.theory.bound import Bound, rounds
from superarm.theory.gaps import gaps

FROM_PRIOR = (
    "effects that add up, drawn from a Gaussian prior; Gaussian noise; the level and both variances known to the "
    "policy, which fits them; a variance of at most 1/4 of each total, over prior and noise (totals in [0, 1] are "
    "Gaussian at best approximately); totals told before the next round"
)
SUBMODULAR = "monotone and submodular totals in [0, 1], told before the next round; a policy whose horizon is T"


def bayes_bound_total(instance: Instance, horizon: Any) -> Bound:
    r"""``total_thompson(sharpness=1, later=1)``: its mean regret over instances that are drawn from its prior.

    .. math:: E[R(T)] \le \sqrt{\tfrac12\,n_{arms}\,H\,T}, \qquad H = \min\{\log|\mathcal A|,\ n_{arms}\log 2\}

    [RussoVanRoy2016]_ (linear bandits). Their rewards are in a range of length 1, or sub-Gaussian given the past: here
    totals are Gaussian, with a variance of at most 1/4 before the first round, so also given the past. Otherwise the
    draws are from no exact posterior. H bounds the entropy of the best set. It bounds no regret on this instance.

    >>> import superarm as sa
    >>> environment = sa.environments.Totals(sa.environments.Bernoulli([[0.5]] * 20), sa.Linear())
    >>> instance = sa.Instance(sa.Problem(20, reward=sa.Total(), actions=sa.Subsets(3)), environment)
    >>> round(float(bayes_bound_total(instance, 10_000)))
    839
    """
    problem = instance.problem
    if not _inner(instance).reward.modular:
        raise InvalidArgument("instance", "arms do not add up here", "give Totals(…, Linear())")
    sets = max(problem.actions.n_batches(problem.n_arms), 1.0)
    entropy = min(math.log(sets) if math.isfinite(sets) else math.inf, problem.n_arms * math.log(2.0))

    def main(t: Floats) -> Floats:
        return np.sqrt(0.5 * problem.n_arms * entropy * t)

    return Bound("bayes_bound_total", rounds(horizon), (main, 0.0, 0.0), _largest_gap(instance, 1.0), kind="bayes")


def upper_bound_greedy_commit(instance: Instance, horizon: Any) -> Bound:
    r"""``greedy_then_commit(horizon)`` at its horizon T, against :math:`1 - 1/e` times the best set.

    .. math:: R(T) \le N m + 2kT\sqrt{\frac{\log T}{2m}} + 2N, \qquad N = n_{arms}\,k

    with the m of the policy. [NieEtAl2023]_ has the same rate; the constants are derived above. It is infinite where
    exploring takes more than T rounds, which the policy refuses.

    >>> import superarm as sa
    >>> environment = sa.environments.Totals(sa.environments.Bernoulli([[0.5]] * 20), sa.Coverage())
    >>> instance = sa.Instance(sa.Problem(20, reward=sa.Total(), actions=sa.Subsets(3)), environment)
    >>> f"{float(upper_bound_greedy_commit(instance, 10**9)):.3g}"
    '5.33e+07'
    """
    problem, reward = instance.problem, _inner(instance).reward
    if not (reward.submodular and reward.monotone):
        raise InvalidArgument("instance", "totals are not submodular here", "give Totals(…, Coverage())")
    calls, k, horizons = float(problem.n_arms * problem.k), problem.k, rounds(horizon)

    def plays(t: Floats) -> Floats:
        return np.array([greedy_plays(problem.n_arms, k, max(x, 2.0)) for x in np.ravel(t)], float).reshape(np.shape(t))

    def errors(t: Floats) -> Floats:
        return 2.0 * k * t * np.sqrt(np.log(np.maximum(t, 2.0)) / (2.0 * plays(t)))

    def exploring(t: Floats) -> Floats:
        return np.where(calls * plays(t) > t, np.inf, calls * plays(t))

    if not np.isfinite(exploring(horizons)).any():
        raise InvalidArgument("horizon", f"exploring alone takes more than {horizons.max():g} rounds", "give more")
    terms, largest = (errors, exploring, 2.0 * calls), _largest_gap(instance, GREEDY)
    return Bound("upper_bound_greedy_commit", horizons, terms, largest, alpha=GREEDY)


def _largest_gap(instance: Instance, alpha: float) -> float:
    """The largest gap, in totals, to that share of the best set."""
    environment = _inner(instance)
    inner = Instance(environment.inner(instance.problem), environment.environment)
    return gaps(inner, alpha, MAX_OPTIMUM_NODES).largest / environment.most(instance.problem)


def _inner(instance: Instance) -> Totals:
    """The environment whose outcomes make the totals; refused where it is not known what they are."""
    if not isinstance(instance.environment, Totals):
        raise InvalidArgument("instance", "it does not say what totals are made of", "give environments.Totals(…)")
    return instance.environment
