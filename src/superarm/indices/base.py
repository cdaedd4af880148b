r"""The family of indices: rules that turn the statistics of one entry into an optimistic value.

An index is a *level* and a *score*. The level :math:`x = f(t) / N_j` is the exploration of an arm with :math:`N_j`
pulls at time :math:`t`; it is computed once per arm. The score is the optimistic value of an entry with a given
empirical mean and standard deviation at that level. Except for sampled indices, scores lie in [mean, 1] and increase
with the level, and levels increase with :math:`t`.
"""

from typing import Any, Protocol

import numpy as np

from superarm._jit import inlined, verb
from superarm.arrays import Floats
from superarm.streams import Stream


class Index(Protocol):
    """An index: a level per arm and a score per entry."""

    def level(self, pulls: float, t: int, share: float) -> float:
        """The level of an arm at time ``t`` after ``pulls`` > 0 pulls; ``share`` is k / n_arms."""
        ...

    def score(self, mean: float, deviation: float, level: float, stream: Stream) -> float:
        """The optimistic value of an entry, in [0, 1]."""
        ...


class IndexHooks(Protocol):
    """Methods that an index may define beyond :class:`Index`; ``traits`` and the verbs below have the defaults."""

    @property
    def monotone(self) -> bool:
        """Whether scores grow with the level, and levels with t and not with pulls: never so for a sampled index.

        With it, policies can skip arms that cannot win.
        """
        ...

    @property
    def unclipped(self) -> bool:
        """Whether scores may exceed 1: then they can only rank arms."""
        ...

    @property
    def inverts(self) -> bool:
        """Whether a score is an increasing function of one number of the stream: then entries can share that number."""
        ...

    @property
    def caveat(self) -> str:
        """What it assumes that may not hold, in a sentence for reports; empty if nothing."""
        ...

    def unknown(self) -> float:
        """The score of an entry that was never observed: the largest possible one, 1 by default."""
        ...

    def score_entries(
        self, mean: Floats, deviation: Floats, first: int, n: int, level: float, stream: Stream, q: Floats
    ) -> None:
        """Write the scores of the ``n`` entries from ``first`` on into ``q``; one call of ``score`` each by default."""
        ...

    def bound_entries(self, mean: Floats, deviation: Floats, first: int, n: int, level: float, q: Floats) -> bool:
        """Write numbers that the scores of ``n`` entries do not exceed by more than rounding into ``q``.

        For scores that take longer to compute. Returns whether there are such bounds; False by default.
        """
        ...

    def bound_by_tangents(self, mean: Floats, first: int, n: int, bounds: Floats, step: float, q: Floats) -> bool:
        """Do so at a lower level, from ``bounds`` that ``bound_entries`` has written for the level plus ``step``.

        For scores that are concave functions of the level, which do not exceed their tangents. An index defines both of
        these or neither.
        """
        ...


@inlined
def _one(index: Any) -> float:
    return 1.0


@inlined
def _score_each(
    index: Any, mean: Floats, deviation: Floats, first: int, n: int, level: float, stream: Stream, q: Floats
) -> None:
    # No slices, unsigned offsets: each costs reference counts or vectors, 5x in all.
    for i in range(np.uint64(first), np.uint64(first + n)):
        q[i] = score(index, mean[i], deviation[i], level, stream)


@inlined
def _no_tangents(index: Any, mean: Floats, first: int, n: int, bounds: Floats, step: float, q: Floats) -> bool:
    return False


@inlined
def _no_bounds(index: Any, mean: Floats, deviation: Floats, first: int, n: int, level: float, q: Floats) -> bool:
    return False


level = verb(Index.level)
score = verb(Index.score)
unknown: verb[..., float] = verb(IndexHooks.unknown, default=_one)
score_entries: verb[..., None] = verb(IndexHooks.score_entries, default=_score_each)
bound_entries: verb[..., bool] = verb(IndexHooks.bound_entries, default=_no_bounds)
bound_by_tangents: verb[..., bool] = verb(IndexHooks.bound_by_tangents, default=_no_tangents)
