"""Dates and times, in UTC: what the address asks for, and labels of time axes."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

DAY_MS = 86_400_000


class TimeRange(NamedTuple):
    """From the start of the day ``since`` to the end of the day ``until``, both as ISO dates; empty for no limit."""

    since: str = ""
    until: str = ""

    @property
    def start(self) -> int:
        """The first millisecond."""
        day = _day(self.since)
        return 0 if day is None else int(day.timestamp() * 1000)

    @property
    def end(self) -> int:
        """The millisecond after the last."""
        day = _day(self.until)
        return 2**62 if day is None else int((day + timedelta(days=1)).timestamp() * 1000)

    def holds(self, at: int) -> bool:
        """Whether a time, in milliseconds, is in the range."""
        return self.start <= at < self.end


def time_range(since: str, until: str) -> TimeRange:
    """The range of two texts; what is no date is left out.

    >>> time_range("2026-03-01", "soon")
    TimeRange(since='2026-03-01', until='')
    >>> time_range("2026-03-01", "2026-03-01").holds(1_772_323_200_000 + DAY_MS - 1)
    True
    """
    return TimeRange(since if _day(since) else "", until if _day(until) else "")


def _day(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC) if 0 < len(text) <= 10 else None
    except ValueError:
        return None


def date_label(at: int, span: int) -> str:
    """A time on an axis that covers ``span`` milliseconds.

    >>> date_label(1_772_323_200_000, DAY_MS), date_label(1_772_323_200_000, 30 * DAY_MS)
    ('1 Mar 00:00', '1 Mar 2026')
    """
    time = datetime.fromtimestamp(at / 1000, UTC)
    clock = f"{time:%H:%M:%S}" if span < 600_000 else f"{time:%H:%M}"
    return f"{time.day} {time:%b} {clock}" if span < 4 * DAY_MS else f"{time.day} {time:%b %Y}"


def duration(seconds: float) -> str:
    """A time span in the largest unit of which it is a whole number.

    >>> duration(86_400.0), duration(5_400.0), duration(0.5)
    ('1 day', '90 minutes', '0.5 s')
    """
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        n = seconds / size
        if n >= 1.0 and n == int(n):
            return f"{n:g} {unit}{'' if n == 1.0 else 's'}"
    return f"{seconds:g} s"


def moment(at: int) -> str:
    """A time in a table, to the second."""
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M:%S}"
