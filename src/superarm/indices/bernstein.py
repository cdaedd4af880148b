import math
from typing import NamedTuple

from superarm._jit import component
from superarm.parameters import positive
from superarm.streams import Stream


@component
class Bernstein(NamedTuple):
    r"""Mean plus an empirical-Bernstein radius, clipped at 1: the index of BC-UCB.

    .. math:: q = \min\{1,\ mean + deviation\sqrt{2x} + 3x\}, \qquad x = \rho \log t / pulls

    Implements [MerlisMannor2019]_ (Algorithm 1, line 6); their constants are ``rho=3``, which gives
    :math:`\sqrt{6\hat V\log t/N} + 9\log t/N`. A smaller ``rho`` explores less; the theorem does not cover it.

    >>> round(Bernstein().score(0.1, 0.3, Bernstein().level(1000.0, 100, 0.1), None), 6)
    0.191314
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
        return min(1.0, mean + deviation * math.sqrt(2.0 * level) + 3.0 * level)
