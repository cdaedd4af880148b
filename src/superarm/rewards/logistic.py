import math
from typing import NamedTuple

import numpy as np

from superarm._jit import component, inlined, interpreted
from superarm.arrays import Floats
from superarm.parameters import NoParameters, positive
from superarm.rewards.base import Smoothness

# (1 - e^-q) / q on [0, 1], by interpolation at Chebyshev nodes (after [Trefethen2013]_, chapter 5).
_C0, _C1, _C2, _C3 = 1.0, -0.4999999999999964, 0.1666666666664944, -0.041666666663443576
_C4, _C5, _C6 = 0.008333333302138762, -0.0013888887104824001, 0.0001984120502317959
_C7, _C8, _C9 = -2.4800032289946006e-05, 2.753231109497008e-06, -2.7289403227036547e-07
_C10, _C11 = 2.3200975871202737e-08, -1.3221480811326931e-09


@inlined
def _one_minus_exp(q: float) -> float:
    r""":math:`1 - e^{-q}` for q in [0, 1], to a relative 3e-16; a call of ``exp`` would not be vectorised."""
    high = _C6 + q * (_C7 + q * (_C8 + q * (_C9 + q * (_C10 + q * _C11))))
    return q * (_C0 + q * (_C1 + q * (_C2 + q * (_C3 + q * (_C4 + q * (_C5 + q * high))))))


@inlined
def _gain_of_fall(weight: float, state: float, fall: float) -> float:
    return weight * state * fall / ((1.0 + state * (1.0 - fall)) * (1.0 + state))


class _LogisticOfFalls(NoParameters):
    """The gain of :class:`Logistic` as a function of :math:`1 - e^{-q}`."""

    __slots__ = ()

    @inlined
    def item_gain(self, weight: float, state: float, q: float) -> float:
        return _gain_of_fall(weight, state, q)


@component
class Logistic(NamedTuple):
    r"""A logistic function of the sum of the arms' parameters.

    .. math:: r_i(A; q) = \frac{1}{1 + c\,e^{-\sum_{j \in A} q_{ij}}}

    The state of an item is :math:`c\,e^{-\sum q}`. Monotone; submodular only for ``c <= 1``, where the function
    is concave on :math:`[0, \infty)`. Implements [MerlisMannor2019]_ (section Preliminaries). Differs: the
    paper's :math:`\gamma_\infty = 1/4` is attained only if :math:`0 \le \log c \le k`, and its
    :math:`\gamma_g = \frac14\sqrt{1 + \log c}` is a bound only for :math:`c \ge 0.485`; here both are exact.

    Parameters
    ----------
    c
        The value without any arm is 1 / (1 + c).
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

    def item_gain(self, weight: float, state: float, q: float) -> float:
        return _gain_of_fall(weight, state, _one_minus_exp(q))

    def transform(self, q: Floats) -> Floats:
        falls = np.empty(len(q))
        for e in range(np.uint64(len(q))):
            falls[e] = _one_minus_exp(q[e])
        return falls

    def transformed(self) -> "_LogisticOfFalls":
        return _LogisticOfFalls()

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
