from typing import NamedTuple

from superarm._jit import component
from superarm.streams import Stream


@component
class Mean(NamedTuple):
    """The empirical mean, without exploration: follow the leader, and the greedy part of epsilon-greedy.

    A baseline of [AuerCesaBianchiFischer2002]_.
    """

    @property
    def monotone(self) -> bool:
        return True

    def level(self, pulls: float, t: int, share: float) -> float:
        return 0.0

    def score(self, mean: float, deviation: float, level: float, stream: Stream) -> float:
        return mean
