import math
from typing import NamedTuple

from superarm._jit import component
from superarm.parameters import nonnegative, positive
from superarm.streams import Stream


@component
class UCBV(NamedTuple):
    r"""Mean plus an empirical-Bernstein radius with free constants, clipped at 1.

    .. math:: q = \min\{1,\ mean + deviation\sqrt{2x} + 3cx\}, \qquad x = \zeta \log t / pulls

    Implements [AudibertMunosSzepesvari2009]_ (UCB-V).

    Parameters
    ----------
    zeta, c
        The constants of the radius. The default ``zeta=1, c=1/6`` is smaller than what the theorem needs; ``zeta=3,
        c=1`` is :class:`Bernstein` with the constants of BC-UCB.

    Examples
    --------
    >>> UCBV(3, 1).score(0.1, 0.3, 0.01, None) == UCBV(1, 1).score(0.1, 0.3, 0.01, None)
    True
    """

    zeta: float = 1.0
    c: float = 1.0 / 6.0

    def _check(self) -> None:
        positive(self, "zeta")
        nonnegative(self, "c")

    @property
    def monotone(self) -> bool:
        return True

    def level(self, pulls: float, t: int, share: float) -> float:
        return self.zeta * math.log(t) / pulls

    def score(self, mean: float, deviation: float, level: float, stream: Stream) -> float:
        return min(1.0, mean + deviation * math.sqrt(2.0 * level) + 3.0 * self.c * level)
