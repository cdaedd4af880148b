"""One decision and what became of it: a fold of its events, without I/O, clock or settings."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from superarm.service.domain.events import ALL, UNSEEN, Activated, Asked, Expired, Told, Unit

PENDING, DEFAULTED = -2.0, -3.0
"""An entry that may still come, and one that the end of the window filled with the record's ``fill``."""

Row = tuple[float, ...]


class DecisionRecord(Struct, frozen=True, gc=False):
    """A decision as it stands: ``rows`` holds, for each arm of ``action``, a value an item; None if nothing is known.

    ``closed`` is "" while feedback is awaited, then "complete", "expired" or "unshown".
    """

    asked: Asked
    action: tuple[int, ...]
    rows: tuple[Row | None, ...]
    active: bool
    closed: str = ""
    fill: float | None = None
    late: tuple[Unit, ...] = ()
    step: int = 0


def open_record(asked: Asked) -> DecisionRecord:
    """The record of a decision that was just made."""
    return DecisionRecord(asked, asked.action, (None,) * len(asked.action), not asked.deferred)


def advance_record(record: DecisionRecord, event: Any) -> DecisionRecord:
    """The record after one more of its events."""
    step = record.step + 1
    if isinstance(event, Told):
        told = _whole_rows(record, event) or _told(record, event)
        return replace(_completed(told), step=step)
    if isinstance(event, Activated):
        return replace(_completed(_activated(record, event)), step=step)
    if isinstance(event, Expired):
        rows = tuple(_filled(row, record, event) for row in record.rows)
        return replace(record, rows=rows, closed="expired", fill=event.fill, step=step)
    raise TypeError(f"{type(event).__name__} is no event of a decision")


def expand_units(record: DecisionRecord, units: list[Unit]) -> Iterator[Unit]:
    """The units one by one: ``ALL`` items are those that the decision was made for."""
    for arm, item, value in units:
        if item == ALL:
            yield from ((arm, i, value) for i in range(record.asked.n_items))
        else:
            yield arm, item, value


def _whole_rows(record: DecisionRecord, event: Told) -> DecisionRecord | None:
    """What ``_told`` gives, sooner, where all units are whole rows of an open decision."""
    if record.closed:
        return None
    rows, n_items = dict(zip(record.action, record.rows, strict=True)), record.asked.n_items
    for arm, item, value in event.units:
        if item != ALL:
            return None
        rows[arm] = (value,) * n_items
    return replace(record, rows=tuple(rows.values()))


def _told(record: DecisionRecord, event: Told) -> DecisionRecord:
    rows: dict[int, list[float]] = {}
    late = {(arm, item): value for arm, item, value in record.late}
    places = {arm: place for place, arm in enumerate(record.action)}
    for arm, item, value in expand_units(record, event.units):
        place = places[arm]
        row = rows.setdefault(place, list(record.rows[place] or (PENDING,) * record.asked.n_items))
        if record.closed and not event.learn and row[item] in (PENDING, DEFAULTED):
            late[arm, item] = value
        else:
            row[item] = value
    changed = tuple(tuple(rows[n]) if n in rows else row for n, row in enumerate(record.rows))
    untouched = tuple(None if row and all(x == PENDING for x in row) else row for row in changed)
    return replace(record, rows=untouched, late=tuple((arm, item, value) for (arm, item), value in late.items()))


def _activated(record: DecisionRecord, event: Activated) -> DecisionRecord:
    if event.shown is None:
        return replace(record, active=True)
    known = dict(zip(record.action, record.rows, strict=True))
    rows = tuple(known.get(arm) for arm in event.shown)
    return replace(record, active=True, action=event.shown, rows=rows, closed="" if event.shown else "unshown")


def _filled(row: Row | None, record: DecisionRecord, event: Expired) -> Row | None:
    if event.fill is None or not record.active:
        return row
    return tuple(DEFAULTED if x == PENDING else x for x in row or (PENDING,) * record.asked.n_items)


def _completed(record: DecisionRecord) -> DecisionRecord:
    if record.closed or not record.active:
        return record
    for row in record.rows:
        if row is None or PENDING in row:
            return record
    return replace(record, closed="complete")


def counted_rows(record: DecisionRecord | None) -> dict[int, Row]:
    """What the decision adds to the counters: a row an arm, ``UNSEEN`` where nothing is known."""
    if record is None or not record.active or not record.asked.learns:
        return {}
    fill = UNSEEN if record.fill is None else record.fill
    known = zip(record.action, record.rows, strict=True)
    return {arm: _coded(row, fill) for arm, row in known if row is not None}


def _coded(row: Row, fill: float) -> Row:
    if PENDING not in row and DEFAULTED not in row:  # most rows: a look is ten times as fast as a copy
        return row
    code = {PENDING: UNSEEN, DEFAULTED: fill}
    return tuple(code.get(x, x) for x in row)


def pending_arms(record: DecisionRecord | None) -> tuple[int, ...]:
    """The arms whose pull is under way: they count in the radius, not in the mean."""
    if record is None or record.closed:
        return ()
    return tuple(arm for arm, row in zip(record.action, record.rows, strict=True) if row is None)
