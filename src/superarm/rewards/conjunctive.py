import math

from superarm._jit import component, interpreted
from superarm.parameters import NoParameters
from superarm.rewards.base import Smoothness


@component
class Conjunctive(NoParameters):
    r"""The probability that all arms of the batch work: the conjunctive cascade.

    .. math:: r_i(A; q) = \prod_{j \in A} q_{ij}

    The state of an item is its weight times the probability that all arms so far work. Each further arm lowers the
    value, so that only batches of one size can be compared: all action sets list complete batches, and all oracles fill
    them. With one item, the arms with the largest parameters are the best batch of a matroid (``TopArms``, ``Greedy``).
    A monotone Boolean function of the outcomes: :math:`\gamma_\infty = 1` and :math:`\gamma_g = 1/2` exactly, for every
    batch size (``docs/theory``). The reward of combinatorial cascading bandits, [KvetonEtAl2015b]_.
    """

    __slots__ = ()

    monotone = False
    submodular = False
    modular = False

    def start(self, weight: float) -> float:
        return weight

    def join(self, state: float, q: float) -> float:
        return state * q

    def worth(self, weight: float, state: float) -> float:
        return state

    def item_gain(self, weight: float, state: float, q: float) -> float:
        return -state * (1.0 - q)

    def derivative(self, weight: float, state: float, q: float) -> float:
        return state

    @interpreted
    def smoothness(self, k: int) -> Smoothness:
        return Smoothness(1.0, 0.5, math.nan)
