"""The family of action sets: which batches may be played.

An action set decides, for a batch under construction, whether an arm may join it: whether some batch that may be played
contains all of them. So adding arms until none may join gives a batch, and an arm that may not join now may not join
later either. In kernels a batch is an array ``chosen`` of which the first ``size`` elements are in use.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from superarm._jit import kernel, verb
from superarm.actions.weights import order_by_weight
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.streams import Stream, uniform


class Actions(Protocol):
    """An action set: which batches may be played."""

    @property
    def matroid(self) -> bool:
        """Whether batches are the independent sets of a matroid, so that greedy is exact for modular rewards."""
        ...

    def capacity(self, n_arms: int) -> int:
        """The size of the largest batch."""
        ...

    def admits(self, chosen: Ints, size: int, arm: int) -> bool:
        """Whether ``arm``, not in the batch yet, may join the first ``size`` arms of ``chosen``."""
        ...

    def includes(self, action: Ints) -> bool:
        """Whether ``action`` may be played."""
        ...

    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        """Every batch that no other batch contains; for a monotone reward, one of them is the best."""
        ...

    def n_batches(self, n_arms: int) -> float:
        """How many batches ``batches`` yields, or an upper bound of it; may be infinite."""
        ...

    def validate(self, n_arms: int) -> None:
        """Raise ``InvalidArgument`` if the set does not fit ``n_arms`` arms, or if some arm is in no batch."""
        ...


class ActionHooks(Protocol):
    """Methods that an action set may define beyond :class:`Actions`; ``traits`` and the verbs below have the defaults.

    They are for sets that have better algorithms than adding arms one by one.
    """

    tractable: bool
    """Whether ``heaviest`` is exact; by default, whether the set is a matroid."""

    exchange: float
    """The p of a p-system: 1 for a matroid, infinite by default."""

    budgeted: bool
    """Whether batches are limited by a budget, with ``cost`` and ``budget``; False by default."""

    uniform: bool
    """Whether any k arms may be played, or any k that include the pinned ones; False by default."""

    def joins(self, candidates: Candidates, chosen: Ints, size: int, arm: int) -> bool:
        """``admits`` if only eligible arms may complete the batch; ``admits`` itself by default."""
        ...

    def pins(self, candidates: Candidates, chosen: Ints) -> int:
        """Write the pinned arms into ``chosen`` and return how many there are; -1 if they cannot be played."""
        ...

    def remnant(self, batch: Ints, candidates: Candidates) -> Ints:
        """The part of ``batch`` that may be played: its eligible arms, or nothing if batches must be whole."""
        ...

    def heaviest(self, weights: Floats, candidates: Candidates) -> Ints:
        """A batch of large total weight, for ``weights`` (n_arms,) >= 0; of the largest if the set is ``tractable``."""
        ...

    def ceiling(self, weights: Floats, candidates: Candidates) -> float:
        """An upper bound of the total weight of any batch of eligible arms."""
        ...

    def cost(self, arm: int) -> float:
        """The cost of ``arm``, if the set is ``budgeted``."""
        ...

    def budget(self) -> float:
        """What the arms of a batch may cost together, if the set is ``budgeted``."""
        ...

    def cover(self, candidates: Candidates) -> Ints:
        """A batch with as many arms as possible that were never pulled."""
        ...

    def sample(self, candidates: Candidates, stream: Stream) -> Ints:
        """A random batch."""
        ...


@kernel
def fill(actions: Any, candidates: Candidates, chosen: Ints, size: int) -> int:
    """Add arms to ``chosen``, those with the fewest pulls first, until none may join; return the new size."""
    taken = ~candidates.eligible
    for n in range(size):
        taken[chosen[n]] = True
    while 0 <= size < len(chosen):
        best = -1
        for j in range(len(taken)):
            if taken[j] or (best >= 0 and candidates.counts[j] >= candidates.counts[best]):
                continue
            if joins(actions, candidates, chosen, size, j):
                best = j
            else:
                taken[j] = True
        if best < 0:
            break
        chosen[size] = best
        taken[best] = True
        size += 1
    return size


@kernel
def contains(chosen: Ints, size: int, arm: int) -> bool:
    """Whether ``arm`` is among the first ``size`` of ``chosen``."""
    for n in range(size):
        if chosen[n] == arm:
            return True
    return False


@kernel
def greedy_heaviest(actions: Any, weights: Floats, candidates: Candidates) -> Ints:
    """Add arms, the heaviest first, until none may join: the heaviest batch of a matroid, [Edmonds1971]_."""
    chosen = np.empty(capacity(actions, len(weights)), np.int64)
    size = pins(actions, candidates, chosen)
    for j in order_by_weight(weights, candidates):
        if size < 0 or size == len(chosen):
            break
        if candidates.eligible[j] and not contains(chosen, size, j) and joins(actions, candidates, chosen, size, j):
            chosen[size] = j
            size += 1
    return chosen[: max(size, 0)]


@kernel
def _admits(actions: Any, candidates: Candidates, chosen: Ints, size: int, arm: int) -> bool:
    return admits(actions, chosen, size, arm)


@kernel
def _no_pins(actions: Any, candidates: Candidates, chosen: Ints) -> int:
    return 0


@kernel
def _sum_of_largest(actions: Any, weights: Floats, candidates: Candidates) -> float:
    """The sum of the ``capacity`` largest weights: a bound for every action set, exact for ``Subsets``."""
    total, left = 0.0, capacity(actions, len(weights))
    for j in order_by_weight(weights, candidates):
        if left > 0 and candidates.eligible[j]:
            total += weights[j]
            left -= 1
    return total


@kernel
def _cover(actions: Any, candidates: Candidates) -> Ints:
    fresh = np.zeros(len(candidates.counts))
    for j in range(len(fresh)):
        fresh[j] = 1.0 if candidates.counts[j] == 0.0 else 0.0
    return heaviest(actions, fresh, candidates)


@kernel
def _sample(actions: Any, candidates: Candidates, stream: Stream) -> Ints:
    keys = np.empty(len(candidates.counts))
    for j in range(len(keys)):
        keys[j] = uniform(stream)
    shuffled = Candidates(keys, candidates.eligible)
    chosen = np.empty(capacity(actions, len(keys)), np.int64)
    size = fill(actions, shuffled, chosen, pins(actions, shuffled, chosen))
    return chosen[: max(size, 0)]


@kernel
def _eligible_part(actions: Any, batch: Ints, candidates: Candidates) -> Ints:
    return batch[candidates.eligible[batch]]


@kernel
def keep_if_eligible(batch: Ints, candidates: Candidates) -> Ints:
    """Return ``batch`` if all its arms are eligible, and nothing otherwise: the remnant if batches must be whole."""
    return batch.copy() if all_eligible(batch, candidates) else np.empty(0, np.int64)


@kernel
def complete(actions: Any, batch: Ints, candidates: Candidates) -> bool:
    """Whether no eligible arm may join ``batch``."""
    for j in range(len(candidates.eligible)):
        if (
            candidates.eligible[j]
            and not contains(batch, len(batch), j)
            and joins(actions, candidates, batch, len(batch), j)
        ):
            return False
    return True


@kernel
def all_eligible(action: Ints, candidates: Candidates) -> bool:
    """Whether all arms of ``action`` are eligible."""
    for j in action:
        if not candidates.eligible[j]:
            return False
    return True


admits = verb(Actions.admits)
capacity = verb(Actions.capacity)
joins: verb[..., bool] = verb(ActionHooks.joins, default=_admits)
pins: verb[..., int] = verb(ActionHooks.pins, default=_no_pins)
remnant: verb[..., Ints] = verb(ActionHooks.remnant, default=_eligible_part)
heaviest: verb[..., Ints] = verb(ActionHooks.heaviest, default=greedy_heaviest)
ceiling: verb[..., float] = verb(ActionHooks.ceiling, default=_sum_of_largest)
cost: verb[..., float] = verb(ActionHooks.cost)
budget: verb[..., float] = verb(ActionHooks.budget)
cover: verb[..., Ints] = verb(ActionHooks.cover, default=_cover)
sample: verb[..., Ints] = verb(ActionHooks.sample, default=_sample)
