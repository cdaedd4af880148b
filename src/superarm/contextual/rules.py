r"""Rules of policies on linear models: how far the optimistic parameter of an entry lies above its estimate.

With :math:`G = ridge\,I + \sum w\,\phi\phi^\top`, an entry with features :math:`\phi` has the width
:math:`\lVert\phi\rVert_{G^{-1}}`. A rule gives the radius that multiplies it, the weight of an observation, and
the penalty ``ridge`` as a multiple of the largest squared length of features: the papers have features of length at
most 1.
"""

import math
from typing import Any, ClassVar

import numpy as np

from superarm.context.sums import UNWEIGHTED, round_weight
from superarm.core.arrays import Floats
from superarm.core.component import Component
from superarm.core.numeric import log


class Rule(Component):
    """How a policy on a linear model explores, and how it weighs what it observes."""

    rho = 1.0
    ridge = 1.0
    sampled: ClassVar[bool] = False
    """Whether parameter vectors are drawn from their posterior, in place of widths."""

    def check(self) -> None:
        self.require("rho", self.rho >= 0.0, "give a number >= 0")
        self.require("ridge", 0.0 < self.ridge < math.inf, "give a finite number > 0")

    @property
    def penalty(self) -> float:
        """The number that is added to the diagonal of G, for features of length at most 1."""
        return self.ridge

    def ridge_for(self, longest: float) -> float:
        """The number that is added to the diagonal of G, for features whose squared length is at most ``longest``."""
        return self.penalty * longest

    def radius(self, d: int, k: int, t: int) -> float:
        """The number that multiplies widths in round ``t``, for ``d`` features.

        ``k`` is how many entries of a batch have the same parameter vector, at most: the K of the papers, where arms
        have one item and all share their parameters.
        """
        return self.rho

    def weight(self, low: Floats, high: Floats) -> Any:
        """The weights of observations of entries whose parameters lie in [low, high]: multiples of 1/4."""
        return np.full(low.shape, UNWEIGHTED)


class Ellipsoid(Rule):
    r"""The radius of C²-UCB: :math:`\rho\,\bigl(\sqrt{d\log(1 + k t/(ridge\,d)) + 2\log t} + \sqrt{ridge}\bigr)`.

    Implements [LiuEtAl2023]_ (Algorithm 1, C²-UCB-T) with :math:`\delta = 1/t`, so that no horizon is needed;
    [QinChenZhu2014]_. ``ridge`` is the paper's :math:`\gamma`. All observations have the weight 4, so the radius is
    doubled and ``ridge`` counts four times.
    """

    rho: float = 1.0
    ridge: float = 1.0

    @property
    def penalty(self) -> float:
        return 4.0 * self.ridge

    def radius(self, d: int, k: int, t: int) -> float:
        log_det = d * log(1.0 + k * t / (self.ridge * d))
        return 2.0 * self.rho * (math.sqrt(log_det + 2.0 * log(float(t))) + math.sqrt(self.ridge))


class VarianceWeighted(Rule):
    r"""The radius and the weights of VAC²-UCB.

    .. math:: 2\rho\,\Bigl(1 + \sqrt{ridge} + 4\sqrt{\log\bigl(6 t^2 N\,\log(3 t^2 N)\bigr)}\Bigr), \qquad
              N = (4 d^2 k^4 t^4)^d

    An observation has the weight :math:`1/\bar V`, where :math:`\bar V` is the largest variance
    :math:`\mu(1 - \mu)` in the confidence interval of the entry when it was chosen. Implements [LiuEtAl2023]_
    (Algorithm 2) with t in place of the horizon; ``ridge`` is the paper's :math:`\gamma`. The paper has ``rho=1`` and
    ``ridge=4k``; its proof holds with ``ridge=1`` for semi-bandit feedback (``docs/theory/context.md``).
    """

    rho: float = 1.0
    ridge: float = 1.0

    def radius(self, d: int, k: int, t: int) -> float:
        square = (float(k) * t) * (float(k) * t)
        log_tn = 2.0 * log(float(t)) + d * log(4.0 * d * d * (square * square))
        inner = log(6.0) + log_tn + log(log(3.0) + log_tn)
        return 2.0 * self.rho * (1.0 + math.sqrt(self.ridge) + 4.0 * math.sqrt(inner))

    def weight(self, low: Floats, high: Floats) -> Any:
        above = np.where(low >= 0.5, low * (1.0 - low), 0.25)
        return round_weight(np.where(high <= 0.5, high * (1.0 - high), above))


class GaussianPosterior(Rule):
    r"""One draw :math:`\theta \sim N(\hat\theta, (2 \rho\,noise)^2 G^{-1})` per round and parameter vector.

    Implements [WenKvetonAshkan2015]_ (CombLinTS, Algorithm 1), by default with noise of variance 1/4, the largest of
    outcomes in [0, 1], and prior variance 1 / ``ridge``. With ``prior``, the standard deviation of a parameter before
    any outcome, :math:`G = (2\,noise / prior)^2 I + 4 \sum \phi\phi^\top`, whatever the length of features.
    """

    rho: float = 1.0
    ridge: float = 1.0
    noise: float = 0.5
    prior: float = 0.0
    sampled = True

    def check(self) -> None:
        super().check()
        self.require("noise", 0.0 < self.noise < math.inf, "give a finite number > 0")
        self.require("prior", 0.0 <= self.prior < math.inf, "give a finite number >= 0; 0: as ridge says")

    def ridge_for(self, longest: float) -> float:
        return (2.0 * self.noise / self.prior) ** 2 if self.prior else super().ridge_for(longest)

    def radius(self, d: int, k: int, t: int) -> float:
        return 2.0 * self.noise * self.rho
