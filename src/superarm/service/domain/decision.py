"""The record of one decision: what its events so far come to, its rows as the library's feedback, and its rules.

The rules of feedback make of a record and a request an event, nothing, or an error.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from superarm.agent.outcomes import to_rows
from superarm.core.arrays import Floats, Ints
from superarm.core.problem import Problem
from superarm.core.support import AnySupport, Dense
from superarm.core.tally import Feedback, Tally
from superarm.service.domain.events import ALL, UNKNOWN, UNSEEN, Activated, Asked, Erased, Expired, Told, Unit
from superarm.service.domain.spec import Settings
from superarm.service.errors import RequestError, conflict, invalid

PENDING, DEFAULTED = UNKNOWN, -3.0
"""An entry that may still come, and one that the end of the window filled with the record's ``fill``."""

Row = tuple[float, ...]


class DecisionRecord(Struct, frozen=True, gc=False):
    """The current state of a decision.

    ``rows`` holds one value per item for each arm of ``action``, None if nothing is known. ``closed`` is "" while
    feedback is awaited, then "complete", "expired", "unshown" or "erased". ``widths`` are how many items each arm of
    ``action`` has, all ``n_items`` if it is None; ``others`` the arms outside of it that were observed. ``raised`` are
    smaller values that were told of entries before: to tell them again changes nothing.
    """

    asked: Asked
    action: tuple[int, ...]
    rows: tuple[Row | None, ...]
    active: bool
    closed: str = ""
    fill: float | None = None
    late: tuple[Unit, ...] = ()
    step: int = 0
    widths: tuple[int, ...] | None = None
    others: tuple[tuple[int, Row], ...] = ()
    raised: tuple[Unit, ...] = ()

    @property
    def state(self) -> str:
        """``"open"``, ``"deferred"``, ``"complete"``, ``"expired"`` or ``"unshown"``, as the HTTP interface says it."""
        return self.closed or ("open" if self.active else "deferred")


def open_record(asked: Asked) -> DecisionRecord:
    """The record of a decision that was just made."""
    return DecisionRecord(asked, asked.action, (None,) * len(asked.action), not asked.deferred, widths=asked.widths)


def advance_record(record: DecisionRecord, event: Any) -> DecisionRecord:
    """The record after one more of its events."""
    step = record.step + 1
    if isinstance(event, Erased):
        return _erase(record, step)
    if isinstance(event, Told):
        if event.rows:
            known = dict(zip(record.action, record.rows, strict=True)) | dict(event.rows)
            record = replace(record, rows=tuple(known.values()))
        return replace(_complete_if_known(_add_feedback(record, event)), step=step)
    if isinstance(event, Activated):
        return replace(_complete_if_known(_activate(record, event)), step=step)
    if isinstance(event, Expired):
        rows = tuple(_fill_pending(row, width(record, n), record, event) for n, row in enumerate(record.rows))
        others = tuple((arm, _fill_pending(row, len(row), record, event) or row) for arm, row in record.others)
        return replace(record, rows=rows, others=others, closed="expired", fill=event.fill, step=step)
    raise TypeError(f"{type(event).__name__} is no event of a decision")


def _erase(record: DecisionRecord, step: int) -> DecisionRecord:
    """What is left of a decision: its id, its problem and its round."""
    asked = record.asked
    left = Asked(asked.at, asked.problem, asked.id, "", asked.t, (), asked.n_items, asked.version, born=asked.born)
    return DecisionRecord(left, (), (), False, "erased", step=step)


def width(record: DecisionRecord, place: int) -> int:
    """How many items the arm in that place of the slate has."""
    return record.asked.n_items if record.widths is None else record.widths[place]


def widths_of(record: DecisionRecord, others: Iterable[tuple[int, int]] = ()) -> dict[int, int]:
    """How many items each arm has: those of the slate, those outside that were observed before, and ``others``."""
    known = {arm: len(row) for arm, row in record.others}
    return dict(others) | known | {arm: width(record, n) for n, arm in enumerate(record.action)}


def blank_row(record: DecisionRecord, size: int) -> Row:
    """A row of which nothing is known: pending where the decision is about the item, not seen elsewhere."""
    items = record.asked.items
    if items is None:
        return (PENDING,) * size
    return tuple(PENDING if i in items else UNSEEN for i in range(size))


def expand_units(record: DecisionRecord, widths: dict[int, int], units: list[Unit]) -> Iterator[Unit]:
    """The units one by one; ``ALL`` items are the items of the decision that the arm had when it was made."""
    items = record.asked.items
    for arm, item, value in units:
        if item == ALL:
            yield from ((arm, i, value) for i in (range(widths[arm]) if items is None else items))
        else:
            yield arm, item, value


def _add_feedback(record: DecisionRecord, event: Told) -> DecisionRecord:
    widths = widths_of(record, event.others)
    known = dict(zip(record.action, record.rows, strict=True)) | dict(record.others)
    rows: dict[int, list[float]] = {}
    late = {(arm, item): value for arm, item, value in record.late}
    raised = list[Unit]()
    for arm, item, value in expand_units(record, widths, event.units):
        row = rows.setdefault(arm, list(known.get(arm) or blank_row(record, widths[arm])))
        before = row[item]
        if record.closed and not event.learn and before in (PENDING, DEFAULTED):
            before, late[arm, item] = late.get((arm, item), PENDING), value
        else:
            row[item] = value
        if 0.0 <= before < value:
            raised.append((arm, item, before))
    changed = known | {arm: None if row and all(x == PENDING for x in row) else tuple(row) for arm, row in rows.items()}
    slate = tuple(changed.pop(arm) for arm in record.action)
    others = tuple((arm, row) for arm, row in changed.items() if row is not None)
    units = tuple((arm, item, value) for (arm, item), value in late.items())
    return replace(record, rows=slate, others=others, late=units, raised=(*record.raised, *raised))


def _activate(record: DecisionRecord, event: Activated) -> DecisionRecord:
    if event.shown is None:
        return replace(record, active=True)
    known = dict(record.others) | dict(zip(record.action, record.rows, strict=True))
    rows = tuple(known.get(arm) for arm in event.shown)
    others = tuple((arm, row) for arm, row in record.others if arm not in event.shown)
    closed = "" if event.shown else "unshown"
    return replace(
        record, active=True, action=event.shown, rows=rows, closed=closed, widths=event.widths, others=others
    )


def _fill_pending(row: Row | None, width: int, record: DecisionRecord, event: Expired) -> Row | None:
    if event.fill is None or not record.active:
        return row
    return tuple(DEFAULTED if x == PENDING else x for x in row or blank_row(record, width))


def _complete_if_known(record: DecisionRecord) -> DecisionRecord:
    if record.closed or not record.active:
        return record
    for row in record.rows:
        if row is None or PENDING in row:
            return record
    return replace(record, closed="complete")


def counted_rows(record: DecisionRecord | None) -> dict[int, Row]:
    """What the decision adds to the counters: one row per arm, ``UNSEEN`` where nothing is known."""
    if record is None or not record.active or not record.asked.learns:
        return {}
    known: Any = zip(record.action, record.rows, strict=True)
    if record.closed == "complete" and not record.others:
        return dict(known)  # every entry was told
    code = {PENDING: UNSEEN, DEFAULTED: UNSEEN if record.fill is None else record.fill}
    if record.asked.silence is not None and not record.closed:
        code[PENDING] = record.asked.silence
        known = [(arm, row or blank_row(record, width(record, n))) for n, (arm, row) in enumerate(known)]
    rows = {arm: _encode_row(row, code) for arm, row in known if row is not None}
    return rows | {arm: _encode_row(row, code) for arm, row in record.others} if record.others else rows


def _encode_row(row: Row, code: dict[float, float]) -> Row:
    if PENDING not in row and DEFAULTED not in row:  # most rows: a look is ten times as fast as a copy
        return row
    return tuple(code.get(x, x) for x in row)


def pending_arms(record: DecisionRecord | None) -> tuple[int, ...]:
    """The arms whose pulls are pending: they count in the radius, not in the mean."""
    if record is None or record.closed:
        return ()
    if record.asked.silence is not None and record.active and record.asked.learns:
        return ()  # they count as what silence means
    return tuple(arm for arm, row in zip(record.action, record.rows, strict=True) if row is None)


def past(problem: Problem, arms: list[int], rows: list[list[float]], segments: Any = None) -> Tally:
    """The tally of past outcomes, one row per arm; ``UNSEEN`` where nothing was seen, also of items added since."""
    if not isinstance(problem.support, Dense):
        seen = [[value != UNSEEN for value in row] for row in rows]
        return problem.past(arms, [[max(value, 0.0) for value in row] for row in rows], seen, segments)
    wide = np.full((len(rows), problem.n_items), UNSEEN)
    for values, row in zip(wide, rows, strict=True):
        values[: len(row)] = row
    return problem.past(arms, np.where(wide != UNSEEN, wide, 0.0), wide != UNSEEN, segments)


def feedback_of(support: AnySupport, t: int, rows: dict[int, Row]) -> Feedback:
    """Feedback of round ``t``: a row for each arm, ``UNSEEN`` where nothing was seen.

    >>> feedback_of(Dense(2, 3), 1, {2: (0.5, UNSEEN)}).seen.tolist()
    [[[True, False]]]
    """
    arms = np.array(list(rows), np.int64)
    table = pad_rows(support, arms, list(rows.values()))[None]
    seen = table != UNSEEN
    entries = seen.size if isinstance(support, Dense) else support.widths[arms].sum()
    return Feedback(t, arms[None], np.where(seen, table, 0.0), None if seen.sum() == entries else seen)


def pad_rows(support: AnySupport, arms: Ints, rows: Sequence[Iterable[float]]) -> Floats:
    """Rows of arms, (n, widest), with ``UNSEEN`` for items that are not in a row: added later, or none of the arm's."""
    if not isinstance(support, Dense):
        flat = np.array([value for row in rows for value in row], float)
        return to_rows(support, arms, flat, UNSEEN)  # type: ignore[no-any-return]
    table = np.array(rows, float)
    missing = support.n_items - table.shape[1] if table.ndim == 2 else 0
    return np.pad(table, ((0, 0), (0, missing)), constant_values=UNSEEN) if missing else table


Others = tuple[tuple[int, int], ...]


Rows = tuple[tuple[int, tuple[float, ...]], ...]


def feedback(
    record: DecisionRecord,
    units: list[Unit],
    amend: bool,
    settings: Settings,
    now: int,
    others: Others = (),
    rows: Rows = (),
) -> Told | None:
    """The event that feedback makes, or None if all of it was told before, equal.

    ``others`` are the arms outside of the slate that may be reported, each with how many items it has. ``rows`` are
    whole rows of arms, as they are after it. Nothing of a request is taken if anything of it conflicts.

    A larger value, as that of a purchase after a click, takes the place of a smaller one, and is logged as an
    amendment. A smaller one is a conflict, unless it was told before the larger: requests may be repeated at any time.
    """
    if record.closed == "unshown":
        raise conflict(f"decision {record.asked.id!r} was reported as not shown; it takes no feedback")
    late = {(arm, item): value for arm, item, value in record.late}
    learn = not record.closed or settings.late == "learn"
    known_rows = dict(zip(record.action, record.rows, strict=True)) | dict(record.others)
    widths = widths_of(record, others)
    # Of an arm without items, that it was played is all there is to tell.
    empty = any(widths[arm] == 0 and known_rows.get(arm) is None for arm, _, _ in units)
    units = _check_units(record, widths, units, amend)
    fresh, raises, is_late = empty or bool(rows), False, False
    for arm, item, value in expand_units(record, widths, units):
        row = known_rows.get(arm)
        known = PENDING if row is None else row[item]
        if record.closed and known in (PENDING, DEFAULTED):
            is_late = True
            known = late.get((arm, item), PENDING)
            if known == value and learn:
                known = PENDING  # it was only logged; now it is learnt
        if known == value:
            continue
        if known != PENDING and not amend:
            if not 0.0 <= known < value:
                raise contradiction(record, arm, item)
            raises = True
        fresh = True
    return Told(now, units, amend or raises, is_late, learn or not is_late, others, rows) if fresh else None


def _check_units(record: DecisionRecord, widths: dict[int, int], units: list[Unit], amend: bool) -> list[Unit]:
    """The units, each entry with one value; unless they amend, without those that were told before a larger one."""
    given = dict[tuple[int, int], float]()
    for arm, item, value in expand_units(record, widths, units):
        if given.setdefault((arm, item), value) != value:
            raise invalid("feedback", "the same entry appears twice, with different values", "give each entry once")
    if amend or not record.raised:
        return units
    parts = [list(expand_units(record, widths, [unit])) if widths[unit[0]] else [unit] for unit in units]
    return [unit for part in parts for unit in part if unit not in record.raised]


def contradiction(record: DecisionRecord, arm: int, item: int) -> RequestError:
    """The answer to feedback that differs from what was told before."""
    return conflict(
        f"decision {record.asked.id!r}, arm {arm}, item {item}: another value was told before, which is kept, unless "
        "the new one is larger; send amend: true to replace it"
    )


def activation(
    record: DecisionRecord, shown: tuple[int, ...] | None, now: int, widths: tuple[int, ...] | None = None
) -> Activated | None:
    """The event of showing a decision, or None if that is known already."""
    same = record.active and (shown is None or shown == record.action)
    if same:
        return None
    if record.closed:
        raise conflict(f"decision {record.asked.id!r} is {record.closed}; it cannot be activated any more")
    if record.active and record.step and record.action != record.asked.action:
        raise conflict(f"decision {record.asked.id!r} was reported with another slate before, which is kept")
    told = {arm for arm, row in zip(record.action, record.rows, strict=True) if row is not None}
    if shown is not None and not told <= set(shown):
        raise conflict(f"decision {record.asked.id!r}: there is feedback for an arm that is not in `shown`")
    return Activated(now, shown, widths)


def expiry(record: DecisionRecord, settings: Settings, now: int) -> Expired | None:
    """The event of the window's end, or None if the record is closed."""
    if record.closed:
        return None
    if record.asked.silence is not None:
        return Expired(now, record.asked.silence)  # what it counts as already
    return Expired(now, None if settings.at_window_end == "ignore" else settings.at_window_end)
