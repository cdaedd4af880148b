import math
from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.arrays import Floats
from superarm.parameters import positive
from superarm.rewards.base import Smoothness


@component
class Logistic(NamedTuple):
    r"""A logistic function of the sum of the arms' parameters.

    .. math:: r_i(A; q) = \frac{1}{1 + c\,e^{-\sum_{j \in A} q_{ij}}}

    The state of an item is :math:`c\,e^{-\sum q}`. Monotone; submodular only for ``c <= 1``, where the function
    is concave on :math:`[0, \infty)`. Implements [MerlisMannor2019]_ (section Preliminaries). Differs: the
    paper's :math:`\gamma_\infty = 1/4` is attained only if :math:`0 \le \log c \le k`, and its
    :math:`\gamma_g = \frac14\sqrt{1 + \log c}` is a bound only for :math:`c \ge 0.485`; here both are exact.
    """

    c: float = 1.0

    def _check(self) -> None:
        positive(self, "c")

    @property
    def monotone(self) -> bool:
        return True

    @property
    def submodular(self) -> bool:
        return self.c <= 1.0

    @property
    def modular(self) -> bool:
        return False

    def start(self, weight: float) -> float:
        return self.c

    def join(self, state: float, q: float) -> float:
        return state * math.exp(-q)

    def worth(self, weight: float, state: float) -> float:
        return weight / (1.0 + state)

    def lift(self, weight: float, state: float, q: float) -> float:
        fall = -math.expm1(-q)  # the one exponential: e^-q is 1 - fall
        return weight * state * fall / ((1.0 + state * (1.0 - fall)) * (1.0 + state))

    def derivative(self, weight: float, state: float, q: float) -> float:
        later = state * math.exp(-q)
        return weight * later / ((1.0 + later) * (1.0 + later))

    @interpreted
    def smoothness(self, k: int) -> Smoothness:
        steepest = min(max(math.log(self.c), 0.0), float(k))
        paper = math.sqrt(1.0 + math.log(self.c)) / 4.0 if self.c >= 0.48497 else math.nan
        return Smoothness(self._density(steepest), self._gini(float(k)), paper)

    def _density(self, s: float) -> float:
        f = 1.0 / (1.0 + self.c * math.exp(-s))
        return f * (1.0 - f)

    def _gini(self, k: float) -> float:
        r"""The largest :math:`f(1-f)\sqrt{s(1-s/k)}` over the sums s of k equal parameters."""
        from scipy.optimize import minimize_scalar

        def gini(s: float) -> float:
            return self._density(s) * math.sqrt(max(0.0, s * (1.0 - s / k)))

        grid: Floats = np.linspace(0.0, k, 2049)
        best = int(np.argmax([gini(s) for s in grid]))
        ends = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
        found = minimize_scalar(lambda s: -gini(s), bounds=ends, method="bounded", options={"xatol": 1e-12})
        return float(-found.fun)
