"""Control: a share of decisions, drawn at random, that show the control slate in place of the policy's.

Whether a decision is one of them depends on its unit, or on its id if it has none: decisions of one unit are all of the
policy or all of the control, and a larger share keeps those that it had.
"""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from superarm.actions import Slots, Subsets
from superarm.service.domain.lift import RESUMED_DECISIONS, Guard, check_guard
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import ANY_SLATE, Slate, SlateRequest, explore, playable_arms


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
    learner.history.flush(learner.problem)
    return check_guard(learner.history.lift, settings.guardrail, RESUMED_DECISIONS if learner.guarded else 1)


def shows_control(learner: ProblemState, decisions: Iterable[tuple[str, str | None]]) -> list[bool]:
    """Which of some decisions, given by id and unit, may show the control slate in place of the policy's."""
    if learner.settings.control == 0.0 or learner.settings.mode != "online":
        return [False for _ in decisions]
    guard = guard_of(learner)
    fallback = guard is not None and not guard.holds
    return [fallback or is_control(learner, id, unit) for id, unit in decisions]


def assign_group(
    learner: ProblemState,
    id: str,
    unit: str | None,
    chosen: Slate,
    request: SlateRequest | None,
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
    if isinstance(fixed, list):
        baseline = _fixed(learner, fixed, request)
        if baseline is None:
            return Group()
    guard = guard_of(learner)
    fallback = guard is not None and not guard.holds
    if name == "policy" and not fallback:
        return Group(name)
    if fixed == "uniform":
        return Group(name, _uniform(learner, id, chosen, request or ANY_SLATE), fallback)
    assert baseline is not None
    return Group(name, Slate(baseline, (1.0,) * len(baseline) if isinstance(fixed, list) else None), fallback)


_fixed_slates: WeakKeyDictionary[ProblemState, tuple[list[str], tuple[int, ...]]] = WeakKeyDictionary()


def _fixed(learner: ProblemState, names: list[str], request: SlateRequest | None) -> tuple[int, ...] | None:
    """The fixed slate, if the request allows it."""
    known = _fixed_slates.get(learner)
    if known is None or known[0] is not names:
        known = names, tuple(learner.arms.numbers(names).tolist())
        _fixed_slates[learner] = known
    slate = known[1]
    if request is None:
        retired = learner.retired
        return None if any(retired[j] for j in slate) else slate
    size = len(request.slots) if request.slots is not None else request.k or learner.k
    playable = bool(playable_arms(learner, request)[[*slate]].all())
    fits = playable and set(request.pinned) <= set(slate) and len(slate) <= size
    if request.slots is not None and fits:
        fits = Slots(request.slots).includes(np.array(slate, np.int64))
    return slate if fits else None


def _uniform(learner: ProblemState, id: str, chosen: Slate, request: SlateRequest) -> Slate:
    """A slate of the size of ``chosen`` around the pinned arms, every other slot drawn at random."""
    free, pinned = playable_arms(learner, request), list(request.pinned)
    free[pinned] = False
    base = learner.problem.actions if request.slots is None else Slots(request.slots)
    rest = [j for j in chosen.action if j not in pinned]
    arms, chances = explore(base, pinned, rest, free, 1.0, learner.stream("uniform", id))
    certain = (1.0,) * len(pinned)
    share = len(rest) / int(free.sum()) if rest else 0.0
    inclusion = (*certain, *(share,) * len(rest)) if isinstance(base, Subsets) else None
    return Slate((*pinned, *arms), (*certain, *chances), inclusion)
