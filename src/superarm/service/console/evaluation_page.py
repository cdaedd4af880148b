"""The page that shows an evaluation: a form for candidates, a table of values, and the slates to ship."""

from urllib.parse import urlencode

from superarm.offline import PolicyValue, Recommendation
from superarm.service.console import svg
from superarm.service.console.evaluation import Evaluation, Wanted
from superarm.service.console.markup import Html, tag
from superarm.service.console.view import scrollable, section
from superarm.service.domain.components import POLICIES, parameters_of

_COLUMNS = ("Value", "Interval", "Minus shown so far", "Verdict", "How sure")
_NUMBERS = ("Value", "Minus shown so far")


def sections(wanted: Wanted, found: Evaluation | str) -> list[Html]:
    """The sections of the page."""
    form = _form(wanted)
    if isinstance(found, str):
        return [section("evaluation", "Evaluation", tag("p", found, class_="empty"), _back(wanted))]
    note = (
        f"Estimated from the newest {found.n_rounds:,} decisions. The value of a policy is that of the slates that it "
        "would show next, given everything that was learnt so far. Intervals marked “at all times” hold for all slates "
        "at once, however often you look; the others are for one look."
    )
    if found.n_known < found.n_arms:
        note += (
            f" Uniform slates, and the best by the means, are made of the {found.n_known:,} of {found.n_arms:,} arms "
            "whose outcomes are in these decisions."
        )
    parts = [section("evaluation", "What slates and policies are worth", _table(wanted, found), form, note=note)]
    if found.best:
        said = (
            "The best slate at the lower ends of all intervals, so that an arm that did well a few times is not "
            "preferred to one that did well for long."
        )
        parts.append(section("ship", "The slate to ship", _shipped(found.best), note=said))
    warnings: dict[str, None] = {}
    for one in found.values.values():
        warnings |= dict.fromkeys(() if isinstance(one, str) else one.warnings)
    if warnings:
        parts.append(section("cautions", "What may be wrong", tag("ul", [tag("li", text) for text in warnings])))
    return parts


def _address(wanted: Wanted, left_out: str) -> str:
    kept = [("policy", text) for text in wanted.candidates if text != left_out]
    return "evaluation?" + urlencode([("problem", wanted.name), *kept])


def _back(wanted: Wanted) -> Html:
    return tag("p", tag("a", "Back to the problem", href=f"./?{urlencode({'problem': wanted.name})}"))


def _form(wanted: Wanted) -> Html:
    options = [tag("option", name, value=name) for name in POLICIES]
    names = sorted({name for entry in POLICIES.values() for name in parameters_of(entry.make)})
    known = ", ".join(["window", "half_life", "explore", *names])
    return tag(
        "form",
        tag("input", type="hidden", name="problem", value=wanted.name),
        [tag("input", type="hidden", name="policy", value=text) for text in wanted.candidates],
        tag("label", "Candidate ", tag("select", options, name="add", id="policy")),
        tag("label", "Settings ", tag("input", name="with", placeholder="rho=2 explore=0.1", maxlength=150, size=24)),
        tag("button", "Add"),
        tag("a", "Back to the problem", href=f"./?{urlencode({'problem': wanted.name})}"),
        tag(
            "p",
            f"Settings are written name=number, with spaces between: {known}. GET /v1/policies says which policy takes "
            "which.",
            class_="note",
        ),
        method="get",
        action="evaluation",
        class_="row",
    )


def _shipped(best: dict[str, Recommendation]) -> list[Html]:
    found = []
    for segment, one in best.items():
        arms = ", ".join(one.arms)
        sure = f"{100 * (1 - one.delta):g} %"
        short = f", and at most {one.shortfall:.3g} below the best slate" if one.shortfall < 1e300 else ""
        worth = f"Worth at least {one.low:.4g} per decision{short} ({sure}); {one.value:.4g} by the means."
        found.append(tag("p", tag("strong", f"{segment}: {arms}" if segment else arms), tag("br"), worth))
    return found


def _table(wanted: Wanted, found: Evaluation) -> Html:
    most = max((one.high for one in found.values.values() if not isinstance(one, str)), default=1.0)
    heads = [tag("th", name, scope="col", class_="num" if name in _NUMBERS else None) for name in ("What", *_COLUMNS)]
    rows = [_row(wanted, name, one, most) for name, one in found.values.items()]
    return scrollable("Values", tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows), class_="stacked"))


def _row(wanted: Wanted, name: str, one: PolicyValue | str, most: float) -> Html:
    remove = tag("a", "remove", href=_address(wanted, name), class_="note") if name in wanted.candidates else None
    if isinstance(one, str):
        return tag("tr", tag("th", name, remove, scope="row"), tag("td", one, colspan=5, class_="text"))
    kind = {"better": "good", "worse": "bad"}.get(one.verdict, "")
    d = one.difference
    sure = "95 %, at all times" if one.time_uniform else "95 %, for one look"
    slate = None if one.slate is None else tag("span", ", ".join(one.slate), class_="note")
    return tag(
        "tr",
        tag("th", name, slate, remove, scope="row"),
        tag("td", f"{one.value:.4g}", class_="num", data_label=_COLUMNS[0]),
        tag(
            "td",
            svg.interval(one.low, one.value, one.high, most),
            f"{one.low:.3g} to {one.high:.3g}",
            data_label=_COLUMNS[1],
        ),
        tag("td", f"{d.value:+.3g} ({d.low:+.3g} to {d.high:+.3g})", class_="num", data_label=_COLUMNS[2]),
        tag("td", one.verdict, class_=kind or None, data_label=_COLUMNS[3]),
        tag("td", sure, data_label=_COLUMNS[4]),
    )
