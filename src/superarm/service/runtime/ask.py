"""A request for a decision: looked up by its id or planned (what the caller wants, by numbers, and the slate)."""

import hashlib
import math
import secrets
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from superarm.actions import Slots
from superarm.context import EncodedContext
from superarm.core.arrays import Bools
from superarm.core.errors import InvalidArgument
from superarm.core.support import Sparse
from superarm.decisions.names import Names
from superarm.service.domain import slate as slates
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.events import Asked, Restriction
from superarm.service.domain.ledger import decision_key
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import Slate, SlateRequest
from superarm.service.domain.spec import check_new_names
from superarm.service.errors import RequestError, conflict, invalid
from superarm.service.runtime.coordinator import Coordinator, now_ms
from superarm.service.schemas import AskBody

ID_BYTES = 15
"""Ids have 120 random bits, as 20 characters."""


async def ask(coordinator: Coordinator, tenant: str, name: str, body: AskBody) -> tuple[DecisionRecord, bool]:
    """The decision, and whether it is new. The same id with the same body gives the stored one."""
    state = await coordinator.find(tenant, name)
    known = None if body.id is None else coordinator.ledger.record(decision_key(tenant, name, body.id))
    id, digest = body.id or secrets.token_urlsafe(ID_BYTES), digest_request(body)
    if known is None:
        if body.id is not None:
            check_new_names([id], "id")
        _check_rate(coordinator, tenant, name, state)

        def plan(state: ProblemState, record: DecisionRecord | None) -> Asked | None:
            if record is not None:
                return None  # another request with this id came first
            _check_pending(coordinator, tenant, name, state)
            return plan_decision(state, name, id, body, digest, now_ms())

        done = await coordinator.submit((tenant, name), id, plan, _names_in(body), new=True)
        if done.event is not None and done.record is not None:
            return done.record, True
        known = done.record or await coordinator.find_record(tenant, name, id)
        await coordinator.find(tenant, name)  # it may have moved meanwhile
    if not coordinator.ledger.serves(tenant, known):
        raise conflict(f"decision {body.id!r} was erased, or its problem was deleted; choose another id")
    if known.asked.body != digest:
        raise conflict(f"decision {body.id!r} was made for another request; choose another id")
    return known, False


def _names_in(body: AskBody) -> int:
    """How many arms a request names."""
    return (len(body.eligible or ()) + len(body.excluded)) + sum(len(slot.excluded) for slot in body.slots or ())


def _check_pending(coordinator: Coordinator, tenant: str, name: str, state: ProblemState) -> None:
    """Refuse with 429 a decision above the number that may await feedback."""
    limit = state.settings.max_pending
    if coordinator.ledger.n_pending.get((tenant, name), 0) + len(state.planned) >= limit:
        said = f"problem {name!r} has {limit} decisions without feedback, its max_pending"
        raise RequestError(429, "too_many_pending", said, 5)


def _check_rate(coordinator: Coordinator, tenant: str, name: str, state: ProblemState) -> None:
    """Refuse with 429 a decision above the rate of its problem."""
    rate = state.settings.max_per_second
    if rate is not UNSET and (wait := coordinator.rates.take(f"{tenant}/{name}", rate)):
        said = f"problem {name!r} makes at most {rate:g} decisions per second, its max_per_second"
        raise RequestError(429, "too_many_requests", said, math.ceil(wait))


def digest_request(body: msgspec.Struct) -> str:
    """A digest of all fields of a request: equal digests mean the same request."""
    return hashlib.sha256(msgspec.json.encode(body)).hexdigest()[:32]


def plan_decision(learner: ProblemState, name: str, id: str, body: AskBody, digest: str, now: int) -> Asked:
    """The event of a decision: the slate of the policy, or the baseline's.

    ``now`` is the time in wall-clock milliseconds, for people who read the log.
    """
    settings = learner.settings
    names = learner.slot_names if body.slots is None else [slot.id for slot in body.slots]
    allowed = restrict(learner, body)
    request, unit = slates.to_request(allowed, learner.problem.n_arms, names), slates.digest_unit(learner, body.unit)
    request = request._replace(context=encode_context(learner, body), unit=unit)
    slate = slates.choose_slate(learner, id, request)
    baseline = _baseline(learner, body)
    group = slates.assign_group(learner, id, body.unit, slate, request, baseline)
    shown = group.slate or (slate if learner.settings.mode == "online" else Slate(baseline or (), None))
    table = find_slots(learner, request, is_baseline=shown.action == baseline)
    stored = None
    if learner.contexts is not None and request.context is not None:
        stored = learner.contexts.store(shown.action, request.context, body.context)
    return Asked(
        at=now,
        problem=name,
        id=id,
        body=digest,
        t=learner.t,
        action=shown.action,
        n_items=learner.problem.n_items,
        version=len(learner.versions),
        window_ms=None if settings.window_s is None else int(settings.window_s * 1000),
        deferred=body.deferred,
        learns=settings.mode != "logging_only",
        propensities=shown.propensities,
        policy_action=None if shown is slate else slate.action,
        slots=slates.assign_slots(names, table, shown.action),
        widths=learner.widths(shown.action),
        items=find_items(learner, body),
        allowed=allowed,
        seen=dict(learner.seen),
        inclusion=shown.inclusion,
        draws=shown.draws if shown.inclusion is not None else 0,
        group=group.name,
        unit=unit,
        fallback=group.fallback,
        context=stored,
        born=learner.born,
        silence=settings.silence,
        joint=learner.problem.reward.totals,
    )


def find_slots(learner: ProblemState, request: SlateRequest, *, is_baseline: bool) -> Bools | None:
    """Which arms each slot may hold; None if the arms of the slate are in the order of the slots."""
    if isinstance(learner.problem.actions, Slots):
        return learner.problem.actions.allowed
    return None if is_baseline else request.slots


def encode_context(learner: ProblemState, body: AskBody) -> EncodedContext | None:
    """The context of a request as the policy takes it; None if the problem has none."""
    if learner.contexts is None and (body.context is not None or body.pairs is not None):
        field, wrong = "context" if body.pairs is None else "pairs", "the problem was created without one"
        raise invalid(field, wrong, "leave it out, or create a problem with context")
    return None if learner.contexts is None else learner.contexts.encode(body.context, body.pairs)


def find_items(learner: ProblemState, body: AskBody) -> tuple[int, ...] | None:
    """The items that a decision is about, as the request or its context says; None for all."""
    if body.items is None:
        return _items_of_context(learner, body.context)
    whole = learner.triggered or learner.learnt is not None or learner.problem.thresholds is not None
    if isinstance(learner.problem.support, Sparse) or whole:
        wrong = "the problem has a support, triggered arms, scores, or items that it learns"
        raise invalid("items", wrong, "leave it out: report what was not observed with seen: false")
    return tuple(sorted(set(arm_numbers(learner.items, body.items, "items"))))


def _items_of_context(learner: ProblemState, given: Any) -> tuple[int, ...] | None:
    """The item that the context of a decision names, where the problem has a feature for that; None for all."""
    spec = learner.created.spec.context
    if spec is None or spec.items_from is None or not isinstance(given, dict):
        return None
    item = learner.items.number(str(given.get(spec.items_from)))
    return None if item is None else (item,)


def restrict(learner: ProblemState, body: AskBody) -> Restriction:
    """What a request allows, by numbers."""
    size, slots, pins = body.k, None, list(body.pinned)
    if body.slots is not None:
        own = [slot.pinned for slot in body.slots if slot.pinned is not None]
        pins += [arm for arm in own if arm not in pins]
        size, names = len(body.slots), [slot.id for slot in body.slots]
        if body.k not in (None, size) or len(set(names)) < size:
            raise invalid("slots", "a name appears twice, or k differs", "give each slot once, and no k")
        number = learner.arms.number
        barred = [[*slot.excluded, *(arm for arm in own if arm != slot.pinned)] for slot in body.slots]
        excluded = [tuple(j for arm in arms if (j := number(arm)) is not None) for arms in barred]
        slots = tuple(excluded) if any(excluded) else None
    paused = [] if learner.settings.paused_until is UNSET else _paused(learner.settings.paused_until)
    left_out = arm_numbers(learner.arms, list(dict.fromkeys([*body.excluded, *paused])), "excluded")
    pinned = tuple(arm_numbers(learner.arms, pins, "pinned"))
    if body.eligible is None:
        return Restriction(None, tuple(left_out), pinned, size, slots, body.budget)
    mask = np.zeros(learner.problem.n_arms, bool)
    mask[arm_numbers(learner.arms, body.eligible, "eligible")] = True
    mask[left_out] = False
    few = 2 * mask.sum() <= len(mask)
    kept = tuple(np.flatnonzero(mask if few else ~mask).tolist())
    return Restriction(kept if few else None, () if few else kept, pinned, size, slots, body.budget)


def _paused(until: dict[str, datetime]) -> list[str]:
    """The arms whose pause is not over."""
    now = datetime.now(UTC)
    return [arm for arm, end in until.items() if end > now]


def _baseline(learner: ProblemState, body: AskBody) -> tuple[int, ...] | None:
    """The caller's slate where it may be shown: by the mode, or as the control slate; else None.

    In the control share the first arms of the ranking that the policy starts from take its place.
    """
    settings = learner.settings
    controlled = settings.control > 0.0 and settings.control_slate == "baseline"
    if settings.mode == "online" and not controlled:
        return None
    if body.baseline is None and settings.mode == "online" and slates.shows_ranking(learner):
        return None
    if body.baseline is None:
        who = "the control share" if settings.mode == "online" else f"mode {settings.mode}"
        raise invalid("baseline", "missing", f"{who} answers with it; give the slate you show")
    slate = tuple(arm_numbers(learner.arms, body.baseline, "baseline"))
    if not learner.problem.actions.includes(np.array(slate, np.int64), learner.problem.n_arms):
        raise invalid("baseline", "outside the action set", f"give a slate of {learner.problem.actions}")
    if body.slots and len(slate) != len(body.slots):
        wrong = f"{len(slate)} arms for {len(body.slots)} slots"
        raise invalid("baseline", wrong, "give one arm per slot, in the order of the slots")
    return slate


def arm_numbers(names: Names, wanted: list[str], field: str) -> list[int]:
    """The numbers of names, or 422 that names the field."""
    try:
        return [int(j) for j in names.numbers(wanted)]
    except InvalidArgument as error:
        raise invalid(field, error.wrong, error.remedy) from None
