"""Write the types of the TypeScript client, and its table of operations, from the OpenAPI document.

    python -m dev.tools.typescript_types

``make pages`` does so, too.
"""

import inspect
import json
import re
from pathlib import Path
from typing import Any

import msgspec

from superarm.service.http.openapi import document
from superarm.service.http.operations import OPERATIONS
from superarm.service.schemas import BulkLine

TARGET = Path(__file__).resolve().parents[2] / "clients" / "typescript" / "src" / "types.ts"
HEAD = "// Made from the OpenAPI document by dev/tools/typescript_types.py: do not edit.\n"
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def main() -> None:
    TARGET.write_text(make_types())


def make_types() -> str:
    """The text of the file."""
    whole = document(OPERATIONS)
    _, more = msgspec.json.schema_components([BulkLine], ref_template="#/components/schemas/{name}")
    schemas = whole["components"]["schemas"] | {"BulkLine": more["BulkLine"]}
    parts = [HEAD, *(_interface(name, schemas[name]) for name in sorted(schemas))]
    found = [(method.upper(), path, one) for path, by in whole["paths"].items() for method, one in by.items()]
    rows = [f"  {one['operationId']}: {_operation(one)};" for _, _, one in found]
    parts.append(
        "/** What each operation takes and gives, by its name. */\nexport interface Operations {\n"
        + "\n".join(rows)
        + "\n}\n"
    )
    rows = [f"  {one['operationId']}: [{json.dumps(method)}, {json.dumps(path)}]," for method, path, one in found]
    parts.append(
        "/** The method and the path of each operation. */\nexport const OPERATIONS = {\n"
        + "\n".join(rows)
        + "\n} as const;\n"
    )
    return "\n".join(parts)


def _comment(text: str, indent: str = "") -> str:
    return f"{indent}/** {' '.join(text.replace('*/', '').split())} */\n" if text else ""


def _interface(name: str, schema: dict[str, Any]) -> str:
    lines = []
    for field, one in schema["properties"].items():
        mark = "" if field in schema.get("required", ()) else "?"
        lines.append(f"{_comment(one.get('description', ''), '  ')}  {field}{mark}: {_type(one)};\n")
    said = inspect.cleandoc(schema.get("description", "")).partition("\n\nParameters\n")[0]
    return f"{_comment(said)}export interface {name} {{\n{''.join(lines)}}}\n"


def _type(schema: dict[str, Any]) -> str:
    """A schema as a type.

    >>> _type({"type": ["integer", "null"]})
    'number | null'
    >>> _type({"type": "array", "items": {"anyOf": [{"type": "null"}, {"const": "a"}]}})
    '(null | "a")[]'
    """
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema or "enum" in schema:
        return " | ".join(json.dumps(one) for one in schema.get("enum", [schema.get("const")]))
    kinds = schema.get("anyOf")
    if isinstance(schema.get("type"), list):
        kinds = [{**schema, "type": kind} for kind in schema["type"]]
    if kinds:
        return " | ".join(dict.fromkeys(map(_type, kinds)))
    if schema.get("type") == "array":
        item = _type(schema.get("items") or {})
        return f"({item})[]" if " " in item else f"{item}[]"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"Record<string, {_type(values) if isinstance(values, dict) else 'unknown'}>"
    return PLAIN.get(schema.get("type", ""), "unknown")


def _operation(one: dict[str, Any]) -> str:
    """What an operation takes and gives."""
    given: dict[str, list[str]] = {"path": [], "query": []}
    for parameter in one.get("parameters", ()):
        mark = "" if parameter["in"] == "path" else "?"
        given[parameter["in"]].append(f"{parameter['name']}{mark}: {_type(parameter['schema'])}")
    parts = [f"{place}: {{ {'; '.join(fields)} }}" for place, fields in given.items() if fields]
    if "requestBody" in one:
        parts.append(f"body: {_content(one['requestBody'])}")
    return f"{{ given: {{ {'; '.join(parts)} }}; reply: {_content(one['responses']['200'])} }}"


def _content(said: dict[str, Any]) -> str:
    ((media, shown),) = said["content"].items()
    return "string" if re.search("ndjson", media) else _type(shown["schema"])


if __name__ == "__main__":
    main()
