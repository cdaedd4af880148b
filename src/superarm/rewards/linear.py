import math
from typing import NamedTuple

from superarm._jit import component, interpreted
from superarm.errors import InvalidArgument
from superarm.parameters import NoParameters, positive
from superarm.rewards.base import Smoothness


@component
class Linear(NoParameters):
    r"""The sum of the arms' parameters: the classical semi-bandit.

    .. math:: r_i(A; q) = \sum_{j \in A} q_{ij}

    Modular. :math:`\gamma_\infty = 1`, :math:`\gamma_g = \sqrt k / 2`. Implements [MerlisMannor2019]_
    (section Preliminaries, the linear case).
    """

    __slots__ = ()

    monotone = True
    submodular = True
    modular = True
    linear_gain = True

    def start(self, weight: float) -> float:
        return 0.0

    def join(self, state: float, q: float) -> float:
        return state + q

    def worth(self, weight: float, state: float) -> float:
        return weight * state

    def item_gain(self, weight: float, state: float, q: float) -> float:
        return weight * q

    def derivative(self, weight: float, state: float, q: float) -> float:
        return weight

    @interpreted
    def smoothness(self, k: int) -> Smoothness:
        return Smoothness(1.0, math.sqrt(k) / 2.0, math.sqrt(k) / 2.0)


class _ClipFields(NamedTuple):
    slope: float
    shift: float = 0.0


@component
class ClippedLinear(_ClipFields):
    r"""A sum of clipped linear functions: the two examples of the paper's introduction.

    .. math:: r_i(A; q) = \sum_{j \in A} \max\{0, \min\{1, slope\,(q_{ij} - shift)\}\}

    ``ClippedLinear(c)`` is :math:`\sum\min\{c\mu, 1\}`, ``ClippedLinear(c, 0.5)`` its translate
    :math:`\sum\max\{\min\{c(\mu - 1/2), 1\}, 0\}`. Both have the same Lipschitz constant, but the first is steep only
    where parameters are easy to estimate. Modular, monotone, not differentiable at its two kinks.
    :math:`\gamma_\infty = slope` and :math:`\gamma_g = slope\sqrt{k\,\max_x x(1-x)}`, the maximum over the x where
    the function is not clipped. Implements [MerlisMannor2019]_ (section Introduction).

    Parameters
    ----------
    slope
        The slope where the function is not clipped.
    shift
        The parameter from which on the function is positive.
    """

    __slots__ = ()

    monotone = True
    submodular = True
    modular = True

    def _check(self) -> None:
        positive(self, "slope")
        if not 0.0 <= self.shift < 1.0:
            raise InvalidArgument(
                "shift", f"{self.shift} is outside [0, 1)", "give a number in [0, 1)", "ClippedLinear"
            )

    def start(self, weight: float) -> float:
        return 0.0

    def join(self, state: float, q: float) -> float:
        return state + max(0.0, min(1.0, self.slope * (q - self.shift)))

    def worth(self, weight: float, state: float) -> float:
        return weight * state

    def item_gain(self, weight: float, state: float, q: float) -> float:
        return weight * max(0.0, min(1.0, self.slope * (q - self.shift)))

    def derivative(self, weight: float, state: float, q: float) -> float:
        return weight * self.slope if 0.0 < self.slope * (q - self.shift) < 1.0 else 0.0

    @interpreted
    def smoothness(self, k: int) -> Smoothness:
        steepest = min(max(0.5, self.shift), self.shift + 1.0 / self.slope, 1.0)
        gamma_g = self.slope * math.sqrt(k * steepest * (1.0 - steepest))
        return Smoothness(self.slope, gamma_g, math.sqrt(k) * self.slope / 2.0)
