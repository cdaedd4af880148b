r"""Lower bounds of the regret of any consistent policy on the paper's instance, ``superarm.instances.lower_bound``.

Arms 1 to K-1 cover nothing, every batch has them and one further arm, and the items of an arm are identical, so that
the instance is equivalent to a Bernoulli bandit with L-K+1 arms [MerlisMannor2019]_ (section Lower Bounds).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from superarm.arrays import Floats
from superarm.errors import InvalidArgument
from superarm.indices.kl import divergence
from superarm.problem import Problem
from superarm.simulation.instances import Instance
from superarm.theory.bound import rounds
from superarm.theory.gaps import Gaps, gaps


@dataclass(frozen=True)
class LowerBound:
    r"""An asymptotic lower bound, :math:`\liminf R(t)/\log t \ge rate`, drawn as :math:`rate \log T`.

    ``stated`` is the rate as the paper states it, ``exact`` the one of Lai and Robbins that it is derived from.
    ``value`` is ``exact * log T`` over ``horizon``: the asymptotic growth of regret, not a bound at any finite T.
    """

    stated: float
    exact: float
    horizon: Floats

    @property
    def value(self) -> Floats:
        """The exact rate times log T."""
        return self.exact * np.log(self.horizon)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.value, dtype)

    def __float__(self) -> float:
        return float(self.value)


def lower_bound(instance: Instance, horizon: Any, known: Gaps | None = None) -> LowerBound:
    r"""Proposition 1, for the dimensions, the weights and the smallest gap of ``instance``.

    .. math:: \liminf_{t\to\infty}\frac{R(t)}{\log t} \ge
              \frac{(L - K)\Delta}{kl(1/2 - \Delta/\bar M,\ 1/2)} \ge \frac{\bar M^2(L - K)}{4\Delta}

    for every consistent policy on the paper's instance, ``instances.lower_bound``; on another instance it is the
    rate of a problem of the same size and gap; :func:`graves_lai` gives that of the instance. [MerlisMannor2019]_
    (Proposition 1, and its proof for the exact form). Differs: the stated form bounds kl by :math:`4\epsilon^2`, which
    is loose by a factor of almost 2 for small gaps. Needs :math:`\Delta \le \bar M/2`.

    >>> import superarm as sa
    >>> bound = lower_bound(sa.instances.lower_bound(12, 3, epsilon=0.1), 1000)
    >>> round(bound.stated, 3), round(bound.exact, 3)
    (22.5, 44.697)
    """
    problem = instance.problem
    g = gaps(instance, alpha=1.0) if known is None else known
    stated, exact = rates(problem.n_arms, problem.k, g.smallest, float(problem.weights.sum()))
    return LowerBound(stated, exact, rounds(horizon))


def rates(n_arms: int, k: int, gap: float, weight: float = 1.0) -> tuple[float, float]:
    r"""The stated and the exact rate of Proposition 1 for L, K, :math:`\Delta` and :math:`\bar M`.

    [MerlisMannor2019]_ (Proposition 1).

    >>> rates(11, 1, 0.5)[0]
    5.0
    """
    if not 0.0 < gap <= weight / 2.0:
        raise InvalidArgument("gap", f"{gap:g} with weights that add up to {weight:g}", "needs 0 < gap <= weight / 2")
    exact = (n_arms - k) * gap / divergence(0.5 - gap / weight, 0.5)
    return weight**2 * (n_arms - k) / (4.0 * gap), exact


def lower_bound_gap_free(instance: Instance | Problem, horizon: Any) -> Floats:
    r"""Proposition 1 without gaps: for every policy and T there is an instance of this size with at least

    .. math:: R(T) \ge \frac{1}{20}\bar M\min\{\sqrt{(L - K + 1)T},\ T\}.

    [MerlisMannor2019]_ (Proposition 1), after [AuerEtAl2002]_.

    >>> import superarm as sa
    >>> lower_bound_gap_free(sa.instances.lower_bound(12, 3), [1, 1000]).tolist()
    [0.05, 5.0]
    """
    problem = instance.problem if isinstance(instance, Instance) else instance
    t = rounds(horizon)
    arms = problem.n_arms - problem.k + 1
    return np.asarray(float(problem.weights.sum()) * np.minimum(np.sqrt(arms * t), t) / 20.0)
