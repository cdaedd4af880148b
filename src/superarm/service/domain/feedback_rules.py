"""The rules of feedback: from a record and a request to an event, to nothing, or to an error."""

from superarm.service.domain.decision import DEFAULTED, PENDING, DecisionRecord, expand_units, widths_of
from superarm.service.domain.events import Activated, Expired, Told, Unit
from superarm.service.domain.spec import Settings
from superarm.service.errors import RequestError, conflict, invalid

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
    """
    if record.closed == "unshown":
        raise conflict(f"decision {record.asked.id!r} was reported as not shown; it takes no feedback")
    late = {(arm, item): value for arm, item, value in record.late}
    learn = not record.closed or settings.late == "learn"
    known_rows = dict(zip(record.action, record.rows, strict=True)) | dict(record.others)
    widths = widths_of(record, others)
    # Of an arm without items, that it was played is all there is to tell.
    empty = any(widths[arm] == 0 and known_rows.get(arm) is None for arm, _, _ in units)
    fresh, given, is_late = empty or bool(rows), dict[tuple[int, int], float](), False
    for arm, item, value in expand_units(record, widths, units):
        if given.setdefault((arm, item), value) != value:
            raise invalid("feedback", "the same entry appears twice, with different values", "give each entry once")
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
            raise contradiction(record, arm, item)
        fresh = True
    return Told(now, units, amend, is_late, learn or not is_late, others, rows) if fresh else None


def contradiction(record: DecisionRecord, arm: int, item: int) -> RequestError:
    """The answer to feedback that differs from what was told before."""
    return conflict(
        f"decision {record.asked.id!r}, arm {arm}, item {item}: another value was told before, which is kept; "
        "send amend: true to replace it"
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
