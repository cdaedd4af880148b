import math
from typing import NamedTuple

from superarm._jit import component, interpreted
from superarm.arrays import Floats, Ints
from superarm.diffusion import expected_spread
from superarm.errors import InvalidArgument
from superarm.rewards.base import Smoothness, Terms, derivative, item_gain, join, start, worth
from superarm.rewards.coverage import Coverage


class _SpreadFields(NamedTuple):
    simulations: int = 200


@component
class Spread(_SpreadFields):
    r"""The expected weight of the nodes that seeds activate in the independent cascade model on a graph.

    .. math:: \sigma(S; q) = \sum_v w_v\, P\{v \text{ is reached from } S\}

    Arms and items are the nodes; the entries of an arm are the edges that leave it. ``value`` is the mean over
    ``simulations`` simulated cascades, with the same random numbers for all batches and parameters; ``IMM`` maximises
    it. The reward is not a sum over items: ``start``, ``join`` and ``item_gain`` describe direct influence only, and so
    do the gains that other oracles add up. They have no guarantee here, so ``submodular`` is False, although spread
    itself is submodular. On a bipartite graph with weights on the targets only, it is ``Coverage``.
    [KempeKleinbergTardos2003]_ (section 2).

    Parameters
    ----------
    simulations
        How many cascades ``value`` averages over.
    """

    __slots__ = ()

    monotone = True
    submodular = False
    modular = False

    def _check(self) -> None:
        if self.simulations < 1:
            raise InvalidArgument("simulations", f"{self.simulations}", "give at least 1", "Spread")

    def value(self, terms: Terms, q: Floats, action: Ints) -> float:
        return expected_spread(terms.support, q, terms.weights, action, self.simulations)

    def start(self, weight: float) -> float:
        return start(Coverage(), weight)

    def join(self, state: float, q: float) -> float:
        return join(Coverage(), state, q)

    def worth(self, weight: float, state: float) -> float:
        return worth(Coverage(), weight, state)

    def item_gain(self, weight: float, state: float, q: float) -> float:
        return item_gain(Coverage(), weight, state, q)

    def derivative(self, weight: float, state: float, q: float) -> float:
        return derivative(Coverage(), weight, state, q)

    @interpreted
    def smoothness(self, k: int) -> Smoothness:
        """The smoothness of direct influence; for spread, no constant is known that does not grow with the graph."""
        return Smoothness(1.0, 0.5, math.nan)
