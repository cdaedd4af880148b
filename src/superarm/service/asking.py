"""Asking for a decision: the body read, the slate chosen, the event written."""

import base64
import hashlib
import secrets

import msgspec
import numpy as np

from superarm.errors import InvalidArgument
from superarm.names import Names
from superarm.service.desk import Desk, Lost, now_ms
from superarm.service.events import Asked
from superarm.service.learner import Learner
from superarm.service.record import Record
from superarm.service.refusal import Refusal, conflict, invalid
from superarm.service.slate import Wish, chosen, seated
from superarm.service.wire import AskBody


async def ask(desk: Desk, tenant: str, name: str, body: AskBody) -> tuple[Record, bool]:
    """The decision, and whether it is new. The same id with the same body gives the stored one."""
    digest = _PLAIN_DIGEST if body == _PLAIN else digest_of(body)
    if body.id is None:
        return await _made(desk, tenant, name, fresh_id(), body, digest), True
    key = (tenant, body.id)
    async with desk.alone("decision", key):
        known = desk.ledger.record(key)
        if known is None:
            try:
                return await _made(desk, tenant, name, body.id, body, digest), True
            except Lost:
                known = await desk.record(key)
    if known.asked.body != digest or known.asked.problem != name:
        raise conflict(f"decision {body.id!r} was made for another request; choose another id")
    return known, False


async def _made(desk: Desk, tenant: str, name: str, id: str, body: AskBody, digest: str) -> Record:
    learner = await desk.learner(tenant, name)
    limit = learner.settings.max_pending
    if desk.ledger.waiting.get((tenant, name), 0) + learner.in_flight >= limit:
        raise Refusal(
            429, "too_many_pending", f"problem {name!r} has {limit} decisions without feedback, its max_pending", 5
        )
    asked = planned(learner, name, id, body, digest)
    learner.reserve(asked.t, asked.action)
    try:
        await desk.write(tenant, "decision", id, 0, asked)
    finally:
        learner.release(asked.action)
    record = desk.ledger.record((tenant, id))
    return record if record is not None else await desk.record((tenant, id))


def planned(learner: Learner, name: str, id: str, body: AskBody, digest: str) -> Asked:
    """The event of a decision: the slate of the policy, or of the baseline if the mode says so."""
    settings = learner.settings
    slate = chosen(learner, id, _wish(learner, body))
    baseline = _baseline(learner, body)
    action = slate.action if baseline is None else baseline
    slots = [(slot.id, slot.excluded) for slot in body.slots or ()]
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
        slots=seated([learner.arms.all[j] for j in action], slots) if slots else (),
    )


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


_chance = bytearray()


def fresh_id() -> str:
    """120 random bits of the system's, as 20 characters; fetched for many ids at once."""
    if not _chance:
        _chance.extend(secrets.token_bytes(15 * 512))
    id = base64.urlsafe_b64encode(_chance[-15:]).decode("ascii")
    del _chance[-15:]
    return id


_PLAIN = AskBody()
_PLAIN_DIGEST = hashlib.sha256(msgspec.json.encode(_PLAIN)).hexdigest()[:32]


def digest_of(body: msgspec.Struct) -> str:
    """What makes two requests the same: all fields that were given."""
    return hashlib.sha256(msgspec.json.encode(body)).hexdigest()[:32]
