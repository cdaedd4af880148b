r"""Rules of contextual policies: how far the optimistic parameter of an entry lies above its estimate.

With :math:`G = ridge\,I + \sum w\,\phi\phi^\top`, an entry with features :math:`\phi` has the width
:math:`\lVert\phi\rVert_{G^{-1}}`. A rule gives the radius that multiplies it, the weight of an observation, and
the penalty ``ridge`` as a multiple of the largest squared length of features: the papers have features of length at
most 1.
"""

import math
from typing import NamedTuple, Protocol

from superarm._jit import component, lean, verb
from superarm.arrays import Floats
from superarm.context.sums import UNWEIGHTED, round_weight
from superarm.parameters import nonnegative, positive


class Rule(Protocol):
    """How a contextual policy explores, and how it weighs what it observes."""

    def radius(self, d: int, k: int, t: int) -> float:
        """The number that multiplies widths in round ``t``, for ``d`` features.

        ``k`` is how many entries of a batch have the same parameter vector, at most: the K of the papers, where arms
        have one item and all share their parameters.
        """
        ...

    def weight(self, low: float, high: float) -> float:
        """The weight of an observation of an entry whose parameter lies in [low, high]: a multiple of 1/4."""
        ...

    def penalty(self) -> float:
        """The ridge, for features of length at most 1."""
        ...

    def sampled(self) -> bool:
        """Whether parameter vectors are drawn from their posterior, in place of widths."""
        ...


@component
class Ellipsoid(NamedTuple):
    r"""The radius of C²-UCB: :math:`\rho\,\bigl(\sqrt{d\log(1 + k t/(\gamma d)) + 2\log t} + \sqrt\gamma\bigr)`.

    Implements [LiuEtAl2023]_ (Algorithm 1, C²-UCB-T) with :math:`\delta = 1/t`, so that no horizon is needed;
    [QinChenZhu2014]_. All observations have the weight 4, so the radius is doubled and ``gamma`` counts four times.
    """

    rho: float = 1.0
    gamma: float = 1.0

    def _check(self) -> None:
        nonnegative(self, "rho")
        positive(self, "gamma")

    @lean
    def radius(self, d: int, k: int, t: int) -> float:
        log_det = d * math.log(1.0 + k * t / (self.gamma * d))
        return 2.0 * self.rho * (math.sqrt(log_det + 2.0 * math.log(t)) + math.sqrt(self.gamma))

    @lean
    def weight(self, low: float, high: float) -> float:
        return UNWEIGHTED

    @lean
    def penalty(self) -> float:
        return 4.0 * self.gamma

    @lean
    def sampled(self) -> bool:
        return False


@component
class VarianceWeighted(NamedTuple):
    r"""The radius and the weights of VAC²-UCB.

    .. math:: 2\rho\,\Bigl(1 + \sqrt\gamma + 4\sqrt{\log\bigl(6 t^2 N\,\log(3 t^2 N)\bigr)}\Bigr), \qquad
              N = (4 d^2 k^4 t^4)^d

    An observation has the weight :math:`1/\bar V`, where :math:`\bar V` is the largest variance
    :math:`\mu(1 - \mu)` in the confidence interval of the entry when it was chosen. Implements [LiuEtAl2023]_
    (Algorithm 2) with t in place of the horizon. The paper has ``rho=1`` and ``gamma=4k``; its proof holds with
    ``gamma=1`` for semi-bandit feedback (``docs/theory/context.md``).
    """

    rho: float = 1.0
    gamma: float = 1.0

    def _check(self) -> None:
        nonnegative(self, "rho")
        positive(self, "gamma")

    @lean
    def radius(self, d: int, k: int, t: int) -> float:
        log_n = d * math.log(4.0 * d * d * math.pow(float(k) * t, 4.0))
        log_tn = 2.0 * math.log(t) + log_n
        inner = math.log(6.0) + log_tn + math.log(math.log(3.0) + log_tn)
        return 2.0 * self.rho * (1.0 + math.sqrt(self.gamma) + 4.0 * math.sqrt(inner))

    @lean
    def weight(self, low: float, high: float) -> float:
        variance = 0.25
        if high <= 0.5:
            variance = high * (1.0 - high)
        elif low >= 0.5:
            variance = low * (1.0 - low)
        return round_weight(variance)

    @lean
    def penalty(self) -> float:
        return self.gamma

    @lean
    def sampled(self) -> bool:
        return False


@component
class GaussianPosterior(NamedTuple):
    r"""One draw :math:`\theta \sim N(\hat\theta, \rho^2 G^{-1})` per round and parameter vector.

    Implements [WenKvetonAshkan2015]_ (CombLinTS, Algorithm 1) with noise of variance 1/4, the largest of outcomes
    in [0, 1], and prior variance ``prior``.
    """

    rho: float = 1.0
    prior: float = 1.0

    def _check(self) -> None:
        nonnegative(self, "rho")
        positive(self, "prior")

    @lean
    def radius(self, d: int, k: int, t: int) -> float:
        return self.rho

    @lean
    def weight(self, low: float, high: float) -> float:
        return UNWEIGHTED

    @lean
    def penalty(self) -> float:
        return 1.0 / self.prior

    @lean
    def sampled(self) -> bool:
        return True


radius = verb(Rule.radius)
weight = verb(Rule.weight)
penalty = verb(Rule.penalty)
sampled = verb(Rule.sampled)


@lean
def clip_scores(q: Floats, first: int, last: int) -> None:
    """Clip the optimistic parameters of some entries to [0, 1]."""
    for e in range(first, last):
        q[e] = min(1.0, max(0.0, q[e]))
