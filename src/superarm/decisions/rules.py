"""The rules: they make of a record and a request an event, nothing, or an error."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from superarm.core.arrays import Bools, Floats
from superarm.core.errors import ConflictingFeedback
from superarm.decisions.events import ALL, UNKNOWN, UNSEEN, Activated, Expired, Told, Unit
from superarm.decisions.record import DEFAULTED, PENDING, DecisionRecord, Row, blank_row, known_rows


def feedback(
    record: DecisionRecord[Any],
    told: Mapping[int, Floats],
    *,
    amend: bool = False,
    learn_late: bool = True,
    whole: bool = True,
    last: bool = False,
    at: int = 0,
) -> Told | None:
    """The event that feedback makes, or None if all of it was told before, equal.

    ``told`` has a row for each arm, as ``read_answer`` returns it; nothing of it is taken if anything of it conflicts.
    ``whole`` rows are logged as rows, others entry by entry. After the ``last`` feedback nothing is pending.

    A larger value, as that of a purchase after a click, takes the place of a smaller one, and is logged as an
    amendment. A smaller one is a conflict, unless it was told before the larger: requests may be repeated at any time.
    """
    name = record.asked.id
    if record.closed == "unshown":
        raise ConflictingFeedback(f"decision {name!r} was reported as not shown; it takes no feedback")
    known = known_rows(record)
    new = np.concatenate([np.zeros(0), *told.values()])
    if record.asked.items is None and not any(map(known.get, told)):  # as most feedback is
        before = np.full(len(new), PENDING)
    else:
        parts = [_known(record, known.get(arm), len(row)) for arm, row in told.items()]
        before = np.concatenate([np.zeros(0), *parts])
    asked = new != UNKNOWN
    place = _Places(list(told), [len(row) for row in told.values()])
    if not amend and record.raised:
        place.clear(asked, [(arm, i, x) for arm, i, x in record.raised], new)
    late = asked & ((before == PENDING) | (before == DEFAULTED)) if record.closed else np.zeros(len(new), bool)
    if late.any():
        before[late] = PENDING
        place.fill(before, [unit for unit in record.late if not learn_late or not place.holds(new, unit)], late)
    changed = asked & (new != before)
    conflicts = changed & (before != PENDING)
    raises = conflicts & (before >= 0.0) & (new > before)
    if not amend and (conflicts & ~raises).any():
        arm, item = place.of(int(np.flatnonzero(conflicts & ~raises)[0]))
        raise ConflictingFeedback(
            f"decision {name!r}, arm {arm}, item {item}: another value was told before, which is kept, unless "
            "the new one is larger; send amend: true to replace it"
        )
    played = [arm for arm, row in told.items() if not len(row) and known.get(arm) is None]
    ends = last and not record.closed
    if not changed.any() and not played and not ends:
        return None
    others = tuple((arm, len(row)) for arm, row in told.items() if arm not in record.action)
    is_late = bool(late.any())
    event: dict[str, Any] = {"amend": amend or bool(raises.any()), "late": is_late, "others": others, "last": ends}
    event["learn"] = not is_late or learn_late
    if whole and not is_late:
        rows = place.split(np.where(changed, new, before), changed)
        return Told(at, [], rows=(*rows, *((arm, ()) for arm in played)), **event)
    units: list[Unit] = [(*place.of(n), float(new[n])) for n in np.flatnonzero(changed).tolist()]
    return Told(at, units + [(arm, ALL, UNSEEN) for arm in played], **event)


def _known(record: DecisionRecord[Any], row: Row | None, size: int) -> Floats:
    """What is known of an arm, of which ``size`` items are told: items that came later were not seen."""
    if row is None:
        return np.array(blank_row(record, size), float)
    return np.concatenate([row, np.full(max(size - len(row), 0), UNSEEN)])[:size]


class _Places:
    """Where the rows of arms are when they are laid one after the other."""

    def __init__(self, arms: list[int], sizes: list[int]) -> None:
        self.arms, self.sizes, self.ends = arms, sizes, np.cumsum([0, *sizes]).tolist()

    def of(self, n: int) -> tuple[int, int]:
        """The arm and the item of a place."""
        at = int(np.searchsorted(self.ends, n, side="right")) - 1
        return self.arms[at], n - self.ends[at]

    def find(self, arm: int, item: int) -> int | None:
        """The place of an arm and an item."""
        if arm not in self.arms or item >= self.sizes[self.arms.index(arm)]:
            return None
        return int(self.ends[self.arms.index(arm)]) + item

    def holds(self, values: Floats, unit: Unit) -> bool:
        """Whether a unit has its value here."""
        n = self.find(unit[0], unit[1])
        return n is not None and bool(values[n] == unit[2])

    def clear(self, asked: Bools, units: list[Unit], values: Floats) -> None:
        """Ask no longer for what has the value of one of some units."""
        for unit in units:
            if self.holds(values, unit):
                asked[self.find(unit[0], unit[1])] = False  # type: ignore[index]

    def fill(self, values: Floats, units: list[Unit], where: Bools) -> None:
        """Write the values of units into their places, as far as they are ``where``."""
        for arm, item, value in units:
            n = self.find(arm, item)
            if n is not None and where[n]:
                values[n] = value

    def split(self, values: Floats, changed: Bools) -> list[tuple[int, Row]]:
        """The rows of those arms of which something changed."""
        parts, numbers, every = zip(self.arms, self.ends, self.ends[1:], strict=False), values.tolist(), changed.all()
        return [(arm, tuple(numbers[a:b])) for arm, a, b in parts if b > a and (every or changed[a:b].any())]


def activation(
    record: DecisionRecord[Any], shown: tuple[int, ...] | None, at: int = 0, widths: tuple[int, ...] | None = None
) -> Activated | None:
    """The event of showing a decision, or None if that is known already."""
    name = record.asked.id
    if record.active and (shown is None or shown == record.action):
        return None
    if record.closed:
        raise ConflictingFeedback(f"decision {name!r} is {record.closed}; it cannot be activated any more")
    if record.active and record.step and record.action != record.asked.action:
        raise ConflictingFeedback(f"decision {name!r} was reported with another slate before, which is kept")
    told = {arm for arm, row in zip(record.action, record.rows, strict=True) if row is not None}
    if shown is not None and not told <= set(shown):
        raise ConflictingFeedback(f"decision {name!r}: there is feedback for an arm that is not in `shown`")
    return Activated(at, shown, widths)


def expiry(record: DecisionRecord[Any], fill: float | None, at: int = 0) -> Expired | None:
    """The event of the window's end, where what is pending counts as ``fill`` or, if None, not at all.

    None if the record is closed. Where silence means something, it goes on counting as that.
    """
    if record.closed:
        return None
    return Expired(at, fill if record.asked.silence is None else record.asked.silence)
