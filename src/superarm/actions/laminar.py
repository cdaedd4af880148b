from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from superarm._jit import component, interpreted
from superarm.actions.base import heaviest
from superarm.actions.enumeration import count_subsets, enumerate_maximal
from superarm.actions.weights import total_weight
from superarm.arrays import Bools, Floats, Ints
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument


class _Families(NamedTuple):
    member: Bools
    limits: Ints
    k: int


@component
class Laminar(_Families):
    """At most a given number of arms of each family, where families are nested or disjoint: by shelf, aisle and shop.

    A laminar matroid, [Edmonds1971]_. Arms that belong to no family may always join.

    Parameters
    ----------
    families
        Pairs (arms, limit). Of two families, one contains the other or they have no arm in common.

    Examples
    --------
    >>> shelves = Laminar([([0, 1], 1), ([0, 1, 2, 3], 2)])
    >>> list(shelves.batches(4))
    [(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    """

    __slots__ = ()

    matroid = True

    def __new__(cls, families: Iterable[tuple[Iterable[int], int]]) -> "Laminar":
        listed = [(np.unique(np.asarray(list(arms), np.int64)), limit) for arms, limit in families]
        if not listed:
            raise InvalidArgument("families", "empty", "give at least one pair (arms, limit)", "Laminar")
        for arms, limit in listed:
            if not arms.size or arms[0] < 0:
                raise InvalidArgument("families", f"family {arms.tolist()}", "name arms, from 0 up", "Laminar")
            if not isinstance(limit, int | np.integer) or limit < 1:
                raise InvalidArgument("families", f"limit {limit!r}", "give whole numbers >= 1", "Laminar")
        listed.sort(key=lambda family: family[0].size)
        member = np.zeros((len(listed), 1 + max(int(arms[-1]) for arms, _ in listed)), np.bool_)
        for row, (arms, _) in zip(member, listed, strict=True):
            row[arms] = True
        for n, small in enumerate(member):
            for large in member[n + 1 :]:
                if (small & large).any() and (small & ~large).any():
                    raise InvalidArgument(
                        "families", "two overlap and neither contains the other", "nest or separate them", "Laminar"
                    )
        limits = np.array([limit for _, limit in listed], np.int64)
        return super().__new__(cls, member, limits, _rank(member, limits))

    def capacity(self, n_arms: int) -> int:
        return self.k + n_arms - self.member.shape[1]  # type: ignore[no-any-return]

    def admits(self, chosen: Ints, size: int, arm: int) -> bool:
        width = self.member.shape[1]
        if arm >= width:
            return True
        for f in range(len(self.limits)):
            if self.member[f, arm]:
                held = 0
                for n in range(size):
                    held += 1 if chosen[n] < width and self.member[f, chosen[n]] else 0
                if held >= self.limits[f]:
                    return False
        return True

    def ceiling(self, weights: Floats, candidates: Candidates) -> float:
        return total_weight(weights, heaviest(self, weights, candidates))

    @interpreted
    def includes(self, action: Ints) -> bool:
        listed = np.asarray(action, np.int64)
        held = self.member[:, listed[listed < self.member.shape[1]]].sum(axis=1)
        return len(listed) > 0 and bool((held <= self.limits).all())

    @interpreted
    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        return enumerate_maximal(self, n_arms)

    @interpreted
    def n_batches(self, n_arms: int) -> float:
        return count_subsets(n_arms, self.capacity(n_arms))

    @interpreted
    def validate(self, n_arms: int) -> None:
        if self.member.shape[1] > n_arms:
            raise InvalidArgument(
                "families", f"arm {self.member.shape[1] - 1} of {n_arms}", f"arms are 0 to {n_arms - 1}", "Laminar"
            )


def _rank(member: Bools, limits: Ints) -> int:
    """The size of the largest batch of arms that belong to some family; ``member`` lists small families first."""
    left = member.shape[1] * [1]
    for row, limit in zip(member, limits, strict=True):
        inside = np.flatnonzero(row)
        most = min(sum(left[j] for j in inside), int(limit))
        for j in inside:
            left[j] = 0
        left[inside[0]] = most
    return sum(left)
