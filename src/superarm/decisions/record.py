"""The record of one decision: what its events so far come to, and its rows as the library's feedback."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from superarm.core.arrays import Floats, Ints
from superarm.core.support import AnySupport, Dense
from superarm.core.tally import Feedback
from superarm.core.totals import joint_feedback
from superarm.decisions.events import ALL, UNKNOWN, UNSEEN, Activated, Expired, Part, Told, Unit

PENDING, DEFAULTED = UNKNOWN, -3.0
"""An entry that may still come, and one that the end of the window filled with the record's ``fill``."""

Row = tuple[float, ...]

Counted = dict[Any, Row]
"""What counts of a decision: a row for each arm or, where only totals are told, for each set of arms told together. Its
row has the total, its trials, and how many arms the decision has."""


class Made(Protocol):
    """What the rules need to know of a decision from when it was made.

    ``widths`` are how many items each arm has; all ``n_items`` if it is None. ``items`` are those that the decision is
    about; all if it is None. ``silence`` is what entries count as until they are told; None: they are pending.
    ``joint`` says that only totals are told; ``silence`` is then that of the whole decision.
    """

    @property
    def id(self) -> str: ...
    @property
    def t(self) -> int: ...
    @property
    def action(self) -> tuple[int, ...]: ...
    @property
    def n_items(self) -> int: ...
    @property
    def widths(self) -> tuple[int, ...] | None: ...
    @property
    def items(self) -> tuple[int, ...] | None: ...
    @property
    def silence(self) -> float | None: ...
    @property
    def deferred(self) -> bool: ...
    @property
    def learns(self) -> bool: ...
    @property
    def joint(self) -> bool: ...


A = TypeVar("A", bound=Made)


class DecisionRecord(Struct, Generic[A], frozen=True, gc=False):
    """The current state of a decision.

    ``rows`` holds one value per item for each arm of ``action``, None if nothing is known. ``closed`` is "" while
    feedback is awaited, then "complete", "expired", "unshown" or "erased". ``widths`` are how many items each arm of
    ``action`` has, all ``n_items`` if it is None; ``others`` the arms outside of it that were observed. ``raised`` are
    smaller values that were told of entries before: to tell them again changes nothing. Where only totals are told,
    ``totals`` are those that are known, ordered by their arms; the rows of these arms, and ``fill``, are equal shares.
    ``aside`` are totals that count no longer, as larger ones took their place, or that were late and only logged.
    """

    asked: A
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
    totals: tuple[Part, ...] = ()
    aside: tuple[Part, ...] = ()

    @property
    def state(self) -> str:
        """``"open"``, ``"deferred"``, ``"complete"``, ``"expired"`` or ``"unshown"``, as the HTTP interface says it."""
        return self.closed or ("open" if self.active else "deferred")


def open_record(asked: A) -> DecisionRecord[A]:
    """The record of a decision that was just made."""
    return DecisionRecord(asked, asked.action, (None,) * len(asked.action), not asked.deferred, widths=asked.widths)


def without_effect(record: DecisionRecord[A], left: A | None = None) -> DecisionRecord[A]:
    """The record of a decision that counts nowhere, as one that was erased, of which only what is ``left`` is known."""
    if left is None:
        return replace(record, active=False, closed="erased")
    return DecisionRecord(left, (), (), False, "erased", step=record.step + 1)


def unasked(record: DecisionRecord[A]) -> DecisionRecord[A]:
    """The record for an explanation, as if a pending decision was not made yet, but for what it was told."""
    if record.closed:
        return record
    return replace(record, closed="expired") if record.asked.silence is None else without_effect(record)


def advance_record(record: DecisionRecord[A], event: Any) -> DecisionRecord[A]:
    """The record after one more of its events."""
    step = record.step + 1
    if isinstance(event, Told):
        told = _add_totals(record, event) if record.asked.joint else _add_feedback(record, event)
        told = replace(told, closed="complete") if event.last and not told.closed else _complete_if_known(told)
        return replace(told, step=step)
    if isinstance(event, Activated):
        return replace(_complete_if_known(_activate(record, event)), step=step)
    if isinstance(event, Expired):
        rows = tuple(_fill_pending(row, width(record, n), record, event) for n, row in enumerate(record.rows))
        others = tuple((arm, _fill_pending(row, len(row), record, event) or row) for arm, row in record.others)
        fill = _share(event.fill, record) if record.asked.joint else event.fill
        return replace(record, rows=rows, others=others, closed="expired", fill=fill, step=step)
    raise TypeError(f"{type(event).__name__} is no event of a decision")


def width(record: DecisionRecord[Any], place: int) -> int:
    """How many items the arm in that place of the slate has."""
    return record.asked.n_items if record.widths is None else record.widths[place]


def widths_of(record: DecisionRecord[Any], others: Iterable[tuple[int, int]] = ()) -> dict[int, int]:
    """How many items each arm has: those of the slate, those outside that were observed before, and ``others``."""
    known = {arm: len(row) for arm, row in record.others}
    return dict(others) | known | {arm: width(record, n) for n, arm in enumerate(record.action)}


def known_rows(record: DecisionRecord[Any]) -> dict[int, Row | None]:
    """What is known of each arm, those of the slate first."""
    return dict(zip(record.action, record.rows, strict=True)) | dict(record.others)


def blank_row(record: DecisionRecord[Any], size: int) -> Row:
    """A row of which nothing is known: pending where the decision is about the item, not seen elsewhere."""
    items = record.asked.items
    if items is None:
        return (PENDING,) * size
    return tuple(PENDING if i in items else UNSEEN for i in range(size))


def _add_feedback(record: DecisionRecord[A], event: Told) -> DecisionRecord[A]:
    widths, known = widths_of(record, event.others), known_rows(record)
    raised = [(arm, i, x) for arm, row in event.rows for i, x in _raised(known.get(arm), row)]
    rows: dict[int, list[float]] = {}
    late = {(arm, item): value for arm, item, value in record.late}
    for arm, of, value in event.units:
        row = rows.setdefault(arm, list(known.get(arm) or blank_row(record, widths[arm])))
        for item in [of] if of != ALL else record.asked.items or range(len(row)):
            before = row[item]
            if record.closed and not event.learn and before in (PENDING, DEFAULTED):
                before, late[arm, item] = late.get((arm, item), PENDING), value
            else:
                row[item] = value
            if 0.0 <= before < value:
                raised.append((arm, item, before))
    changed = (
        known
        | dict(event.rows)
        | {arm: None if row and all(x == PENDING for x in row) else tuple(row) for arm, row in rows.items()}
    )
    slate = tuple(changed.pop(arm) for arm in record.action)
    others = tuple((arm, row) for arm, row in changed.items() if row is not None)
    units = tuple((arm, item, value) for (arm, item), value in late.items())
    return replace(record, rows=slate, others=others, late=units, raised=(*record.raised, *raised))


def _add_totals(record: DecisionRecord[A], event: Told) -> DecisionRecord[A]:
    """The record with totals that were told; those of sets that they overlap are gone."""
    known = {arm for arms, _, _ in record.totals for arm in arms}
    logged = [part for part in event.totals if record.closed and not event.learn and known.isdisjoint(part[0])]
    new = [part for part in event.totals if part not in logged]
    unseen = [arm for arm, _, _ in event.units if not logged]
    told = {arm for arms, _, _ in new for arm in arms}.union(unseen)
    gone = [part for part in record.totals if not told.isdisjoint(part[0])]
    smaller = [part for part in gone if any(part[0] == arms and part[1] < y for arms, y, _ in new)]
    totals = tuple(sorted([*(part for part in record.totals if part not in gone), *new]))
    aside = (*record.aside, *smaller, *logged)
    blank: Row | None = (DEFAULTED,) if record.fill is not None else None
    rows = dict(zip(record.action, record.rows, strict=True))
    rows |= {arm: blank for arms, _, _ in gone for arm in arms} | dict.fromkeys(unseen, (UNSEEN,))
    rows |= {arm: (y / len(arms),) for arms, y, _ in totals for arm in arms}
    return replace(record, rows=tuple(rows.values()), totals=totals, aside=aside)


def _share(total: float | None, record: DecisionRecord[Any]) -> float | None:
    """The equal share of each arm in a total of the decision."""
    return None if total is None or not record.action else total / len(record.action)


def _raised(before: Row | None, after: Sequence[float]) -> list[tuple[int, float]]:
    """The values that larger ones take the place of, with their items."""
    if before is None:
        return []
    return [(i, x) for i, (x, y) in enumerate(zip(before, after, strict=False)) if 0.0 <= x < y]


def _activate(record: DecisionRecord[A], event: Activated) -> DecisionRecord[A]:
    if event.shown is None:
        return replace(record, active=True)
    known = dict(record.others) | dict(zip(record.action, record.rows, strict=True))
    rows = tuple(known.get(arm) for arm in event.shown)
    others = tuple((arm, row) for arm, row in record.others if arm not in event.shown)
    closed = "" if event.shown else "unshown"
    return replace(
        record, active=True, action=event.shown, rows=rows, closed=closed, widths=event.widths, others=others
    )


def _fill_pending(row: Row | None, width: int, record: DecisionRecord[Any], event: Expired) -> Row | None:
    if event.fill is None or not record.active:
        return row
    return tuple(DEFAULTED if x == PENDING else x for x in row or blank_row(record, width))


def _complete_if_known(record: DecisionRecord[A]) -> DecisionRecord[A]:
    if record.closed or not record.active:
        return record
    for row in record.rows:
        if row is None or PENDING in row:
            return record
    return replace(record, closed="complete")


def counted_rows(record: DecisionRecord[Any] | None) -> Counted:
    """What the decision adds to the counters: one row per arm, ``UNSEEN`` where nothing is known."""
    if record is None or not record.active or not record.asked.learns:
        return {}
    if record.asked.joint:
        return _counted_totals(record)
    known: Any = zip(record.action, record.rows, strict=True)
    code = {PENDING: UNSEEN, DEFAULTED: UNSEEN if record.fill is None else record.fill}
    if record.asked.silence is not None and not record.closed:
        code[PENDING] = record.asked.silence
        known = [(arm, row or blank_row(record, width(record, n))) for n, (arm, row) in enumerate(known)]
    rows = {arm: _encode_row(row, code) for arm, row in known if row is not None}
    return rows | {arm: _encode_row(row, code) for arm, row in record.others} if record.others else rows


def _counted_totals(record: DecisionRecord[Any]) -> Counted:
    """The totals that are known, and one of all arms of which none is, as far as silence means something."""
    size = len(record.action)
    found: Counted = {arms: (y, n, size) for arms, y, n in record.totals}
    share = record.fill if record.closed else _share(record.asked.silence, record)
    silent = (DEFAULTED,) if record.closed else None
    rest = tuple(sorted(arm for arm, row in zip(record.action, record.rows, strict=True) if row == silent))
    return found | {rest: (share * len(rest), 1, size)} if rest and share is not None else found


def _encode_row(row: Row, code: dict[float, float]) -> Row:
    if PENDING not in row and DEFAULTED not in row:  # most rows: a look is ten times as fast as a copy
        return row
    return tuple(code.get(x, x) for x in row)


def pending_arms(record: DecisionRecord[Any] | None) -> tuple[int, ...]:
    """The arms whose pulls are pending: they count in the radius, not in the mean."""
    if record is None or record.closed:
        return ()
    if record.asked.silence is not None and record.active and record.asked.learns:
        return ()  # they count as what silence means
    return tuple(arm for arm, row in zip(record.action, record.rows, strict=True) if row is None)


def feedback_of(support: AnySupport, t: int, rows: Counted) -> Feedback:
    """Feedback of round ``t``: a row for each arm, ``UNSEEN`` where nothing was seen, or for each set of arms.

    >>> feedback_of(Dense(2, 3), 1, {2: (0.5, UNSEEN)}).seen.tolist()
    [[[True, False]]]
    """
    if isinstance(next(iter(rows)), tuple):
        parts = [(arms, row[0], int(row[1])) for arms, row in rows.items()]
        return joint_feedback(t, parts, int(next(iter(rows.values()))[2]))
    arms = np.array(list(rows), np.int64)
    table = pad_rows(support, arms, list(rows.values()))[None]
    seen = table != UNSEEN
    entries = seen.size if isinstance(support, Dense) else support.widths[arms].sum()
    return Feedback(t, arms[None], np.where(seen, table, 0.0), None if seen.sum() == entries else seen)


def pad_rows(support: AnySupport, arms: Ints, rows: Sequence[Row]) -> Floats:
    """Rows of arms, (n, widest), with ``UNSEEN`` for items that are not in a row: added later, or none of the arm's."""
    sizes = np.fromiter(map(len, rows), np.int64, len(rows))
    if isinstance(support, Dense) and (sizes == support.n_items).all():
        return np.array(rows, float).reshape(len(rows), support.n_items)
    table = np.full((len(rows), support.widest), UNSEEN)
    table[np.arange(support.widest) < sizes[:, None]] = [value for row in rows for value in row]
    return table


def to_flat(support: AnySupport, arms: Ints, rows: Any) -> Any:
    """The entries of arms, one after the other, out of rows (n, widest)."""
    if isinstance(support, Dense):
        return rows.reshape(-1)
    return rows[np.arange(support.widest) < support.widths[arms][:, None]]
