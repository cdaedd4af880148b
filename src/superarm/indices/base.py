r"""How hopeful to be of one entry.

An index is a *level* and a *score*. The level :math:`x = f(t) / N_j` says how much exploration an arm with
:math:`N_j` pulls is still owed at time :math:`t`; it is computed once an arm. The score is the hopeful value
of an entry with a given empirical mean and standard deviation at that level. Except for sampled indices,
scores lie in [mean, 1] and increase with the level, and levels increase with :math:`t`.
"""

from typing import Any, Protocol

from superarm._jit import inlined, verb
from superarm.streams import Stream


class Index(Protocol):
    """How hopeful to be of one entry."""

    def level(self, pulls: float, t: int, share: float) -> float:
        """The exploration owed at time ``t`` after ``pulls`` > 0 pulls; ``share`` is k / n_arms."""
        ...

    def score(self, mean: float, deviation: float, level: float, stream: Stream) -> float:
        """The hopeful value in [0, 1] of an entry."""
        ...


class IndexHooks(Protocol):
    """Methods that an index may define beyond :class:`Index`; ``traits`` and the verbs below have the defaults."""

    @property
    def monotone(self) -> bool:
        """Whether scores grow with the level, and levels with t and not with pulls: never so for a sampled index.

        It lets policies pass over arms that cannot win.
        """
        ...

    @property
    def unclipped(self) -> bool:
        """Whether scores may lie above 1: then they only serve to rank arms."""
        ...

    @property
    def caveat(self) -> str:
        """What it assumes that may not hold, in a sentence for reports; empty if nothing."""
        ...

    def unknown(self) -> float:
        """The score of an entry of which nothing was told: the largest there is, 1 by default."""
        ...


@inlined
def _certain(index: Any) -> float:
    return 1.0


level = verb(Index.level)
score = verb(Index.score)
unknown: verb[..., float] = verb(IndexHooks.unknown, default=_certain)
