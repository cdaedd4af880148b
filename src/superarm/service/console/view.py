"""What the address asks for, and what all sections share."""

from typing import Any, NamedTuple
from urllib.parse import urlencode

from superarm.service.console.markup import Html, tag
from superarm.service.console.numbers import Ordering


class View(NamedTuple):
    """What the address asks for."""

    problem: str
    ordering: Ordering
    tried: tuple[str, ...]
    decision: str

    def address(self, **change: Any) -> str:
        """The address of this view, with something changed."""
        order, tried = self.ordering, change.get("tried", self.tried)
        words = {
            "problem": self.problem,
            "sort": change.get("sort", order.sort),
            "find": change.get("find", order.find),
            "page": change.get("page", order.page),
            "decision": change.get("decision", self.decision),
        }
        plain = [(k, v) for k, v in words.items() if v not in ("", 0, "value")]
        place: str = change.get("to", "")
        return "./?" + urlencode([*plain, *(("try", arm) for arm in tried)]) + place


def section(id: str, title: str, *body: Any, note: str = "") -> Html:
    said = tag("p", note, class_="note") if note else None
    return tag("section", tag("h2", title), said, *body, id=id, class_="card", data_live=True)


def hidden_inputs(view: View, *left_out: str) -> list[Html]:
    order = view.ordering
    pairs = [("problem", view.problem), ("sort", order.sort), ("find", order.find), ("decision", view.decision)]
    pairs += [("try", name) for name in view.tried]
    return [tag("input", type="hidden", name=k, value=v) for k, v in pairs if v and k not in left_out]
