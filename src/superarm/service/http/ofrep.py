"""OFREP: every OpenFeature provider that speaks the protocol is a client of published tables.

A problem is a flag, whose value is an object with the arms of a slate. ``targetingKey`` is the id of the decision, and
the context names the features that make the segment. See github.com/open-feature/protocol.
"""

from typing import Any

from msgspec import Struct
from starlette.responses import Response

from superarm.core.errors import InvalidArgument
from superarm.service.errors import RequestError
from superarm.service.http.endpoint import Endpoint, json_reply
from superarm.service.http.operations import Answer, Call, Operation
from superarm.service.runtime import admin
from superarm.tables import EVERYBODY, Table


class EvaluationBody(Struct):
    """What a provider sends; a context has whatever the application gave it."""

    context: dict[str, Any] = {}


async def evaluate(call: Call) -> Answer:
    """Decide from the table that is in force."""
    key = call.body.context.get("targetingKey")
    if not key:
        raise RequestError(400, "TARGETING_KEY_MISSING", "context.targetingKey: missing; give the id of the decision")
    table = await admin.publish(call.coordinator, *call.problem)
    try:
        served = table.decide(key, segment_of(table, call.body.context))
    except InvalidArgument as error:
        raise RequestError(400, "INVALID_CONTEXT", f"context.targetingKey: {error.wrong}; {error.remedy}") from None
    where = {"version": served.version, "segment": served.segment, "row": served.row}
    what = {"value": {"arms": served.arms}, "variant": f"{served.version}:{served.row}", "metadata": where}
    return 200, {"key": call.path["name"], "reason": "SPLIT", **what}


def segment_of(table: Table, context: dict[str, Any]) -> str:
    """The segment of a context, by the features that make the segments of a table.

    >>> table = Table("p", 1, "p.1", ("a",), 1, {"": [[0]]}, by="country, device")
    >>> segment_of(table, {"country": "NO", "device": "phone"})
    'country=NO, device=phone'
    """
    by = table.by.split(", ")
    if not all(name in context for name in by):
        return EVERYBODY
    return str(context[by[0]]) if len(by) == 1 else ", ".join(f"{name}={context[name]}" for name in by)


EVALUATE = Operation(evaluate, "POST", "/ofrep/v1/evaluate/flags/{name}", "decide", dict, body=EvaluationBody)

_CODES = {400: "PARSE_ERROR", 404: "FLAG_NOT_FOUND"}


class OfrepEndpoint(Endpoint):
    """The operation, with errors as the protocol has them."""

    def refuse(self, error: RequestError, scope: Any) -> Response:
        status = 400 if error.status in (413, 415, 422) else error.status
        code = error.code if error.code.isupper() else _CODES.get(error.status, "GENERAL")
        retry = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
        return json_reply(
            status,
            {"key": scope["path_params"].get("name", ""), "errorCode": code, "errorDetails": error.message},
            retry,
        )
