"""The operations of ``/v1``. Routes, the OpenAPI document and tests are made from ``OPERATIONS``.

Above each function is its row: method, path, scope, types and an example. The function calls the runtime and returns a
status and a reply; the first line of its docstring says what the operation does. Routes and examples are tried in the
order of this file.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from msgspec import Meta
from starlette.responses import Response

from superarm.core.errors import InvalidArgument
from superarm.service import replies, schemas
from superarm.service.domain.components import Name
from superarm.service.domain.events import Deleted
from superarm.service.domain.ledger import Key
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.spec import ProblemName, ProblemSpec
from superarm.service.errors import RequestError, refusal
from superarm.service.http import views
from superarm.service.http.service import Principal, Service, parse_problem_name
from superarm.service.http.service import explain as explain_body
from superarm.service.runtime import admin, feedback
from superarm.service.runtime.ask import ask
from superarm.service.runtime.coordinator import THREAD_SIZE, Coordinator, now_ms
from superarm.service.runtime.feedback import run_all
from superarm.tables import Table

Result = TypeVar("Result")


class Call(NamedTuple):
    """A request that was authenticated and decoded."""

    service: Service
    who: Principal
    path: dict[str, str]
    query: Any = schemas.Query()
    body: Any = None
    headers: Any = {}  # noqa: RUF012 - never changed

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

    async def read(self, read: Callable[[ProblemState], Result], size: int = 0) -> Result:
        """What ``read`` makes of the problem of the path."""
        return await self.coordinator.read(*self.problem, read, size)

    async def change(self, plan: Callable[[ProblemState, Any, str], Any], size: int = 0) -> bool:
        """Write the event that ``plan`` makes of the problem of the path, the body and the key."""
        return await self.coordinator.change(*self.problem, lambda state: plan(state, self.body, self.who.key), size)


Answer = tuple[int, Any]
Handler = Callable[[Call], Awaitable[Answer]]


class Operation(NamedTuple):
    """One operation: handler, method, path, required scope, type of the reply, possible errors, type of the body.

    ``example`` is one of the body, ``query`` the type of the URL's parameters. With ``creates``, the status is 201 if
    something is new.
    """

    handler: Handler
    method: str
    path: str
    scope: str
    reply: Any
    refusals: tuple[int, ...] = ()
    body: Any = None
    example: Any = None
    query: type[schemas.Query] = schemas.Query
    creates: bool = False

    @property
    def summary(self) -> str:
        """What it does, in a sentence."""
        return inspect.cleandoc(self.handler.__doc__ or "").partition("\n")[0]

    @property
    def name(self) -> str:
        """Its name among all operations."""
        return self.handler.__name__

    @property
    def replies(self) -> dict[int, Any]:
        """The type of the reply, by the status."""
        return {201: self.reply, 200: self.reply} if self.creates else {200: self.reply}


OPERATIONS: list[Operation] = []
P = "/v1/problems/{name}"
D = f"{P}/decisions/{{id}}"
PATH_PARAMETERS: dict[str, tuple[str, str, Any]] = {
    "name": ("The name of the problem.", "ads", ProblemName),
    "id": ("The id of the decision; a slash in it is written %2F.", "visit-1", Name),
    "version": ("The number of the version, counted from 1.", "1", Annotated[int, Meta(ge=1, le=10**9)]),
}
"""What a part of a path is, an example of it, and its type; a new one is described here."""

PROBLEM, DECISION, APPLIED = replies.ProblemReply, replies.DecisionReply, replies.AppliedReply
FEW, MOST = (404, 422), (404, 409, 422)
CREATED = {
    "arms": ["ad-1", "ad-2", "ad-3", "ad-4"],
    "items": ["sport", "news"],
    "k": 2,
    "settings": {"policy": {"name": "kl_moss"}, "at_window_end": 0.0, "words": {"arm": "ad", "outcome": "click"}},
}
PAST = {"id": "2026-10", "arms": ["ad-1"], "outcomes": [[1.0, None]]}
SUMS = {"id": "clicks/2026-11-17", "rows": [["", "ad-1", "sport", 1800, 1800, 1610612736, 1610612736]]}
SETTINGS = {"policy": {"name": "kl_ucb"}, "explore": 0.1, "window_s": 3600.0, "at_window_end": 0.0}
VISIT = {"id": "visit-1", "eligible": ["ad-1", "ad-2"]}
TOLD = {"feedback": [{"arm": "ad-1", "item": "sport", "value": 1.0}, {"arm": "ad-2", "seen": False}]}
BULK = '{"decision":"visit-1","feedback":[{"arm":"ad-1","value":0.0}]}\n'


def operation(*row: Any, **more: Any) -> Callable[[Handler], Handler]:
    """Add the function below to the operations, with this row: the fields of ``Operation`` after its handler."""

    def add(handler: Handler) -> Handler:
        OPERATIONS.append(Operation(handler, *row, **more))
        return handler

    return add


@operation("PUT", P, "admin", PROBLEM, (409, 422, 429), ProblemSpec, CREATED, creates=True)
async def put_problem(call: Call) -> Answer:
    """Create a problem; repeating the call changes nothing."""
    parse_problem_name(call.path["name"])
    limit = call.service.limits.max_problems
    created = await admin.create(call.coordinator, *call.problem, call.body, call.who.key, limit)
    return (201 if created else 200), await _problem(call)


async def _problem(call: Call) -> replies.ProblemReply:
    pending = call.coordinator.ledger.n_pending
    return await call.read(lambda state: views.problem(call.path["name"], state, pending.get(call.problem, 0)))


@operation("GET", "/v1/problems", "read", replies.NamesReply)
async def get_problems(call: Call) -> Answer:
    """The names of all problems."""
    return 200, replies.NamesReply(await call.coordinator.ownership.names(call.who.tenant))


@operation("GET", "/v1/audit", "admin", views.AuditReply, (422,), query=schemas.AuditQuery)
async def get_audit(call: Call) -> Answer:
    """Administrative changes, newest first; offset and limit select a page, problem one problem."""
    query, store = call.query, call.coordinator.store
    entries = await asyncio.to_thread(views.read_audit, store, call.who.tenant, query.problem)
    return 200, views.AuditReply(entries[query.offset : query.offset + query.limit], len(entries))


@operation("GET", P, "read", PROBLEM, (404,))
async def get_problem(call: Call) -> Answer:
    """The current state of a problem."""
    return 200, await _problem(call)


@operation("GET", f"{P}/arms", "read", replies.ArmsReply, FEW, query=schemas.PageQuery)
async def get_arms(call: Call) -> Answer:
    """Statistics of arms; offset and limit select a page."""
    offset, limit = call.query.offset, call.query.limit

    def read(state: ProblemState) -> replies.ArmsReply:
        counts, n_arms = state.overall(), state.problem.n_arms
        shown = range(min(offset, n_arms), min(offset + limit, n_arms))
        rows: Any = [msgspec.Raw(msgspec.json.encode(views.arm(state, counts, arm))) for arm in shown]
        return replies.ArmsReply(rows, n_arms)  # encoded row by row, so that others have a turn in between

    return 200, await call.read(read)


@operation("POST", f"{P}/arms", "admin", PROBLEM, FEW, schemas.ArmsBody, {"add": ["ad-5"], "retire": ["ad-4"]})
async def post_arms(call: Call) -> Answer:
    """Add, retire and restore arms."""
    await call.change(admin.plan_arms, 10 * (len(call.body.add) + len(call.body.retire)))
    return 200, await _problem(call)


@operation("POST", f"{P}/outcomes", "feedback", APPLIED, MOST, schemas.PastBody, PAST)
async def post_outcomes(call: Call) -> Answer:
    """Outcomes without a decision: a warm start from logs."""
    size = sum(map(len, call.body.outcomes)) + sum(len(part.arms) for part in call.body.sets)
    applied = await call.change(admin.plan_outcomes, size)
    return 200, replies.AppliedReply(applied, False, "complete")


@operation("POST", f"{P}/sums", "feedback", APPLIED, MOST, schemas.SumsBody, SUMS)
async def post_sums(call: Call) -> Answer:
    """Integer sums of many outcomes, from a warehouse, or of clicks on the rows of a table."""
    applied = await call.change(admin.plan_sums, 20 * len(call.body.rows) + 20 * len(call.body.patterns))
    return 200, replies.AppliedReply(applied, False, "complete")


@operation("POST", f"{P}/items", "admin", PROBLEM, FEW, schemas.ItemsBody, {"add": ["arts"], "weights": [2.0]})
async def post_items(call: Call) -> Answer:
    """Add and retire items."""
    await call.change(admin.plan_items)
    return 200, await _problem(call)


@operation("GET", f"{P}/items", "read", replies.ItemsReply, (404,))
async def get_items(call: Call) -> Answer:
    """The items; where the problem learns them, the groups of visitors that it found, and all versions."""
    return 200, await call.read(views.items, THREAD_SIZE)


@operation("POST", f"{P}/items/learn", "admin", replies.ItemsReply, FEW, schemas.LearnBody, {})
async def learn_items(call: Call) -> Answer:
    """Learn the items anew, or return to an earlier version of them; either is a new version."""
    if call.body.version is None:
        await admin.learn_items(call.coordinator, call.problem, call.who.key)
    else:
        await call.change(admin.plan_earlier_items)
    return await get_items(call)


@operation("PATCH", f"{P}/settings", "admin", PROBLEM, FEW, schemas.SettingsBody, SETTINGS)
async def patch_settings(call: Call) -> Answer:
    """Change some settings: a new version, counters kept. What is left out stays."""
    change = partial(admin.merge_settings, body=call.body)
    await admin.change_settings(call.coordinator, *call.problem, change, call.who.key)
    return 200, await _problem(call)


@operation("PUT", f"{P}/baseline", "admin", PROBLEM, FEW, schemas.BaselineBody, {"arms": ["ad-2", "ad-1"]})
async def put_baseline(call: Call) -> Answer:
    """Replace the ranking that the policy follows, such as the top sellers, which change daily.

    What was learnt stays. From now on the policy starts from this ranking, learning may cost a share of what it earns,
    and the control group sees its first arms, unless the settings or a request name other ones. The comparison goes on.
    """
    change = partial(admin.with_baseline, ranking=call.body.arms)
    await admin.change_settings(call.coordinator, *call.problem, change, call.who.key)
    return 200, await _problem(call)


@operation("GET", f"{P}/table", "decide", Table, FEW)
async def get_table(call: Call) -> Answer:
    """The table that applications decide from, with its digest as ETag: 304 if If-None-Match names it."""
    table = await admin.publish(call.coordinator, *call.problem)
    tag = f'"{table.digest}"'
    kept = {"etag": tag, "cache-control": "max-age=10"}
    if {tag, "*"} & set(call.headers.get(b"if-none-match", b"").decode("latin-1").replace("W/", "").split(", ")):
        return 304, Response(status_code=304, headers=kept)
    return 200, Response(table.to_json(), 200, kept, "application/json")


@operation("GET", f"{P}/versions", "read", replies.VersionsReply, (404,))
async def get_versions(call: Call) -> Answer:
    """All versions of the settings."""
    return 200, replies.VersionsReply(list((await call.state()).versions))


@operation("POST", f"{P}/versions/{{version}}/restore", "admin", PROBLEM, FEW)
async def restore_version(call: Call) -> Answer:
    """Restore the settings of an earlier version, as a new version."""
    await admin.restore_settings(call.coordinator, *call.problem, call.path["version"], call.who.key)
    return 200, await _problem(call)


@operation("GET", f"{P}/lift", "read", replies.LiftReply, FEW, query=schemas.LiftQuery)
async def get_lift(call: Call) -> Answer:
    """The reward with the policy against that of the control share, with intervals that hold at all times."""
    delta, item = call.query.delta, call.query.item
    return 200, await call.read(lambda state: views.lift(state, delta, item))


@operation("POST", f"{P}/decisions", "decide", DECISION, (*MOST, 429), schemas.AskBody, VISIT, creates=True)
async def post_decision(call: Call) -> Answer:
    """Ask for a decision."""
    record, created = await ask(call.coordinator, *call.problem, call.body)
    return (201 if created else 200), views.decision(record, await call.state(), created)


_ASKED = {"decisions": [{"id": "visit-2"}, {}]}


@operation("POST", f"{P}/decisions/bulk", "decide", replies.DecisionsReply, FEW, schemas.AskManyBody, _ASKED)
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


@operation("GET", D, "read", DECISION, (404,))
async def get_decision(call: Call) -> Answer:
    """The current state of a decision."""
    return 200, views.decision(await call.coordinator.record(*call.decision), await call.state())


@operation("GET", f"{D}/explanation", "read", replies.ExplanationReply, FEW, query=schemas.ExplanationQuery)
async def get_explanation(call: Call) -> Answer:
    """Why these arms: estimates, optimistic parameters, marginal gains, and the features that mattered most."""
    found = await views.explain(call.coordinator, *call.decision, call.query.most)
    return 200, views.explanation(call.path["name"], found)


@operation("POST", f"{D}/feedback", "feedback", APPLIED, MOST, schemas.TellBody, TOLD)
async def post_feedback(call: Call) -> Answer:
    """Send feedback: what the arms of a decision did."""
    return 200, await feedback.tell(call.coordinator, *call.decision, call.body)


@operation("POST", f"{D}/activate", "decide", APPLIED, MOST, schemas.ActivateBody, {"shown": ["ad-2", "ad-1"]})
async def post_activation(call: Call) -> Answer:
    """Report that a decision was shown, and with which arms."""
    return 200, await feedback.activate(call.coordinator, *call.decision, call.body)


@operation("POST", f"{P}/feedback/bulk", "feedback", bytes, (404,), bytes, BULK)
async def post_bulk(call: Call) -> Answer:
    """Feedback of many decisions: NDJSON, one line per decision."""
    await call.state()
    n = call.body.count(b"\n")  # millions of them would take long to split
    lines = [line for line in call.body.split(b"\n", 2 * schemas.MAX_BULK) if line.strip()]
    if n > 2 * schemas.MAX_BULK or len(lines) > schemas.MAX_BULK:
        raise RequestError(413, "too_large", f"{max(n, len(lines))} lines; send at most {schemas.MAX_BULK}")
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


@operation("POST", f"{P}/erasures", "admin", replies.ErasedReply, FEW, schemas.ErasureBody, {"unit": "visitor-1"})
async def erase_unit(call: Call) -> Answer:
    """Erase all decisions of a unit: they count no longer, as if they had never been made."""
    n = await feedback.erase_unit(call.coordinator, *call.problem, call.body.unit, call.who.key)
    return 200, replies.ErasedReply(call.path["name"], n)


@operation("DELETE", D, "admin", replies.ErasedReply, (404,))
async def erase_decision(call: Call) -> Answer:
    """Erase a decision: it counts no longer, as if it had never been made."""
    await feedback.erase_decision(call.coordinator, *call.decision, call.who.key)
    return 200, replies.ErasedReply(call.path["name"], 1)


@operation("DELETE", P, "admin", replies.ErasedReply, (404,))
async def delete_problem(call: Call) -> Answer:
    """Delete a problem with its decisions. Its name may be used again, for another problem."""
    n = (await call.state()).decisions
    await call.change(lambda state, body, by: Deleted(now_ms(), by))
    await call.coordinator.ownership.leave(call.problem)
    return 200, replies.ErasedReply(call.path["name"], n)
