"""From a path to its operation by one look-up; a router that tries one pattern after the other costs ten times that."""

from typing import Any, NamedTuple


class Match(NamedTuple):
    """What serves a path, and the words that stand in its places."""

    endpoint: Any
    words: dict[str, str]


class Router:
    """Endpoints by method and path. A place is the third segment, a whole one, as in all of superarm's paths but one.

    >>> paths = Router()
    >>> paths.add("GET", "/v1/problems/{name}/arms", "arms")
    True
    >>> paths.find("GET", "/v1/problems/ads/arms")
    Match(endpoint='arms', words={'name': 'ads'})
    >>> paths.find("GET", "/v1/problems/ads") is None
    True
    """

    def __init__(self) -> None:
        self._exact: dict[tuple[str, str], Any] = {}
        self._placed: dict[tuple[str, ...], tuple[str, Any]] = {}

    def add(self, method: str, path: str, endpoint: Any) -> bool:
        """Let ``endpoint`` serve ``path``; False if it has a place elsewhere, which others must look for."""
        parts = path.split("/")
        places = [n for n, part in enumerate(parts) if part.startswith("{")]
        if not places:
            self._exact[method, path] = endpoint
        elif places == [3]:
            self._placed[method, *parts[1:3], *parts[4:]] = (parts[3][1:-1], endpoint)
        return places in ([], [3])

    def find(self, method: str, path: str) -> Match | None:
        """What serves a path; an exact one goes before one with a place."""
        exact = self._exact.get((method, path))
        if exact is not None:
            return Match(exact, {})
        parts = path.split("/")
        found = self._placed.get((method, *parts[1:3], *parts[4:])) if len(parts) > 3 and parts[3] else None
        return None if found is None else Match(found[1], {found[0]: parts[3]})
