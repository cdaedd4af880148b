"""The rules: they make of a record and a request an event, nothing, or an error."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from superarm.core.arrays import Bools, Floats
from superarm.core.errors import ConflictingFeedback
from superarm.decisions.answers import ReadAnswer
from superarm.decisions.events import ALL, UNKNOWN, UNSEEN, Activated, Expired, Part, Told, Unit
from superarm.decisions.record import DEFAULTED, PENDING, DecisionRecord, Row, blank_row, known_rows


def feedback(
    record: DecisionRecord[Any],
    answer: ReadAnswer,
    *,
    amend: bool = False,
    learn_late: bool = True,
    whole: bool = True,
    last: bool = False,
    at: int = 0,
) -> Told | None:
    """The event that feedback makes, or None if all of it was told before, equal.

    ``answer`` is what ``read_answer`` returns; nothing of it is taken if anything of it conflicts.
    ``whole`` rows are logged as rows, others entry by entry. After the ``last`` feedback nothing is pending.

    A larger value, as that of a purchase after a click, takes the place of a smaller one, and is logged as an
    amendment. A smaller one is a conflict, unless it was told before the larger: requests may be repeated at any time.
    """
    if record.closed == "unshown":
        raise ConflictingFeedback(f"decision {record.asked.id!r} was reported as not shown; it takes no feedback")
    if record.asked.joint:
        return _total_feedback(record, answer, amend=amend, learn_late=learn_late, last=last, at=at)
    known, told = known_rows(record), answer.rows
    both = _Compared(record, known, told, learn_late)
    raises = np.zeros(0, bool) if amend else both.raises(record, answer)
    played = [arm for arm, row in told.items() if not len(row) and known.get(arm) is None]
    ends, is_late = last and not record.closed, bool(both.late.any())
    if not both.changed.any() and not played and not ends:
        return None
    others = tuple((arm, len(row)) for arm, row in told.items() if arm not in record.action)
    facts: dict[str, Any] = {
        "amend": amend or bool(raises.any()),
        "late": is_late,
        "learn": not is_late or learn_late,
        "last": ends,
    }
    if answer.scores:
        new = {arm for arm, *_ in both.units()}
        facts["scores"] = tuple((arm, score) for arm, score in answer.scores.items() if arm in new)
    if whole and not is_late:
        return Told(at, [], others=others, rows=(*both.rows(), *((arm, ()) for arm in played)), **facts)
    return Told(at, [*both.units(), *((arm, ALL, UNSEEN) for arm in played)], others=others, **facts)


def _total_feedback(
    record: DecisionRecord[Any], answer: ReadAnswer, *, amend: bool, learn_late: bool, last: bool, at: int
) -> Told | None:
    """The event that totals make, as ``feedback`` says.

    A larger total of the same arms takes the place of a smaller one. With ``amend`` a total takes the place of all
    those that it has arms in common with.
    """
    rows, new, raised, late = dict(zip(record.action, record.rows, strict=True)), list[Part](), False, False
    unseen = [(arm, ALL, UNSEEN) for arm in answer.rows if rows[arm] != (UNSEEN,)]
    told = [arm for arm, _, _ in unseen if rows[arm] not in (None, (DEFAULTED,))]
    if told and not amend:
        raise _conflict(record, answer, told)
    for part in answer.totals:
        known = [old for old in record.totals if not set(old[0]).isdisjoint(part[0])]
        denied = any(rows[arm] == (UNSEEN,) for arm in part[0])
        if record.closed and not known and not denied:
            late = late or part not in record.aside or learn_late
            known = [] if learn_late else [old for old in record.aside if old[0] == part[0]][-1:]
        if part in known or (known and part in record.aside):
            continue
        larger = len(known) == 1 and (known[0][0], known[0][2]) == (part[0], part[2]) and known[0][1] < part[1]
        if (known or denied) and not (amend or larger):
            raise _conflict(record, answer, list(part[0]))
        new.append(part)
        raised = raised or bool(known)
    ends = last and not record.closed
    if not new and not unseen and not ends:
        return None
    return Told(at, unseen, amend or raised, late, not late or learn_late, last=ends, totals=tuple(new))


def _conflict(record: DecisionRecord[Any], answer: ReadAnswer, arms: list[int]) -> ConflictingFeedback:
    return ConflictingFeedback(
        f"decision {record.asked.id!r}: something else was told of arms {[answer.names[arm] for arm in arms]} before, "
        f"which is kept, unless a larger total of the same arms is told; {answer.remedies.amend} to replace it"
    )


class _Compared:
    """What is told beside what is known, the rows of arms one after the other; and what of it is late, or a change."""

    def __init__(
        self, record: DecisionRecord[Any], known: Mapping[int, Row | None], told: Mapping[int, Floats], learn_late: bool
    ) -> None:
        self.arms, self.ends = list(told), np.cumsum([0, *map(len, told.values())]).tolist()
        self.new = np.concatenate([np.zeros(0), *told.values()])
        self.asked = self.new != UNKNOWN
        self.before, self.late = np.full(len(self.new), PENDING), np.zeros(len(self.new), bool)
        if record.asked.items is not None or any(map(known.get, told)):  # most feedback is the first
            rows = [_known(record, known.get(arm), len(row)) for arm, row in told.items()]
            self.before = np.concatenate([np.zeros(0), *rows])
        if record.closed:
            self.late = self.asked & ((self.before == PENDING) | (self.before == DEFAULTED))
            self.before[self.late] = PENDING
            for unit in record.late:
                n = self._find(unit)
                if n is not None and self.late[n] and not (learn_late and self.new[n] == unit[2]):
                    self.before[n] = unit[2]  # it was logged; if it is told again to be learnt, it is a change
        self.changed = self.asked & (self.new != self.before)

    def _find(self, unit: Unit) -> int | None:
        """The place of a unit's arm and item."""
        if unit[0] not in self.arms:
            return None
        at = self.arms.index(unit[0])
        n = int(self.ends[at]) + unit[1]
        return n if n < self.ends[at + 1] else None

    def _of(self, n: int) -> tuple[int, int]:
        """The arm and the item of a place."""
        at = int(np.searchsorted(self.ends, n, side="right")) - 1
        return self.arms[at], n - int(self.ends[at])

    def raises(self, record: DecisionRecord[Any], answer: ReadAnswer) -> Bools:
        """Where larger values take the place of smaller ones; those that were told before them are left out.

        Any other change of what is known is refused.
        """
        for unit in record.raised:
            n = self._find(unit)
            if n is not None and self.new[n] == unit[2]:
                self.changed[n] = False
        conflicts = self.changed & (self.before != PENDING)
        raises: Bools = conflicts & (self.before >= 0.0) & (self.new > self.before)
        if (refused := np.flatnonzero(conflicts & ~raises)).size:
            arm, item = self._of(int(refused[0]))
            whose, (amend, later) = f"decision {record.asked.id!r}, arm {answer.names[arm]!r}", answer.remedies
            if self.before[refused[0]] == UNSEEN:
                raise ConflictingFeedback(f"{whose} was told as unseen before; {amend} to replace that; {later}")
            what = ": another score" if answer.scores else f", item {item}: another value"
            raise ConflictingFeedback(
                f"{whose}{what} was told before, which is kept, unless the new one is larger; {amend} to replace it"
            )
        return raises

    def rows(self) -> list[tuple[int, Row]]:
        """The rows of those arms of which something changed, as they are then."""
        values, parts = (
            np.where(self.changed, self.new, self.before).tolist(),
            zip(self.ends, self.ends[1:], strict=False),
        )
        every = self.changed.all()
        rows = zip(self.arms, parts, strict=True)
        return [(arm, tuple(values[a:b])) for arm, (a, b) in rows if b > a and (every or self.changed[a:b].any())]

    def units(self) -> list[Unit]:
        """What changed, entry by entry."""
        return [(*self._of(n), float(self.new[n])) for n in np.flatnonzero(self.changed).tolist()]


def _known(record: DecisionRecord[Any], row: Row | None, size: int) -> Floats:
    """What is known of an arm, of which ``size`` items are told: items that came later were not seen."""
    if row is None:
        return np.array(blank_row(record, size), float)
    return np.concatenate([row, np.full(max(size - len(row), 0), UNSEEN)])[:size]


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
