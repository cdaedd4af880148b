"""What is said of an operation in the table of operations."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from superarm.service.http.handlers import Answer, Call
from superarm.service.http.query import Parameter


class Operation(NamedTuple):
    """One operation: method, path, required scope, handler, types of body and replies, possible errors, and query."""

    method: str
    path: str
    scope: str
    handler: Callable[[Call], Awaitable[Answer]]
    summary: str
    body: Any
    replies: dict[int, Any]
    refusals: tuple[int, ...]
    example: Any = None
    query: tuple[Parameter, ...] = ()
