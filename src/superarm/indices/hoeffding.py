import math
from typing import NamedTuple

from superarm._jit import component
from superarm.parameters import positive
from superarm.streams import Stream


@component
class Hoeffding(NamedTuple):
    r"""Mean plus a Hoeffding radius, clipped at 1: the index of CUCB.

    .. math:: q = \min\{1,\ mean + \sqrt{x / 2}\}, \qquad x = \rho \log t / pulls

    Implements [ChenWangYuan2013]_ (Algorithm 1); ``rho=3`` gives their :math:`\sqrt{3\log t/(2N)}`.

    >>> round(Hoeffding().score(0.1, 0.3, Hoeffding().level(1000.0, 100, 0.1), None), 6)
    0.183113
    """

    rho: float = 3.0

    def _check(self) -> None:
        positive(self, "rho")

    @property
    def monotone(self) -> bool:
        return True

    def level(self, pulls: float, t: int, share: float) -> float:
        return self.rho * math.log(t) / pulls

    def score(self, mean: float, deviation: float, level: float, stream: Stream) -> float:
        return min(1.0, mean + math.sqrt(0.5 * level))
