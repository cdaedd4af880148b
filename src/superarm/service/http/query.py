"""The query parameters of operations; and numbers and names from the path and the query of a request."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from superarm.service.domain.spec import ProblemName
from superarm.service.errors import invalid


class Parameter(NamedTuple):
    """A query parameter, and its JSON schema."""

    name: str
    schema: dict[str, Any]


def whole(name: str, least: int, most: int, default: int) -> Parameter:
    """A parameter that is a whole number."""
    return Parameter(name, {"type": "integer", "minimum": least, "maximum": most, "default": default})


def text(name: str, choices: Sequence[str] = ()) -> Parameter:
    """A parameter that is a text, or one of some words."""
    return Parameter(name, {"type": "string"} | ({"enum": list(choices)} if choices else {}))


def number(name: str, below: float, **default: float) -> Parameter:
    """A parameter that is a number above 0."""
    return Parameter(name, {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": below, **default})


LIMIT = whole("limit", 1, 1_000, 100)
PAGE = (whole("offset", 0, 10**9, 0), LIMIT)
DELTA = number("delta", 1.0, default=0.05)


def parse_query(query: bytes, allowed: Sequence[Parameter]) -> dict[str, str]:
    """The query of an operation; a parameter that it does not have is refused, as an unknown field of a body is.

    >>> parse_query(b"limit=5&offset=", PAGE)
    {'limit': '5'}
    """
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    names = [parameter.name for parameter in allowed]
    for name, _ in pairs:
        if name not in names:
            remedy = f"there are {', '.join(names)}" if names else "there are none here"
            raise invalid(repr(name[:40]), "unknown query parameter", remedy)
    return {name: value for name, value in pairs if value}


def parse_integer(values: dict[str, str], name: str, default: int, most: int, least: int = 0) -> int:
    """A whole number from the path or the query."""
    given = values.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdigit() and len(given) < 12 and least <= int(given) <= most):
        raise invalid(name, f"{given[:40]!r}", f"give a whole number from {least} to {most}")
    return int(given)


def parse_limit(values: dict[str, str]) -> int:
    """How many rows of a page are wanted."""
    return parse_integer(values, "limit", 100, 1_000, 1)


def parse_number(values: dict[str, str], name: str, default: float, below: float) -> float:
    """A positive number from the query."""
    text = values.get(name, str(default))
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 < number < below and text != str(default):
        raise invalid(name, f"{text[:40]!r}", f"give a number above 0 and below {below:g}")
    return number


def parse_problem_name(name: str) -> str:
    """The name of a new problem, from the path."""
    try:
        return msgspec.convert(name, ProblemName)
    except msgspec.ValidationError:
        remedy = "the name of a problem has 1 to 256 characters, no slash and no control character"
        raise invalid("name", repr(name[:40]), remedy) from None
