from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from superarm._jit import component, interpreted, kernel
from superarm.actions import traits
from superarm.actions.base import (
    Actions,
    admits,
    all_eligible,
    budget,
    capacity,
    ceiling,
    contains,
    cost,
    greedy_heaviest,
    heaviest,
    joins,
    remnant,
)
from superarm.actions.weights import exceed_total
from superarm.arrays import Floats, Ints, arms
from superarm.candidates import Candidates
from superarm.errors import InvalidArgument


class _Pins(NamedTuple):
    actions: Actions
    arms: Ints


@component
class Pinned(_Pins):
    """The batches of ``actions`` that contain all ``arms``: some arms were fixed by hand, the rest is chosen.

    Contracting a matroid gives a matroid, so guarantees carry over: oracles add the pinned arms first. Arms that fit
    into no batch with the pinned ones are never played. The capacity is that of ``actions``; if that is not a matroid,
    it may be more than the size of the largest batch.

    Parameters
    ----------
    actions
        The action set to restrict; it is not ``Pinned`` itself.
    arms
        The arms that every batch contains, at least one.

    Examples
    --------
    >>> from superarm.actions import Subsets
    >>> list(Pinned(Subsets(2), [1]).batches(3))
    [(0, 1), (1, 2)]
    """

    __slots__ = ()

    def __new__(cls, actions: Actions, arms: Iterable[int]) -> "Pinned":
        if not traits.is_action_set(actions):
            raise InvalidArgument("actions", f"{actions!r} is not an action set", "give e.g. Subsets(k)", "Pinned")
        if isinstance(actions, Pinned):
            raise InvalidArgument("actions", "they are pinned already", "pin all arms at once", "Pinned")
        listed = list(arms)
        if not listed:
            raise InvalidArgument("arms", "empty", "pin at least one arm, or use the action set itself", "Pinned")
        return super().__new__(cls, actions, _parse_arms(listed))

    @property
    def matroid(self) -> bool:
        return self.actions.matroid

    @property
    def tractable(self) -> bool:
        return traits.tractable(self.actions)

    @property
    def exchange(self) -> float:
        return traits.exchange(self.actions)

    @property
    def budgeted(self) -> bool:
        return traits.budgeted(self.actions)

    @property
    def uniform(self) -> bool:
        return traits.uniform(self.actions)

    def capacity(self, n_arms: int) -> int:
        return capacity(self.actions, n_arms)

    def cost(self, arm: int) -> float:
        return cost(self.actions, arm)

    def budget(self) -> float:
        return budget(self.actions)

    def admits(self, chosen: Ints, size: int, arm: int) -> bool:
        batch = _with_pins(self.arms, chosen, size, arm)
        return admits(self.actions, batch, len(batch) - 1, arm)

    def joins(self, candidates: Candidates, chosen: Ints, size: int, arm: int) -> bool:
        batch = _with_pins(self.arms, chosen, size, arm)
        return all_eligible(self.arms, candidates) and joins(self.actions, candidates, batch, len(batch) - 1, arm)

    def pins(self, candidates: Candidates, chosen: Ints) -> int:
        if not all_eligible(self.arms, candidates):
            return -1
        for n in range(len(self.arms)):
            chosen[n] = self.arms[n]
        first = self.arms[0]  # if arms are excluded, there may be no batch that contains the pinned ones
        return len(self.arms) if joins(self.actions, candidates, chosen[1:], len(self.arms) - 1, first) else -1

    def remnant(self, batch: Ints, candidates: Candidates) -> Ints:
        left = remnant(self.actions, batch, candidates)
        return left if all_eligible(self.arms, candidates) else left[:0]

    def heaviest(self, weights: Floats, candidates: Candidates) -> Ints:
        batch = heaviest(self.actions, _raise_pinned(self.arms, weights), candidates)
        for j in self.arms:
            if not contains(batch, len(batch), j):
                return greedy_heaviest(self, weights, candidates)
        return batch

    def ceiling(self, weights: Floats, candidates: Candidates) -> float:
        raised = _raise_pinned(self.arms, weights)
        bonus = raised[self.arms[0]] - weights[self.arms[0]]
        total: float = ceiling(self.actions, raised, candidates) - len(self.arms) * bonus
        return total

    @interpreted
    def includes(self, action: Ints) -> bool:
        return bool(np.isin(self.arms, action).all()) and self.actions.includes(action)

    @interpreted
    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        pinned = set(self.arms.tolist())
        return (batch for batch in self.actions.batches(n_arms) if pinned <= set(batch))

    @interpreted
    def n_batches(self, n_arms: int) -> float:
        return self.actions.n_batches(n_arms)

    @interpreted
    def validate(self, n_arms: int) -> None:
        self.actions.validate(n_arms)
        arms(self.arms, "arms", n_arms)
        for n, j in enumerate(self.arms):
            if not admits(self.actions, self.arms, n, int(j)):
                raise InvalidArgument(
                    "arms", f"no batch contains arm {j} and {self.arms[:n].tolist()}", "pin arms of one batch", "Pinned"
                )


def _parse_arms(listed: list[Any]) -> Ints:
    return arms(listed, "arms", 2**31)


@kernel
def _with_pins(pinned: Ints, chosen: Ints, size: int, arm: int) -> Ints:
    """The pinned arms and the first ``size`` arms of ``chosen``, each once and without ``arm``, followed by ``arm``."""
    batch = np.empty(len(pinned) + size + 1, np.int64)
    n = 0
    for j in pinned:
        if j != arm:
            batch[n] = j
            n += 1
    for place in range(size):
        if not contains(batch, n, chosen[place]):
            batch[n] = chosen[place]
            n += 1
    batch[n] = arm
    return batch[: n + 1]


@kernel
def _raise_pinned(pinned: Ints, weights: Floats) -> Floats:
    """Raise the weights of the pinned arms so far that every heaviest batch contains them."""
    bonus = exceed_total(weights)
    raised = weights.copy()
    for j in pinned:
        raised[j] += bonus
    return raised
