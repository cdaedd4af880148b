r"""Choosing the slate of a decision: by the policy, within what the caller allows, with some slots explored at random;
the chances of its arms; and the control share.

Chances are exact where a formula is known, otherwise counted from draws: slot by slot, given the slots before
(``propensities``), and of being in the slate at all (``inclusion``). With n arms that may fill K slots besides pinned
arms:

- uniform: :math:`1/(n - s)` in slot s, from 0; inclusion K/n.
- an exploration share over a policy without chance: the recursion of ``superarm.offline.explored_inclusion``.
- otherwise, if the settings ask for ``propensity_draws`` = n: :math:`(B_j + 1)/(n + 1)`, where :math:`B_j` of n fresh
  slates held the arm. The mean of its inverse is :math:`(1 - (1 - e)^{n+1})/e`, as for geometric resampling with a cap
  of n + 1 draws, [NeuBartok2016]_: as :math:`\frac1{b+1}\binom nb=\frac1{n+1}\binom{n+1}{b+1}`, it is
  :math:`\sum_b\binom{n+1}{b+1}e^b(1-e)^{n-b}=\frac1e\sum_{c\ge1}\binom{n+1}ce^c(1-e)^{n+1-c}`.

Control is a share of decisions, drawn at random, that show the control slate in place of the policy's. Whether a
decision is one of them depends on its unit, or on its id if it has none: decisions of one unit are all of the policy
or all of the control, and a larger share keeps those that it had.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from superarm.actions import Actions, Knapsack, Pinned, Slots, Subsets
from superarm.actions.base import joinable_after
from superarm.context import EncodedContext
from superarm.core.arrays import Bools
from superarm.core.errors import InvalidArgument
from superarm.core.streams import uniform
from superarm.offline.inclusion import explored_inclusion
from superarm.policies import Uniform
from superarm.service.domain.events import Asked, Guarded, Restriction
from superarm.service.domain.lift import RESUMED_DECISIONS, Guard, check_guard
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.spec import MAX_ENTRIES
from superarm.service.errors import invalid


class Drawn(NamedTuple):
    """A slate before its chances are known.

    ``action`` begins with the ``pinned`` arms; ``queue`` are the policy's picks after them, of ``free`` arms, within
    ``actions``, and ``slots`` the chances with which slots were explored.
    """

    action: tuple[int, ...]
    pinned: tuple[int, ...]
    queue: tuple[int, ...]
    free: Bools
    actions: Actions
    slots: tuple[float, ...] = ()


class Slate(NamedTuple):
    """The arms in order, the chance of each given those before it, and that of being in the slate in any slot.

    Chances that are not known are None; ``draws`` says how many draws the inclusion was counted from, 0 if it is exact.
    """

    action: tuple[int, ...]
    propensities: tuple[float, ...] | None
    inclusion: tuple[float, ...] | None = None
    draws: int = 0


def exact_chances(learner: ProblemState, drawn: Drawn) -> Slate | None:
    """The slate with its chances where a formula is known, else None."""
    policy, share = learner.chooser.policy, learner.settings.explore
    own = learner.is_random
    if not drawn.queue or (not own and share == 0.0):
        return Slate(drawn.action, (1.0,) * len(drawn.action))
    if not isinstance(drawn.actions, Subsets):
        return None
    n, k, certain = int(drawn.free.sum()), len(drawn.queue), (1.0,) * len(drawn.pinned)
    if isinstance(policy, Uniform):
        return Slate(drawn.action, (*certain, *(1.0 / (n - s) for s in range(k))), (*certain, *(k / n,) * k))
    return None if own else _explored(drawn, share)


def _explored(drawn: Drawn, share: float) -> Slate:
    n, k = int(drawn.free.sum()), len(drawn.queue)
    ranks = explored_inclusion(n, np.arange(k), share)
    outside = float(ranks[-1])  # of no interest if every arm is in the queue
    inclusion = (float(ranks[drawn.queue.index(j)]) if j in drawn.queue else outside for j in drawn.action[-k:])
    certain = (1.0,) * len(drawn.pinned)
    return Slate(drawn.action, (*certain, *drawn.slots), (*certain, *inclusion))


class SlateRequest(NamedTuple):
    """What the caller of a decision allows, by numbers of arms; ``pinned`` arms come first, ``k`` shortens the slate.

    ``slots`` (n_slots, n_arms) tells which arms each slot may hold; None if any slot may hold any arm. ``context`` is
    there if the problem has one, ``unit`` if the caller named one.
    """

    allowed: Restriction
    pinned: list[int]
    slots: Bools | None = None
    context: EncodedContext | None = None
    unit: str = ""


def to_request(allowed: Restriction, n_arms: int, names: list[str] | None = None) -> SlateRequest:
    """What a stored restriction allows, for a problem with ``n_arms``; ``names`` are those of the slots."""
    table = None
    if allowed.slots is not None:
        names = names or [str(n) for n in range(len(allowed.slots))]
        if len(names) * n_arms > MAX_ENTRIES:
            wrong = f"{len(names)} slots with exclusions for {n_arms} arms"
            raise invalid("slots", wrong, f"at most {MAX_ENTRIES} pairs")
        table = np.ones((len(names), n_arms), bool)
        for name, row, arms in zip(names, table, allowed.slots, strict=True):
            row[list(arms)] = False
            if not row.any():
                raise invalid("slots.excluded", f"slot {name!r} excludes every arm", "exclude fewer")
    return SlateRequest(allowed, list(allowed.pinned), table)


def choose_slate(learner: ProblemState, id: str, request: SlateRequest, draws: int | None = None) -> Slate:
    """The slate for a decision, with its chances: the pinned arms, and around them the best that the policy finds.

    Where no formula is known, the chances are counted from ``draws`` further slates; as the settings say by default.
    """
    drawn = draw_slate(learner, id, request)
    if (exact := exact_chances(learner, drawn)) is not None:
        return exact
    slots = None if learner.is_random else (1.0,) * len(drawn.pinned) + drawn.slots
    draws = learner.settings.propensity_draws if draws is None else draws
    return Slate(drawn.action, slots, _count_inclusion(learner, id, request, drawn.action, draws), draws)


def _count_inclusion(
    learner: ProblemState, id: str, request: SlateRequest, action: tuple[int, ...], draws: int
) -> tuple[float, ...] | None:
    """The share of fresh slates, and one more, that hold each arm of ``action``; None without draws."""
    held = dict.fromkeys(action, 1)
    for n in range(draws):  # no id holds a control character: these random numbers are used by nothing else
        for arm in draw_slate(learner, f"{id}\x1f{n}", request).action:
            if arm in held:
                held[arm] += 1
    return tuple(n / (draws + 1) for n in held.values()) if draws else None


def draw_slate(learner: ProblemState, id: str, request: SlateRequest) -> Drawn:
    """The slate for a decision, as full as the arms that are left allow."""
    size, pinned = _size(learner, request), tuple(request.pinned)
    playable = playable_arms(learner, request)
    base = _affordable(learner, request) if request.slots is None else Slots(request.slots)
    certainly = len(pinned) == size and isinstance(learner.problem.actions, Subsets) and request.slots is None
    if certainly and request.context is None:  # with a context, the choice gives the weights of its observations
        return Drawn(pinned, pinned, (), playable, base)
    actions = actions_of(learner, request)
    key, batch = learner.key("mind", id), list[int]()
    if playable.any():
        batch = learner.choose(key, playable, pinned, actions, request.context, unit=request.unit)
    if not batch:
        raise invalid("eligible", "no slate can be formed", "make enough arms eligible, exclude or retire fewer")
    picks = [j for j in batch if j not in pinned][: size - len(pinned)]
    free = playable.copy()
    free[request.pinned] = False
    drawn = Drawn((*pinned, *picks), pinned, tuple(picks), free, base)
    share = learner.settings.explore
    if share == 0.0:
        return drawn
    shown, chances = explore(base, list(pinned), picks, free, share, learner.key("explore", id))
    return drawn._replace(action=(*pinned, *shown), slots=tuple(chances))


def actions_of(learner: ProblemState, request: SlateRequest) -> Actions | None:
    """The action set of a request; None if it is that of the problem, whose slates are then cut to ``k`` arms.

    The first ``k`` arms that greedy picks are what it would pick for a slate of ``k``, so nothing is lost by cutting if
    the oracle is greedy. Other policies are asked for a slate of ``k``. Pinned arms that fit into no slate are refused.
    """
    base: Actions = _affordable(learner, request)
    greedy = learner.problem.reward.submodular and not learner.whole_batches
    if request.slots is not None:
        base = Slots(request.slots | ~request.slots.any(axis=0))  # arms that no slot may hold are not eligible
    elif request.allowed.k is not None and request.allowed.k < learner.problem.k and not greedy:
        base = Subsets(request.allowed.k)
    if request.pinned:
        try:
            Pinned(base, request.pinned).validate(learner.problem.n_arms)
        except InvalidArgument:
            names = ", ".join(repr(learner.arms.all[arm]) for arm in request.pinned)
            raise invalid("pinned", f"no slate holds {names} together", "pin arms that one slate can hold") from None
    return None if base is learner.problem.actions else base


def _affordable(learner: ProblemState, request: SlateRequest) -> Actions:
    """The action set of the problem, within the budget of the request if it has one."""
    actions: Actions = learner.problem.actions
    if request.allowed.budget is None:
        return actions
    if not isinstance(actions, Knapsack) or request.slots is not None:
        raise invalid("budget", "the problem has no knapsack, or slots are given", "leave one of them out")
    try:
        return replace(actions, budget=request.allowed.budget)
    except InvalidArgument as error:
        raise invalid("budget", error.wrong, error.remedy) from None


def playable_arms(learner: ProblemState, request: SlateRequest) -> Bools:
    """Which arms may be in the slate of a request, pinned ones included."""
    mask = ~learner.retired
    if request.allowed.eligible is not None:
        eligible = np.zeros(len(mask), bool)
        eligible[list(request.allowed.eligible)] = True
        mask &= eligible
    mask[list(request.allowed.excluded)] = False
    if request.slots is not None:
        mask &= request.slots.any(axis=0)
    for j in request.pinned:
        if not mask[j]:
            name = repr(learner.arms.all[j])
            raise invalid("pinned", f"{name} is retired, excluded or not eligible", "pin arms that may be shown")
    return mask


def _size(learner: ProblemState, request: SlateRequest) -> int:
    largest, wanted = (
        _affordable(learner, request).capacity(learner.problem.n_arms),
        len(request.slots) if request.slots is not None else request.allowed.k,
    )
    if wanted is not None and not isinstance(learner.problem.actions, Subsets):
        raise invalid("k", "the action set decides how large a slate is", "leave out k and slots")
    if wanted is not None and wanted > largest:
        raise invalid("k", f"{wanted} is above the problem's {largest}", f"give 1 to {largest}")
    size = wanted or largest
    if len(request.pinned) > size:
        raise invalid("pinned", f"{len(request.pinned)} arms for a slate of {size}", f"pin at most {size}")
    return size


def explore(
    actions: Actions, before: list[int], picks: list[int], free: Bools, share: float, key: Any
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
        if not isinstance(actions, Subsets):
            left = _joinable_arms(actions, slate, free)
        n, leader = len(left), queue[0]
        place = draw_place(key, slot, share, n)
        arm = leader if place is None else left[place]
        chances.append(share / n + (1.0 - share) * (arm == leader))
        slate.append(arm)
        left.remove(arm)
        queue = [j for j in queue if j != arm] if arm in queue else _without_one(actions, slate, queue, len(free))
    return slate[len(before) :], chances


def draw_place(key: Any, slot: int, share: float, n: int) -> int | None:
    """One of ``n`` places for a slot, each alike, with probability ``share``; otherwise None."""
    coin, place = uniform(key, slot, np.zeros(1, int), 2)[0, 0]
    return min(n - 1, int(place * n)) if coin < share else None


def _joinable_arms(actions: Actions, slate: list[int], free: Bools) -> list[int]:
    """The free arms that may join a slate."""
    eligible = free.copy()
    eligible[slate] = True
    mask = joinable_after(actions, np.array([slate], np.int64), eligible[None])[0] & free
    return [int(j) for j in np.flatnonzero(mask)]


def _without_one(actions: Actions, slate: list[int], queue: list[int], n_arms: int) -> list[int]:
    """``queue`` without its last arm whose absence lets all others join the slate."""
    everyone = np.ones((1, n_arms), bool)
    for gone in range(len(queue) - 1, -1, -1):
        rest = queue[:gone] + queue[gone + 1 :]
        state, fits = actions.start(everyone), True
        for arm in (*slate, *rest):
            fits = fits and bool(actions.joinable(state, everyone)[0, arm])
            state = actions.join(state, np.array([arm]))
        if fits:
            return rest
    raise AssertionError("a matroid has an arm to exchange")


def assign_slots(names: list[str], slots: Bools | None, action: tuple[int, ...]) -> tuple[str, ...]:
    """The slot of each arm: in their order, or by a matching if slots exclude arms."""
    if slots is None:
        return tuple(names[: len(action)])
    return tuple(names[n] for n in Slots(slots).assignment(action))


class Group(NamedTuple):
    """Where a decision belongs, and the slate that it shows; None for the policy's."""

    name: str = ""
    slate: Slate | None = None
    fallback: bool = False


def digest_unit(learner: ProblemState, unit: str | None) -> str:
    """What is stored of a unit: enough to tell units apart, not who they are."""
    return "" if unit is None else hashlib.sha256(f"{learner.created.key}/unit/{unit}".encode()).hexdigest()[:16]


def is_control(learner: ProblemState, id: str, unit: str | None) -> bool:
    """Whether a decision is in the control share."""
    key = f"decision/{id}" if unit is None else f"unit/{unit}"
    return learner.word("control", key) * 2.0**-64 < learner.settings.control


def guard_of(learner: ProblemState) -> Guard | None:
    """What the guardrail says of the next decision; None without one."""
    settings = learner.settings
    if settings.guardrail is None or settings.mode != "online":
        return None
    learner.flush()
    return check_guard(learner.history.lift, settings.guardrail, RESUMED_DECISIONS if learner.guarded else 1)


def plan_guard(learner: ProblemState, now: int) -> Guarded | None:
    """The event that the guardrail changed over, if it has."""
    guard = guard_of(learner)
    if guard is None or guard.holds != learner.guarded:
        return None
    return Guarded(now, not guard.holds, learner.t, guard.earned, guard.needed)


def plans_due(learner: ProblemState, asked: list[Asked]) -> Iterator[Callable[[int], Any]]:
    """What makes the events that new decisions make due: another frame of features, a refit, a guardrail's change."""
    if learner.contexts is not None:
        yield learner.contexts.plan_frame
    if learner.learner.memory.due <= learner.learner.asked:
        yield lambda now: learner.plan_fit(now, asked)
    if any(one.group and one.fallback != learner.guarded for one in asked):
        yield lambda now: plan_guard(learner, now)


def assign_group(
    learner: ProblemState,
    id: str,
    unit: str | None,
    chosen: Slate,
    request: SlateRequest,
    baseline: tuple[int, ...] | None,
) -> Group:
    """The group of a decision for which the policy has ``chosen`` a slate; no group if there is no control share.

    A request that does not allow the fixed control slate is answered by the policy and belongs to no group.
    """
    settings = learner.settings
    if settings.control == 0.0 or settings.mode != "online":
        return Group()
    name = "control" if is_control(learner, id, unit) else "policy"
    fixed = settings.control_slate
    if fixed == "baseline" and baseline is None:
        fixed = list(settings.policy.baseline or ())[: request.allowed.k or learner.problem.k]
    if isinstance(fixed, list) and (baseline := _fixed(learner, fixed, request)) is None:
        return Group()
    guard = guard_of(learner)
    fallback = guard is not None and not guard.holds
    if name == "policy" and not fallback:
        return Group(name)
    if fixed == "uniform":
        return Group(name, _uniform_slate(learner, id, chosen, request), fallback)
    assert baseline is not None
    return Group(name, Slate(baseline, (1.0,) * len(baseline) if isinstance(fixed, list) else None), fallback)


def shows_ranking(learner: ProblemState) -> bool:
    """Whether the first arms of the ranking that the policy starts from are a slate."""
    ranking, problem = learner.settings.policy.baseline or [], learner.problem
    return bool(ranking) and problem.actions.includes(learner.arms.numbers(ranking[: problem.k]), problem.n_arms)


def fixed_slate(learner: ProblemState, names: list[str], free: Bools) -> tuple[int, ...]:
    """The ``free`` arms of the fixed control slate; the next ones of the list that the policy starts from stand in.

    It is shorter than ``names`` if that list has too few.
    """
    wanted = dict.fromkeys([*names, *(learner.settings.policy.baseline or ())])
    return tuple([j for j in learner.arms.numbers(wanted).tolist() if free[j]][: len(names)])


def _fixed(learner: ProblemState, names: list[str], request: SlateRequest) -> tuple[int, ...] | None:
    """The fixed slate, if the request allows it."""
    slate = fixed_slate(learner, names, playable_arms(learner, request))
    size = len(request.slots) if request.slots is not None else request.allowed.k or learner.problem.k
    allowed = learner.problem.actions if request.slots is None else Slots(request.slots)
    fits = len(slate) == len(names) <= size and set(request.pinned) <= set(slate)
    return slate if fits and allowed.includes(np.array(slate, np.int64), learner.problem.n_arms) else None


def _uniform_slate(learner: ProblemState, id: str, chosen: Slate, request: SlateRequest) -> Slate:
    """A slate of the size of ``chosen`` around the pinned arms, every other slot drawn at random."""
    free, pinned = playable_arms(learner, request), list(request.pinned)
    free[pinned] = False
    base = learner.problem.actions if request.slots is None else Slots(request.slots)
    rest = [j for j in chosen.action if j not in pinned]
    arms, chances = explore(base, pinned, rest, free, 1.0, learner.key("uniform", id))
    certain = (1.0,) * len(pinned)
    share = len(rest) / int(free.sum()) if rest else 0.0
    inclusion = (*certain, *(share,) * len(rest)) if isinstance(base, Subsets) else None
    return Slate((*pinned, *arms), (*certain, *chances), inclusion)
