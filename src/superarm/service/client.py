"""The Python client: ``ask`` and ``tell`` as ``Agent`` has them, against a running service."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from superarm.agent import Decision
from superarm.agent.explanations import Explanation
from superarm.service.remote import RemoteAgent, RemoteDecision, to_plain
from superarm.service.transport import MAX_CONNECTIONS, Transport

Result = TypeVar("Result")


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
        self._threads: ThreadPoolExecutor | None = None

    def __repr__(self) -> str:
        return f"connect({self._transport.address!r})"

    def create(self, name: str, arms: Sequence[str], items: Sequence[str], k: int = 1, **more: Any) -> "RemoteAgent":
        """Create a problem; nothing changes if the same one exists.

        ``more`` are the other fields of ``PUT /v1/problems/{name}``.
        """
        body = {"arms": list(arms), "items": list(items), "k": k, **{key: to_plain(one) for key, one in more.items()}}
        self._transport.call("PUT", f"/v1/problems/{quote(name, safe='')}", body)
        return self.problem(name)

    def problem(self, name: str) -> "RemoteAgent":
        """A problem, to ask and tell."""
        return RemoteAgent(self._transport, name)

    def async_problem(self, name: str) -> "AsyncRemoteAgent":
        """A problem, to ask and tell with ``await``."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(MAX_CONNECTIONS, "superarm-client")
        return AsyncRemoteAgent(self.problem(name), self._threads)

    def problems(self) -> list[str]:
        """The names of all problems."""
        return list(self._transport.call("GET", "/v1/problems")["problems"])

    def close(self) -> None:
        """Wait for calls that are being made, and close all connections."""
        if self._threads is not None:
            self._threads.shutdown()
        self._transport.close()


class AsyncRemoteAgent:
    """A problem of the service, with methods of ``RemoteAgent`` as coroutines.

    Calls run in threads, as many at the same time as there are connections (32).
    """

    def __init__(self, agent: RemoteAgent, threads: Executor) -> None:
        self._agent, self._threads = agent, threads

    async def _run(self, method: Callable[..., Result], *given: Any, **more: Any) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(method, *given, **more))

    async def ask(self, eligible: Sequence[str] | None = None, id: str | None = None, **more: Any) -> RemoteDecision:
        """See ``RemoteAgent.ask``."""
        return await self._run(self._agent.ask, eligible, id, **more)

    async def tell(self, decision: Decision | str, outcome: Any, seen: Any = None, **more: Any) -> bool:
        """See ``RemoteAgent.tell``; ``more``: ``arms``, ``amend``, ``complete``."""
        return await self._run(self._agent.tell, decision, outcome, seen, **more)

    async def explain(self, decision: Decision | str, most: int = 5) -> Explanation:
        """See ``RemoteAgent.explain``."""
        return await self._run(self._agent.explain, decision, most)

    async def activate(self, decision: Decision | str, shown: Sequence[str] | None = None) -> bool:
        """See ``RemoteAgent.activate``."""
        return await self._run(self._agent.activate, decision, shown)

    async def cancel(self, decision: Decision | str) -> None:
        """See ``RemoteAgent.cancel``."""
        return await self._run(self._agent.cancel, decision)

    async def statistics(self, offset: int = 0, limit: int = 100) -> list[dict[str, Any]]:
        """See ``RemoteAgent.statistics``."""
        return await self._run(self._agent.statistics, offset, limit)

    async def find_decisions(self, cursor: str | None = None, limit: int = 100, **wanted: Any) -> dict[str, Any]:
        """See ``RemoteAgent.find_decisions``."""
        return await self._run(self._agent.find_decisions, cursor, limit, **wanted)

    async def history(self, arm: str | None = None, points: int = 30, **wanted: Any) -> list[dict[str, Any]]:
        """See ``RemoteAgent.history``."""
        return await self._run(self._agent.history, arm, points, **wanted)
