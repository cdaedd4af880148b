import math
from typing import NamedTuple

from superarm._jit import component
from superarm.parameters import positive
from superarm.streams import Stream


@component
class UCB1(NamedTuple):
    r"""Mean plus a Hoeffding radius, not clipped: the index of CascadeUCB1.

    .. math:: q = mean + \sqrt{x / 2}, \qquad x = \rho \log(t - 1) / pulls

    Implements [KvetonEtAl2015]_ (section 4.1); ``rho=3`` gives their :math:`\sqrt{1.5\log(t-1)/N}`. The score may
    exceed 1, so that arms with few pulls are still ordered: only for oracles that rank arms (``TopArms``).
    :class:`Hoeffding` is the same, clipped, with log t. In the first round the logarithm is taken as 0.

    >>> round(UCB1().score(0.1, 0.3, UCB1().level(1000.0, 101, 0.1), None), 6)
    0.183113
    """

    rho: float = 3.0

    def _check(self) -> None:
        positive(self, "rho")

    @property
    def unclipped(self) -> bool:
        return True

    def level(self, pulls: float, t: int, share: float) -> float:
        return self.rho * math.log(max(1, t - 1)) / pulls

    def score(self, mean: float, deviation: float, level: float, stream: Stream) -> float:
        return mean + math.sqrt(0.5 * level)

    def unknown(self) -> float:
        return math.inf
