"""From a path to its endpoint by one dictionary look-up.

Starlette's router tries one pattern after the other, which costs ten times as much. Routes are declared once, as
Starlette's: this index is built from them, and what it does not find (an unknown path, another method, parameters in
other places) is left to Starlette, which answers with 404 or 405 or finds the route by its pattern.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from starlette.routing import Route

ENCODED_SLASH = "\x1f"
"""What stands for ``%2F`` in a path that is decoded: no name holds it, and it separates no segments."""


def decode_path(scope: Any) -> str:
    """The path of a request, in which ``%2F`` stays a part of its segment.

    >>> decode_path({"path": "/v1/decisions/a/b c", "raw_path": b"/v1/decisions/a%2Fb%20c"})
    '/v1/decisions/a\\x1fb c'
    """
    raw: bytes = scope.get("raw_path") or b""
    if b"%2F" not in raw and b"%2f" not in raw:
        path: str = scope["path"]
        return path
    segments = [unquote(segment) for segment in raw.decode("latin-1").split("/")]
    return "/".join([segment.replace("/", ENCODED_SLASH) for segment in segments])


def restore_slashes(segment: str) -> str:
    """A segment of such a path, as it was meant."""
    return segment.replace(ENCODED_SLASH, "/")


class Match(NamedTuple):
    """The endpoint of a path, and the values of the path's parameters."""

    endpoint: Any
    parameters: dict[str, str]


class Router:
    """An index of routes by method and path: without parameters, or with the third segment as one, or third and fifth.

    >>> async def arms(scope, receive, send): ...
    >>> index = Router([Route("/v1/problems/{name}/arms", arms, methods=["GET"])])
    >>> index.find("GET", "/v1/problems/ads/arms").parameters
    {'name': 'ads'}
    >>> index.find("GET", "/v1/problems/ads") is None
    True
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        self._exact: dict[tuple[str, str], Any] = {}
        self._with_parameter: dict[tuple[str, ...], tuple[str, Any]] = {}
        self._with_two: dict[tuple[str, ...], tuple[str, str, Any]] = {}
        for route in routes:
            for method in route.methods or ():
                self._add(method, route.path, route.app)

    def _add(self, method: str, path: str, endpoint: Any) -> None:
        segments = path.split("/")
        parameters = [n for n, segment in enumerate(segments) if "{" in segment]
        if not parameters:
            self._exact[method, path] = endpoint
        elif parameters == [3]:
            self._with_parameter[method, *segments[1:3], *segments[4:]] = (segments[3][1:-1], endpoint)
        elif parameters == [3, 5]:
            names = segments[3][1:-1], segments[5][1:-1]
            self._with_two[method, *segments[1:3], segments[4], *segments[6:]] = (*names, endpoint)

    def find(self, method: str, path: str) -> Match | None:
        """The endpoint of a path; a path without parameter is preferred."""
        exact = self._exact.get((method, path))
        if exact is not None:
            return Match(exact, {})
        segments = path.split("/")
        if len(segments) < 4 or not segments[3]:
            return None
        found = self._with_parameter.get((method, *segments[1:3], *segments[4:]))
        if found is not None:
            return Match(found[1], {found[0]: restore_slashes(segments[3])})
        if len(segments) < 6 or not segments[5]:
            return None
        two = self._with_two.get((method, *segments[1:3], segments[4], *segments[6:]))
        if two is None:
            return None
        return Match(two[2], {two[0]: restore_slashes(segments[3]), two[1]: restore_slashes(segments[5])})
