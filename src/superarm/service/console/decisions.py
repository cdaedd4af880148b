"""The search for decisions: by time, arm, unit, state and group, a page at a time."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from superarm.service.console.markup import Html, tag
from superarm.service.console.times import moment
from superarm.service.console.view import scrollable, section

FIELDS = ("since", "until", "arm", "unit", "state", "group")
STATES = ("", "open", "deferred", "complete", "expired", "unshown")
GROUPS = ("", "policy", "control")
DECISIONS_PER_PAGE = 50


def decisions(name: str, query: Mapping[str, str], found: Sequence[Any], cursor: str | None, wrong: str) -> Html:
    """The form, and what was found: newest first."""
    asked = {key: query[key] for key in FIELDS if query.get(key)}
    more = None
    if cursor is not None:
        more = tag(
            "a", "older →", href=f"decisions?{urlencode({'problem': name, **asked, 'cursor': cursor})}", rel="next"
        )
    newest = (
        tag("a", "← newest", href=f"decisions?{urlencode({'problem': name, **asked})}") if "cursor" in query else None
    )
    address = f"export/decisions.csv?{urlencode({'problem': name, **asked})}"
    export = tag("a", "Export CSV", href=address, class_="button", download=True)
    body = tag("p", wrong, class_="bad", role="alert") if wrong else _table(name, found, cursor)
    links = tag("nav", newest, more, None if wrong else export, class_="row", aria_label="Pages of decisions")
    note = "Newest first; times are UTC. A unit is found by the name with which decisions were asked for."
    return section("decisions", "Decisions", _form(name, query), body, links, note=note)


def _form(name: str, query: Mapping[str, str]) -> Html:
    def choose(field: str, words: Sequence[str]) -> Html:
        options = [tag("option", word or "any", value=word, selected=word == query.get(field, "")) for word in words]
        return tag("label", f"{field.capitalize()} ", tag("select", options, name=field))

    def text(field: str, kind: str = "text") -> Html:
        return tag("input", type=kind, name=field, value=query.get(field), autocomplete="off")

    return tag(
        "form",
        tag("input", type="hidden", name="problem", value=name),
        tag("label", "From ", text("since", "date")),
        tag("label", "until ", text("until", "date")),
        tag("label", "Arm ", text("arm")),
        tag("label", "Unit ", text("unit")),
        choose("state", STATES),
        choose("group", GROUPS),
        tag("button", "Search"),
        method="get",
        action="decisions",
        class_="row",
        role="search",
    )


def _table(name: str, found: Sequence[Any], cursor: str | None) -> Html:
    if not found:
        words = "None among those that were looked at; go on to older ones." if cursor else "No decision fits."
        return tag("p", words, class_="empty")
    heads = [tag("th", word, scope="col") for word in ("Decision", "Made (UTC)", "State", "Arms", "Known outcomes")]
    rows = []
    for one in found:
        link = tag("a", one.id, href=f"./?{urlencode({'problem': name, 'decision': one.id})}#inspector")
        state = one.state + (f", {one.group}" if one.group else "") + (", fallback" if one.fallback else "")
        cells = [moment(one.at), state, ", ".join(one.arms), _outcomes(one.values)]
        rows.append(tag("tr", tag("th", link, scope="row"), [tag("td", cell) for cell in cells]))
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows))
    return scrollable("Decisions", table)


def _outcomes(values: Sequence[Sequence[float | None] | None]) -> str:
    known = [x for row in values for x in row or () if x is not None]
    return f"{len(known)} with mean {sum(known) / len(known):.3g}" if known else "none"
