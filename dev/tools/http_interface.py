"""The page about the HTTP interface, from the service's OpenAPI document: errors, then the operations."""

import json
from typing import Any

Table = dict[str, Any]
"""A part of the OpenAPI document."""

OF_PROBLEM = "/v1/problems/{name}"
"""How paths begin that name the problem; some operations have another path without it."""


def write_operations() -> str:
    """Errors, which operations share, and one line per operation, with its body if it has one."""
    from superarm.service.http.openapi import document
    from superarm.service.http.operations import OPERATIONS

    operations = _operations(document(OPERATIONS)["paths"])
    rows = [f"| {_shorten(name)} | {_describe(operation)} | {_scope(operation)} |" for name, operation in operations]
    bodies = [f"{_shorten(name, mark='')}  {body}" for name, operation in operations if (body := _example(operation))]
    return "\n".join(
        [
            *("## Errors\n", "| status | meaning |\n|---|---|", *_errors(operations), ""),
            *("## Operations\n", "`…` stands for `/v1/problems/{name}`.\n"),
            *("| operation | what it does | scope |\n|---|---|---|", *rows, ""),
            *("## Bodies\n", "```text", *bodies, "```"),
        ]
    )


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


def _shorten(name: str, mark: str = "`") -> str:
    return f"{mark}{name.replace(OF_PROBLEM, '…')}{mark}"


def _describe(operation: Table) -> str:
    also = f" Also at {_shorten(operation['also'])}." if "also" in operation else ""
    query = [f"`{one['name']}`" for one in operation.get("parameters", []) if one["in"] == "query"]
    said = f" Query: {', '.join(query)}." if query else ""
    return f"{operation['summary']}{also}{said}"


def _scope(operation: Table) -> str:
    return str(operation.get("description", "none")).removeprefix("Needs the scope ").rstrip(".")


def _example(operation: Table) -> str:
    for content in operation.get("requestBody", {}).get("content", {}).values():
        shown = content["example"]
        return shown.strip().replace("\n", "\\n") if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
    return ""


def _errors(operations: list[tuple[str, Table]]) -> list[str]:
    words = {status: said["description"] for _, one in operations for status, said in one["responses"].items()}
    words |= {"503": next(one["responses"]["503"]["description"] for _, one in operations)}
    return [f"| {status} | {words[status]} |" for status in sorted(words) if status >= "4"]
