"""The OpenAPI 3.1 document, built from the table of operations and the types of their bodies and replies."""

import inspect
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from superarm import __version__
from superarm.service.errors import ErrorReply
from superarm.service.http.operations import PATH_PARAMETERS, Operation

_REF = "#/components/schemas/{name}"
_WORDS = {
    400: "The body is not JSON.",
    401: "No valid key.",
    403: "The key lacks the scope.",
    404: "No such thing, for this tenant.",
    409: "It contradicts an earlier request, which remains valid.",
    408: "The body did not come in time.",
    413: "The body is too large.",
    415: "The body is not declared as JSON, or is compressed.",
    422: "A field or a query parameter is wrong; the message names it.",
    429: "A limit is reached; see Retry-After.",
    503: "The service cannot answer now, and nothing was written; see Retry-After.",
}
_ALWAYS = (401, 403, 408, 413, 422, 429, 503)
_SAME = {"SettingsBody": "Settings", "PolicyChange": "PolicySpec"}
"""Objects whose fields mean what those of another one do."""


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    """The whole document."""
    operations = list(operations)
    types = [kind for op in operations for kind in (op.body, *op.replies.values()) if kind not in (None, bytes)]
    _, schemas = msgspec.json.schema_components([*types, ErrorReply], ref_template=_REF)
    _simplify(schemas)
    _describe_fields(schemas)
    if "DecisionsReply" in schemas:
        either = [{"$ref": _REF.format(name=name)} for name in ("DecisionReply", "ErrorReply")]
        schemas["DecisionsReply"]["properties"]["decisions"]["items"] = {"anyOf": either}
    paths: dict[str, Any] = {}
    for op in operations:
        paths.setdefault(op.path, {})[op.method.lower()] = _operation(op)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "superarm",
            "version": __version__,
            "description": "Hands out slates of arms and learns from what each arm did. Nothing acknowledged is lost.",
        },
        "paths": paths | {"/health": {"get": _health()}},
        "components": {"schemas": schemas, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{"key": []}, {}],
    }


def _describe_fields(schemas: dict[str, Any]) -> None:
    """Move what a docstring says of each field, under its heading "Parameters", to the field, in place."""
    for name in sorted(schemas, key=lambda one: one in _SAME):
        schema = schemas[name]
        text = inspect.cleandoc(schema.get("description", "")).replace("``", "`")
        prose, _, fields = text.partition("\n\nParameters\n----------\n")
        said = dict(re.findall(r"^(\w+)\n((?:    .*\n?)+)", fields.partition("\n\n")[0], re.MULTILINE))
        schema["description"] = prose.partition(">>>")[0].strip()
        like = schemas[_SAME[name]]["properties"] if name in _SAME else {}
        for field, own in schema.get("properties", {}).items():
            words = " ".join(said.get(field, "").split()) or like.get(field, {}).get("description", "")
            words = words or {"name": "Which one it is.", "parameters": "Its parameters."}.get(field, "")
            own["description"] = f"{words} {own.get('description', '')}".strip()


def _simplify(schema: Any) -> None:
    """Write tuples as arrays of a fixed size, and objects that are defaults in words, in place.

    Generators of clients do not know ``prefixItems``, and leave out what has an object as its default.
    """
    if isinstance(schema, dict):
        parts = schema.pop("prefixItems", None)
        if parts is not None:
            different = [part for n, part in enumerate(parts) if part not in parts[:n]]
            schema["items"] = different[0] if len(different) == 1 else {"anyOf": different}
        if "anyOf" in schema and isinstance(schema.get("default"), dict):
            schema["description"] = f"By default {msgspec.json.encode(schema.pop('default')).decode()}."
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _simplify(part)


def _operation(op: Operation) -> dict[str, Any]:
    refusals = {*op.refusals, *_ALWAYS} | ({400, 415} if op.body is not None else set())
    described: dict[str, Any] = {
        "operationId": op.name,
        "summary": op.summary,
        "description": f"Needs the scope `{op.scope}`.",
        "parameters": [_parameter(name) for name in re.findall(r"\{(\w+)\}", op.path)] + _query(op.query),
        "responses": {
            **{str(status): _said("Done.", kind) for status, kind in op.replies.items()},
            **{str(status): _said(_WORDS[status], ErrorReply) for status in sorted(refusals)},
        },
    }
    if op.body is not None:
        described["requestBody"] = {"required": True, "content": _content(op.body, op.example)}
    return described


def _parameter(name: str) -> dict[str, Any]:
    text, example, kind = PATH_PARAMETERS[name]
    told = {"schema": msgspec.json.schema(kind), "description": text, "example": example}
    return {"name": name, "in": "path", "required": True, **told}


def fill(path: str, **given: Any) -> str:
    """A path with examples in place of its parameters, or with what is ``given``.

    >>> fill("/v1/problems/{name}/versions/{version}", name="p")
    '/v1/problems/p/versions/1'
    """
    return path.format_map({name: example for name, (_, example, _) in PATH_PARAMETERS.items()} | given)


def _query(kind: Any) -> list[dict[str, Any]]:
    """The parameters of a URL, which may all be left out."""
    _, found = msgspec.json.schema_components([kind])
    _describe_fields(found)
    parameters = []
    for name, schema in found[kind.__name__]["properties"].items():
        words, (plain, *_) = schema.pop("description"), schema.get("anyOf", [schema])
        parameters.append({"name": name, "in": "query", "schema": plain, "description": words})
    return parameters


def _said(words: str, kind: Any) -> dict[str, Any]:
    return {"description": words, "content": _content(kind, None)}


def _content(kind: Any, example: Any) -> dict[str, Any]:
    if kind is bytes:
        shown: dict[str, Any] = {"schema": {"type": "string"}}
        media = "application/x-ndjson"
    else:
        shown = {"schema": {"$ref": _REF.format(name=kind.__name__)}}
        media = "application/json"
    return {media: shown | ({"example": example} if example is not None else {})}


_HEALTH = "Whether decisions can be made. With ?verbose and a key of the scope admin, also what superarm doctor says."


def _health() -> dict[str, Any]:
    schema = {"type": "object", "properties": {"status": {"type": "string"}, "worker": {"type": "string"}}}
    said = {"content": {"application/json": {"schema": schema}}}
    words = {"200": {"description": "Ready."} | said, "503": {"description": "Starting or stopping."} | said}
    return {"operationId": "health", "summary": _HEALTH, "responses": words, "security": []}
