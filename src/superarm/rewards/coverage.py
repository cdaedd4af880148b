import math

from superarm._jit import component, interpreted
from superarm._renamed import old_attributes
from superarm.parameters import NoParameters
from superarm.rewards.base import Smoothness


@old_attributes(steady="gains_shrink")
@component
class Coverage(NoParameters):
    r"""Probabilistic maximum coverage (PMC): an item counts if at least one arm of the batch covers it.

    .. math:: r_i(A; q) = 1 - \prod_{j \in A}(1 - q_{ij})

    The state of an item is its weight times the probability that it is still uncovered. Monotone and
    submodular. :math:`\gamma_\infty = 1` and :math:`\gamma_g = 1/2` exactly, for every batch size.
    Implements [MerlisMannor2019]_ (section Preliminaries). Differs: the paper's
    :math:`\gamma_g = 1/\sqrt e` is an upper bound of the exact value.
    """

    __slots__ = ()

    monotone = True
    submodular = True
    modular = False
    gains_shrink = True  # states never grow, and rounded products and sums of nonnegative floats are monotone
    linear_gain = True

    def start(self, weight: float) -> float:
        return weight

    def join(self, state: float, q: float) -> float:
        return state * (1.0 - q)

    def worth(self, weight: float, state: float) -> float:
        return weight - state

    def item_gain(self, weight: float, state: float, q: float) -> float:
        return state * q

    def bound_slope(self, weight: float, state: float) -> float:
        return state

    def derivative(self, weight: float, state: float, q: float) -> float:
        return state

    @interpreted
    def smoothness(self, k: int) -> Smoothness:
        return Smoothness(1.0, 0.5, 1.0 / math.sqrt(math.e))
