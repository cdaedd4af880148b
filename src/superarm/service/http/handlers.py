"""The handlers of the operations of ``/v1``: each calls the runtime and returns a status and a reply."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from superarm.agent.names import Names
from superarm.core.errors import InvalidArgument
from superarm.service import replies, schemas
from superarm.service.domain.events import Deleted
from superarm.service.domain.ledger import Key
from superarm.service.domain.problem import ProblemState
from superarm.service.errors import RequestError, invalid, refusal
from superarm.service.http import audit, views
from superarm.service.http.auth import Principal
from superarm.service.http.query import explain as explain_body
from superarm.service.http.query import parse_problem_name
from superarm.service.http.service import Service
from superarm.service.runtime import admin, feedback, learning
from superarm.service.runtime.ask import ask
from superarm.service.runtime.coordinator import THREAD_SIZE, Coordinator, now_ms
from superarm.service.runtime.feedback import run_all

Result = TypeVar("Result")


class Call(NamedTuple):
    """A request that was authenticated and decoded."""

    service: Service
    who: Principal
    path: dict[str, str]
    query: Any = schemas.Query()
    body: Any = None

    @property
    def coordinator(self) -> Coordinator:
        return self.service.coordinator

    @property
    def problem(self) -> Key:
        """The tenant, and the name of the problem of the path."""
        return self.who.tenant, self.path["name"]

    @property
    def decision(self) -> tuple[str, str, str]:
        """The tenant, the name of the problem and the id of the decision of the path."""
        return *self.problem, self.path["id"]

    async def state(self) -> ProblemState:
        """The problem of the path, or 404."""
        return await self.coordinator.find(*self.problem)

    async def read(self, read: Callable[[ProblemState], Result]) -> Result:
        """What ``read`` makes of the problem of the path."""
        return await self.coordinator.read(*self.problem, read)


Answer = tuple[int, Any]


async def put_problem(call: Call) -> Answer:
    """Create a problem; repeating the call changes nothing."""
    parse_problem_name(call.path["name"])
    limit = call.service.limits.max_problems
    created = await admin.create(call.coordinator, *call.problem, call.body, call.who.key, limit)
    return (201 if created else 200), await _problem(call)


async def _problem(call: Call) -> replies.ProblemReply:
    pending = call.coordinator.ledger.n_pending
    return await call.read(lambda state: views.problem(call.path["name"], state, pending.get(call.problem, 0)))


async def get_problem(call: Call) -> Answer:
    """The current state of a problem."""
    return 200, await _problem(call)


async def get_problems(call: Call) -> Answer:
    """The names of all problems."""
    return 200, replies.NamesReply(await call.coordinator.ownership.names(call.who.tenant))


async def get_arms(call: Call) -> Answer:
    """Statistics of arms; offset and limit select a page."""
    offset, limit = call.query.offset, call.query.limit

    def read(state: ProblemState) -> replies.ArmsReply:
        counts, n_arms = state.overall(), state.problem.n_arms
        shown = range(min(offset, n_arms), min(offset + limit, n_arms))
        rows: Any = [msgspec.Raw(msgspec.json.encode(views.arm(state, counts, arm))) for arm in shown]
        return replies.ArmsReply(rows, n_arms)  # encoded row by row, so that others have a turn in between

    return 200, await call.read(read)


async def post_arms(call: Call) -> Answer:
    """Add, retire and restore arms."""
    await admin.change_arms(call.coordinator, *call.problem, call.body, call.who.key)
    return 200, await _problem(call)


async def post_items(call: Call) -> Answer:
    """Add and retire items."""
    await admin.change_items(call.coordinator, *call.problem, call.body, call.who.key)
    return 200, await _problem(call)


async def get_items(call: Call) -> Answer:
    """The items; where the problem learns them, the groups of visitors that it found, and all versions."""
    return 200, await call.coordinator.read(*call.problem, views.items, THREAD_SIZE)


async def learn_items(call: Call) -> Answer:
    """Learn the items anew, or return to an earlier version of them; either is a new version."""
    if call.body.version is None:
        await learning.learn_items(call.coordinator, call.problem, call.who.key)
    else:
        await learning.restore_items(call.coordinator, call.problem, call.body.version, call.who.key)
    return await get_items(call)


async def patch_settings(call: Call) -> Answer:
    """Change some settings: a new version, counters kept. What is left out stays."""
    change = partial(admin.merge_settings, body=call.body)
    await admin.change_settings(call.coordinator, *call.problem, change, call.who.key)
    return 200, await _problem(call)


async def get_versions(call: Call) -> Answer:
    """All versions of the settings."""
    return 200, replies.VersionsReply(list((await call.state()).versions))


async def restore_version(call: Call) -> Answer:
    """Restore the settings of an earlier version, as a new version."""
    await admin.restore_settings(call.coordinator, *call.problem, call.path["version"], call.who.key)
    return 200, await _problem(call)


async def get_lift(call: Call) -> Answer:
    """The reward with the policy against that of the control share, with intervals that hold at all times."""
    delta, item = call.query.delta, call.query.item
    return 200, await call.read(lambda state: views.lift(state, delta, _named(item, "item", state.items)))


async def post_outcomes(call: Call) -> Answer:
    """Outcomes without a decision: a warm start from logs."""
    applied = await admin.warm_start(call.coordinator, *call.problem, call.body)
    return 200, replies.AppliedReply(applied, False, "complete")


async def delete_problem(call: Call) -> Answer:
    """Delete a problem with its decisions. Its name may be used again, for another problem."""
    n = (await call.state()).decisions
    await call.coordinator.change(*call.problem, lambda state: Deleted(now_ms(), call.who.key))
    return 200, replies.ErasedReply(call.path["name"], n)


async def post_decision(call: Call) -> Answer:
    """Ask for a decision."""
    record, created = await ask(call.coordinator, *call.problem, call.body)
    return (201 if created else 200), views.decision(record, await call.state(), created)


async def post_decisions(call: Call) -> Answer:
    """Ask for several decisions at once."""
    k, asked = (await call.state()).problem.k, call.body.decisions
    if sum(k if body.k is None else min(body.k, k) for body in asked) > schemas.MAX_BULK_ARMS:
        said = f"{len(asked)} decisions of up to {k} arms; ask for at most {schemas.MAX_BULK_ARMS} arms at once"
        raise RequestError(413, "too_large", said)
    call.service.rates.charge(call.who.key, len(asked) - 1)

    async def one(body: schemas.AskBody) -> Any:
        try:
            return (await post_decision(call._replace(body=body)))[1]
        except RequestError as error:
            return refusal(error.code, error.message)
        except InvalidArgument as error:
            return refusal("invalid", str(error))

    return 200, replies.DecisionsReply(await run_all(asked, one))


async def get_decision(call: Call) -> Answer:
    """The current state of a decision."""
    record = await call.coordinator.record(*call.decision)
    return 200, views.decision(record, await call.state())


async def get_explanation(call: Call) -> Answer:
    """Why these arms: estimates, optimistic parameters, marginal gains, and the features that mattered most."""
    found = await views.explain(call.coordinator, *call.decision, call.query.most)
    return 200, views.explanation(call.path["name"], found)


async def post_feedback(call: Call) -> Answer:
    """Send feedback: what the arms of a decision did."""
    return 200, await feedback.tell(call.coordinator, *call.decision, call.body)


async def post_activation(call: Call) -> Answer:
    """Report that a decision was shown, and with which arms."""
    return 200, await feedback.activate(call.coordinator, *call.decision, call.body)


async def erase_decision(call: Call) -> Answer:
    """Erase a decision: it counts no longer, as if it had never been made."""
    await feedback.erase_decision(call.coordinator, *call.decision, call.who.key)
    return 200, replies.ErasedReply(call.path["name"], 1)


async def erase_unit(call: Call) -> Answer:
    """Erase all decisions of a unit: they count no longer, as if they had never been made."""
    n = await feedback.erase_unit(call.coordinator, *call.problem, call.body.unit, call.who.key)
    return 200, replies.ErasedReply(call.path["name"], n)


async def post_bulk(call: Call) -> Answer:
    """Feedback of many decisions: NDJSON, one line per decision."""
    await call.state()
    lines = [line for line in call.body.split(b"\n") if line.strip()]
    if len(lines) > schemas.MAX_BULK:
        raise RequestError(413, "too_large", f"{len(lines)} lines; send at most {schemas.MAX_BULK}")
    call.service.rates.charge(call.who.key, len(lines) - 1)

    async def one(line: bytes) -> Any:
        try:
            body = _line.decode(line)
            return await feedback.tell(call.coordinator, *call.problem, body.decision, body)
        except RequestError as error:
            return refusal(error.code, error.message)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            return refusal("invalid", explain_body(str(error)))

    return 200, _encoder.encode_lines(await run_all(lines, one))


_line, _encoder = msgspec.json.Decoder(schemas.BulkLine), msgspec.json.Encoder()


async def get_audit(call: Call) -> Answer:
    """Administrative changes, newest first; offset and limit select a page, problem one problem."""
    query, store = call.query, call.coordinator.store
    entries = await asyncio.to_thread(audit.read_audit, store, call.who.tenant, query.problem)
    return 200, audit.AuditReply(entries[query.offset : query.offset + query.limit], len(entries))


def _named(name: str | None, what: str, names: Names) -> int | None:
    """The number of the arm or the item that a query names; None if it names none."""
    number = None if name is None else names.number(name)
    if name is not None and number is None:
        raise invalid(what, f"unknown {name[:100]!r}", f"name an {what} of the problem, which may be retired")
    return number
