import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.actions.base import heaviest
from superarm.actions.enumeration import sum_counts
from superarm.actions.weights import total_weight
from superarm.arrays import Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument


class _Groups(NamedTuple):
    group: Ints
    limits: Ints
    k: int


@component
class PartitionMatroid(_Groups):
    """At most ``limits[g]`` arms of each group g: so many articles per category, so many offers per shop.

    A partition matroid, [Edmonds1971]_.

    Parameters
    ----------
    groups
        The group of every arm, by number or by any label.
    limits
        The limits of groups 0, 1, …, or a mapping from labels to limits.

    Examples
    --------
    >>> list(PartitionMatroid(["news", "news", "sport"], {"news": 1, "sport": 1}).batches(3))
    [(0, 2), (1, 2)]
    """

    __slots__ = ()

    matroid = True

    def __new__(cls, groups: Sequence[Hashable], limits: Sequence[int] | Mapping[Hashable, int]) -> "PartitionMatroid":
        named = dict(limits) if isinstance(limits, Mapping) else dict(enumerate(limits))
        members = [g.item() if isinstance(g, np.generic) else g for g in groups]
        if not members:
            raise InvalidArgument("groups", "empty", "give the group of every arm", "PartitionMatroid")
        for g, limit in named.items():
            if not isinstance(limit, int | np.integer) or limit < 1:
                raise InvalidArgument(
                    "limits", f"{limit!r} for group {g!r}", "give whole numbers >= 1", "PartitionMatroid"
                )
        for g in members:
            if g not in named:
                raise InvalidArgument("limits", f"none for group {g!r}", "give one per group", "PartitionMatroid")
        for g in named:
            if g not in members:
                raise InvalidArgument("groups", f"no arm is in group {g!r}", "drop its limit", "PartitionMatroid")
        number = {g: n for n, g in enumerate(named)}
        group = np.array([number[g] for g in members], np.int64)
        caps = np.minimum(np.array(list(named.values()), np.int64), np.bincount(group, minlength=len(named)))
        return super().__new__(cls, group, caps, int(caps.sum()))

    def capacity(self, n_arms: int) -> int:
        return self.k

    def admits(self, chosen: Ints, size: int, arm: int) -> bool:
        held = 0
        for n in range(size):
            held += 1 if self.group[chosen[n]] == self.group[arm] else 0
        return held < self.limits[self.group[arm]]  # type: ignore[no-any-return]

    def ceiling(self, weights: Floats, candidates: Candidates) -> float:
        return total_weight(weights, heaviest(self, weights, candidates))

    @interpreted
    def includes(self, action: Ints) -> bool:
        held = np.bincount(self.group[np.asarray(action, np.int64)], minlength=len(self.limits))
        return len(action) > 0 and bool((held <= self.limits).all())

    @interpreted
    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        arms = [np.flatnonzero(self.group == g).tolist() for g in range(len(self.limits))]
        parts = [itertools.combinations(a, int(k)) for a, k in zip(arms, self.limits, strict=True)]
        return (tuple(sorted(itertools.chain(*picked))) for picked in itertools.product(*parts))

    @interpreted
    def n_batches(self, n_arms: int) -> float:
        counts = np.bincount(self.group, minlength=len(self.limits))
        parts = (math.comb(int(n), int(k)) for n, k in zip(counts, self.limits, strict=True))
        return sum_counts([math.prod(parts)])

    @interpreted
    def validate(self, n_arms: int) -> None:
        if len(self.group) != n_arms:
            raise InvalidArgument(
                "groups", f"{len(self.group)} for {n_arms} arms", "name the group of every arm", "PartitionMatroid"
            )
