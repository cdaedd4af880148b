"""The page about the HTTP interface, from the service's OpenAPI document: operations, then the objects they use."""

import inspect
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

Table = dict[str, Any]
"""A part of the OpenAPI document."""

Answer = tuple[str, str]
"""The status of an answer, and what it means."""


def write_operations() -> str:
    """Errors that several operations share; one section per operation; one per object that they name."""
    from superarm.service.http.openapi import document
    from superarm.service.http.operations import OPERATIONS

    described = document(OPERATIONS)
    operations = [
        (f"{method.upper()} {path}", operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    counts = Counter(answer for _, operation in operations for answer in _answers(operation))
    common = sorted(answer for answer, n in counts.items() if n > 2 and answer[0].startswith(("4", "5")))
    parts = ["## Errors\n", "The body of an error is [`ErrorReply`](#errorreply).\n", "| status | meaning |\n|---|---|"]
    parts += [*(f"| {status} | {meaning} |" for status, meaning in common), ""]
    for name, operation in operations:
        parts += [f"## `{name}`\n", f"{operation['summary']} {operation.get('description', '')}\n"]
        parts += [*_describe_query(operation), *_describe_body(operation), _describe_answers(operation, common)]
    return "\n".join([*parts, "## Objects\n", *_describe_objects(described["components"]["schemas"])])


def _answers(operation: Table) -> list[Answer]:
    return [(status, answer["description"]) for status, answer in operation["responses"].items()]


def _describe_answers(operation: Table, common: list[Answer]) -> str:
    """The answers of an operation with their objects; errors in ``common`` by their status alone."""
    own = []
    for status, answer in operation["responses"].items():
        meaning = answer["description"]
        if (status, meaning) not in common:
            kinds = [_describe_type(content["schema"]) for content in answer.get("content", {}).values()]
            said = [meaning.rstrip(".")] if meaning != "Done." or not kinds else []
            own.append(f"{status}: {', '.join([*said, *kinds])}")
    shared = ", ".join(status for status, meaning in _answers(operation) if (status, meaning) in common)
    return f"Answers: {'; '.join(own)}.{f' Errors: {shared}.' if shared else ''}\n"


def _describe_query(operation: Table) -> list[str]:
    found = [one for one in operation.get("parameters", []) if one["in"] == "query"]
    fields = {one["name"]: one["schema"] | {"description": one["description"]} for one in found}
    return [_table("parameter of the query", fields, [])] if fields else []


def _describe_body(operation: Table) -> list[str]:
    for content in operation.get("requestBody", {}).get("content", {}).values():
        parts = [f"Body: {_describe_type(content['schema'])}."]
        if "example" in content:
            parts[0] = f"{parts[0][:-1]}, for example"
            example = content["example"]
            text = example.strip() if isinstance(example, str) else json.dumps(example, ensure_ascii=False)
            parts.append(f"```json\n{text}\n```")
        return ["\n\n".join(parts) + "\n"]
    return []


def _describe_objects(schemas: dict[str, Table]) -> Iterator[str]:
    for name, schema in schemas.items():
        yield f"### `{name}`\n"
        if schema.get("description"):
            yield inspect.cleandoc(schema["description"]).replace("``", "`") + "\n"
        if schema.get("properties"):
            yield _table("field", schema["properties"], schema.get("required", []))


def _table(heading: str, fields: dict[str, Table], required: list[str]) -> str:
    rows = [
        f"| `{name}` | {field['description']} | {_describe_type(field)} | {_default(name, field, required)} |"
        for name, field in fields.items()
    ]
    return f"| {heading} | meaning | type | default |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def _default(name: str, field: Table, required: list[str]) -> str:
    if name in required:
        return "required"
    return f"`{json.dumps(field['default'])}`" if "default" in field and "$ref" not in field else ""


def _describe_type(field: Table) -> str:
    """The type with its limits; objects as links to their sections."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[`{name}`](#{name.lower()})"
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_describe_type(choice) for choice in field["anyOf"]))
    if "enum" in field:
        return " or ".join(f"`{json.dumps(value)}`" for value in field["enum"])
    if field.get("type") == "array":
        return f"list of {_describe_type(field.get('items', {}))}"
    if isinstance(field.get("additionalProperties"), dict) and field["additionalProperties"]:
        return f"mapping from names to {_describe_type(field['additionalProperties'])}"
    return f"{field.get('type', 'any value')}{_limits(field)}"


def _limits(field: Table) -> str:
    """The smallest and the largest number, if the field has them; a billion and more limits nobody."""
    words = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    found = [f"{word} {field[key]:g}" for key, word in words.items() if key in field and field[key] < 1e9]
    return f", {' and '.join(found)}" if found else ""
