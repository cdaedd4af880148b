"""The page about the HTTP interface, from the service's OpenAPI document: operations, then the objects they use."""

import inspect
import json
from collections.abc import Iterable, Iterator
from typing import Any

Table = dict[str, Any]
"""A part of the OpenAPI document."""

OF_PROBLEM = "/v1/problems/{name}"
"""How paths begin that name the problem; some operations have another path without it."""


def write_operations() -> str:
    """Errors and query parameters, which operations share; the operations; the objects of requests and of answers."""
    from superarm.service.http.openapi import document
    from superarm.service.http.operations import OPERATIONS

    described = document(OPERATIONS)
    operations = _operations(described["paths"])
    always = set.intersection(*(set(one["responses"]) for _, one in operations if "description" in one))
    parts = [*_describe_errors(operations, always), *_describe_parameters(operations), "## Operations\n"]
    for name, operation in operations:
        parts.append(_describe_operation(name, operation, always))
    schemas = described["components"]["schemas"]
    asked = _reached((one.get("requestBody") for _, one in operations), schemas)
    listed: dict[str, Table] = {}
    for heading, wanted in (("Objects of requests", True), ("Objects of answers", False)):
        chosen = {name: schema for name, schema in schemas.items() if (name in asked) == wanted}
        parts += [f"## {heading}\n", *_describe_objects(chosen, schemas, listed)]
    return "\n".join(parts)


def _operations(paths: dict[str, Table]) -> list[tuple[str, Table]]:
    """Every operation by method and path. One that has a path with and without its problem is listed once."""
    found: dict[str, Table] = {}
    for path, methods in paths.items():
        for method, operation in methods.items():
            short = f"{method.upper()} {path.replace(OF_PROBLEM, '/v1', 1)}"
            twin = path.startswith(OF_PROBLEM) and found.get(short, {}).get("summary") == operation["summary"]
            if twin:
                found[short]["also"] = path
            else:
                found[f"{method.upper()} {path}"] = dict(operation)
    return list(found.items())


def _describe_errors(operations: list[tuple[str, Table]], always: set[str]) -> list[str]:
    words = {status: said["description"] for _, one in operations for status, said in one["responses"].items()}
    rows = [f"| {status} | {words[status]} |" for status in sorted(words) if status >= "4" and status != "503"]
    busy = next(one["responses"]["503"]["description"] for _, one in operations)
    common = ", ".join(sorted(status for status in always if status >= "4"))
    return [
        "## Errors\n",
        f"Every operation may answer with {common}; one that has a body, with 400 and 415, too. Other errors are named",
        "with the operation. The body of an error is [`ErrorReply`](#errorreply).\n",
        "| status | meaning |\n|---|---|",
        *rows,
        f"| 503 | {busy} |\n",
    ]


def _describe_parameters(operations: list[tuple[str, Table]]) -> list[str]:
    """One table for all parameters of queries; operations give them the same meaning."""
    found = {
        (one["name"], one["description"]): one["schema"]
        for _, operation in operations
        for one in operation.get("parameters", [])
        if one["in"] == "query"
    }
    rows = [f"| `{name}` | {_type(schema, shown=True)} | {words} |" for (name, words), schema in sorted(found.items())]
    text = "Every parameter may be left out. A parameter that an operation does not name is refused with 422.\n"
    return ["## Parameters of queries\n", text, "| parameter | type | meaning |\n|---|---|---|", *rows, ""]


def _describe_operation(name: str, operation: Table, always: set[str]) -> str:
    said = [operation["summary"]]
    if "also" in operation:
        said.append(f"Also at `{operation['also']}`.")
    scope = operation.get("description", "Needs no key.")
    said.append(scope.replace("Needs the scope ", "Scope: "))
    query = [f"`{one['name']}`" for one in operation.get("parameters", []) if one["in"] == "query"]
    said += [f"Query: {', '.join(query)}."] if query else []
    example = ""
    for content in operation.get("requestBody", {}).get("content", {}).values():
        said.append(f"Body: {_type(content['schema'])}.")
        shown = content["example"]
        text = shown.strip() if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
        example = f"\n```json\n{text}\n```\n"
    said.append(f"Answer: {_answers(operation)}.")
    errors = [status for status in operation["responses"] if status not in always and status not in ("400", "415")]
    errors = [status for status in errors if status >= "4" and "description" in operation]
    said += [f"Errors: {', '.join(errors)}."] if errors else []
    return f"### `{name}`\n\n{' '.join(said)}\n{example}"


def _answers(operation: Table) -> str:
    """The statuses of success, and the object that they have; all have the same."""
    done = {status: answer for status, answer in operation["responses"].items() if status < "4"}
    (kind,) = {_type(content["schema"]) for answer in done.values() for content in answer["content"].values()}
    return f"{' (new) or '.join(done)} {kind}"


def _reached(parts: Iterable[Any], schemas: dict[str, Table]) -> set[str]:
    """The names of the schemas that parts of the document refer to, by any number of steps."""
    found: set[str] = set()
    waiting = list(parts)
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            name = str(part.get("$ref", "")).rpartition("/")[2]
            if name and name not in found:
                found.add(name)
                waiting.append(schemas[name])
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return found


def _describe_objects(schemas: dict[str, Table], known: dict[str, Table], listed: dict[str, Table]) -> Iterator[str]:
    """One section per object; parameters are described with the component that has them.

    ``listed`` are the objects whose fields the page has above; one that repeats their fields refers to them.
    """
    inside = {_parameters(schema) for schema in schemas.values()}
    for name, schema in schemas.items():
        fields, required = schema.get("properties", {}), schema.get("required", [])
        if name in inside:
            continue
        yield f"### `{name}`\n"
        said = [inspect.cleandoc(schema.get("description", "")).replace("``", "`")]
        like = next((one for one in listed if _repeats(fields, listed[one])), None)
        if parameters := _parameters(schema):
            (kind,) = fields["name"]["enum"]
            said.append(f'Written `{{"name": "{kind}", "parameters": {{…}}}}`, with these parameters:')
            fields, required = known[parameters]["properties"], known[parameters].get("required", [])
        elif like:
            said.append(f"It has the fields of {_plain({'$ref': like})}, all optional.")
            fields = {}
        else:
            listed[name] = schema
        yield " ".join(said) + "\n"
        rows = [
            f"| `{key}` | {_type(one, key not in required)} | {one['description']} |" for key, one in fields.items()
        ]
        if rows:
            yield "\n".join(["| field | type | meaning |\n|---|---|---|", *rows, ""])


def _parameters(schema: Table) -> str:
    """The name of the object that holds the parameters of a component, an action set for instance; or empty."""
    fields = schema.get("properties", {})
    named = list(fields) == ["name", "parameters"] and len(fields["name"].get("enum", [])) == 1
    reference = fields["parameters"] if named else {}
    return str(reference.get("$ref", "")).rpartition("/")[2]


def _repeats(fields: dict[str, Table], other: Table) -> bool:
    """Whether another object, which is larger than a few fields, describes all these fields in the same words."""
    there = other.get("properties", {})
    return len(fields) > 4 and all(
        key in there and one["description"] == there[key]["description"] for key, one in fields.items()
    )


def _type(field: Table, shown: bool = False) -> str:
    """The type with its limits; objects as links to their sections; with ``shown``, the default."""
    kind = _plain(field)
    if not shown:
        return kind
    default = field.get("default")
    simple = isinstance(default, bool | int | float | str)
    kind = kind if simple else kind.removesuffix(" or null")
    return f"{kind}; {json.dumps(default)}" if simple else f"{kind}; optional"


def _plain(field: Table) -> str:
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[`{name}`](#{name.lower()})"
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_plain(choice) for choice in field["anyOf"]))
    if "enum" in field:
        return " or ".join(f"`{json.dumps(value)}`" for value in field["enum"])
    if field.get("type") == "array":
        return f"list of {_plain(field.get('items', {}))}"
    if isinstance(field.get("additionalProperties"), dict) and field["additionalProperties"]:
        return f"map to {_plain(field['additionalProperties'])}"
    return f"{field.get('type', 'any value')}{_limits(field)}"


def _limits(field: Table) -> str:
    """The smallest and the largest number, if the field has them; a billion and more limits nobody."""
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    found = [f"{sign} {field[key]:g}" for key, sign in signs.items() if key in field and field[key] < 1e9]
    return f" {', '.join(found)}" if found else ""
