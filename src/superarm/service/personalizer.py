"""Azure Personalizer's rank, reward and activate, for one slot and for several.

``contextFeatures`` of the form ``{"superarm": {"problem": …}}`` name the problem, otherwise it is "personalizer". Its
first call creates it: one with features of the context or of actions makes a problem that learns from them, one without
any a problem that does not. With ``--ignore-features`` features are ignored.

Features become words with weights: every leaf of the JSON is a word. Its name is the path to it, joined by dots; a text
or a truth value is part of the word, ``device.mobile=true``, with the weight 1, and a number v has the word of its path
and the weight v / (1 + abs(v)). Elements of a list are leaves of the same path, null is left out. The words of the
context are hashed into one feature, those of an action, with its id, into another; a linear model that all actions
share has all products of the two.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta, Struct, field
from starlette.routing import Route

from superarm.actions import Slots
from superarm.service.domain.components import Name
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.spec import (
    MAX_WORDS,
    ContextSpec,
    FeaturesSpec,
    GivenFeatures,
    LinearSpec,
    PolicySpec,
    ProblemName,
    ProblemSpec,
    RegressionParameters,
    RewardSpec,
    Settings,
)
from superarm.service.errors import RequestError, invalid
from superarm.service.http.auth import Principal, permit
from superarm.service.http.endpoint import (
    Reply,
    authenticate,
    client_of,
    decode_body,
    path_of,
    reply_or_error,
    require_json,
    send_reply,
)
from superarm.service.http.service import Service
from superarm.service.runtime import admin, feedback
from superarm.service.runtime.ask import ask
from superarm.service.runtime.coordinator import Coordinator
from superarm.service.schemas import ActivateBody, ArmsBody, AskBody, SlotBody, TellBody, UnitBody


class Caller(NamedTuple):
    """The principal and the limits of a call; ``ignore``: whether features are ignored instead of refused."""

    coordinator: Coordinator
    who: Principal
    max_problems: int
    ignore: bool


MAX_ACTIONS = 50
MAX_SLOTS = 20
DEFAULT_SETTINGS = Settings(window_s=600.0, at_window_end=0.0)
"""Personalizer's default: a reward that does not come within ten minutes counts as zero."""

Features = list[dict[str, Any]]


class Action(Struct, frozen=True):
    """An action that may be ranked."""

    id: Name
    features: Features = field(default_factory=list)


class Slot(Struct, frozen=True, rename="camel"):
    """A slot to fill."""

    id: Name
    baseline_action: str
    features: Features = field(default_factory=list)
    excluded_actions: list[str] = field(default_factory=list)


class RankRequest(Struct, frozen=True, rename="camel"):
    """A rank call of one slot."""

    actions: Annotated[list[Action], Meta(min_length=1, max_length=MAX_ACTIONS)]
    context_features: Features = field(default_factory=list)
    excluded_actions: list[str] = field(default_factory=list)
    event_id: Name | None = None
    defer_activation: bool = False


class MultiSlotRankRequest(Struct, frozen=True, rename="camel"):
    """A rank call of many slots."""

    actions: Annotated[list[Action], Meta(min_length=1, max_length=MAX_ACTIONS)]
    slots: Annotated[list[Slot], Meta(min_length=1, max_length=MAX_SLOTS)]
    context_features: Features = field(default_factory=list)
    event_id: Name | None = None
    defer_activation: bool = False


class RewardRequest(Struct, frozen=True):
    """The reward of an event."""

    value: Annotated[float, Meta(ge=0.0, le=1.0)]


class SlotReward(Struct, frozen=True, rename="camel"):
    """The reward of one slot."""

    slot_id: Name
    value: Annotated[float, Meta(ge=0.0, le=1.0)]


class MultiSlotRewardRequest(Struct, frozen=True):
    """The rewards of slots."""

    reward: Annotated[list[SlotReward], Meta(min_length=1, max_length=MAX_SLOTS)]


def problem_name(features: Features) -> str:
    """The problem that the context names."""
    name = "personalizer"
    for group in features:
        value = group.get(ROUTE)
        if isinstance(value, dict) and isinstance(value.get("problem"), str):
            name = value["problem"]
    return msgspec.convert(name, ProblemName)


async def _prepare(caller: Caller, body: RankRequest | MultiSlotRankRequest) -> tuple[str, dict[str, Any] | None]:
    """The problem of a call, which has all its actions after this, and its context, None if it learns from none."""
    ids = [action.id for action in body.actions]
    if len(set(ids)) < len(ids):
        raise invalid("actions", "an id appears twice", "give distinct ids")
    name = problem_name(body.context_features)
    words = {} if caller.ignore else flatten(body.context_features, "contextFeatures")
    featured = bool(words) or (not caller.ignore and any(action.features for action in body.actions))
    learner = await _problem(caller, name, featured)
    declared = None if learner.problem.context is None else learner.problem.context
    if declared is None and featured:
        wrong = f"problem {name!r} does not learn from features: its first call had none"
        raise invalid(
            "contextFeatures", wrong, 'name another with {"superarm": {"problem": …}}, or serve with --ignore-features'
        )
    fresh = [action for action in body.actions if learner.arms.number(action.id) is None]
    if fresh:
        permit(caller.who, "admin")
        features = await asyncio.to_thread(_words_of, fresh)
        more = ArmsBody(add=[one.id for one in fresh], features=None if declared is None else features)
        await admin.change_arms(caller.coordinator, caller.who.tenant, name, more, caller.who.key)
    return name, None if declared is None else {CONTEXT: words}


def _words_of(actions: list[Action]) -> dict[str, GivenFeatures]:
    """The features of new actions, as words."""
    return {action.id: {ACTION: action_words(action.id, action.features)} for action in actions}


async def _problem(caller: Caller, name: str, featured: bool) -> ProblemState:
    """The problem of a call, created by its first one; that needs the scope ``admin``, as the native call does."""
    coordinator, tenant, by = caller.coordinator, caller.who.tenant, caller.who.key
    await coordinator.ownership.enter((tenant, name), creates=True)
    if (tenant, name) not in coordinator.ledger.problems:
        permit(caller.who, "admin")
        arms = [f"superarm-slot-{n}" for n in range(MAX_SLOTS)]
        settings = DEFAULT_SETTINGS
        if featured:
            settings = msgspec.structs.replace(settings, policy=POLICY)
        spec = ProblemSpec(arms=arms, k=MAX_SLOTS, reward=RewardSpec("linear"), settings=settings)
        if featured:
            spec = msgspec.structs.replace(spec, context=feature_context(arms))
        try:
            await admin.create(coordinator, tenant, name, spec, by, caller.max_problems)
        except RequestError as error:
            if error.status != 409:
                raise
        spare = ArmsBody(retire=arms)  # these arms only allow slates of MAX_SLOTS; they are never shown
        await admin.change_arms(coordinator, tenant, name, spare, by)
    return await coordinator.find(tenant, name)


async def _baseline(coordinator: Coordinator, tenant: str, name: str, actions: list[str]) -> list[str] | None:
    """The caller's own choice, where the mode answers with it."""
    learner = await coordinator.find(tenant, name)
    return None if learner.settings.mode == "online" else actions


async def rank(caller: Caller, body: RankRequest) -> dict[str, Any]:
    """The action to take: ``rewardActionId``; the others follow in the order given."""
    coordinator, tenant = caller.coordinator, caller.who.tenant
    name, context = await _prepare(caller, body)
    ids = [action.id for action in body.actions]
    free = [id for id in ids if id not in body.excluded_actions]
    baseline = await _baseline(
        coordinator, tenant, name, ids[:1]
    )  # Personalizer's rule: the first action is the baseline
    asked = AskBody(
        id=body.event_id, eligible=free, k=1, baseline=baseline, deferred=body.defer_activation, context=context
    )
    record, _ = await ask(coordinator, tenant, name, asked)
    learner = await coordinator.find(tenant, name)
    best = learner.arms.all[record.action[0]]
    chance = record.asked.propensities[0] if record.asked.propensities else 1.0
    rest = [id for id in ids if id != best]
    others = max(len([id for id in free if id != best]), 1)
    ranking = [{"id": best, "probability": chance}]
    ranking += [{"id": id, "probability": (1.0 - chance) / others if id in free else 0.0} for id in rest]
    return {"ranking": ranking, "eventId": record.asked.id, "rewardActionId": best}


async def multi_rank(caller: Caller, body: MultiSlotRankRequest) -> dict[str, Any]:
    """One action per slot, none twice: the slate in slot order, exclusions of each slot kept."""
    coordinator, tenant = caller.coordinator, caller.who.tenant
    if any(slot.features for slot in body.slots) and not caller.ignore:
        raise invalid("slots.features", "superarm does not learn from features of slots", "leave them out")
    name, context = await _prepare(caller, body)
    if len(body.slots) > len(body.actions):
        raise invalid("slots", f"{len(body.slots)} slots for {len(body.actions)} actions", "give as many actions")
    if len({slot.id for slot in body.slots}) < len(body.slots):
        raise invalid("slots", "an id appears twice", "give distinct ids")
    slots = [SlotBody(slot.id, slot.excluded_actions) for slot in body.slots]
    ids = [action.id for action in body.actions]
    baseline = await _baseline(coordinator, tenant, name, [slot.baseline_action for slot in body.slots])
    if baseline is None:
        _every_slot_can_be_filled(slots, ids)
    asked = AskBody(
        id=body.event_id, eligible=ids, slots=slots, baseline=baseline, deferred=body.defer_activation, context=context
    )
    record, _ = await ask(coordinator, tenant, name, asked)
    learner = await coordinator.find(tenant, name)
    given = dict(zip(record.asked.slots, record.asked.action, strict=True))
    filled = [{"id": slot.id, "rewardActionId": learner.arms.all[given[slot.id]]} for slot in body.slots]
    return {"slots": filled, "eventId": record.asked.id}


def _every_slot_can_be_filled(slots: list[SlotBody], ids: list[str]) -> None:
    table = np.array([[id not in slot.excluded for id in ids] for slot in slots])
    filled = Slots(table).k if table.any(axis=1).all() else 0
    if filled < len(slots):
        raise invalid("slots.excludedActions", "some slot cannot be filled", "exclude fewer actions, or give more")


async def reward(caller: Caller, event: str, body: RewardRequest) -> None:
    """The reward of a one-slot event."""
    coordinator, tenant = caller.coordinator, caller.who.tenant
    record = await coordinator.record((tenant, event))
    learner = await coordinator.find(tenant, record.asked.problem)
    unit = UnitBody(learner.arms.all[record.action[0]], value=body.value)
    await feedback.tell(coordinator, (tenant, event), TellBody([unit]))


async def multi_reward(caller: Caller, event: str, body: MultiSlotRewardRequest) -> None:
    """The rewards of slots; what is not mentioned stays pending."""
    coordinator, tenant = caller.coordinator, caller.who.tenant
    record = await coordinator.record((tenant, event))
    learner = await coordinator.find(tenant, record.asked.problem)
    given = dict(zip(record.asked.slots, record.asked.action, strict=False))
    unknown = next((part.slot_id for part in body.reward if part.slot_id not in given), None)
    if unknown is not None:
        raise invalid("reward.slotId", f"{unknown!r} is no slot of this event", "give a slot that was ranked")
    units = [UnitBody(learner.arms.all[given[part.slot_id]], value=part.value) for part in body.reward]
    await feedback.tell(coordinator, (tenant, event), TellBody(units))


async def activate(caller: Caller, event: str) -> None:
    """The event was shown."""
    await feedback.activate(caller.coordinator, (caller.who.tenant, event), ActivateBody())


CONTEXT, ACTION = "context", "action"
"""The names of the two hashed features."""

CONTEXT_BUCKETS, ACTION_BUCKETS = 8, 20
"""With the constants, 9 x 21 = 189 coordinates: a choice takes a few milliseconds."""

MAX_DEPTH = 10

MAX_LEAVES = 10_000
"""Elements of lists are leaves of the same word: so many leaves may there be in all."""

POLICY = PolicySpec("comb_lin_ts")
"""The policy of problems with features: its draws have the scale of the posterior, whatever the number of features."""

ROUTE = "superarm"
"""The name in ``contextFeatures`` that says which problem is meant; it is no feature."""


def flatten(features: list[dict[str, Any]], field: str) -> dict[str, float]:
    """Words with weights; ``field`` is named in errors.

    >>> flatten([{"time": "morning"}, {"device": {"mobile": True, "age": 3}}], "contextFeatures")
    {'time=morning': 1.0, 'device.mobile=true': 1.0, 'device.age': 0.75}
    """
    words: dict[str, float] = {}
    n = 0
    for key, value in ((key, value) for group in features for key, value in group.items() if key != ROUTE):
        for word, weight in _leaves(key, value, field, 1):
            words[word] = words.get(word, 0.0) + weight
            n += 1
            if len(words) > MAX_WORDS or n > MAX_LEAVES:
                most = f"{MAX_WORDS} features, and {MAX_LEAVES} values in all"
                raise invalid(
                    field, f"more than {MAX_WORDS if n <= MAX_LEAVES else MAX_LEAVES}", f"give at most {most}"
                )
    return words


def _leaves(path: str, value: Any, field: str, depth: int) -> Iterator[tuple[str, float]]:
    if depth > MAX_DEPTH or len(path) > 500:
        raise invalid(field, f"nested too deep at {path[:40]!r}", f"nest at most {MAX_DEPTH} levels")
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(f"{path}.{key}", part, field, depth + 1)
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(path, part, field, depth + 1)
    elif isinstance(value, bool):
        yield f"{path}={str(value).lower()}", 1.0
    elif isinstance(value, str):
        yield f"{path}={value[:400]}", 1.0
    elif value is not None:
        yield path, value / (1.0 + abs(value))


def action_words(id: str, features: list[dict[str, Any]]) -> dict[str, float]:
    """The words of an action: its id, so that actions without features differ, and its features."""
    return {f"id={id}": 1.0} | flatten(features, "actions.features")


def feature_context(arms: list[str]) -> ContextSpec:
    """The context of a problem that learns from features; ``arms`` are there from the beginning, without any."""
    return ContextSpec(
        features=FeaturesSpec(hashed={CONTEXT: CONTEXT_BUCKETS}),
        model=LinearSpec(RegressionParameters(shared=True)),
        arms={arm: {ACTION: {}} for arm in arms},
        arm_features=FeaturesSpec(hashed={ACTION: ACTION_BUCKETS}),
    )


_V1 = "/personalizer/v{version}"
_ONE, _MANY = f"{_V1}/events/{{event}}", f"{_V1}/multislot/events/{{event}}"


MAX_BODY_BYTES = 1_048_576
"""The largest body: 50 actions with 1,000 features of 20 characters each."""


class PersonalizerEndpoint:
    """One of Personalizer's calls as an ASGI application; the key comes in Personalizer's header."""

    def __init__(
        self, service: Service, body: Any, scope: str, status: int, run: Callable[..., Awaitable[Any]]
    ) -> None:
        self._service, self._scope, self._status, self._run = service, scope, status, run
        self._decoder = None if body is None else msgspec.json.Decoder(body)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send_reply(send, await reply_or_error(self._reply(scope, dict(scope["headers"]), receive)))

    async def _reply(self, scope: Any, headers: dict[bytes, bytes], receive: Any) -> Reply:
        key = headers.get(b"ocp-apim-subscription-key", b"").decode("latin-1")
        who = authenticate(self._service, headers, client_of(scope), key)
        permit(who, self._scope)
        limits = self._service.limits
        data = await self._service.bodies.read(receive, headers, min(limits.body_bytes, MAX_BODY_BYTES))
        caller = Caller(self._service.coordinator, who, limits.problems, limits.ignore_features)
        path = path_of(scope)
        words: list[Any] = [path["event"]] if "event" in path else []
        if self._decoder is not None:
            require_json(headers)
            words.append(await decode_body(self._decoder, data))
        answer = await self._run(caller, *words)
        return Reply(self._status, b"" if answer is None else msgspec.json.encode(answer))


def personalizer_routes(service: Service) -> list[Route]:
    """Rank, reward and activate, of one slot and of many."""

    def route(path: str, body: Any, scope: str, status: int, run: Callable[..., Awaitable[Any]]) -> Route:
        return Route(path, PersonalizerEndpoint(service, body, scope, status, run), methods=["POST"])

    return [
        route(f"{_V1}/rank", RankRequest, "decide", 201, rank),
        route(f"{_ONE}/reward", RewardRequest, "feedback", 204, reward),
        route(f"{_ONE}/activate", None, "decide", 204, activate),
        route(f"{_V1}/multislot/rank", MultiSlotRankRequest, "decide", 201, multi_rank),
        route(f"{_MANY}/reward", MultiSlotRewardRequest, "feedback", 204, multi_reward),
        route(f"{_MANY}/activate", None, "decide", 204, activate),
    ]
