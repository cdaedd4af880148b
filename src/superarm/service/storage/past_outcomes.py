"""A table of past outcomes as pulls: what ``superarm import`` gives to a service."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from superarm.core.errors import InvalidArgument
from superarm.offline.formats.tables import NAMES, NOT_SHOWN, read_columns

Pull = tuple[str, dict[str, float]]
"""An arm, and the outcomes of its items; one that is for all items is under the name "".
"""


def read_pulls(source: Path, problem: str | None = None) -> Iterator[Pull]:
    """The pulls in a .parquet, .csv or .jsonl file with the columns of ``superarm.offline.Log.read``.

    Rows of the same decision and arm that follow each other are one pull. Decisions that were never shown, and outcomes
    that are empty, are left out. ``problem`` is the one to take where the file has several.
    """
    columns, _ = read_columns(source)
    table = {what: next((columns[name] for name in names if name in columns), None) for what, names in NAMES.items()}
    for what in ("arm", "outcome"):
        if table[what] is None:
            missing = " or ".join(NAMES[what])
            raise InvalidArgument("source", f"no column {missing}", f"found {', '.join(columns)}")
    n = len(table["arm"] or [])
    full: dict[str, list[Any]] = {what: [None] * n if values is None else values for what, values in table.items()}
    kept = _select(full, problem)
    last: Any = None
    values: dict[str, float] = {}
    for row in kept:
        place = (str(full["arm"][row]), row if full["decision"][row] is None else full["decision"][row])
        if place != last and values:
            yield last[0], values
            values = {}
        last = place
        if full["outcome"][row] not in (None, ""):
            values[str(full["item"][row] or "")] = _value(full["outcome"][row], row + 1)
    if values:
        yield last[0], values


def _select(table: dict[str, list[Any]], wanted: str | None) -> list[int]:
    """The rows of decisions that were shown, of one problem."""
    found = sorted({str(name) for name in table["problem"] if wanted in (None, name)})
    if len(found) > 1 or (wanted is not None and not found):
        known = ", ".join(sorted({str(name) for name in table["problem"]}))
        raise InvalidArgument("--only", f"{wanted!r} fits {len(found)} problems of the file", f"give one of {known}")
    rows = zip(table["problem"], table["state"], strict=True)
    return [n for n, (name, state) in enumerate(rows) if wanted in (None, name) and state not in NOT_SHOWN]


def _value(outcome: Any, row: int) -> float:
    try:
        value = float(outcome)
    except (TypeError, ValueError):
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise InvalidArgument("source", f"row {row}: {outcome!r}", "give outcomes in [0, 1]")
    return value
