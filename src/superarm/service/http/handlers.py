"""The handlers of the operations of ``/v1``: each calls the runtime and returns a status and a reply."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import msgspec
from msgspec import structs

from superarm.core.errors import InvalidArgument
from superarm.service import replies, schemas
from superarm.service.domain import components
from superarm.service.domain.components import AnyActionSpec
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.spec import Settings
from superarm.service.errors import RequestError, invalid, unknown
from superarm.service.http import explanations, views
from superarm.service.http.auth import Principal, RateLimits, Signer
from superarm.service.http.query import explain as explain_body
from superarm.service.http.query import parse_integer, parse_limit, parse_number, parse_problem_name
from superarm.service.runtime import admin, feedback
from superarm.service.runtime.ask import ask
from superarm.service.runtime.coordinator import Coordinator
from superarm.service.runtime.feedback import run_all, tell_all


class Call(NamedTuple):
    """A request that was authenticated and decoded."""

    coordinator: Coordinator
    who: Principal
    path: dict[str, str]
    query: dict[str, str]
    body: Any
    max_problems: int
    rates: RateLimits
    signer: Signer | None = None

    def sign(self, id: str) -> str | None:
        """The signed id of a decision, for keys that may themselves send feedback."""
        if self.signer is None or self.who.scopes.isdisjoint(("feedback", "admin")):
            return None
        return self.signer.sign(self.who.tenant, self.path["name"], id, time.time())


Answer = tuple[int, Any]


async def put_problem(call: Call) -> Answer:
    """Create a problem; repeating the call changes nothing."""
    name = parse_problem_name(call.path["name"])
    who = call.who
    created = await admin.create(call.coordinator, who.tenant, name, call.body, who.key, call.max_problems)
    return (201 if created else 200), await _problem(call)


async def _problem(call: Call) -> replies.ProblemReply:
    tenant, name = call.who.tenant, call.path["name"]

    def read(state: ProblemState) -> replies.ProblemReply:
        return views.problem(name, state, call.coordinator.ledger.n_pending.get((tenant, name), 0))

    return await call.coordinator.read(tenant, name, read)


async def get_problem(call: Call) -> Answer:
    """The current state of a problem."""
    return 200, await _problem(call)


async def get_problems(call: Call) -> Answer:
    """The names of all problems."""
    return 200, replies.NamesReply(await call.coordinator.ownership.names(call.who.tenant))


async def get_policies(call: Call) -> Answer:
    """The policies that a problem can name, with their parameters."""
    return 200, replies.ComponentsReply(components.list_policies())


async def get_rewards(call: Call) -> Answer:
    """The rewards that a problem can name, with their parameters."""
    return 200, replies.ComponentsReply(components.list_rewards())


async def get_actions(call: Call) -> Answer:
    """The action sets that a problem can name, with their parameters."""
    return 200, replies.ComponentsReply(components.list_actions(get_args(AnyActionSpec)))


async def get_arms(call: Call) -> Answer:
    """Statistics of arms; offset and limit select a page."""
    offset, limit = parse_integer(call.query, "offset", 0, 10**9), parse_limit(call.query)

    def read(state: ProblemState) -> replies.ArmsReply:
        counts, n_arms = state.overall(), state.problem.n_arms
        shown = range(min(offset, n_arms), min(offset + limit, n_arms))
        rows: Any = [msgspec.Raw(msgspec.json.encode(views.arm(state, counts, arm))) for arm in shown]
        return replies.ArmsReply(rows, n_arms)  # encoded row by row, so that others have a turn in between

    return 200, await call.coordinator.read(call.who.tenant, call.path["name"], read)


async def post_arms(call: Call) -> Answer:
    """Add, retire and restore arms."""
    await admin.change_arms(call.coordinator, call.who.tenant, call.path["name"], call.body, call.who.key)
    return 200, await _problem(call)


async def post_items(call: Call) -> Answer:
    """Add and retire items."""
    await admin.change_items(call.coordinator, call.who.tenant, call.path["name"], call.body, call.who.key)
    return 200, await _problem(call)


async def put_settings(call: Call) -> Answer:
    """Replace all settings: a new version, counters kept. What is left out has the default of a new problem."""
    return await _change_settings(call, admin.replace_settings)


async def patch_settings(call: Call) -> Answer:
    """Change some settings: a new version, counters kept. What is left out stays."""
    return await _change_settings(call, admin.merge_settings)


async def _change_settings(call: Call, change: Callable[[Settings, schemas.SettingsBody], Settings]) -> Answer:
    name, by = call.path["name"], call.who.key
    await admin.change_settings(call.coordinator, call.who.tenant, name, lambda now: change(now, call.body), by)
    return 200, await _problem(call)


async def get_versions(call: Call) -> Answer:
    """All versions of the settings."""
    state = await call.coordinator.find(call.who.tenant, call.path["name"])
    return 200, replies.VersionsReply(list(state.versions))


async def get_lift(call: Call) -> Answer:
    """The reward with the policy against that of the control share, with intervals that hold at all times."""
    delta = parse_number(call.query, "delta", 0.05, 1.0)

    def read(state: ProblemState) -> replies.LiftReply:
        name = call.query.get("item")
        item = None if name is None else state.items.number(name)
        if name is not None and item is None:
            raise invalid("item", f"unknown {name[:100]!r}", "name an item of the problem")
        return views.lift(state, delta, item)

    return 200, await call.coordinator.read(call.who.tenant, call.path["name"], read)


async def restore_version(call: Call) -> Answer:
    """Restore the settings of an earlier version, as a new version."""
    version = parse_integer(call.path, "version", 0, 10**9)
    await admin.restore_settings(call.coordinator, call.who.tenant, call.path["name"], version, call.who.key)
    return 200, await _problem(call)


async def post_outcomes(call: Call) -> Answer:
    """Outcomes without a decision: a warm start from logs."""
    applied = await admin.warm_start(call.coordinator, call.who.tenant, call.path["name"], call.body)
    return 200, replies.AppliedReply(applied, False, "complete")


async def post_decision(call: Call) -> Answer:
    """Ask for a decision."""
    coordinator, tenant, name = call.coordinator, call.who.tenant, call.path["name"]
    record, created = await ask(coordinator, tenant, name, call.body)
    reply = views.decision(record, await coordinator.find(tenant, name), created)
    signed = call.sign(reply.id)
    return (201 if created else 200), reply if signed is None else structs.replace(reply, signed_id=signed)


async def post_decisions(call: Call) -> Answer:
    """Ask for several decisions at once."""
    learner = await call.coordinator.find(call.who.tenant, call.path["name"])
    n_arms = sum(learner.k if body.k is None else min(body.k, learner.k) for body in call.body.decisions)
    if n_arms > schemas.MAX_BULK_ARMS:
        said = f"{len(call.body.decisions)} decisions of up to {learner.k} arms; ask for at most "
        raise RequestError(413, "too_large", said + f"{schemas.MAX_BULK_ARMS} arms at once")
    call.rates.charge(call.who.key, len(call.body.decisions) - 1)

    async def one(body: schemas.AskBody) -> Any:
        try:
            return (await post_decision(call._replace(body=body)))[1]
        except RequestError as error:
            return replies.ErrorReply(replies.ErrorBody(error.code, error.message))
        except InvalidArgument as error:
            return replies.ErrorReply(replies.ErrorBody("invalid", str(error)))

    return 200, replies.DecisionsReply(await run_all(call.body.decisions, one))


async def check_problem(call: Call) -> None:
    """404 unless the decision of the path, if there is one, belongs to the problem of the path, if there is one."""
    if not {"name", "id"} <= call.path.keys():
        return
    record = await call.coordinator.record((call.who.tenant, call.path["id"]))
    if record.asked.problem != call.path["name"]:
        raise unknown("decision", call.path["id"])


async def post_problem_bulk(call: Call) -> Answer:
    """Feedback of many decisions: NDJSON, one line per decision."""
    await call.coordinator.find(call.who.tenant, call.path["name"])
    return await post_bulk(call)


async def get_decision(call: Call) -> Answer:
    """The current state of a decision."""
    record = await call.coordinator.record((call.who.tenant, call.path["id"]))
    return 200, views.decision(record, await call.coordinator.problem_of(call.who.tenant, record))


async def get_explanation(call: Call) -> Answer:
    """Why these arms: estimates, optimistic parameters, marginal gains, and the features that mattered most."""
    most = parse_integer(call.query, "most", 5, 100)
    found = await explanations.explain_in_reply(call.coordinator, (call.who.tenant, call.path["id"]), most)
    return 200, found


async def post_feedback(call: Call) -> Answer:
    """Send feedback: what the arms of a decision did."""
    return 200, await feedback.tell(call.coordinator, (call.who.tenant, call.path["id"]), call.body)


async def post_activation(call: Call) -> Answer:
    """Report that a decision was shown, and with which arms."""
    return 200, await feedback.activate(call.coordinator, (call.who.tenant, call.path["id"]), call.body)


_line = msgspec.json.Decoder(schemas.BulkLine)


async def post_bulk(call: Call) -> Answer:
    """Feedback of many decisions: NDJSON, one line per decision."""
    lines = [line for line in call.body.split(b"\n") if line.strip()]
    if len(lines) > schemas.MAX_BULK:
        raise RequestError(413, "too_large", f"{len(lines)} lines; send at most {schemas.MAX_BULK}")
    call.rates.charge(call.who.key, len(lines) - 1)
    large = len(call.body) >= LARGE_BYTES
    bodies = await asyncio.to_thread(_decode_lines, lines) if large else _decode_lines(lines)
    good = [body for body in bodies if isinstance(body, schemas.BulkLine)]
    outcomes = iter(await tell_all(call.coordinator, call.who.tenant, good))
    answers = [_answer(next(outcomes) if isinstance(body, schemas.BulkLine) else body) for body in bodies]
    return 200, _encoder.encode_lines(answers)


LARGE_BYTES = 65_536
_NOT_JSON = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


def _decode_lines(lines: list[bytes]) -> list[schemas.BulkLine | RequestError]:
    bodies: list[schemas.BulkLine | RequestError] = []
    for line in lines:
        try:
            bodies.append(_line.decode(line))
        except _NOT_JSON as error:
            bodies.append(RequestError(422, "invalid", explain_body(str(error))))
    return bodies


_encoder = msgspec.json.Encoder()


def _answer(outcome: replies.AppliedReply | RequestError) -> replies.AppliedReply | replies.ErrorReply:
    """What a line of bulk feedback is answered."""
    if isinstance(outcome, RequestError):
        return replies.ErrorReply(replies.ErrorBody(outcome.code, outcome.message))
    return outcome
