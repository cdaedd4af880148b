"""Names of arms and items, and their numbers."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from superarm.core.arrays import Ints, arms
from superarm.core.errors import InvalidArgument

Given = Sequence[str] | Sequence[int]
"""Names as users give them."""
Some = Sequence[int | str]
"""Arms or items by name or number."""


class Names:
    """An append-only list of distinct names, found by name or by number.

    Names are strings. If they are given as ints (``integers``), they are kept as strings, and an int that is looked up
    is such a name, not a number.

    >>> names = Names(["red", "blue"], "arms")
    >>> names.numbers(["blue", 0])
    array([1, 0])
    >>> Names([102, 101, 0], "arms").numbers([0, "102"])
    array([2, 0])
    """

    def __init__(self, names: Given | int, what: str) -> None:
        self.what = what
        self.integers = not isinstance(names, int) and len(names) > 0 and all(map(_is_integer, names))
        self.all: list[str] = []
        self._places: dict[str, int] = {}
        self.extend(names)

    def extend(self, names: Given | int) -> None:
        """Append names, or so many that are their own numbers."""
        size = len(self.all)
        if isinstance(names, str):
            raise InvalidArgument(self.what, f"{names!r} is one name", f"give a list: [{names!r}]")
        new: list[Any] = [str(size + n) for n in range(names)] if isinstance(names, int) else list(names)
        if self.integers and not isinstance(names, int):
            wrong = next((name for name in new if not _is_integer(name)), None)
            if wrong is not None:
                raise InvalidArgument(self.what, f"{wrong!r} is not an int, as the other names are", "give ints")
            new = [str(int(name)) for name in new]
        wrong = next((name for name in new if not isinstance(name, str) or not name), None)
        if wrong is not None:
            remedy = "give distinct, non-empty strings, or ints alone"
            raise InvalidArgument(self.what, f"{wrong!r} is not a name", remedy)
        places = {name: size + n for n, name in enumerate(new)}
        if len(places) < len(new) or not self._places.keys().isdisjoint(places):
            raise InvalidArgument(self.what, "a name appears twice", "give distinct, non-empty strings")
        self.all += new
        if self._places:
            self._places.update(places)
        else:
            self._places = places

    def number(self, name: Any) -> int | None:
        """The number of one name, None if it is unknown."""
        if self.integers and _is_integer(name):
            name = str(name)
        return self._places.get(name) if isinstance(name, str) else None

    def to_plain(self) -> list[str] | list[int]:
        """The names as they were given."""
        return [int(name) for name in self.all] if self.integers else list(self.all)

    def numbers(self, wanted: Iterable[Any]) -> Ints:
        """Numbers of what is given by name or number."""
        if isinstance(wanted, str) or not isinstance(wanted, Iterable):
            raise InvalidArgument(self.what, f"{wanted!r} is not a list", f"give a list: [{wanted!r}]")
        try:
            if self.integers:
                places = [self._places[str(x)] for x in wanted]
            else:
                places = [self._places[x] if isinstance(x, str) else x for x in wanted]
        except KeyError as unknown:
            raise InvalidArgument(
                self.what, f"unknown name {unknown}", f"known: {', '.join(self.all[:5])}, …"
            ) from None
        return arms(places or np.zeros(0, np.int64), self.what, len(self.all))


def _is_integer(name: Any) -> bool:
    return isinstance(name, int | np.integer) and not isinstance(name, bool)


def names_for(names: Given | None, n: int, what: str) -> Names:
    """The names of ``n`` arms or items: those given, or their numbers."""
    if names is not None and len(names) != n:
        raise InvalidArgument(what, f"{len(names)} names for {n} {what}", "give one name each")
    return Names(n if names is None else names, what)
