"""Cascades: a list is read from the top until the outcome of one arm ends the reading.

The list has the arms of a batch in the order of ``action``. With several items, each item is a different reader of the
same list. The outcome of every arm is drawn; ``seen`` marks those that the reader reached.
"""

from typing import NamedTuple

import numpy as np

from superarm._jit import component, kernel
from superarm.arrays import Bools, Floats, Ints, Probabilities
from superarm.environments.base import flip
from superarm.streams import Stream
from superarm.support import Support, item, span


class Reader(NamedTuple):
    """A reader: ``p`` (n_entries,) are the probabilities of outcome 1; an outcome of ``end`` ends the reading."""

    p: Floats
    end: float


@component
class Cascade(NamedTuple):
    """Disjunctive cascade: a user examines the list from the top and stops at the first attractive arm.

    Arm ``j`` attracts with probability ``p[j, i]``, independently of all other arms; arms below the first attractive
    one are not seen. With one item, the probability that some arm attracts is the reward ``Coverage``. The cascade
    model of [CraswellEtAl2008]_, as a bandit [KvetonEtAl2015]_.

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items) or sparse.
    """

    p: Probabilities

    @property
    def partial(self) -> bool:
        return True

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        read_list(Reader(self.p.reshape(-1), 1.0), support, action, t, stream, outcome, seen)

    def means(self, t: int) -> Floats:
        return self.p  # type: ignore[no-any-return]


@component
class ConjunctiveCascade(NamedTuple):
    """Conjunctive cascade: all arms of the list must work; they are tried from the top until the first that fails.

    Arm ``j`` works with probability ``p[j, i]``; arms below the first failing one are not seen. The probability that
    all work is the reward ``Conjunctive``. The model of combinatorial cascading bandits, [KvetonEtAl2015b]_.

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items) or sparse.
    """

    p: Probabilities

    @property
    def partial(self) -> bool:
        return True

    def draw(self, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools) -> None:
        read_list(Reader(self.p.reshape(-1), 0.0), support, action, t, stream, outcome, seen)

    def means(self, t: int) -> Floats:
        return self.p  # type: ignore[no-any-return]


@kernel
def read_list(
    reader: Reader, support: Support, action: Ints, t: int, stream: Stream, outcome: Floats, seen: Bools
) -> None:
    """Draw every arm, and mark as not seen what comes after the first outcome that ends an item's reading."""
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
