"""A request for a decision: looked up by its id or planned, written, and applied."""

import hashlib
import math
import secrets

import msgspec
from msgspec import UNSET

from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.events import Asked
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.spec import check_new_names
from superarm.service.errors import RequestError, conflict, unknown
from superarm.service.runtime.coordinator import Coordinator, now_ms
from superarm.service.runtime.planning import plan_decision
from superarm.service.schemas import AskBody

ID_BYTES = 15
"""Ids have 120 random bits, as 20 characters."""


async def ask(coordinator: Coordinator, tenant: str, name: str, body: AskBody) -> tuple[DecisionRecord, bool]:
    """The decision, and whether it is new. The same id with the same body gives the stored one."""
    state = await coordinator.find(tenant, name)
    known = None if body.id is None else coordinator.ledger.record((tenant, body.id))
    id, digest = body.id or secrets.token_urlsafe(ID_BYTES), digest_request(body)
    if known is None:
        if body.id is not None:
            check_new_names([id], "id")
        _check_rate(coordinator, tenant, name, state)

        def plan(state: ProblemState | None, record: DecisionRecord | None) -> Asked | None:
            if state is None:
                raise unknown("problem", name)
            if record is not None:
                return None  # another request with this id came first
            _check_pending(coordinator, tenant, name, state)
            return plan_decision(state, name, id, body, digest, now_ms())

        done = await coordinator.submit((tenant, name), id, plan, _names_in(body), new=True)
        if done.event is not None and done.record is not None:
            return done.record, True
        known = done.record or await coordinator.find_record((tenant, id))
    if not coordinator.ledger.serves(tenant, known):
        raise conflict(f"decision {body.id!r} was erased, or its problem was deleted; choose another id")
    if known.asked.body != digest or known.asked.problem != name:
        raise conflict(f"decision {body.id!r} was made for another request; choose another id")
    return known, False


def _names_in(body: AskBody) -> int:
    """How many arms a request names."""
    named = len(body.eligible or ()) + len(body.excluded)
    return named + sum(len(slot.excluded) for slot in body.slots or ())


def _check_pending(coordinator: Coordinator, tenant: str, name: str, state: ProblemState) -> None:
    """Refuse with 429 a decision above the number that may await feedback."""
    limit = state.settings.max_pending
    if coordinator.ledger.n_pending.get((tenant, name), 0) + len(state.planned) >= limit:
        said = f"problem {name!r} has {limit} decisions without feedback, its max_pending"
        raise RequestError(429, "too_many_pending", said, 5)


def _check_rate(coordinator: Coordinator, tenant: str, name: str, state: ProblemState) -> None:
    """Refuse with 429 a decision above the rate of its problem."""
    rate = state.settings.max_per_second
    if rate is not UNSET and not coordinator.rates.take(f"{tenant}/{name}", rate):
        said = f"problem {name!r} makes at most {rate:g} decisions per second, its max_per_second"
        raise RequestError(429, "too_many_requests", said, math.ceil(1.0 / rate))


def digest_request(body: msgspec.Struct) -> str:
    """A digest of all fields of a request: equal digests mean the same request."""
    return hashlib.sha256(msgspec.json.encode(body)).hexdigest()[:32]
