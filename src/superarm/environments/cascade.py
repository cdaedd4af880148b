"""Cascades: a list is read from the top until one arm ends it.

The arms of a batch stand in the order of ``action``. With several items, each is a reader of their own of the same
list. The outcome of every arm is drawn; ``seen`` tells which ones the reader came to.
"""

from typing import NamedTuple

import numpy as np

from superarm._jit import component, kernel
from superarm.arrays import Bools, Floats, Ints, Probabilities
from superarm.environments.base import flip
from superarm.streams import Stream
from superarm.support import Support, item, span


class _Reader(NamedTuple):
    """Who reads a list with chances ``p`` (n_entries,) until an outcome is ``end``."""

    p: Floats
    end: float


@component
class Cascade(NamedTuple):
    """Disjunctive: a user examines the list from the top and stops at the first arm that attracts them.

    Arm ``j`` attracts with probability ``p[j, i]``, independently of all else; arms below the first attractive one
    are not seen. The probability that the user finds anything is what ``Coverage`` says of a batch with one item.
    The cascade model of [CraswellEtAl2008]_, as a bandit [KvetonEtAl2015]_.
    """

    p: Probabilities

    @property
    def partial(self) -> bool:
        return True

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        _read(_Reader(self.p.reshape(-1), 1.0), support, action, t, stream, outcome, seen)

    def means(self, t: int) -> Floats:
        return self.p  # type: ignore[no-any-return]


@component
class ConjunctiveCascade(NamedTuple):
    """Conjunctive: all arms of the list must work, and it is tried from the top until the first that fails.

    Arm ``j`` works with probability ``p[j, i]``; arms below the first failing one are not seen. The probability that
    all work is what the reward ``Conjunctive`` says. Combinatorial cascading bandits, [KvetonEtAl2015b]_.
    """

    p: Probabilities

    @property
    def partial(self) -> bool:
        return True

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        _read(_Reader(self.p.reshape(-1), 0.0), support, action, t, stream, outcome, seen)

    def means(self, t: int) -> Floats:
        return self.p  # type: ignore[no-any-return]


@kernel
def _read(
    reader: _Reader, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools
) -> None:
    """Draw every arm, and mark as not seen what lies below the first outcome that ends an item's reading."""
    flip(support, reader.p, action, t, stream, outcome)
    done = np.zeros(support.n_items, np.bool_)
    at = 0
    for j in action:
        first, last = span(support, j)
        for o in range(last - first):
            i = item(support, first, o)
            seen[at] = not done[i]
            done[i] = done[i] or outcome[at] == reader.end
            at += 1
