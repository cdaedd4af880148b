"""What the address asks for, and what all sections share."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from superarm.service.console.markup import Html, tag
from superarm.service.console.numbers import SORTS, Ordering
from superarm.service.console.times import TimeRange, time_range

MAX_TRIED_ARMS = 50


class View(NamedTuple):
    """What the address asks for."""

    problem: str
    ordering: Ordering
    tried: tuple[str, ...]
    decision: str
    times: TimeRange = TimeRange()
    items_page: int = 0
    public: bool = False

    def address(self, **change: Any) -> str:
        """The address of this view, with something changed."""
        order, tried = self.ordering, change.get("tried", self.tried)
        words = {
            "problem": self.problem,
            "sort": change.get("sort", order.sort),
            "find": change.get("find", order.find),
            "page": change.get("page", order.page),
            "items": change.get("items", self.items_page),
            "decision": change.get("decision", self.decision),
            "since": self.times.since,
            "until": self.times.until,
        }
        plain = [(k, v) for k, v in words.items() if v not in ("", 0, "value")]
        place: str = change.get("to", "")
        return "./?" + urlencode([*plain, *(("try", arm) for arm in tried)]) + place


def view_of(query: bytes) -> View:
    """What the address asks for; what makes no sense is left out.

    >>> view_of(b"problem=ads&page=x&try=a&try=a").tried
    ('a',)
    """
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=False)
    last = dict(pairs)
    number = last.get("page", "0")
    sort = last.get("sort", "value")
    ordering = Ordering(
        sort if sort in SORTS else "value",
        last.get("find", "")[:256],
        int(number) if number.isascii() and number.isdigit() and len(number) < 7 else 0,
    )
    tried = tuple(dict.fromkeys(value for key, value in pairs if key == "try"))[:MAX_TRIED_ARMS]
    times = time_range(last.get("since", ""), last.get("until", ""))
    items = last.get("items", "0")
    items_page = int(items) if items.isascii() and items.isdigit() and len(items) < 7 else 0
    return View(last.get("problem", ""), ordering, tried, last.get("decision", "")[:256], times, items_page)


def section(id: str, title: str, *body: Any, note: str = "", broad: bool = False) -> Html:
    """A card of the page; a ``broad`` one takes a whole row of it."""
    said = tag("p", note, class_="note") if note else None
    kind = "card broad" if broad else "card"
    return tag("section", tag("h2", title), said, *body, id=id, class_=kind, data_live=True)


def hidden_inputs(view: View, *left_out: str) -> list[Html]:
    order = view.ordering
    pairs = [("problem", view.problem), ("sort", order.sort), ("find", order.find), ("decision", view.decision)]
    pairs += [("since", view.times.since), ("until", view.times.until), *(("try", name) for name in view.tried)]
    return [tag("input", type="hidden", name=k, value=v) for k, v in pairs if v and k not in left_out]


def range_form(action: str, kept: Mapping[str, str], times: TimeRange) -> Html:
    """Two dates, and a button."""
    return tag(
        "form",
        [tag("input", type="hidden", name=name, value=value) for name, value in kept.items()],
        tag("label", "From ", tag("input", type="date", name="since", value=times.since or None)),
        tag("label", "until ", tag("input", type="date", name="until", value=times.until or None)),
        tag("button", "Show"),
        method="get",
        action=action,
        class_="row",
    )


def pages(label: str, here: int, last: int, address: Callable[[int], str]) -> Html | None:
    """Links to the page before and the page after."""
    if not last:
        return None
    return tag(
        "nav",
        tag("a", "← previous", href=address(here - 1), rel="prev") if here else None,
        tag("span", f"page {here + 1} of {last + 1}", class_="quiet"),
        tag("a", "next →", href=address(here + 1), rel="next") if here < last else None,
        class_="row",
        aria_label=label,
    )


def export_link(problem: str, name: str) -> Html:
    """A button that downloads a table."""
    address = f"export/{name}?{urlencode({'problem': problem})}"
    return tag("p", tag("a", "Export CSV", href=address, class_="button", download=True))


def scrollable(label: str, content: Html) -> Html:
    """What may be wider than the screen; it can be scrolled with the keyboard, too."""
    return tag("div", content, class_="wide", tabindex="0", role="group", aria_label=f"{label}, scrollable")
