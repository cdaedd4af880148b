"""Which batches may be played.

An action set tells, for a batch under construction, whether an arm may still join it: whether some batch that may
be played contains them all. So joining arms until none may ends in a batch, and an arm once refused stays refused
as the batch grows. In kernels a batch is an array ``chosen`` of which the first ``size`` places are taken.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from superarm._jit import kernel, verb
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.streams import Stream, uniform


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


class ActionHooks(Protocol):
    """Methods that an action set may define beyond :class:`Actions`; ``traits`` and the verbs below have the defaults.

    They are for sets that can do better than letting arms join one by one.
    """

    @property
    def tractable(self) -> bool:
        """Whether ``heaviest`` is exact; by default, whether the set is a matroid."""
        ...

    @property
    def exchange(self) -> float:
        """The p of a p-system: 1 for a matroid, infinite by default."""
        ...

    @property
    def budgeted(self) -> bool:
        """Whether batches are what a budget buys, with ``cost`` and ``budget``; False by default."""
        ...

    @property
    def uniform(self) -> bool:
        """Whether any k arms, or any k with some pinned, may be played; False by default."""
        ...

    def joins(self, candidates: Candidates, chosen: Ints, size: int, arm: int) -> bool:
        """``admits`` when only eligible arms may complete the batch; the same unless batches must be complete."""
        ...

    def pins(self, candidates: Candidates, chosen: Ints) -> int:
        """Write the arms that every batch contains into ``chosen``; how many, or -1 if one is not eligible."""
        ...

    def remnant(self, batch: Ints, candidates: Candidates) -> Ints:
        """What may be played of ``batch`` when only eligible arms may: those of it, or nothing if it must be whole."""
        ...

    def heaviest(self, weights: Floats, candidates: Candidates) -> Ints:
        """A batch of large total weight (n_arms,), not negative; the largest if the set is ``tractable``."""
        ...

    def ceiling(self, weights: Floats, candidates: Candidates) -> float:
        """An upper bound of the total weight of any batch of eligible arms."""
        ...

    def cost(self, arm: int) -> float:
        """What ``arm`` costs, if the set is ``budgeted``."""
        ...

    def budget(self) -> float:
        """What the arms of a batch may cost together, if the set is ``budgeted``."""
        ...

    def cover(self, candidates: Candidates) -> Ints:
        """A batch with as many arms as possible that were never pulled."""
        ...

    def sample(self, candidates: Candidates, stream: Stream) -> Ints:
        """A batch at random."""
        ...


@kernel
def fill(actions: Any, candidates: Candidates, chosen: Ints, size: int) -> int:
    """Let arms join ``chosen`` in the order of ``candidates`` until none may; the new size.

    The arms that were never pulled come first, so a batch filled from nothing covers as many of them as greedy
    joining allows.
    """
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
def order_by_weight(weights: Floats, candidates: Candidates) -> Ints:
    """All arms, heaviest first; equal weights in the order of ``candidates``."""
    by_pulls = np.argsort(candidates.counts, kind="mergesort")
    return by_pulls[np.argsort(-weights[by_pulls], kind="mergesort")]


@kernel
def heaviest_arms(k: int, weights: Floats, candidates: Candidates) -> Ints:
    """The first ``k`` eligible arms of that order, each let into the line of the best so far: for small ``k``."""
    line, size = np.empty(k, np.int64), 0
    for j in range(len(weights)):
        if not candidates.eligible[j]:
            continue
        at = size
        while at > 0:
            ahead = line[at - 1]
            if weights[ahead] > weights[j] or (
                weights[ahead] == weights[j] and candidates.counts[ahead] <= candidates.counts[j]
            ):
                break
            if at < k:
                line[at] = ahead
            at -= 1
        if at < k:
            line[at] = j
            size = min(size + 1, k)
    return line[:size]


@kernel
def contains(chosen: Ints, size: int, arm: int) -> bool:
    """Whether ``arm`` is among the first ``size`` of ``chosen``."""
    for n in range(size):
        if chosen[n] == arm:
            return True
    return False


@kernel
def greedy_heaviest(actions: Any, weights: Floats, candidates: Candidates) -> Ints:
    """Let arms join from the heaviest down: the heaviest batch of a matroid, [Edmonds1971]_."""
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
def total_weight(weights: Floats, action: Ints) -> float:
    """The total weight of ``action``."""
    total = 0.0
    for j in action:
        total += weights[j]
    return total


@kernel
def more_than_all(weights: Floats) -> float:
    """A number above the sum of all ``weights``, which are not negative."""
    more = 1.0
    for w in weights:
        more += w
    return more


@kernel
def _admits(actions: Any, candidates: Candidates, chosen: Ints, size: int, arm: int) -> bool:
    return admits(actions, chosen, size, arm)


@kernel
def _no_pins(actions: Any, candidates: Candidates, chosen: Ints) -> int:
    return 0


@kernel
def _top(actions: Any, weights: Floats, candidates: Candidates) -> float:
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
    lots = np.empty(len(candidates.counts))
    for j in range(len(lots)):
        lots[j] = uniform(stream)
    shuffled = Candidates(lots, candidates.eligible)
    chosen = np.empty(capacity(actions, len(lots)), np.int64)
    size = fill(actions, shuffled, chosen, pins(actions, shuffled, chosen))
    return chosen[: max(size, 0)]


@kernel
def _eligible_part(actions: Any, batch: Ints, candidates: Candidates) -> Ints:
    return batch[candidates.eligible[batch]]


@kernel
def whole_or_nothing(batch: Ints, candidates: Candidates) -> Ints:
    """``batch`` if all its arms are eligible, nothing otherwise: the remnant where batches must be whole."""
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
ceiling: verb[..., float] = verb(ActionHooks.ceiling, default=_top)
cost: verb[..., float] = verb(ActionHooks.cost)
budget: verb[..., float] = verb(ActionHooks.budget)
cover: verb[..., Ints] = verb(ActionHooks.cover, default=_cover)
sample: verb[..., Ints] = verb(ActionHooks.sample, default=_sample)
