"""Choosing the slate of a decision: by the policy, within what the caller allows, with some slots explored at random.

The probabilities of the arms (chances) are computed with the slate.
"""

from typing import Any, NamedTuple

import numpy as np

from superarm._jit import kernel
from superarm.actions import Actions, Pinned, Slots, Subsets, admits, joins
from superarm.candidates import Candidates
from superarm.context import EncodedContext
from superarm.core.arrays import Bools, Ints
from superarm.core.streams import Stream, integer, seek, uniform
from superarm.service.domain.chances import Drawn, exact_chances
from superarm.service.domain.components import POLICIES
from superarm.service.domain.events import Restriction
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.spec import MAX_ENTRIES
from superarm.service.errors import invalid
from superarm.service.interpreter import give_turn

DRAWS_PER_TURN = 8
"""After so many slates drawn to count chances, about a millisecond, other threads have a turn."""


class SlateRequest(NamedTuple):
    """What the caller of a decision allows, by numbers of arms; ``pinned`` arms come first, ``k`` shortens the slate.

    ``slots`` (n_slots, n_arms) tells which arms each slot may hold; None if any slot may hold any arm. ``context`` is
    there if the problem has one.
    """

    eligible: list[int] | None
    excluded: list[int]
    pinned: list[int]
    k: int | None
    slots: Bools | None = None
    context: EncodedContext | None = None


def to_request(allowed: Restriction, n_arms: int, names: list[str] | None = None) -> SlateRequest:
    """What a stored restriction allows, for a problem with ``n_arms``; ``names`` are those of the slots."""
    table = None
    if allowed.slots is not None:
        names = names or [str(n) for n in range(len(allowed.slots))]
        table = slot_table(names, [list(arms) for arms in allowed.slots], n_arms, MAX_ENTRIES)
    eligible = None if allowed.eligible is None else list(allowed.eligible)
    return SlateRequest(eligible, list(allowed.excluded), list(allowed.pinned), allowed.k, table)


class Slate(NamedTuple):
    """The arms in order, the chance of each given those before it, and that of being in the slate in any slot.

    Chances that are not known are None; ``draws`` says how many draws the inclusion was counted from, 0 if it is exact.
    """

    action: tuple[int, ...]
    propensities: tuple[float, ...] | None
    inclusion: tuple[float, ...] | None = None
    draws: int = 0


ANY_SLATE = SlateRequest(None, [], [], None)


def choose_slate(learner: ProblemState, id: str, request: SlateRequest) -> Slate:
    """The slate for a decision, with its chances: the pinned arms, and around them the best that the policy finds."""
    return _with_chances(learner, id, request, draw_slate(learner, id, request))


def plain_slate(learner: ProblemState, id: str, action: tuple[int, ...]) -> Slate:
    """The slate of a request that restricts nothing, which the policy chose together with others."""
    if not learner.is_random:
        return Slate(action, (1.0,) * len(action))
    return _with_chances(learner, id, ANY_SLATE, Drawn(action, (), action, ~learner.retired, learner.problem.actions))


def _with_chances(learner: ProblemState, id: str, request: SlateRequest, drawn: Drawn) -> Slate:
    exact = exact_chances(learner, drawn)
    if exact is not None:
        return Slate(drawn.action, *exact)
    slots = None if learner.is_random else (1.0,) * len(drawn.pinned) + drawn.slots
    draws = learner.settings.propensity_draws
    return Slate(drawn.action, slots, count_inclusion(learner, id, request, drawn.action, draws), draws)


def count_inclusion(
    learner: ProblemState, id: str, request: SlateRequest, action: tuple[int, ...], draws: int
) -> tuple[float, ...] | None:
    """The share of fresh slates, and one more, that hold each arm of ``action``; None without draws."""
    if not draws:
        return None
    held = dict.fromkeys(action, 1)
    for n in range(draws):  # no id holds a control character: these streams are used by nothing else
        for arm in draw_slate(learner, f"{id}\x1f{n}", request).action:
            if arm in held:
                held[arm] += 1
        if n % DRAWS_PER_TURN == 0:
            give_turn()
    return tuple(n / (draws + 1) for n in held.values())


def draw_slate(learner: ProblemState, id: str, request: SlateRequest) -> Drawn:
    """The slate for a decision, as full as the arms that are left allow."""
    size, pinned = _size(learner, request), tuple(request.pinned)
    playable = playable_arms(learner, request)
    base = learner.problem.actions if request.slots is None else Slots(request.slots)
    certainly = len(pinned) == size and isinstance(learner.problem.actions, Subsets) and request.slots is None
    if certainly and request.context is None:  # with a context, the choice gives the weights of its observations
        return Drawn(pinned, pinned, (), playable, base)
    actions = actions_of(learner, request)
    if request.context is not None:
        batch = learner.choose_around(id, playable, actions, request.context) if playable.any() else []
    elif actions is None:
        batch = learner.choose([id], playable)[0] if playable.any() else []
    else:
        batch = learner.choose_around(id, playable, actions)
    picks = [j for j in batch if j not in pinned][: size - len(pinned)]
    if not batch:
        raise invalid("eligible", "no slate can be formed", "make enough arms eligible, exclude or retire fewer")
    playable[request.pinned] = False
    drawn = Drawn((*pinned, *picks), pinned, tuple(picks), playable, base, actions)
    share = learner.settings.explore
    if share == 0.0:
        return drawn
    shown, chances = explore(base, list(pinned), picks, playable, share, learner.stream("explore", id))
    return drawn._replace(action=(*pinned, *shown), slots=tuple(chances))


def actions_of(learner: ProblemState, request: SlateRequest) -> Actions | None:
    """The action set of a request; None if it is that of the problem, whose slates are then cut to ``k`` arms.

    The first ``k`` arms that greedy picks are what it would pick for a slate of ``k``, so nothing is lost by cutting if
    the oracle is greedy. Other policies are asked for a slate of ``k``.
    """
    base: Actions = learner.problem.actions
    greedy = learner.problem.reward.submodular and not POLICIES[learner.settings.policy.name].whole_batches
    if request.slots is not None:
        base = Slots(request.slots)
    elif request.k is not None and request.k < learner.k and not greedy:
        base = Subsets(request.k)
    if not request.pinned:
        return None if base is learner.problem.actions else base
    pinned = Pinned(base, request.pinned)
    for n, j in enumerate(request.pinned):
        if not admits(base, pinned.arms, n, j):
            names = ", ".join(repr(learner.arms.all[arm]) for arm in request.pinned)
            raise invalid("pinned", f"no slate holds {names} together", "pin arms that one slate can hold")
    return pinned


def playable_arms(learner: ProblemState, request: SlateRequest) -> Bools:
    """Which arms may be in the slate of a request, pinned ones included."""
    mask = ~learner.retired
    if request.eligible is not None:
        eligible = np.zeros(len(mask), bool)
        eligible[request.eligible] = True
        mask &= eligible
    mask[request.excluded] = False
    if request.slots is not None:
        mask &= request.slots.any(axis=0)
    for j in request.pinned:
        if not mask[j]:
            name = repr(learner.arms.all[j])
            raise invalid("pinned", f"{name} is retired, excluded or not eligible", "pin arms that may be shown")
    return mask


def _size(learner: ProblemState, request: SlateRequest) -> int:
    largest, wanted = learner.k, len(request.slots) if request.slots is not None else request.k
    if wanted is not None and not isinstance(learner.problem.actions, Subsets):
        raise invalid("k", "the action set decides how large a slate is", "leave out k and slots")
    if wanted is not None and wanted > largest:
        raise invalid("k", f"{wanted} is above the problem's {largest}", f"give 1 to {largest}")
    size = wanted or largest
    if len(request.pinned) > size:
        raise invalid("pinned", f"{len(request.pinned)} arms for a slate of {size}", f"pin at most {size}")
    return size


def explore(
    actions: Actions, before: list[int], picks: list[int], free: Bools, share: float, stream: Stream
) -> tuple[list[int], list[float]]:
    r"""Fill each slot by a random arm with probability ``share``, and by the policy's next pick otherwise.

    .. math:: P(arm\ in\ slot\ s \mid slots\ before) = \frac{share}{n_s} + (1 - share)\,[arm = next\ of\ the\ policy]

    The random arm is drawn uniformly from the :math:`n_s` of the ``free`` arms that may join the arms ``before`` and
    the slots so far. The product over slots is the propensity of the ordered slate. The action set is a matroid: after
    a random arm, one of the policy's picks no longer fits, and the last such pick is dropped.
    """
    slate, queue, chances = list(before), list(picks), list[float]()
    left = [int(j) for j in np.flatnonzero(free)]
    for slot in range(len(picks)):
        seek(stream, slot, 0)
        if not isinstance(actions, Subsets):
            left = joinable_arms(actions, slate, free)
        n, leader = len(left), queue[0]
        arm = left[integer(stream, n)] if uniform(stream) < share else leader
        chances.append(share / n + (1.0 - share) * (arm == leader))
        slate.append(arm)
        left.remove(arm)
        queue = [j for j in queue if j != arm] if arm in queue else _without_one(actions, slate, queue)
    return slate[len(before) :], chances


def joinable_arms(actions: Actions, slate: list[int], free: Bools) -> list[int]:
    """The free arms that may join a slate."""
    candidates = Candidates(np.zeros(len(free)), free | np.isin(np.arange(len(free)), slate))
    chosen = np.array([*slate, -1], np.int64)
    return [int(j) for j in np.flatnonzero(_joinable(actions, candidates, chosen, len(slate)))]


@kernel
def _joinable(actions: Any, candidates: Candidates, chosen: Ints, size: int) -> Bools:
    """Which eligible arms may join the first ``size`` arms of ``chosen``."""
    mask = candidates.eligible.copy()
    for n in range(size):
        mask[chosen[n]] = False
    for j in range(len(mask)):
        if mask[j]:
            mask[j] = joins(actions, candidates, chosen, size, j)
    return mask


def _without_one(actions: Actions, slate: list[int], queue: list[int]) -> list[int]:
    """``queue`` without its last arm whose absence lets all others join the slate."""
    for gone in range(len(queue) - 1, -1, -1):
        rest = queue[:gone] + queue[gone + 1 :]
        batch = np.array([*slate, *rest], np.int64)
        if all(admits(actions, batch, n, int(batch[n])) for n in range(len(slate), len(batch))):
            return rest
    raise AssertionError("a matroid has an arm to exchange")


def assign_slots(names: list[str], slots: Bools | None, action: tuple[int, ...]) -> tuple[str, ...]:
    """The slot of each arm: in their order, or by a matching if slots exclude arms."""
    if slots is None:
        return tuple(names[: len(action)])
    return tuple(names[n] for n in Slots(slots).assignment(action))


def slot_table(names: list[str], excluded: list[list[int]], n_arms: int, limit: int) -> Bools | None:
    """Which arms each slot may hold, (n_slots, n_arms); None if no slot excludes any."""
    if not any(excluded):
        return None
    if len(names) * n_arms > limit:
        raise invalid("slots", f"{len(names)} slots with exclusions for {n_arms} arms", f"at most {limit} pairs")
    table = np.ones((len(names), n_arms), bool)
    for row, arms in zip(table, excluded, strict=True):
        row[arms] = False
    for slot in np.flatnonzero(~table.any(axis=1)):
        raise invalid("slots.excluded", f"slot {names[slot]!r} excludes every arm", "exclude fewer")
    return table
