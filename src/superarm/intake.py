"""Intakes: how an outcome enters the tally, as it is or as a coin flip with that bias."""

from typing import NamedTuple, Protocol

from superarm._jit import component, verb
from superarm.streams import Stream, uniform


class Intake(Protocol):
    """How an outcome in [0, 1] enters the tally."""

    def take(self, outcome: float, stream: Stream) -> float:
        """The number in [0, 1] that is recorded for ``outcome``."""
        ...


@component
class Exact(NamedTuple):
    """Records the outcome as it is."""

    def take(self, outcome: float, stream: Stream) -> float:
        return outcome


@component
class Coin(NamedTuple):
    """Records 1 with probability ``outcome`` and 0 otherwise: for Beta-Bernoulli sampling with outcomes inside [0, 1].

    Implements [WangChen2018]_ (CTS, Algorithm 1, "update"), after [AgrawalGoyal2012]_.
    """

    def take(self, outcome: float, stream: Stream) -> float:
        return 1.0 if uniform(stream) < outcome else 0.0


take = verb(Intake.take)
