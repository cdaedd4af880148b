"""Decisions as a table: Parquet and CSV, with the field names of the Open Bandit data.

One row per arm of a slate and item: ``timestamp``, ``item_id`` (the arm's number), ``position`` (the slot, from
1), ``click`` (the value; empty if pending or not seen), ``propensity_score`` (of the slot, given those before it; empty
if it is not known, or if the slate was chosen without chance, which ``deterministic`` says), ``inclusion`` (the chance
of the arm to be in the slate, exact or counted from ``inclusion_draws``),
``group`` (the user's segment, where the problem has segments), ``comparison`` ("policy" or "control" where a control
share is compared), ``unit`` (a digest of whom the decision was for) and ``score`` (of the arm, as it was told).

A Parquet file also holds the problems, for ``superarm.offline``: JSON under the key ``superarm`` of its metadata.
"""

import csv
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from msgspec import json

from superarm.core.errors import InvalidArgument, MissingExtra
from superarm.decisions import DEFAULTED, PENDING
from superarm.describe import describe
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.events import Asked
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
    "score": "double",
}
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def rows(store: Store, tenant: str | None = None, problem: str | None = None) -> Iterator[dict[str, Any]]:
    """The decisions of the log, entry by entry."""
    names = _problems(store)
    entries = (read.entry for read in store.tail({}))
    for key in [(entry.tenant, entry.stream) for entry in entries if isinstance(entry.event, Asked)]:
        record = recall_decision(store, key)
        if record is None or (tenant, problem) != (tenant and key[0], problem and record.asked.problem):
            continue
        if not names.serves(key[0], record):
            continue  # of a problem that was deleted
        yield from decision_rows(key[0], record, names.problems[key[0], record.asked.problem])


def describe_problems(store: Store, tenant: str | None = None, problem: str | None = None) -> list[dict[str, Any]]:
    """The problems of the log, as plain data: tenant, name, the names of arms and items, and the description."""
    found = []
    for (owner, name), state in _problems(store).problems.items():
        if (tenant, problem) == (tenant and owner, problem and name):
            names = {"tenant": owner, "name": name, "arms": list(state.arms.all), "items": list(state.items.all)}
            found.append(names | {"problem": describe(state.problem)})
    return found


def _problems(store: Store) -> Ledger:
    """The problems of the log, without what was learnt."""
    ledger = Ledger()
    for read in store.tail({}, problems=True):
        ledger.apply(read.entry)
    return ledger


def decision_rows(tenant: str, record: DecisionRecord, learner: ProblemState) -> Iterator[dict[str, Any]]:
    """One row per arm of a decision and item."""
    asked = record.asked
    made = (asked.at, tenant, asked.problem, asked.id, asked.t, asked.version, record.state)
    chances, inclusion = (asked.propensities, asked.inclusion) if (record.action == asked.action) else (None, None)
    certain = chances is not None and all(chance == 1.0 for chance in chances)
    chances = None if certain else chances
    segment = None if learner.contexts is None else learner.contexts.segment(asked)
    group = None if segment is None or learner.contexts is None else learner.contexts.segments[segment]
    whom, scores = (group, asked.group or None, asked.unit or None, asked.fallback), dict(record.scores)
    for place, arm, row in _rows(record):
        own = learner.items_of(arm)
        items = range(asked.n_items) if own is None else own
        for n, item in enumerate(items):
            value = PENDING if row is None else row[n]
            defaulted = value == DEFAULTED
            value = record.fill if defaulted and record.fill is not None else value
            shown = (arm, learner.arms.all[arm], learner.items.all[item], value if value >= 0.0 else None, defaulted)
            slot = (None, None) if place is None else (chances and chances[place], inclusion and inclusion[place])
            drawn = (slot[0], certain, slot[1], asked.draws if inclusion else None)
            where = None if place is None else place + 1
            yield dict(zip(FIELDS, (*made, where, *shown, *drawn, *whom, scores.get(arm)), strict=True))


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
        csv.writer(file).writerow(FIELDS)
        for row in table:
            write_csv(file, [row.values()])
            n += 1
    return n


def write_csv(file: TextIO, rows: Iterable[Iterable[Any]]) -> None:
    """Rows as CSV. Text that a spreadsheet would take for a formula gets a quote before it: names are untrusted."""
    csv.writer(file).writerows(
        [f"'{x}" if isinstance(x, str) and x.startswith(_FORMULA_STARTS) else x for x in row] for row in rows
    )


def _export_parquet(table: Iterable[dict[str, Any]], target: Path, problems: list[dict[str, Any]]) -> int:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("pyarrow", "service") from None
    types = {"int64": arrow.int64(), "string": arrow.string(), "double": arrow.float64(), "bool": arrow.bool_()}
    fields = [(name, types[kind]) for name, kind in FIELDS.items()]
    schema = arrow.schema(fields, metadata={"superarm": json.encode(problems)})
    n, rest = 0, iter(table)
    with parquet.ParquetWriter(target, schema) as writer:
        while batch := list(islice(rest, 50_000)):
            writer.write_table(arrow.Table.from_pylist(batch, schema))
            n += len(batch)
    return n
