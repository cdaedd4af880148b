"""Control: a share of decisions, drawn at random, that show the control slate in place of the policy's.

Whether a decision is one of them depends on its unit, or on its id if it has none: decisions of one unit are all of the
policy or all of the control, and a larger share keeps those that it had.
"""

import hashlib
from typing import NamedTuple

import numpy as np

from superarm.actions import Slots, Subsets
from superarm.service.domain.lift import RESUMED_DECISIONS, Guard, check_guard
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import Slate, SlateRequest, explore, playable_arms


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
    if isinstance(fixed, list):
        baseline = _fixed(learner, fixed, request)
        if baseline is None:
            return Group()
    guard = guard_of(learner)
    fallback = guard is not None and not guard.holds
    if name == "policy" and not fallback:
        return Group(name)
    if fixed == "uniform":
        return Group(name, _uniform(learner, id, chosen, request), fallback)
    assert baseline is not None
    return Group(name, Slate(baseline, (1.0,) * len(baseline) if isinstance(fixed, list) else None), fallback)


def _fixed(learner: ProblemState, names: list[str], request: SlateRequest) -> tuple[int, ...] | None:
    """The fixed slate, if the request allows it."""
    slate = tuple(learner.arms.numbers(names).tolist())
    size = len(request.slots) if request.slots is not None else request.k or learner.k
    playable = bool(playable_arms(learner, request)[[*slate]].all())
    fits = playable and set(request.pinned) <= set(slate) and len(slate) <= size
    if request.slots is not None and fits:
        fits = Slots(request.slots).includes(np.array(slate, np.int64), learner.problem.n_arms)
    return slate if fits else None


def _uniform(learner: ProblemState, id: str, chosen: Slate, request: SlateRequest) -> Slate:
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
