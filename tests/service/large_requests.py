"""The largest legal requests of the service, for those who ask whether it answers others meanwhile.

``python -m dev.benchmarks.responsiveness`` sends them in full size to a process of its own, and ``test_responsive.py``
in a small one. Each group begins with requests that make its problems, which are sent and awaited, too.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class LargeRequest(NamedTuple):
    """A request, what it is called, and the status that it gets."""

    what: str
    method: str
    path: str
    body: Any = None  # text is sent as it is
    status: int = 200

    @property
    def content(self) -> bytes:
        """The body as it is sent."""
        if self.body is None:
            return b""
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode()


Requests = Iterator[LargeRequest]
Scale = Callable[[int], int]
"""How many are sent in the place of so many."""


def names(letter: str, n: int, first: int = 0) -> list[str]:
    """Names of arms, items or decisions."""
    return [f"{letter}{j}" for j in range(first, first + n)]


def spec(n_arms: int, n_items: int, k: int, policy: str = "kl_ucb", **more: Any) -> dict[str, Any]:
    """The description of a problem."""
    settings = {"policy": {"name": policy}, "max_pending": 1_000_000, **more.pop("settings", {})}
    return {"arms": names("a", n_arms), "items": names("i", n_items), "k": k, "settings": settings, **more}


def put(problem: str, n_arms: int, n_items: int, k: int, policy: str = "kl_ucb", **more: Any) -> LargeRequest:
    """The request that creates a problem."""
    body = spec(n_arms, n_items, k, policy, **more)
    return LargeRequest(f"create {n_arms:,} x {n_items:,}", "PUT", f"/v1/problems/{problem}", body, 201)


def get(what: str, path: str, status: int = 200) -> LargeRequest:
    """A request without a body."""
    return LargeRequest(what, "GET", path, None, status)


def bulk(what: str, problem: str, decisions: list[dict[str, Any]]) -> LargeRequest:
    """Several decisions at once."""
    return LargeRequest(what, "POST", f"/v1/problems/{problem}/decisions/bulk", {"decisions": decisions})


def tell_many(what: str, problem: str, lines: str) -> LargeRequest:
    """Feedback of many decisions."""
    return LargeRequest(what, "POST", f"/v1/problems/{problem}/feedback/bulk", lines)


def ask(problem: str, id: str, **more: Any) -> LargeRequest:
    """One decision."""
    return LargeRequest("a decision", "POST", f"/v1/problems/{problem}/decisions", {"id": id, **more}, 201)


def outcome(path: str, n_arms: int, n_items: int) -> LargeRequest:
    """Feedback on all entries of a decision."""
    body = {"outcome": [[0.5] * n_items] * n_arms}
    return LargeRequest(f"outcome {n_arms:,} x {n_items:,}", "POST", f"{path}/feedback", body)


def creations(n: Scale) -> Requests:
    """Problems with as many entries as there may be; their settings; their end."""
    arms, items = n(5_000), n(1_000)
    yield put("wide", arms, items, 10)
    yield put("wide", arms, items, 10)._replace(what="create the same again", status=200)
    yield put("wide", arms, items, 9)._replace(what="create another of that name", status=409)
    yield put("square", 10_000, 1_000, 10)._replace(what="create 10,000 x 1,000: too large", status=422)
    yield put("long", n(100_000), n(50), 10)
    yield put("deep", n(500), n(10_000), 10)
    yield ask("wide", "w0")._replace(what="a decision of 5,000 x 1,000")
    yield get("the page of 5,000 x 1,000", "/?problem=wide")
    yield get("1,000 arms of 5,000 x 1,000", f"/v1/problems/wide/arms?limit={n(1_000)}")
    yield get("100 arms of 500 x 10,000", f"/v1/problems/deep/arms?limit={n(100)}")
    yield get("the page of 500 x 10,000", "/?problem=deep")
    changed = {"policy": {"name": "bc_ucb"}}
    yield LargeRequest("PATCH settings of 5,000 x 1,000", "PATCH", "/v1/problems/wide/settings", changed)
    replaced = {"policy": {"name": "kl_ucb"}, "explore": 0.1}
    yield LargeRequest("PATCH settings of 100,000 x 50", "PATCH", "/v1/problems/long/settings", replaced)
    yield LargeRequest("delete 5,000 x 1,000", "DELETE", "/v1/problems/wide")
    yield LargeRequest("delete 100,000 x 50", "DELETE", "/v1/problems/long")
    yield LargeRequest("delete 500 x 10,000", "DELETE", "/v1/problems/deep")


def lists(n: Scale) -> Requests:
    """As many slates as a body can name: a million names, which each reading of their event decodes again."""
    arms, width = n(200), n(50)
    batches = [[f"a{(j + i) % arms}" for i in range(width)] for j in range(n(20_000))]
    short = json.dumps({"arms": names("a", arms), "items": ["x"], "batches": batches}, separators=(",", ":"))
    yield LargeRequest("create 20,000 slates of 50 arms", "PUT", "/v1/problems/listed", short, 201)
    yield ask("listed", "one")
    yield get("the audit of all problems", "/v1/audit")
    yield LargeRequest("erase a unit", "POST", "/v1/problems/listed/erasures", {"unit": "nobody"})
    yield LargeRequest("delete 20,000 slates", "DELETE", "/v1/problems/listed")


def growth(n: Scale) -> Requests:
    """Many arms and items added and retired at once."""
    yield put("growing", n(25_000), 10, 10)
    path = "/v1/problems/growing"
    yield LargeRequest("add 25,000 arms to 25,000", "POST", f"{path}/arms", {"add": names("b", n(25_000))})
    yield LargeRequest("retire 25,000 arms", "POST", f"{path}/arms", {"retire": names("a", n(25_000))})
    yield LargeRequest("add 50 items to 50,000 x 10", "POST", f"{path}/items", {"add": names("j", 50)})
    yield get("the audit of a growing problem", "/v1/audit")
    yield LargeRequest("delete 50,000 x 60", "DELETE", path)


def decisions(n: Scale) -> Requests:
    """Decisions of a large problem: made, shown, found, exported."""
    yield put("large", n(10_000), n(100), 10)
    for j in range(3):
        yield ask("large", f"first-{j}")
    many = n(5_000)
    yield bulk("bulk of 5,000 with excluded", "large", [{"excluded": [f"a{j % 9}"]} for j in range(many)])
    some = bulk("bulk of 5,000", "large", [{"id": f"l{j}", "unit": "visitor"} for j in range(many)])
    yield some
    yield some._replace(what="the same bulk again")
    told = [json.dumps({"decision": f"l{j}", "outcome": [[0.25] * n(100)] * 10}) for j in range(n(1_000))]
    yield tell_many("feedback of 1,000 lines of 10 x 100", "large", "\n".join(told))
    for view in ("", "versions"):
        yield get(f"console: /{view} of 10,000 x 100", f"/{view}?problem=large")
    yield get("console: sorted by name", "/?problem=large&sort=name&page=9")
    yield get("console: a decision", "/?problem=large&decision=l1")
    for table in ("arms", "rewards"):
        yield get(f"export {table}.csv of 10,000 x 100", f"/export/{table}.csv?problem=large")
    yield get("explanation, 10,000 x 100", "/v1/problems/large/decisions/l1/explanation?most=100")
    yield LargeRequest("erase a unit with 5,000 decisions", "POST", "/v1/problems/large/erasures", {"unit": "visitor"})
    yield LargeRequest("delete 10,000 x 100", "DELETE", "/v1/problems/large")


def outcomes(n: Scale) -> Requests:
    """Feedback with a million values."""
    side = n(1_000)
    yield put("square", side, side, side)
    yield ask("square", "whole")
    yield outcome("/v1/problems/square/decisions/whole", side, side)
    yield outcome("/v1/problems/square/decisions/whole", side, side)._replace(what="the same outcome again")
    past = {"id": "past", "arms": names("a", side), "outcomes": [[0.5] * side] * side}
    yield LargeRequest("past outcomes 1,000 x 1,000", "POST", "/v1/problems/square/outcomes", past)
    yield bulk("bulk of 100 with 1,000 arms each", "square", [{"id": f"s{j}"} for j in range(n(100))])
    units = [{"arm": f"a{j % side}", "item": f"i{j // side}", "value": 1} for j in range(n(10_000))]
    path = "/v1/problems/square/decisions"
    yield LargeRequest("feedback of 10,000 units", "POST", f"{path}/s1/feedback", {"feedback": units})
    yield LargeRequest("erase a decision of 1,000 x 1,000", "DELETE", f"{path}/whole")
    yield LargeRequest("delete 1,000 x 1,000", "DELETE", "/v1/problems/square")


def feedback(n: Scale) -> Requests:
    """Many decisions of a small problem, and their feedback."""
    many, arms = n(10_000), names("a", 5)
    yield put("many", n(100), n(20), 5)
    asked = [{"id": f"m{j}", "eligible": arms, "unit": f"u{j % 2}"} for j in range(many)]
    yield bulk("bulk of 10,000 with eligible", "many", asked)
    yield bulk("bulk of 10,000", "many", [{}] * many)
    each = [{"arm": arm, "value": 1} for arm in arms]
    told = "\n".join(json.dumps({"decision": f"m{j}", "feedback": each}) for j in range(many))
    yield tell_many("feedback of 10,000 lines", "many", told)
    yield tell_many("the same feedback again", "many", told)
    yield tell_many("8 MB of empty lines", "many", "\n" * 8_000_000)._replace(status=413)
    yield get("the page of 20,000 decisions", "/?problem=many")
    yield LargeRequest("erase a unit with 5,000 decisions", "POST", "/v1/problems/many/erasures", {"unit": "u0"})
    yield LargeRequest("delete a problem with 20,000 decisions", "DELETE", "/v1/problems/many")


def contexts(n: Scale) -> Requests:
    """Contexts with as many features and segments as there may be, and slates drawn to count their chances."""
    d = n(1_000)
    declared = {
        "features": {"d": d},
        "model": {"name": "linear", "parameters": {"shared": True}},
        "arms": {arm: [j / 30, 0.5] for j, arm in enumerate(names("a", 30))},
        "interactions": False,
    }
    given = [0.5 / d**0.5] * d
    yield put("features", 30, 1, 5, "c2_ucb", context=declared)._replace(what="create 1,003 coordinates")
    asked = [{"id": f"f{j}", "context": given} for j in range(n(100))]
    yield bulk("bulk of 100 with 1,000 features", "features", asked)
    told = "\n".join(json.dumps({"decision": f"f{j}", "outcome": [[0.5]] * 5}) for j in range(n(100)))
    yield tell_many("feedback with 1,000 features", "features", told)
    yield get("the page with 1,000 features", "/?problem=features&decision=f1")
    yield LargeRequest("delete 1,000 features", "DELETE", "/v1/problems/features")
    levels = names("v", n(1_024))
    segments = {"features": {"categorical": {"country": levels}}}
    yield put("segments", n(300), n(20), 10, context=segments)._replace(what="create 1,024 segments of 300 x 20")
    asked = [{"id": f"g{j}", "context": {"country": levels[j % len(levels)]}} for j in range(n(5_000))]
    yield bulk("bulk of 5,000 in 1,024 segments", "segments", asked)
    yield get("the page of 1,024 segments", "/?problem=segments")
    yield get("arms of 1,024 segments", f"/v1/problems/segments/arms?limit={n(300)}")
    yield get("export arms of 1,024 segments", "/export/arms.csv?problem=segments")
    yield LargeRequest("delete 1,024 segments", "DELETE", "/v1/problems/segments")
    for policy, many in (("cts", n(20)), ("pooled_thompson", 1)):
        yield put("draws", n(100), n(20), 5, policy, settings={"propensity_draws": n(10_000)})
        yield bulk(f"bulk of {many} with 10,000 draws each, {policy}", "draws", [{}] * many)
        yield LargeRequest("delete draws", "DELETE", "/v1/problems/draws")


GROUPS: dict[str, Callable[[Scale], Requests]] = {
    "creations": creations,
    "lists": lists,
    "growth": growth,
    "decisions": decisions,
    "outcomes": outcomes,
    "feedback": feedback,
    "contexts": contexts,
}
