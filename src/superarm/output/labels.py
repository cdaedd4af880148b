"""Data frames: rows and columns are found by their names, not by their places; tables for pandas, polars and Arrow."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from superarm.core.errors import InvalidArgument, MissingExtra

_SHOWN = 5
"""A message lists so many names."""


class Labels(NamedTuple):
    """What rows or columns should be called: ``wanted``, in order, out of ``known``; ``kind`` is arms or items."""

    kind: str
    wanted: Sequence[str]
    known: Sequence[str]


def numbered(kind: str, n: int) -> Labels:
    """The labels of ``n`` arms or items that have no names."""
    names = [str(number) for number in range(n)]
    return Labels(kind, names, names)


def is_frame(value: Any) -> bool:
    """Whether ``value`` is a data frame."""
    return hasattr(value, "columns") and hasattr(value, "__array__")


def align(
    value: Any, rows: Labels | None, columns: Labels | None, seen: Any = None, name: str = "outcome"
) -> tuple[Any, Any]:
    """``value`` and the mask ``seen`` of its shape, with the rows and columns of data frames put into order.

    Labels that only count (a pandas ``RangeIndex`` from 0, polars' ``column_0``) name nothing: then places decide. So
    they do if all names known here are numbers, and none of them is a label. Other labels that are not exactly the
    wanted names are refused. A mask that is no data frame follows ``value``. Other values are returned as they are.

    >>> import pandas
    >>> items = Labels("items", ["x", "y"], ["x", "y"])
    >>> align(pandas.DataFrame({"y": [0.0, 1.0], "x": [0.25, 0.5]}), None, items)[0]
    array([[0.25, 0.  ],
           [0.5 , 1.  ]])
    """
    if is_frame(seen):
        seen, _ = align(seen, rows, columns, name="seen")
        follows = None
    else:
        follows = seen
    if not is_frame(value):
        return value, seen
    row_order = rows and _order(_labels(getattr(value, "index", None)), name, rows, "rows")
    column_order = columns and _order(_labels(value.columns), name, columns, "columns")
    sorted_value = _sort(value, value.shape, row_order, column_order)
    return sorted_value, seen if follows is None else _sort(follows, value.shape, row_order, column_order)


def _labels(labels: Any) -> list[str] | None:
    """The names that a data frame has for rows or columns, None if it has none."""
    if labels is None or (type(labels).__name__ == "RangeIndex" and labels.start == 0 and labels.step == 1):
        return None
    named = [str(label) for label in labels]
    return None if named == [f"column_{n}" for n in range(len(named))] else named


def _order(labels: list[str] | None, name: str, names: Labels, what: str) -> list[int] | None:
    """The places of the wanted names among ``labels``; None if places decide."""
    if labels is None:
        return None
    places = {label: n for n, label in enumerate(labels)}
    if len(places) == len(labels) == len(names.wanted) and all(one in places for one in names.wanted):
        return [places[one] for one in names.wanted]
    if all(one == str(n) for n, one in enumerate(names.known)) and places.keys().isdisjoint(names.known):
        return None
    remedy = f"name them after the {names.kind}, {_list(names.wanted)}, or give an array"
    raise InvalidArgument(name, f"{what} named {_list(labels)}", remedy)


def _list(names: Iterable[str]) -> str:
    shown = [repr(one) for one in names]
    return ", ".join(shown[:_SHOWN]) + (", …" if len(shown) > _SHOWN else "")


def _sort(one: Any, shape: tuple[int, ...], rows: list[int] | None, columns: list[int] | None) -> Any:
    array = np.asarray(one)
    if array.shape != shape:  # refused later, in the caller's words
        return one
    array = array if rows is None else array[rows]
    return array if columns is None else array[:, columns]


def to_arrow(columns: Mapping[str, Any]) -> Any:
    """An Arrow table."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra("pyarrow", "lab") from None
    return pyarrow.table(dict(columns))


def to_pandas(columns: Mapping[str, Any]) -> Any:
    """A pandas DataFrame."""
    try:
        import pandas
    except ImportError:
        raise MissingExtra("pandas", "frames") from None
    return pandas.DataFrame(dict(columns))


def to_polars(columns: Mapping[str, Any]) -> Any:
    """A polars DataFrame."""
    try:
        import polars
    except ImportError:
        raise MissingExtra("polars", "frames") from None
    return polars.DataFrame(dict(columns))
