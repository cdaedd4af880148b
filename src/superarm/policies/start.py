"""What an index policy plays before its index decides."""

from typing import NamedTuple, Protocol

from superarm._jit import component, lean, verb
from superarm.actions import Candidates
from superarm.policies.base import any_unsampled


class Start(Protocol):
    """Whether arms are tried before the index decides."""

    def tries_first(self, candidates: Candidates) -> bool:
        """Whether to play a batch with unsampled arms now, if there is one."""
        ...


@component
class TryEveryArm(NamedTuple):
    """While an eligible arm has no pull, play a batch with such arms: [MerlisMannor2019]_ (Algorithm 1, line 1)."""

    @lean
    def tries_first(self, candidates: Candidates) -> bool:
        return any_unsampled(candidates)


@component
class NoStart(NamedTuple):
    """The index decides from the first round on: for arms that are triggered.

    An arm that was never observed scores 1 and is not played for its own sake: most of a graph is seen without ever
    being a seed, and ``TryEveryArm`` would play each node once. As in [WangChen2017]_ (Algorithm 1).
    """

    @lean
    def tries_first(self, candidates: Candidates) -> bool:
        return False


tries_first = verb(Start.tries_first)
