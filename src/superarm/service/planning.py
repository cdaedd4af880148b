"""The event of a decision: what the caller wants, by numbers, and the slate that the policy gives."""

import numpy as np

from superarm.errors import InvalidArgument
from superarm.learner.names import Names
from superarm.service.clock import now_ms
from superarm.service.events import Asked
from superarm.service.learner import Learner
from superarm.service.refusal import invalid
from superarm.service.slate import Slate, Wish, chosen, seated
from superarm.service.wire import AskBody


def planned(learner: Learner, name: str, id: str, body: AskBody, digest: str, slate: Slate | None = None) -> Asked:
    """The event of a decision: the slate of the policy (``slate``, if it is known), or the baseline's."""
    settings = learner.settings
    slate = chosen(learner, id, _wish(learner, body)) if slate is None else slate
    baseline = _baseline(learner, body)
    action = slate.action if baseline is None else baseline
    slots = [(slot.id, slot.excluded) for slot in body.slots or ()]
    if baseline is not None and slots and len(baseline) != len(slots):
        raise invalid("baseline", f"{len(baseline)} arms for {len(slots)} slots", "give an arm a slot, in their order")
    return Asked(
        at=now_ms(),
        problem=name,
        id=id,
        body=digest,
        t=learner.t,
        action=action,
        n_items=learner.problem.n_items,
        version=len(learner.versions),
        window_ms=None if settings.window_s is None else int(settings.window_s * 1000),
        deferred=body.deferred,
        learns=settings.mode != "logging_only",
        propensities=slate.propensities if baseline is None else None,
        policy_action=None if baseline is None else slate.action,
        slots=_seats(learner, action, slots, baseline is not None),
    )


def _seats(
    learner: Learner, action: tuple[int, ...], slots: list[tuple[str, list[str]]], as_given: bool
) -> tuple[str, ...]:
    """The slot of each arm: a baseline is given slot by slot, the policy's picks are seated where they may stand."""
    if as_given or not slots:
        return tuple(name for name, _ in slots)
    return seated([learner.arms.all[j] for j in action], slots)


def _wish(learner: Learner, body: AskBody) -> Wish:
    size = body.k
    if body.slots is not None:
        size = len(body.slots)
        if body.k not in (None, size) or len({slot.id for slot in body.slots}) < size:
            raise invalid("slots", "a name stands twice, or k differs", "give each slot once, and no k")
    if body.eligible is None and not body.excluded and not body.pinned:
        return Wish(None, [], [], size)
    eligible = None if body.eligible is None else numbers(learner.arms, body.eligible, "eligible")
    pinned = numbers(learner.arms, body.pinned, "pinned")
    excluded = numbers(learner.arms, body.excluded, "excluded")
    for arm in pinned:
        if learner.retired[arm] or arm in excluded:
            raise invalid("pinned", f"{learner.arms.all[arm]!r} is retired or excluded", "pin arms that may be shown")
    return Wish(eligible, excluded, pinned, size)


def _baseline(learner: Learner, body: AskBody) -> tuple[int, ...] | None:
    if learner.settings.mode == "online":
        return None
    if body.baseline is None:
        raise invalid("baseline", "missing", f"mode {learner.settings.mode} answers with it; give the slate you show")
    slate = tuple(numbers(learner.arms, body.baseline, "baseline"))
    if not learner.problem.actions.includes(np.array(slate, np.int64)):
        raise invalid("baseline", "outside the action set", f"give a slate of {learner.problem.actions}")
    return slate


def numbers(names: Names, wanted: list[str], field: str) -> list[int]:
    """The numbers of names, or 422 that names the field."""
    try:
        return [int(j) for j in names.numbers(wanted)]
    except InvalidArgument as error:
        raise invalid(field, error.wrong, error.remedy) from None
