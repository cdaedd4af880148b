"""What ``tomllib`` lacks: writing TOML, and finding the line of a key."""

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_HEADER = re.compile(r"\s*\[{1,2}\s*(.+?)\s*\]{1,2}\s*(#.*)?\Z")
_PART = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*(\.|=|\Z)""")


def dumps(table: Mapping[str, Any]) -> str:
    """Write a table as TOML: plain values first, then one section per table.

    >>> print(dumps({"name": "x", "policies": {"KL-UCB": {"rho": 1.0}}}))
    name = "x"
    <BLANKLINE>
    [policies.KL-UCB]
    rho = 1.0
    <BLANKLINE>
    """
    return "\n".join(_section(table, ()))


def _section(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    plain = {k: v for k, v in table.items() if not _is_section(v, path)}
    lines = [f"{_key(k)} = {_value(v)}" for k, v in plain.items()]
    if path and (lines or not table):
        lines = [f"[{'.'.join(map(_key, path))}]", *lines]
    lines += [""] if lines else []
    for key, inner in table.items():
        if key in plain:
            continue
        if isinstance(inner, list | tuple):
            for one in inner:
                lines += [f"[[{_key(key)}]]", *(f"{_key(k)} = {_value(v)}" for k, v in one.items()), ""]
        else:
            lines += _section(inner, (*path, key))
    return lines


def _is_section(value: Any, path: tuple[str, ...]) -> bool:
    """Whether a value gets its own section: instances and policies do, deeper tables are written inline."""
    if isinstance(value, list | tuple):
        return not path and bool(value) and all(isinstance(one, Mapping) for one in value)
    return isinstance(value, Mapping) and len(path) < 2


def _key(key: str) -> str:
    return key if _BARE.match(key) else _quote(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }" if value else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    if isinstance(value, str):
        if "\n" in value and '"""' not in value and "\\" not in value and value.replace("\n", "").isprintable():
            return f'"""\n{value}"""'
        return _quote(value)
    return repr(value)


def _quote(text: str) -> str:
    """A string in quotes. JSON and TOML agree on strings, except that TOML requires DEL to be escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """The number of the line with the key ``path``, or with its nearest parent if it is inside an inline table.

    >>> line_of("a = 1\\n[instances.x]\\nk = { sweep = [1, 2] }", ("instances", "x", "k", "sweep"))
    3
    """
    best, found = 0, None
    for number, here in _list_keys(text):
        shared = _shared_length(here, path)
        if shared > best and shared == len(here):
            best, found = shared, number
    return found


def _list_keys(text: str) -> list[tuple[int, tuple[str, ...]]]:
    keys: list[tuple[int, tuple[str, ...]]] = []
    table: tuple[str, ...] = ()
    closing, seen = "", dict[tuple[str, ...], int]()
    for number, line in enumerate(text.splitlines(), 1):
        if closing:
            closing = "" if closing in line else closing
            continue
        header = _HEADER.match(line)
        if header and "=" not in header[1]:
            table = _split_key(header[1])
            if line.lstrip().startswith("[["):
                seen[table] = seen.get(table, -1) + 1
                table = (*table, str(seen[table]))
            keys.append((number, table))
        elif (own := _split_key(line)) and "=" in line:
            keys.append((number, (*table, *own)))
        for quotes in ('"""', "'''"):
            if line.count(quotes) % 2:
                closing = quotes
    return keys


def _split_key(text: str) -> tuple[str, ...]:
    parts, at = [], 0
    while at < len(text) and (match := _PART.match(text, at)):
        parts.append(next(group for group in match.groups() if group is not None))
        at = match.end()
        if match[4] != ".":
            break
    return tuple(parts)


def _shared_length(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n
