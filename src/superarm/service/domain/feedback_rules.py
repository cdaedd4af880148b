"""The semantics of feedback: a record and a request give an event, nothing, or a refusal. Pure."""

from superarm.service.domain.decision import DEFAULTED, PENDING, DecisionRecord, expand_units
from superarm.service.domain.events import ALL, Activated, Expired, Told, Unit
from superarm.service.domain.spec import Settings
from superarm.service.errors import RequestError, conflict, invalid


def feedback(record: DecisionRecord, units: list[Unit], amend: bool, settings: Settings, now: int) -> Told | None:
    """The event that these units make, or None if all of them were told before, equal.

    Nothing of a request is taken if anything of it conflicts.
    """
    if record.closed == "unshown":
        raise conflict(f"decision {record.asked.id!r} was reported as not shown; it takes no feedback")
    places = {arm: place for place, arm in enumerate(record.action)}
    if not record.closed and _first(record, places, units):
        return Told(now, units, amend)
    late = {(arm, item): value for arm, item, value in record.late}
    learn = not record.closed or settings.late == "learn"
    fresh, given, is_late = False, dict[tuple[int, int], float](), False
    for arm, item, value in expand_units(record, units):
        if arm not in places:
            raise invalid("feedback.arm", f"arm {arm} is not in the slate", "report only arms that were shown")
        if given.setdefault((arm, item), value) != value:
            raise invalid("feedback", "the same entry stands twice, with different values", "give each entry once")
        row = record.rows[places[arm]]
        stands = PENDING if row is None else row[item]
        if record.closed and stands in (PENDING, DEFAULTED):
            is_late = True
            stands = late.get((arm, item), PENDING)
            if stands == value and learn:
                stands = PENDING  # it was only logged; now it is learnt
        if stands == value:
            continue
        if stands != PENDING and not amend:
            raise _contradiction(record, arm, item)
        fresh = True
    return Told(now, units, amend, is_late, learn or not is_late) if fresh else None


def _first(record: DecisionRecord, places: dict[int, int], units: list[Unit]) -> bool:
    """Whether these are whole rows of distinct arms of which nothing is known yet: by far the most common case."""
    arms = {arm for arm, item, _ in units if item == ALL and arm in places and record.rows[places[arm]] is None}
    return 0 < len(arms) == len(units)


def _contradiction(record: DecisionRecord, arm: int, item: int) -> RequestError:
    return conflict(
        f"decision {record.asked.id!r}, arm {arm}, item {item}: another value was told before, and the first stands; "
        "send amend: true to replace it"
    )


def activation(record: DecisionRecord, shown: tuple[int, ...] | None, now: int) -> Activated | None:
    """The event of showing a decision, or None if that is known already."""
    same = record.active and (shown is None or shown == record.action)
    if same:
        return None
    if record.closed:
        raise conflict(f"decision {record.asked.id!r} is {record.closed}; it cannot be activated any more")
    if record.active and record.step and record.action != record.asked.action:
        raise conflict(f"decision {record.asked.id!r} was reported with another slate, and the first report stands")
    told = {arm for arm, row in zip(record.action, record.rows, strict=True) if row is not None}
    if shown is not None and not told <= set(shown):
        raise conflict(f"decision {record.asked.id!r}: there is feedback for an arm that is not in `shown`")
    return Activated(now, shown)


def expiry(record: DecisionRecord, settings: Settings, now: int) -> Expired | None:
    """The event of the window's end, or None if the record is closed."""
    if record.closed:
        return None
    return Expired(now, None if settings.at_window_end == "ignore" else settings.at_window_end)
