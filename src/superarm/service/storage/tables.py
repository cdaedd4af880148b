"""Decisions as a table: Parquet and CSV, with the field names of the Open Bandit data.

One row per arm of a slate and item: ``timestamp``, ``item_id`` (the arm's number), ``position`` (the slot, from
1), ``click`` (the value; empty if pending or not seen), ``propensity_score`` (of the slot, given those before it; empty
if it is not known, or if the slate was chosen without chance, which ``deterministic`` says), ``inclusion`` (the chance
of the arm to be in the slate, exact or counted from ``inclusion_draws``),
``group`` (the user's segment, where the problem has segments), ``comparison`` ("policy" or "control" where a control
share is compared) and ``unit`` (a digest of whom the decision was for).

A Parquet file also holds the problems, for ``superarm.offline``: JSON under the key ``superarm`` of its metadata.
"""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import json

from superarm.core.describe import describe
from superarm.core.errors import InvalidArgument, MissingExtra
from superarm.offline.formats.tables import NAMES, NOT_SHOWN, read_columns
from superarm.service.domain.decision import DEFAULTED, PENDING, DecisionRecord
from superarm.service.domain.ledger import Ledger
from superarm.service.domain.problem import ProblemState
from superarm.service.storage.base import Store, recall_decision

FIELDS = {
    "timestamp": "int64",
    "tenant": "string",
    "problem": "string",
    "decision": "string",
    "t": "int64",
    "version": "int64",
    "state": "string",
    "position": "int64",
    "item_id": "int64",
    "arm": "string",
    "item": "string",
    "click": "double",
    "defaulted": "bool",
    "propensity_score": "double",
    "deterministic": "bool",
    "inclusion": "double",
    "inclusion_draws": "int64",
    "group": "string",
    "comparison": "string",
    "unit": "string",
    "fallback": "bool",
}
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def rows(store: Store, tenant: str | None = None, problem: str | None = None) -> Iterator[dict[str, Any]]:
    """The decisions of the log, entry by entry."""
    names = Ledger()
    for read in store.tail({}, problems=True):
        names.apply(read.entry)
    for key in _decisions(store):
        record = recall_decision(store, key)
        if record is None or (tenant, problem) != (tenant and key[0], problem and record.asked.problem):
            continue
        if not names.serves(key[0], record):
            continue  # of a problem that was deleted
        learner = names.problems[key[0], record.asked.problem]
        yield from decision_rows(key[0], record, learner)


def describe_problems(store: Store, tenant: str | None = None, problem: str | None = None) -> list[dict[str, Any]]:
    """The problems of the log, as plain data: tenant, name, the names of arms and items, and the description."""
    ledger = Ledger()
    for read in store.tail({}, problems=True):
        ledger.apply(read.entry)
    return [
        describe_problem(owner, name, state)
        for (owner, name), state in ledger.problems.items()
        if (tenant, problem) == (tenant and owner, problem and name)
    ]


def describe_problem(tenant: str, name: str, state: ProblemState) -> dict[str, Any]:
    """One problem as plain data."""
    return {
        "tenant": tenant,
        "name": name,
        "arms": list(state.arms.all),
        "items": list(state.items.all),
        "problem": describe(state.problem),
    }


def _decisions(store: Store) -> list[tuple[str, str]]:
    return [
        (read.entry.tenant, read.entry.stream)
        for read in store.tail({})
        if read.entry.kind == "decision" and read.entry.step == 0
    ]


def decision_rows(tenant: str, record: DecisionRecord, learner: ProblemState) -> Iterator[dict[str, Any]]:
    """One row per arm of a decision and item."""
    asked = record.asked
    state = record.state
    as_asked = record.action == asked.action
    chances, inclusion = (asked.propensities, asked.inclusion) if as_asked else (None, None)
    certain = chances is not None and all(chance == 1.0 for chance in chances)
    chances = None if certain else chances
    group = None if learner.contexts is None else learner.contexts.segment_name(asked)
    for place, arm, row in _rows(record):
        own = learner.items_of(arm)
        items = range(asked.n_items) if own is None else own
        for n, item in enumerate(items):
            value = PENDING if row is None else row[n]
            defaulted = value == DEFAULTED
            value = record.fill if defaulted and record.fill is not None else value
            yield {
                "timestamp": asked.at,
                "tenant": tenant,
                "problem": asked.problem,
                "decision": asked.id,
                "t": asked.t,
                "version": asked.version,
                "state": state,
                "position": None if place is None else place + 1,
                "item_id": arm,
                "arm": learner.arms.all[arm],
                "item": learner.items.all[item],
                "click": value if value >= 0.0 else None,
                "defaulted": defaulted,
                "propensity_score": chances[place] if chances and place is not None else None,
                "deterministic": certain,
                "inclusion": inclusion[place] if inclusion and place is not None else None,
                "inclusion_draws": asked.draws if inclusion else None,
                "group": group,
                "comparison": asked.group or None,
                "unit": asked.unit or None,
                "fallback": asked.fallback,
            }


def _rows(record: DecisionRecord) -> Iterator[tuple[int | None, int, Any]]:
    """Place in the slate, arm and values; arms outside of the slate that were observed have no place."""
    for place, (arm, row) in enumerate(zip(record.action, record.rows, strict=True)):
        yield place, arm, row
    yield from ((None, arm, row) for arm, row in record.others)


def export(table: Iterable[dict[str, Any]], target: Path, problems: list[dict[str, Any]]) -> int:
    """Write the rows to a .csv or .parquet file, and the problems to the latter; how many rows there were."""
    if target.suffix == ".csv":
        return _export_csv(table, target)
    if target.suffix == ".parquet":
        return _export_parquet(table, target, problems)
    raise InvalidArgument("target", f"{target.name!r}", "give a name that ends in .csv or .parquet")


def _export_csv(table: Iterable[dict[str, Any]], target: Path) -> int:
    n = 0
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for row in table:
            writer.writerow({name: _escape_formula(value) for name, value in row.items()})
            n += 1
    return n


def _escape_formula(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula gets a quote before it: names are untrusted."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value


def _export_parquet(table: Iterable[dict[str, Any]], target: Path, problems: list[dict[str, Any]]) -> int:
    arrow, parquet = import_arrow()
    types = {"int64": arrow.int64(), "string": arrow.string(), "double": arrow.float64(), "bool": arrow.bool_()}
    fields = [(name, types[kind]) for name, kind in FIELDS.items()]
    schema = arrow.schema(fields, metadata={"superarm": json.encode(problems)})
    n, batch = 0, list[dict[str, Any]]()
    with parquet.ParquetWriter(target, schema) as writer:
        for row in table:
            batch.append(row)
            n += 1
            if len(batch) == 50_000:
                writer.write_table(arrow.Table.from_pylist(batch, schema))
                batch = []
        writer.write_table(arrow.Table.from_pylist(batch, schema))
    return n


def import_arrow() -> tuple[Any, Any]:
    """The modules ``pyarrow`` and ``pyarrow.parquet``; ``MissingExtra`` if they are not installed."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("pyarrow", "service") from None
    return pyarrow, parquet


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
