"""Sweeps: ``{ sweep = [...] }`` in place of a value gives one case per listed value."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from superarm.core.errors import InvalidSpec

SWEEP = "sweep"
KeyPath = tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """One point of a sweep: the name it was declared under, and the value on each axis.

    >>> Case("random", {"k": 4, "seed": 0}).label
    'random (k=4, seed=0)'
    """

    name: str
    axes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name, followed by the values on the axes."""
        values = ", ".join(
            f"{axis}={value:g}" if isinstance(value, float) else f"{axis}={value}" for axis, value in self.axes.items()
        )
        return f"{self.name} ({values})" if values else self.name


def expand(table: Mapping[str, Any], path: KeyPath) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Every combination of the swept values: the values by axis, and the table with these values filled in.

    >>> expand({"k": {"sweep": [2, 4]}, "n_arms": 10}, ())
    [({'k': 2}, {'k': 2, 'n_arms': 10}), ({'k': 4}, {'k': 4, 'n_arms': 10})]
    """
    found = list(_find_sweeps(table, path, ()))
    cases = []
    for values in itertools.product(*(values for _, values in found)):
        by_axis = {axis: value for (axis, _), value in zip(found, values, strict=True)}
        cases.append(({".".join(axis): value for axis, value in by_axis.items()}, _fill(table, (), by_axis)))
    return cases


def _find_sweeps(table: Mapping[str, Any], path: KeyPath, inner: KeyPath) -> Iterator[tuple[KeyPath, list[Any]]]:
    for key, value in table.items():
        here = (*path, *inner, key)
        if isinstance(value, Mapping) and SWEEP in value:
            values = value[SWEEP]
            if set(value) != {SWEEP} or not isinstance(values, list | tuple) or not values:
                raise InvalidSpec(here, "not a sweep", "write { sweep = [value, value, …] }, with at least one value")
            if len({repr(one) for one in values}) < len(values):
                raise InvalidSpec(here, "sweeps over a value twice", "give each value once")
            yield (*inner, key), list(values)
        elif isinstance(value, Mapping):
            yield from _find_sweeps(value, path, (*inner, key))


def _fill(table: Mapping[str, Any], inner: KeyPath, by_axis: Mapping[KeyPath, Any]) -> dict[str, Any]:
    """The table with the value of each swept key in place of its sweep."""
    filled = {}
    for key, value in table.items():
        here = (*inner, key)
        if here in by_axis:
            filled[key] = by_axis[here]
        else:
            filled[key] = _fill(value, here, by_axis) if isinstance(value, Mapping) else value
    return filled
