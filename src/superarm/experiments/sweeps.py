"""Sweeps: a value ``{ sweep = [...] }`` anywhere in a table stands for one case a value."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from superarm.errors import InvalidSpec

SWEEP = "sweep"
Path = tuple[str, ...]


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
        values = ", ".join(
            f"{axis}={value:g}" if isinstance(value, float) else f"{axis}={value}" for axis, value in self.axes.items()
        )
        return f"{self.name} ({values})" if values else self.name


def expand(table: Mapping[str, Any], path: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Every combination of the swept values: the axes, and the table with the values in place.

    >>> expand({"k": {"sweep": [2, 4]}, "n_arms": 10}, ())
    [({'k': 2}, {'k': 2, 'n_arms': 10}), ({'k': 4}, {'k': 4, 'n_arms': 10})]
    """
    found = list(_swept(table, path, ()))
    cases = []
    for values in itertools.product(*(values for _, values in found)):
        chosen = {where: value for (where, _), value in zip(found, values, strict=True)}
        axes = {".".join(where): value for where, value in chosen.items()}
        cases.append((axes, _filled(table, (), chosen)))
    return cases


def _swept(table: Mapping[str, Any], path: Path, inner: Path) -> Iterator[tuple[Path, list[Any]]]:
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
            yield from _swept(value, path, (*inner, key))


def _filled(table: Mapping[str, Any], inner: Path, chosen: Mapping[Path, Any]) -> dict[str, Any]:
    filled = {}
    for key, value in table.items():
        here = (*inner, key)
        if here in chosen:
            filled[key] = chosen[here]
        else:
            filled[key] = _filled(value, here, chosen) if isinstance(value, Mapping) else value
    return filled
