"""Files and data frames as columns."""

import csv
from pathlib import Path
from typing import Any

import msgspec

from superarm.errors import InvalidArgument, MissingExtra

Columns = dict[str, list[Any]]

METADATA = b"superarm"
"""The key under which a Parquet file of the service holds its problems."""


def read_columns(path: Path) -> tuple[Columns, Any]:
    """The columns of a .parquet, .csv or .jsonl file, and the problems that a Parquet file describes, if it does."""
    if path.suffix == ".parquet":
        return _read_parquet(path)
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return _transpose([{k: v.removeprefix("'") for k, v in row.items()} for row in csv.DictReader(file)]), None
    if path.suffix == ".jsonl":
        return _transpose([msgspec.json.decode(line) for line in path.read_bytes().splitlines() if line.strip()]), None
    raise InvalidArgument("path", f"{path.name!r}", "give a name that ends in .parquet, .csv or .jsonl")


def _read_parquet(path: Path) -> tuple[Columns, Any]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("pyarrow", "lab") from None
    table = parquet.read_table(path)
    stored = (table.schema.metadata or {}).get(METADATA)
    return table.to_pydict(), None if stored is None else msgspec.json.decode(stored)


def _transpose(rows: list[dict[str, Any]]) -> Columns:
    """Rows as columns; a value that a row lacks is None."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def frame_columns(frame: Any) -> Columns:
    """The columns of a pandas data frame, an Arrow table, or a dict of columns."""
    if isinstance(frame, dict):
        return {str(name): list(values) for name, values in frame.items()}
    if callable(getattr(frame, "to_pydict", None)):  # Arrow
        return {str(name): values for name, values in frame.to_pydict().items()}
    if hasattr(frame, "columns") and hasattr(frame, "__getitem__"):  # pandas, polars
        return {str(name): list(frame[name]) for name in frame.columns}
    raise InvalidArgument("frame", f"{type(frame).__name__}", "give a pandas data frame, an Arrow table or a dict")
