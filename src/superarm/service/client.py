"""The Python client: a problem of a running service, with ``ask`` and ``tell`` as ``Agent`` has them.

JSON over HTTP with the standard library: a few connections, with retries, as all calls are idempotent.
"""

import http.client
import math
import random
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, overload
from urllib.parse import quote, urlsplit

import msgspec
import numpy as np

from superarm.agent import Decision
from superarm.agent.explanations import ExplainedArm, Explanation
from superarm.core.arrays import Floats, floats
from superarm.core.errors import ConflictingFeedback, InvalidArgument, SuperarmError, UnknownDecision
from superarm.core.totals import Worth
from superarm.output.labels import Labels, align, is_frame
from superarm.service.asynchronous import Awaited

RETRIED_STATUSES = (429, 502, 503, 504)
MAX_WAIT_SECONDS = 5.0
"""The longest pause before a call is made again."""
MAX_CONNECTIONS = 32
"""How many calls are made at the same time at most; further ones wait."""


class ServiceError(SuperarmError):
    """The service refused, or could not be reached: ``status`` (0 if there was no answer), ``code``, message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Connection:
    """A service, as one key sees it, for any number of threads: a call takes a connection that is idle, or a new one.

    Every call is idempotent, so one without an answer is made again, for ``retry_for`` seconds.
    """

    def __init__(self, url: str, key: str | None, timeout: float, retry_for: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidArgument("url", f"{url!r}", "give http://host:port or https://host")
        self._parts, self._timeout, self._retry_for = parts, timeout, retry_for
        self.address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self._headers = {"content-type": "application/json"}
        if key:
            self._headers["authorization"] = f"Bearer {key}"
        self._idle: list[http.client.HTTPConnection] = []
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The answer, decoded; ``ServiceError`` for a refusal."""
        try:
            data = b"" if body is None else msgspec.json.encode(body)
        except UnicodeEncodeError as error:
            raise _no_text(error) from None
        end, pause = time.monotonic() + self._retry_for, 0.025
        status, wait, answer = self._try(method, path, data)
        while status in (0, *RETRIED_STATUSES) and time.monotonic() < end:
            pause = min(MAX_WAIT_SECONDS, max(wait, 2.0 * pause))
            time.sleep(pause * random.uniform(0.5, 1.0))
            status, wait, answer = self._try(method, path, data)
        if status in (200, 201):
            return msgspec.json.decode(answer)
        raise _error(status, answer)

    def _try(self, method: str, path: str, data: bytes) -> tuple[int, float, bytes]:
        with self._places:
            connection: http.client.HTTPConnection | None = None
            try:
                connection = self._idle.pop() if self._idle else self._connect()
                connection.request(method, self._parts.path.rstrip("/") + path, data, self._headers)
                response = connection.getresponse()
                answer = response.status, float(response.headers.get("retry-after") or 0), response.read()
            except (OSError, http.client.HTTPException) as error:
                if connection is not None:
                    connection.close()
                return 0, 0.0, str(error).encode()
            self._idle.append(connection)
            return answer

    def _connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if (self._parts.scheme == "https") else http.client.HTTPConnection
        return kind(str(self._parts.hostname), self._parts.port, timeout=self._timeout)

    def close(self) -> None:
        """Close the connections that are idle."""
        while self._idle:
            self._idle.pop().close()

    def __repr__(self) -> str:
        return f"connect({self.address!r})"

    def create(
        self, name: str, arms: Sequence[str], items: Sequence[str] | None = None, k: int = 1, **more: Any
    ) -> "RemoteAgent":
        """Create a problem; nothing changes if the same one exists. With ``items="learn"`` it learns its items.

        ``more`` are the other fields of ``PUT /v1/problems/{name}``, such as ``scores={"low": 0, "high": 10}``, which
        take the place of items.
        """
        body: dict[str, Any] = {"arms": list(arms), "k": k, **{key: to_plain(one) for key, one in more.items()}}
        if items is not None:
            body["items"] = items if isinstance(items, str) else list(items)
        self.call("PUT", f"/v1/problems/{quote_name(name)}", body)
        return self.problem(name)

    def problem(self, name: str) -> "RemoteAgent":
        """A problem, to ask and tell."""
        return RemoteAgent(self, name)

    def problems(self) -> list[str]:
        """The names of all problems."""
        return list(self.call("GET", "/v1/problems")["problems"])


def quote_name(name: str) -> str:
    """A name as a part of a path.

    >>> quote_name("visit/1")
    'visit%2F1'
    """
    try:
        return quote(name, safe="")
    except UnicodeEncodeError as error:
        raise _no_text(error) from None


def _no_text(error: UnicodeEncodeError) -> InvalidArgument:
    wrong = f"{error.object[max(0, error.start - 20) : error.end]!r} is not valid text"
    return InvalidArgument("name", wrong, "leave out surrogates, which are halves of a character")


def _error(status: int, answer: bytes) -> ServiceError:
    if status == 0:
        return ServiceError(0, "unreachable", f"the service did not answer: {answer.decode(errors='replace')}")
    try:
        error = msgspec.json.decode(answer)["error"]
        return ServiceError(status, error["code"], error["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return ServiceError(status, "unknown", f"the service answered {status}")


@dataclass(frozen=True)
class RemoteDecision(Decision):
    """A decision of the service, with what it says beyond the slate.

    ``propensities`` are the chances of the arms, slot by slot; None where the policy itself is random. ``slots`` are
    the names of the slots that the arms are in, ``policy_arms`` the policy's slate where the answer is a baseline.
    ``state`` is the decision's state when it was asked for. ``inclusion`` is the chance of each arm to be in the slate;
    ``group`` is "policy" or "control" where the two are compared.
    """

    propensities: tuple[float, ...] | None = None
    slots: tuple[str, ...] | None = None
    policy_arms: tuple[str, ...] | None = None
    version: int = 1
    state: str = "open"
    inclusion: tuple[float, ...] | None = None
    group: str = ""


def read_decision(reply: Any) -> RemoteDecision:
    """The decision in an answer of the service."""
    action = np.array(reply["action"], np.int64)
    action.flags.writeable = False
    more: Any = {
        name: tuple(reply[name]) for name in ("propensities", "slots", "policy_arms", "inclusion") if name in reply
    }
    told = {"version": reply["version"], "state": reply["state"], "group": reply.get("group", "")}
    return RemoteDecision(reply["id"], reply["t"], action, tuple(reply["arms"]), **more, **told)


def to_plain(value: Any) -> Any:
    """The same with lists in the place of arrays, and None in the place of NaN, which JSON does not have.

    >>> to_plain({"a": np.array([1.0, np.nan])})
    {'a': [1.0, None]}
    """
    if isinstance(value, dict):
        return {name: to_plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return to_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [to_plain(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def read_explained_arm(reply: Any) -> ExplainedArm:
    """Why an arm was chosen, from an answer of the service."""
    effects = tuple((one["feature"], one["effect"]) for one in reply["features"])
    estimate, optimistic = (np.array(reply[name], float) for name in ("estimate", "optimistic"))
    return ExplainedArm(reply["arm"], estimate, optimistic, reply["gain"], reply["estimated_gain"], effects)


def check_row(row: Any, marks: Any) -> list[float | None]:
    """The values of a row; None where they may still come, 0 where nothing was or will be seen."""
    values = list(row)
    seen = [True] * len(values) if marks is None else [bool(mark) for mark in marks]
    if len(seen) != len(values):
        raise InvalidArgument("seen", f"{len(seen)} marks for {len(values)} values", "give it in the shape of outcome")
    known = [x if mark and x is not None else 0.0 for x, mark in zip(values, seen, strict=True)]
    checked = floats(known, "outcome", low=0.0, high=1.0).tolist()
    return [None if x is None and m else c for x, m, c in zip(values, seen, checked, strict=True)]


def write_totals(total: Any, totals: Any, n: int) -> dict[str, Any]:
    """The body of feedback that has totals.

    >>> write_totals(None, {("a", "b"): 0.5}, 1)
    {'n': 1, 'totals': [{'arms': ['a', 'b'], 'total': 0.5}]}
    """
    body: dict[str, Any] = {"n": n}
    if total is not None:
        body["total"] = to_plain(total)
    if totals is not None:
        parts = [([arms] if isinstance(arms, str) else list(arms), to_plain(y)) for arms, y in totals.items()]
        body["totals"] = [{"arms": arms, "total": y} for arms, y in parts]
    return body


class RemoteAgent:
    """A problem of the service; the counterpart of ``Agent``."""

    def __init__(self, service: Connection, name: str) -> None:
        self._service, self._call, self.name = service, service.call, name
        self._path = f"/v1/problems/{quote_name(name)}"

    def __repr__(self) -> str:
        """The service and the name, without a call: an object is shown also where the service does not answer."""
        return f"{self._service!r}.problem({self.name!r})"

    @property
    def items(self) -> tuple[str, ...]:
        """The names of all items."""
        return tuple(self._call("GET", self._path)["items"])

    @property
    def scores(self) -> dict[str, Any] | None:
        """The scale of scores; None if the problem has none."""
        return self._call("GET", self._path).get("scores")

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of all arms."""
        return tuple(row["arm"] for row in self._all_statistics())

    @property
    def t(self) -> int:
        """The last round that a decision was made for."""
        return int(self._call("GET", self._path)["t"])

    @property
    def policy(self) -> dict[str, Any]:
        """The policy in force, by its name and parameters."""
        return dict(self._call("GET", self._path)["settings"]["policy"])

    def estimates(self) -> tuple[Floats, Floats]:
        """Mean and variance of every entry, in the shape of ``Agent.estimates``; NaN where nothing was seen."""
        rows = self._all_statistics()
        sparse = any(row.get("items") is not None for row in rows)
        mean, variance = (
            np.array([np.nan if x is None else x for row in rows for x in row[name]], float)
            for name in ("mean", "variance")
        )
        return (mean, variance) if sparse else (mean.reshape(len(rows), -1), variance.reshape(len(rows), -1))

    def ask(self, eligible: Sequence[str] | None = None, id: str | None = None, **more: Any) -> RemoteDecision:
        """The batch to play next; with an ``id`` of your own, asking again gives the same decision again.

        ``more``: ``excluded``, ``pinned``, ``k``, ``slots``, ``baseline``, ``deferred``, ``items``, ``unit``,
        ``budget`` (of a knapsack, this once), and for problems with a context ``context`` (a mapping, or an array) and
        ``pairs`` (a mapping from arms to arrays).
        """
        given = {name: to_plain(value) for name, value in more.items() if value is not None}
        body = {"id": id or secrets.token_urlsafe(15), **given}
        if eligible is not None:
            body["eligible"] = list(eligible)
        return read_decision(self._call("POST", f"{self._path}/decisions", body))

    def decision(self, id: str) -> RemoteDecision:
        """A decision as it is now, by its id."""
        return read_decision(self._translated("GET", f"{self._path}/decisions/{quote_name(id)}"))

    def erase(self, unit: str) -> int:
        """Erase all decisions that were asked for with this ``unit``, which needs the scope admin: how many."""
        return int(self._call("POST", f"{self._path}/erasures", {"unit": unit})["erased"])

    def delete(self) -> None:
        """Delete the problem with its decisions, which needs the scope admin. The name may be used again."""
        self._call("DELETE", self._path)

    def explain(self, decision: Decision | str, most: int = 5) -> Explanation:
        """Why these arms, as ``Agent.explain`` says it: by what is known now, with the ``most`` largest effects."""
        id = _id(decision)
        reply = self._translated("GET", f"{self._path}/decisions/{quote_name(id)}/explanation?most={most}")
        worth = Worth(**reply["worth"]) if "worth" in reply else None
        return Explanation(self.decision(id), tuple(map(read_explained_arm, reply["arms"])), worth)

    def tell(
        self,
        decision: Decision | str,
        outcome: Any = None,
        seen: Any = None,
        arms: Sequence[str] | None = None,
        clicks: Sequence[str] | Mapping[str, float] | None = None,
        *,
        total: float | None = None,
        totals: Mapping[Any, float] | None = None,
        n: int = 1,
        scores: Any = None,
        amend: bool = False,
        complete: bool = True,
    ) -> bool:
        """What came of a decision: ``outcome`` in [0, 1], one row per arm in slate order.

        A row has one value per item that its arm can touch. None in the place of a value says that it may still come:
        it stays pending, and can be told later. ``seen`` marks, in the same shape, what was observed; the rest never
        will be. ``arms`` names the arms of the rows: those that were triggered, where the problem has such arms, or a
        part of the slate. Arms of the slate that are not named were not observed or, with ``complete=False``, stay
        pending. Returns False if all of it was told before; after a lost answer that may have been this very call.

        With one item, ``clicks`` can take the place of an outcome: the arms that were clicked, or their outcomes by
        arm. The others stay as they are: zeros, if ``at_window_end`` is 0, or pending.

        Where the reward is ``total``, tell the ``total`` of the slate, or the ``totals`` of parts of it by their arms,
        ``{("a", "b"): 0.4, "c": 0.3}``; each is the mean of ``n`` trials. Parts that are not named stay pending.

        Where the problem has ``scores``, tell these, in their own units: one for each arm in slate order, or by arm.
        None and NaN are scores that were not seen.
        """
        id = _id(decision)
        if total is not None or totals is not None:
            return bool(self._post(id, "feedback", write_totals(total, totals, n) | {"amend": amend})["applied"])
        if scores is not None:
            return self._tell_scores(decision, scores, amend, complete)
        if clicks is not None:
            values = dict(clicks) if isinstance(clicks, Mapping) else dict.fromkeys(clicks, 1.0)
            outcome, arms, complete = [[value] for value in values.values()], list(values), False
            if not values:
                return False
        if is_frame(outcome) or is_frame(seen):
            slate = (decision if isinstance(decision, Decision) else self.decision(id)).arms if arms is None else arms
            items = self.items
            outcome, seen = align(outcome, Labels("arms", slate, self.arms), Labels("items", items, items), seen)
        rows = [check_row(row, None if seen is None else seen[n]) for n, row in enumerate(outcome)]
        body: dict[str, Any] = {"outcome": rows, "amend": amend}
        if seen is not None:
            body["seen"] = [np.asarray(marks, bool).tolist() for marks in seen]
        if arms is not None:
            body["arms"] = list(arms)
        applied = bool(self._post(id, "feedback", body)["applied"])
        return self._tell_unseen(id, arms, applied) if arms is not None and complete else applied

    def _tell_scores(self, decision: Decision | str, scores: Any, amend: bool, complete: bool) -> bool:
        if not isinstance(scores, Mapping):
            slate, listed = (decision if isinstance(decision, Decision) else self.decision(decision)).arms, list(scores)
            if len(listed) != len(slate):
                remedy = f"give {len(slate)}, one for each arm in slate order, or scores by arm"
                raise InvalidArgument("scores", f"{len(listed)} scores", remedy)
            scores = dict(zip(slate, listed, strict=True))
        body = {"scores": {arm: to_plain(score) for arm, score in scores.items()}, "amend": amend}
        applied = bool(self._post(_id(decision), "feedback", body)["applied"]) if scores else False
        return self._tell_unseen(_id(decision), list(scores), applied) if complete else applied

    def _tell_unseen(self, id: str, told: Sequence[str], applied: bool) -> bool:
        """Say that nothing was seen of the arms of a slate that were not ``told``."""
        slate = self._call("GET", f"{self._path}/decisions/{quote_name(id)}")["arms"]
        unseen = [{"arm": arm, "seen": False} for arm in slate if arm not in told]
        return applied | (bool(unseen) and bool(self._post(id, "feedback", {"feedback": unseen})["applied"]))

    def untell(self, decision: Decision | str, *told: Any, **more: Any) -> None:
        """Take back, exactly, what was told of a decision: it counts as not observed. It is not pending again.

        The service knows what was told: what an ``Agent`` needs besides may be left out, and is not compared with it.
        """
        id = _id(decision)
        slate = self.decision(id).arms
        self._post(id, "feedback", {"feedback": [{"arm": arm, "seen": False} for arm in slate], "amend": True})

    def cancel(self, decision: Decision | str) -> None:
        """Forget a decision that was never played; it is pending no longer."""
        self._post(_id(decision), "activate", {"shown": []})

    def activate(self, decision: Decision | str, shown: Sequence[str] | None = None) -> bool:
        """Report that the decision was shown, as it was given or as ``shown``."""
        return bool(self._post(_id(decision), "activate", {} if shown is None else {"shown": list(shown)})["applied"])

    def add_arms(self, arms: Sequence[str], **more: Any) -> None:
        """Add arms by name; ``more``: ``actions``, ``support`` and ``features``, as ``POST …/arms`` takes them.

        A retired arm comes back with what was learnt about it.
        """
        self._call("POST", f"{self._path}/arms", {"add": list(arms), **{k: to_plain(v) for k, v in more.items()}})

    def change_prices(
        self, prices: Mapping[str, float] | None = None, budget: float | None = None, retire: Sequence[str] = ()
    ) -> None:
        """Change what arms of a knapsack cost, and its budget, as ``Agent.change_prices``; new names are new arms."""
        given = {} if budget is None else {"budget": budget}
        self._call("POST", f"{self._path}/arms", {"prices": dict(prices or {}), "retire": list(retire), **given})

    def retire_arms(self, arms: Sequence[str]) -> None:
        """Take arms out of all further decisions."""
        self._call("POST", f"{self._path}/arms", {"retire": list(arms)})

    def learnt_items(self) -> dict[str, Any]:
        """The items, as ``GET …/items`` shows them: the groups of visitors that a problem with ``learn`` found."""
        return dict(self._call("GET", f"{self._path}/items"))

    def learn_items(self, version: int | None = None) -> dict[str, Any]:
        """Learn the items anew, or return to an earlier version of them: the items as they are then."""
        return dict(self._call("POST", f"{self._path}/items/learn", {} if version is None else {"version": version}))

    def add_items(self, items: Sequence[str], weights: Sequence[float] | None = None) -> None:
        """Add items by name, with weights (1 by default); of past pulls they were not seen."""
        given = {} if weights is None else {"weights": list(weights)}
        self._call("POST", f"{self._path}/items", {"add": list(items), **given})

    def retire_items(self, items: Sequence[str]) -> None:
        """Give items the weight 0: they count no longer in what a slate is worth."""
        self._call("POST", f"{self._path}/items", {"retire": list(items)})

    def add_sums(self, rows: Sequence[Sequence[Any]], id: str, replace: bool = False) -> bool:
        """Give integer sums of past outcomes; the same ``id`` counts once, unless it is to ``replace`` what was given.

        A row has segment, arm, item ("" for none), pulls, seen, total and square, as ``superarm.warehouse.Sum``.
        """
        body = {"id": id, "rows": [list(row[:7]) for row in rows], "replace": replace}
        return bool(self._call("POST", f"{self._path}/sums", body)["applied"])

    def change_settings(self, **settings: Any) -> int:
        """Change some settings of the problem and keep the others: the number of the version that is in force then.

        ``settings`` are the fields of ``PATCH /v1/problems/{name}/settings``, as in ``explore=0.1`` or
        ``policy={"name": "bc_ucb"}``.
        """
        return int(self._call("PATCH", f"{self._path}/settings", settings)["version"])

    def change_baseline(self, arms: Sequence[str]) -> int:
        """Follow another ranking from now on, best arm first: the version of the settings that is in force then.

        Do it whenever what you show today changes. What was learnt stays.
        """
        return int(self._call("PUT", f"{self._path}/baseline", {"arms": list(arms)})["version"])

    def change_policy(self, policy: str, /, **parameters: float) -> int:
        """Choose by another policy of the catalogue from now on; everything that was observed stays."""
        return self.change_settings(policy={"name": policy, "parameters": parameters})

    def lift(self, delta: float = 0.05, item: str = "") -> dict[str, Any]:
        """The reward with the policy against that of the control share, with intervals that hold at all times.

        ``item`` is an item or a segment of the context, to compare in it alone.
        """
        return dict(self._call("GET", f"{self._path}/lift?delta={delta!r}&item={quote_name(item)}"))

    def statistics(self, offset: int = 0, limit: int = 100) -> list[dict[str, Any]]:
        """What is known of each arm: pulls, pending, means and variances."""
        return list(self._call("GET", f"{self._path}/arms?offset={offset}&limit={limit}")["arms"])

    def _all_statistics(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        while part := self.statistics(len(rows), 1_000):
            rows += part
        return rows

    def _post(self, id: str, verb: str, body: Any) -> Any:
        return self._translated("POST", f"{self._path}/decisions/{quote_name(id)}/{verb}", body)

    def _translated(self, method: str, path: str, body: Any = None) -> Any:
        """The answer; in place of a refusal, the error that an ``Agent`` would raise."""
        kinds: dict[int, type[Exception]] = {404: UnknownDecision, 409: ConflictingFeedback}
        try:
            return self._call(method, path, body)
        except ServiceError as error:
            raise kinds[error.status](str(error)) if error.status in kinds else error from None


def _id(decision: Decision | str) -> str:
    return decision.id if isinstance(decision, Decision) else decision


@overload
def connect(
    url: str, key: str | None = ..., *, timeout: float = ..., retry_for: float = ..., asynchronous: Literal[False] = ...
) -> Connection: ...
@overload
def connect(
    url: str, key: str | None = ..., *, timeout: float = ..., retry_for: float = ..., asynchronous: Literal[True]
) -> Awaited: ...
def connect(
    url: str, key: str | None = None, *, timeout: float = 30.0, retry_for: float = 60.0, asynchronous: bool = False
) -> Connection | Awaited:
    """Connect to a service by its address.

    Calls are idempotent, so a call that got no answer, or the status 429, 502, 503 or 504, is repeated for
    ``retry_for`` seconds, so that a restart of the service is waited for. At most 5 seconds lie between two attempts.
    An attempt without an answer ends after ``timeout`` seconds. With ``retry_for=0`` nothing is repeated.

    With ``asynchronous`` all calls are awaited, for programs on asyncio: ``decision = await agent.ask()``.

    >>> service = connect("http://127.0.0.1:8000")
    >>> agent = service.problem("ads")                          # then agent.ask() and agent.tell(decision, outcome)
    """
    service = Connection(url, key, timeout, retry_for)
    threads = ThreadPoolExecutor(MAX_CONNECTIONS, "superarm")
    return Awaited(service, RemoteAgent, threads) if asynchronous else service
