"""Names of arms and items, and their numbers."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from superarm.arrays import Ints, arms
from superarm.errors import InvalidArgument


class Names:
    """An append-only list of distinct names, found by name or by number.

    >>> names = Names(["red", "blue"], "arms")
    >>> names.numbers(["blue", 0])
    array([1, 0])
    """

    def __init__(self, names: Sequence[str] | int, what: str) -> None:
        self.what = what
        self.all: list[str] = []
        self._places: dict[str, int] = {}
        self.extend(names)

    def extend(self, names: Sequence[str] | int) -> None:
        """Append names, or so many that are their own numbers."""
        size = len(self.all)
        new = [str(size + n) for n in range(names)] if isinstance(names, int) else list(names)
        if any(not isinstance(name, str) or not name for name in new):
            raise InvalidArgument(self.what, "holds a name that is not a string", "give distinct, non-empty strings")
        places = {name: size + n for n, name in enumerate(new)}
        if len(places) < len(new) or not self._places.keys().isdisjoint(places):
            raise InvalidArgument(self.what, "a name appears twice", "give distinct, non-empty strings")
        self.all += new
        if self._places:
            self._places.update(places)
        else:
            self._places = places

    def number(self, name: str) -> int | None:
        """The number of one name, None if it is unknown."""
        return self._places.get(name)

    def numbers(self, wanted: Iterable[Any]) -> Ints:
        """Numbers of what is given by name or number."""
        try:
            places = [self._places[x] if isinstance(x, str) else x for x in wanted]
        except KeyError as unknown:
            raise InvalidArgument(
                self.what, f"unknown name {unknown}", f"known: {', '.join(self.all[:5])}, …"
            ) from None
        return arms(places or np.zeros(0, np.int64), self.what, len(self.all))


def names_for(names: Sequence[str] | None, n: int, what: str) -> Names:
    """The names of ``n`` arms or items: those given, or their numbers."""
    if names is not None and len(names) != n:
        raise InvalidArgument(what, f"{len(names)} names for {n} {what}", "give one name each")
    return Names(n if names is None else names, what)
