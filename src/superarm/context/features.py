"""Features: what is known of the user at a decision, declared once, and the coordinates that it is encoded in."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from superarm.core.arrays import count
from superarm.core.component import Component
from superarm.core.errors import InvalidArgument

OTHER = "other"
"""The level of a categorical feature that every value outside the list is counted as."""

MAX_FEATURES = 1024
"""The most coordinates that a context may be encoded in."""

Range = tuple[float, float] | None
"""The range of a numeric feature; None for a feature that is standardised by the values seen so far."""


def _numeric(value: Any, name: str) -> tuple[tuple[str, Range], ...]:
    """Numeric features: a list of names, or a mapping from names to ranges ``(low, high)`` or None."""
    given = [(one, None) if isinstance(one, str) else one for one in _pairs(value, name)]
    return tuple((_name(key, name), None if ends is None else _range(ends, f"{name}[{key!r}]")) for key, ends in given)


def _pairs(value: Any, name: str) -> list[Any]:
    """The pairs of a mapping, or a list of pairs."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidArgument(name, f"{value!r} is not a mapping", "give a mapping by the names of features")
    return list(value)


LARGEST = 1e100
"""Numbers may be so large: the square of a difference is finite."""


def _range(ends: Any, name: str) -> Range:
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError):
        raise InvalidArgument(name, f"{ends!r} is not a range", "give (low, high), or None to standardise") from None
    if not -LARGEST <= low < high <= LARGEST:
        raise InvalidArgument(name, f"({low:g}, {high:g}) is empty or too wide", f"give low < high within {LARGEST:g}")
    return low, high


def _categorical(value: Any, name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Categorical features, each with its levels."""
    return tuple((_name(key, name), _levels(levels, f"{name}[{key!r}]")) for key, levels in _pairs(value, name))


def _levels(levels: Any, name: str) -> tuple[str, ...]:
    found = tuple(str(level) for level in levels) if not isinstance(levels, str) else ()
    if not found or len(set(found)) < len(found):
        raise InvalidArgument(name, f"{levels!r} has no level, or one twice", "give a list of distinct levels")
    return found


def _parse_hashed(value: Any, name: str) -> tuple[tuple[str, int], ...]:
    """Hashed features, each with the number of its buckets."""
    return tuple((_name(key, name), count(size, f"{name}[{key!r}]", 2)) for key, size in _pairs(value, name))


def names_tuple(value: Any, name: str) -> tuple[str, ...]:
    """A list of names as a tuple."""
    if isinstance(value, str):
        raise InvalidArgument(name, f"{value!r} is one name", "give a list of names")
    return tuple(_name(one, name) for one in value)


def _name(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidArgument(name, f"{value!r} is not a name", "give non-empty strings")
    return value


class Features(Component):
    """What is known of the user at a decision, and how it becomes a vector.

    Every coordinate lies in [-1, 1]. Missing values (left out, None or NaN) are encoded as described for each kind.

    Parameters
    ----------
    numeric
        Names of numeric features, or a mapping from names to ranges ``(low, high)``. A range is mapped to [-1, 1];
        values outside of it count as its ends. Without a range the feature is standardised by the values that were
        seen (:class:`superarm.context.Frame`). A missing value is 0, the centre.
    categorical
        Levels of each categorical feature: one coordinate per level, 1 for the level that is given. The level
        ``"other"`` is used for all values that are not listed, and for a missing one; without it, a value that is not
        listed is an error, and all coordinates of a missing one are 0.
    hashed
        For features with an open set of values, such as search words: the number of buckets. A value is a string, or a
        list of strings that share one unit of length, or a mapping from strings to weights, scaled down if it is longer
        than 1; those of a missing value are 0. Two values may share a bucket.
    missing
        Names of numeric features that get one more coordinate, which is 1 if the value is missing.
    d
        In place of all these: contexts are arrays of ``d`` numbers in [-1, 1], or sparse vectors.

    Examples
    --------
    >>> features = Features(numeric={"age": (0, 100)}, categorical={"country": ["NO", "SE", "other"]})
    >>> features.coordinates
    ['age', 'country=NO', 'country=SE', 'country=other']
    """

    numeric: Any = ()
    categorical: Any = ()
    hashed: Any = ()
    missing: Any = ()
    d: int = 0

    def check(self) -> None:
        parse = {"numeric": _numeric, "categorical": _categorical, "hashed": _parse_hashed, "missing": names_tuple}
        for name, convert in parse.items():
            self.convert(name, convert(getattr(self, name), name))
        names = self._named
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidArgument("features", f"{twice[0]!r} is declared twice", "declare each feature once")
        if self.d and names:
            raise InvalidArgument("d", f"{self.d} beside named features", "give either d or named features", "Features")
        if self.d < 0:
            raise InvalidArgument("d", f"{self.d}", "give the length of the arrays, at least 0", "Features")
        for name in self.missing:
            if name not in self.ranges:
                raise InvalidArgument("missing", unknown(name, list(self.ranges)), "list numeric features", "Features")
        if self.size > MAX_FEATURES:
            raise InvalidArgument("features", f"{self.size} coordinates", f"use at most {MAX_FEATURES}")

    @property
    def _named(self) -> list[str]:
        return [name for kind in (self.numeric, self.categorical, self.hashed) for name, _ in kind]

    @property
    def ranges(self) -> dict[str, Range]:
        """The range of each numeric feature; None for those that are standardised."""
        return dict(self.numeric)

    @property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """The levels of each categorical feature."""
        return dict(self.categorical)

    @property
    def names(self) -> list[str]:
        """The features that a context may have."""
        return [str(n) for n in range(self.d)] or self._named

    @property
    def coordinates(self) -> list[str]:
        """The name of each coordinate of an encoded context."""
        return [
            *(str(n) for n in range(self.d)),
            *self.ranges,
            *(f"{name} missing" for name in self.missing),
            *(f"{name}={level}" for name, levels in self.categorical for level in levels),
            *(f"{name}#{bucket}" for name, buckets in self.hashed for bucket in range(buckets)),
        ]

    @property
    def size(self) -> int:
        """How many coordinates an encoded context has."""
        return len(self.coordinates)

    @property
    def standardised(self) -> list[str]:
        """The numeric features without a range: they are standardised by what was seen."""
        return [name for name, ends in self.numeric if ends is None]

    @property
    def one_hot(self) -> bool:
        """Whether one coordinate of every complete context is 1 and all others are 0."""
        return len(self.categorical) == 1 and not (self.numeric or self.hashed or self.d)

    @property
    def longest(self) -> float:
        """The largest possible squared length of an encoded context."""
        return float(self.d + len(self.numeric) + len(self.categorical) + len(self.hashed))


def unknown(name: Any, known: Sequence[str]) -> str:
    """The message that ``name`` is unknown, with the most similar of the ``known`` names.

    >>> unknown("contry", ["age", "country"])
    "'contry' is unknown, did you mean 'country'?"
    """
    near = difflib.get_close_matches(str(name)[:40], known[:100], n=1, cutoff=0.5)  # which takes the cube of the length
    return f"{name!r} is unknown" + (f", did you mean {near[0]!r}?" if near else "")
