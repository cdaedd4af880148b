"""The Python client: ``ask`` and ``tell`` as ``Agent`` has them, against a running service."""

import asyncio
import itertools
import secrets
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from superarm.agent import Decision
from superarm.arrays import floats
from superarm.errors import ConflictingFeedback, UnknownDecision
from superarm.service.transport import ServiceError, Transport


def connect(url: str, key: str | None = None, *, timeout: float = 30.0, retries: int = 5) -> "Connection":
    """Connect to a service by its address.

    Calls are idempotent, so a call that got no answer, or the status 429, 502, 503 or 504, is repeated up to
    ``retries`` times.

    >>> service = connect("http://127.0.0.1:8000")
    >>> agent = service.problem("ads")                          # then agent.ask() and agent.tell(decision, outcome)
    """
    return Connection(Transport(url, key, timeout, retries))


class Connection:
    """A service, as one key sees it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, name: str, arms: Sequence[str], items: Sequence[str], k: int = 1, **more: Any) -> "RemoteAgent":
        """Create a problem; nothing changes if the same one exists.

        ``more`` are the other fields of ``PUT /v1/problems/{name}``.
        """
        body = {"arms": list(arms), "items": list(items), "k": k, **more}
        self._transport.call("PUT", f"/v1/problems/{quote(name, safe='')}", body)
        return self.problem(name)

    def problem(self, name: str) -> "RemoteAgent":
        """A problem, to ask and tell."""
        return RemoteAgent(self._transport, name)

    def async_problem(self, name: str) -> "AsyncRemoteAgent":
        """A problem, to ask and tell with ``await``."""
        return AsyncRemoteAgent(self.problem(name))

    def problems(self) -> list[str]:
        """The names of all problems."""
        return list(self._transport.call("GET", "/v1/problems")["problems"])

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()


class RemoteAgent:
    """A problem of the service; the counterpart of ``Agent``."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._call, self.name = transport.call, name
        self._path = f"/v1/problems/{quote(name, safe='')}"

    def ask(self, eligible: Sequence[str] | None = None, id: str | None = None, **more: Any) -> Decision:
        """The batch to play next; with an ``id`` of your own, asking again gives the same decision again.

        ``more``: ``excluded``, ``pinned``, ``k``, ``slots``, ``baseline``, ``deferred``.
        """
        body = {"id": id or secrets.token_urlsafe(15), **more}
        if eligible is not None:
            body["eligible"] = list(eligible)
        reply = self._call("POST", f"{self._path}/decisions", body)
        action = np.array(reply["action"], np.int64)
        action.flags.writeable = False
        return Decision(reply["id"], reply["t"], action, tuple(reply["arms"]))

    def tell(
        self,
        decision: Decision | str,
        outcome: Any,
        seen: Any = None,
        arms: Sequence[str] | None = None,
        *,
        amend: bool = False,
    ) -> bool:
        """What came of a decision: ``outcome`` in [0, 1], one row per arm in slate order.

        A row has one value per item that its arm can touch. ``seen`` marks, in the same shape, what was observed. Where
        the problem says that arms are triggered, ``arms`` names those that were observed, and ``outcome`` has a row for
        each of them; arms of the slate that are not named were not observed. Returns False if all of it was told
        before; after a lost answer that may have been this very call.
        """
        id = decision.id if isinstance(decision, Decision) else decision
        marks = (
            [np.ones(len(row), bool) for row in outcome] if seen is None else [np.asarray(row, bool) for row in seen]
        )
        rows = [
            floats(np.where(mark, row, 0.0), "outcome", low=0.0, high=1.0)
            for row, mark in zip(outcome, marks, strict=True)
        ]
        body: dict[str, Any] = {"outcome": [row.tolist() for row in rows], "seen": [mark.tolist() for mark in marks]}
        if arms is not None:
            body["arms"] = list(arms)
        applied = bool(self._decision(id, "feedback", {**body, "amend": amend})["applied"])
        if arms is not None:
            slate = self._call("GET", f"/v1/decisions/{quote(id, safe='')}")["arms"]
            unseen = [{"arm": arm, "seen": False} for arm in slate if arm not in arms]
            applied |= bool(unseen) and bool(self._decision(id, "feedback", {"feedback": unseen})["applied"])
        return applied

    def activate(self, decision: Decision | str, shown: Sequence[str] | None = None) -> bool:
        """The decision was shown, as it was given or as ``shown``."""
        id = decision.id if isinstance(decision, Decision) else decision
        return bool(self._decision(id, "activate", {} if shown is None else {"shown": list(shown)})["applied"])

    def add_arms(self, arms: Sequence[str], **more: Any) -> None:
        """Add arms by name; ``more``: ``actions`` and ``support``, as ``POST /v1/problems/{name}/arms`` takes them."""
        self._call("POST", f"{self._path}/arms", {"add": list(arms), **more})

    def retire_arms(self, arms: Sequence[str]) -> None:
        """Take arms out of all further decisions."""
        self._call("POST", f"{self._path}/arms", {"retire": list(arms)})

    def warm_start(self, pulls: Iterable[tuple[str, dict[str, float]]], id: str, chunk: int = 1_000) -> int:
        """Give past pulls, (arm, {item: value}) each, "" for all items; the same ``id`` and pulls count once."""
        items = self._call("GET", self._path)["items"]
        sent, rest = 0, iter(pulls)
        while part := list(itertools.islice(rest, chunk)):
            outcomes = [[values.get(item, values.get("")) for item in items] for _, values in part]
            body = {"id": f"{id}-{sent}", "arms": [arm for arm, _ in part], "outcomes": outcomes}
            self._call("POST", f"{self._path}/outcomes", body)
            sent += len(part)
        return sent

    def change_settings(self, **settings: Any) -> int:
        """Change some settings of the problem and keep the others: the number of the version that is in force then.

        ``settings`` are the fields of ``PATCH /v1/problems/{name}/settings``, as in ``explore=0.1`` or
        ``policy={"name": "bc_ucb"}``.
        """
        return int(self._call("PATCH", f"{self._path}/settings", settings)["version"])

    def statistics(self, offset: int = 0, limit: int = 100) -> list[dict[str, Any]]:
        """What is known of each arm: pulls, pending, means and variances."""
        return list(self._call("GET", f"{self._path}/arms?offset={offset}&limit={limit}")["arms"])

    def _decision(self, id: str, verb: str, body: Any) -> Any:
        try:
            return self._call("POST", f"/v1/decisions/{quote(id, safe='')}/{verb}", body)
        except ServiceError as error:
            if error.status == 404:
                raise UnknownDecision(str(error)) from None
            if error.status == 409:
                raise ConflictingFeedback(str(error)) from None
            raise


class AsyncRemoteAgent:
    """A problem of the service, with ``ask``, ``tell`` and ``activate`` of ``RemoteAgent`` as coroutines.

    Calls run in threads. They share one connection, so one call is made at a time.
    """

    def __init__(self, agent: RemoteAgent) -> None:
        self._agent = agent

    async def ask(self, eligible: Sequence[str] | None = None, id: str | None = None, **more: Any) -> Decision:
        """See ``RemoteAgent.ask``."""
        return await asyncio.to_thread(self._agent.ask, eligible, id, **more)

    async def tell(
        self,
        decision: Decision | str,
        outcome: Any,
        seen: Any = None,
        arms: Sequence[str] | None = None,
        *,
        amend: bool = False,
    ) -> bool:
        """See ``RemoteAgent.tell``."""
        return await asyncio.to_thread(self._agent.tell, decision, outcome, seen, arms, amend=amend)

    async def activate(self, decision: Decision | str, shown: Sequence[str] | None = None) -> bool:
        """See ``RemoteAgent.activate``."""
        return await asyncio.to_thread(self._agent.activate, decision, shown)
