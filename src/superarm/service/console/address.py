"""What the address of a page asks for, and how times are written, in UTC."""

from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

SORTS = ("value", "observed", "awaiting", "number")
DAY_MS = 86_400_000


class PageView(NamedTuple):
    """What the address of a problem's page asks for; ``item`` is the segment that it is about, empty for all."""

    problem: str = ""
    item: str = ""
    sort: str = "value"
    find: str = ""
    page: int = 0
    items: int = 0
    decision: str = ""
    since: str = ""
    until: str = ""

    def pairs(self, *left_out: str, **change: Any) -> list[tuple[str, str]]:
        """The view as names and values, without what has its default."""
        plain, view = PageView(), self._replace(**change)
        names = [name for name in PageView._fields if name not in left_out]
        return [(name, str(getattr(view, name))) for name in names if getattr(view, name) != getattr(plain, name)]

    def address(self, to: str = "", **change: Any) -> str:
        """The address of this view, with something changed; ``to`` is a place on the page."""
        return f"./?{urlencode(self.pairs(**change))}{to}"


def whole_number(text: str) -> int:
    """A number in an address; 0 if it is none, or too large.

    >>> whole_number("12"), whole_number("-1")
    (12, 0)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0


def parse(query: bytes) -> dict[str, str]:
    """The parameters of an address, the last of each name."""
    return dict(parse_qsl(query.decode("latin-1")))


def view_of(query: bytes) -> PageView:
    """What the address asks for; what makes no sense is left out.

    >>> view_of(b"problem=ads&page=x&sort=odd")[:3]
    ('ads', '', 'value')
    """
    last: Any = {name: value[:256] for name, value in parse(query).items() if name in PageView._fields}
    numbers: Any = {name: whole_number(last.pop(name, "")) for name in ("page", "items")}
    sort = last.pop("sort", "value")
    return PageView(**last, sort=sort if sort in SORTS else "value", **numbers)


def days(view: PageView) -> tuple[int, int]:
    """The first moment of the dates that the address asks for, and the first after them, in milliseconds; 0 for none.

    >>> days(PageView(since="2026-03-01", until="2026-03-02")), days(PageView(since="soon"))
    ((1772323200000, 1772496000000), (0, 0))
    """
    found = []
    for text, more in ((view.since, 0), (view.until, DAY_MS)):
        try:
            found.append(int(1000 * datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()) + more)
        except ValueError:
            found.append(0)
    return found[0], found[1]


def date_label(at: float, span: float) -> str:
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
