"""Which batches may be played.

An action set tells, for a batch under construction, whether an arm may still join it. In kernels a batch is an
array ``chosen`` of which the first ``size`` places are taken.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from superarm._jit import kernel, verb
from superarm.arrays import Bools, Floats, Ints
from superarm.noise import Noise, uniform


class Ranks(NamedTuple):
    """Who stands first among equals: fewest ``pulls`` (n_arms,), then lowest arm; only ``eligible`` ones play."""

    pulls: Floats
    eligible: Bools


class Actions(Protocol):
    """Which batches may be played."""

    @property
    def matroid(self) -> bool:
        """Whether batches are the independent sets of a matroid, so that greedy is exact for modular rewards."""
        ...

    def capacity(self, n_arms: int) -> int:
        """The size of the largest batch."""
        ...

    def admits(self, chosen: Ints, size: int, arm: int) -> bool:
        """Whether ``arm``, not in the batch yet, may join the ``size`` arms that stand in ``chosen``."""
        ...

    def includes(self, action: Ints) -> bool:
        """Whether ``action`` may be played."""
        ...

    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        """Every batch that no other batch contains: a monotone reward needs no others."""
        ...

    def n_batches(self, n_arms: int) -> float:
        """How many batches ``batches`` yields, or an upper bound of it; may be infinite."""
        ...

    def validate(self, n_arms: int) -> None:
        """Refuse an action set that does not fit ``n_arms`` arms or leaves some arm unplayable."""
        ...


class Optional(Protocol):
    """What an action set may define if it can do better than joining arms one by one."""

    def cover(self, ranks: Ranks) -> Ints:
        """A batch with as many arms as possible that were never pulled."""
        ...

    def sample(self, ranks: Ranks, noise: Noise) -> Ints:
        """A batch at random."""
        ...


@kernel
def fill(actions: Any, ranks: Ranks, chosen: Ints, size: int) -> int:
    """Let arms join ``chosen`` in the order of ``ranks`` until none may; the new size.

    The arms that were never pulled come first, so a batch filled from nothing covers as many of them as greedy
    joining allows.
    """
    taken = ~ranks.eligible
    for n in range(size):
        taken[chosen[n]] = True
    while size < len(chosen):
        best = -1
        for j in range(len(taken)):
            if not taken[j] and (best < 0 or ranks.pulls[j] < ranks.pulls[best]) and admits(actions, chosen, size, j):
                best = j
        if best < 0:
            break
        chosen[size] = best
        taken[best] = True
        size += 1
    return size


@kernel
def _cover(actions: Any, ranks: Ranks) -> Ints:
    chosen = np.empty(capacity(actions, len(ranks.pulls)), np.int64)
    return chosen[: fill(actions, ranks, chosen, 0)]


@kernel
def _sample(actions: Any, ranks: Ranks, noise: Noise) -> Ints:
    lots = np.empty(len(ranks.pulls))
    for j in range(len(lots)):
        lots[j] = uniform(noise)
    return _cover(actions, Ranks(lots, ranks.eligible))


@kernel
def playable(action: Ints, ranks: Ranks) -> bool:
    """Whether all arms of ``action`` are eligible."""
    for j in action:
        if not ranks.eligible[j]:
            return False
    return True


admits = verb(Actions.admits)
capacity = verb(Actions.capacity)
cover: verb[..., Ints] = verb(Optional.cover, default=_cover)
sample: verb[..., Ints] = verb(Optional.sample, default=_sample)
