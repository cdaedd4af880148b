"""Which slate: the policy's, within what the caller allows, with an exploration share and its propensities."""

from typing import NamedTuple

import numpy as np

from superarm.actions import Subsets
from superarm.arrays import Bools
from superarm.noise import Noise, integer, seek, uniform
from superarm.service.learner import Learner
from superarm.service.refusal import invalid


class Wish(NamedTuple):
    """What the caller allows: arm numbers; ``pinned`` arms stand first, ``k`` shortens the slate."""

    eligible: list[int] | None
    excluded: list[int]
    pinned: list[int]
    k: int | None


class Slate(NamedTuple):
    """The arms in order, and the chance of each, given those before it; None if the policy itself is random."""

    action: tuple[int, ...]
    propensities: tuple[float, ...] | None


def chosen(learner: Learner, id: str, wish: Wish) -> Slate:
    """The slate for a decision.

    Pinned arms come first and the policy fills the rest; the slate is full whenever enough arms remain. A prefix of
    greedy picks is what greedy would pick for a smaller slate, so ``k`` cuts the tail.
    """
    free = _free(learner, wish)
    size = _size(learner, wish)
    pinned = tuple(wish.pinned)
    if len(pinned) >= size:
        return Slate(pinned[:size], (1.0,) * size)
    if not free.any():
        if pinned:
            return Slate(pinned, (1.0,) * len(pinned))
        raise invalid("eligible", "no arm is left", "make more arms eligible, exclude or retire fewer")
    picks = learner.choose([id], free)[0][: size - len(pinned)]
    if not picks:
        raise invalid("eligible", "no slate can be formed", "make enough arms eligible, exclude or retire fewer")
    share = learner.settings.explore
    if share > 0.0:
        picks, chances = explored(picks, np.flatnonzero(free), share, learner.noise("explore", id))
        return Slate(pinned + tuple(picks), (1.0,) * len(pinned) + tuple(chances))
    return certain(learner, (*pinned, *picks))


def certain(learner: Learner, action: tuple[int, ...]) -> Slate:
    """The slate of a policy that draws no slot at random, or draws in a way of its own."""
    own = learner.settings.policy.name in ("cts", "angle_ts", "epsilon_greedy", "uniform")
    return Slate(action, None if own else (1.0,) * len(action))


def _free(learner: Learner, wish: Wish) -> Bools:
    free = ~learner.retired
    if wish.eligible is not None:
        allowed = np.zeros(len(free), bool)
        allowed[wish.eligible] = True
        free &= allowed
    free[wish.excluded] = False
    free[wish.pinned] = False
    return free


def _size(learner: Learner, wish: Wish) -> int:
    largest = learner.k
    if not isinstance(learner.problem.actions, Subsets) and (wish.pinned or wish.k is not None):
        raise invalid("pinned" if wish.pinned else "k", "the batches are listed", "use eligible and excluded only")
    if wish.k is not None and wish.k > largest:
        raise invalid("k", f"{wish.k} is above the problem's {largest}", f"give 1 to {largest}")
    if len(wish.pinned) > largest:
        raise invalid("pinned", f"{len(wish.pinned)} arms for {largest} slots", f"pin at most {largest}")
    return wish.k or largest


def explored(picks: list[int], free: np.ndarray, share: float, noise: Noise) -> tuple[list[int], list[float]]:
    r"""Slot by slot: with chance ``share`` any arm not yet in the slate, each alike; else the policy's next.

    .. math:: P(arm\ in\ slot\ s \mid slots\ before) = \frac{share}{n_s} + (1 - share)\,[arm = next\ of\ the\ policy]

    where :math:`n_s` arms are left. The product over slots is the propensity of the ordered slate.
    """
    left = [int(j) for j in free]
    queue = list(picks)
    action, chances = [], []
    for slot in range(len(picks)):
        seek(noise, slot, 0)
        n, leader = len(left), queue[0]
        arm = left[integer(noise, n)] if uniform(noise) < share else leader
        chances.append(share / n + (1.0 - share) * (arm == leader))
        action.append(arm)
        left.remove(arm)
        queue.remove(arm) if arm in queue else queue.pop()
    return action, chances


def seated(picks: list[str], slots: list[tuple[str, list[str]]]) -> tuple[str, ...]:
    """The slot of each pick, none of which excludes it: a matching, by augmenting paths.

    >>> seated(["a", "b"], [("top", ["a"]), ("side", [])])
    ('side', 'top')
    """
    seat: dict[int, int] = {}

    def place(pick: int, tried: set[int]) -> bool:
        for n, (_, excluded) in enumerate(slots):
            if n in tried or picks[pick] in excluded:
                continue
            tried.add(n)
            if n not in seat or place(seat[n], tried):
                seat[n] = pick
                return True
        return False

    for pick in range(len(picks)):
        if not place(pick, set()):
            raise invalid("slots.excluded", f"no slot is left for {picks[pick]!r}", "exclude it altogether, or less")
    names = {pick: slots[n][0] for n, pick in seat.items()}
    return tuple(names[pick] for pick in range(len(picks)))
