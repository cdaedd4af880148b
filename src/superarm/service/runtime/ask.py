"""A request for a decision: looked up by its id or queued, chosen by the batcher, and written."""

import asyncio
import hashlib
import math
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET

from superarm.actions import Actions, Pinned
from superarm.service.domain.compilation import compile_actions
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.events import Framed, Refitted
from superarm.service.domain.ledger import Key
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import actions_of
from superarm.service.domain.spec import check_new_names
from superarm.service.errors import RequestError, conflict
from superarm.service.random_ids import RandomIds, encode_for_url
from superarm.service.runtime.batcher import QueuedAsk
from superarm.service.runtime.clock import now_ms
from superarm.service.runtime.coordinator import Coordinator, StepTaken
from superarm.service.runtime.guarding import note_guard
from superarm.service.runtime.heavy import is_heavy_ask
from superarm.service.runtime.planning import slate_request
from superarm.service.schemas import PLAIN_ASK, AskBody


async def ask(coordinator: Coordinator, tenant: str, name: str, body: AskBody) -> tuple[DecisionRecord, bool]:
    """The decision, and whether it is new. The same id with the same body gives the stored one."""
    if body == PLAIN_ASK:
        return await _decide(coordinator, tenant, name, new_id(), PLAIN_ASK, _PLAIN_DIGEST), True
    digest = digest_request(body)
    if body.id is None:
        return await _decide(coordinator, tenant, name, new_id(), body, digest), True
    key = (tenant, body.id)
    async with coordinator.lock("decision", key):
        known = coordinator.ledger.record(key)
        if known is None:
            check_new_names([body.id], "id")
            try:
                return await _decide(coordinator, tenant, name, body.id, body, digest), True
            except StepTaken:
                known = await coordinator.find_record(key)
    if not coordinator.ledger.serves(tenant, known):
        raise conflict(f"decision {body.id!r} was erased, or its problem was deleted; choose another id")
    if known.asked.body != digest or known.asked.problem != name:
        raise conflict(f"decision {body.id!r} was made for another request; choose another id")
    return known, False


async def _decide(
    coordinator: Coordinator, tenant: str, name: str, id: str, body: AskBody, digest: str
) -> DecisionRecord:
    learner = coordinator.free_learner(tenant, name) or await coordinator.learner(tenant, name)
    rate = learner.settings.max_per_second
    if rate is not UNSET:
        _check_rate(coordinator, tenant, name, rate)
    if body.pinned or body.slots or body.k is not None:
        await _compile_ahead(coordinator, (tenant, name), learner, body)
    ask = QueuedAsk(tenant, name, id, body, digest, learner, asyncio.get_running_loop().create_future())
    coordinator.batcher.add(ask)
    if not await ask.done:
        raise StepTaken
    if learner.contexts is not None and learner.contexts.due() is not None:
        await _begin_frame(coordinator, tenant, name)
    if learner.contexts is not None and learner.contexts.refit_due:
        await _refit(coordinator, tenant, name)
    record = coordinator.ledger.record((tenant, id))
    record = record if record is not None else await coordinator.record((tenant, id))
    if record.asked.group and record.asked.fallback != learner.guarded:
        await note_guard(coordinator, tenant, name)
    return record


def _check_rate(coordinator: Coordinator, tenant: str, name: str, rate: float) -> None:
    """Refuse with 429 a decision above the rate of its problem."""
    if not coordinator.rates.take(f"{tenant}/{name}", rate):
        said = f"problem {name!r} makes at most {rate:g} decisions per second, its max_per_second"
        raise RequestError(429, "too_many_requests", said, math.ceil(1.0 / rate))


async def _begin_frame(coordinator: Coordinator, tenant: str, name: str) -> None:
    """Begin the next frame of standardised features, if it is due: an event of the problem, so that workers agree."""

    def plan(learner: ProblemState) -> Framed | None:
        frame = None if learner.contexts is None else learner.contexts.due()
        return None if frame is None else Framed(now_ms(), frame.version, dict(frame.places))

    await coordinator.change(tenant, name, plan)


async def _refit(coordinator: Coordinator, tenant: str, name: str) -> None:
    """Refit a logistic model in a thread, if it is due: an event of the problem, as a frame is."""

    def plan(learner: ProblemState) -> Refitted | None:
        return None if learner.contexts is None else learner.contexts.plan_refit(now_ms())

    await coordinator.change(tenant, name, plan, heavy=True)


_compiled: WeakKeyDictionary[ProblemState, dict[Any, asyncio.Task[None]]] = WeakKeyDictionary()


async def _compile_ahead(coordinator: Coordinator, problem: Key, learner: ProblemState, body: AskBody) -> None:
    """Compile the kernels for the action set of a request in a thread: other requests are answered meanwhile."""

    def find_actions() -> Actions | None:
        return actions_of(learner, slate_request(learner, body))

    actions = await coordinator.in_thread(problem, find_actions) if is_heavy_ask(body) else find_actions()
    if actions is None:
        return
    inner = type(actions.actions) if isinstance(actions, Pinned) else None
    kind = (type(learner.policy), learner.settings.policy.name, type(actions), inner)
    known = _compiled.setdefault(learner, {})
    if kind not in known:
        compiling = asyncio.to_thread(compile_actions, learner.problem, learner.learner.policy, actions)
        known[kind] = asyncio.create_task(compiling)
    await asyncio.shield(known[kind])


_ids = RandomIds(15, encode_for_url)


def new_id() -> str:
    """120 random bits from the operating system, as 20 characters."""
    return _ids.take()


_PLAIN_DIGEST = hashlib.sha256(msgspec.json.encode(PLAIN_ASK)).hexdigest()[:32]


def digest_request(body: msgspec.Struct) -> str:
    """A digest of all fields of a request: equal digests mean the same request."""
    return hashlib.sha256(msgspec.json.encode(body)).hexdigest()[:32]
