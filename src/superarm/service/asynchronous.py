"""The client for asyncio programs: the same calls, awaited."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class Awaited:
    """A connection or a problem whose methods are awaited: each runs in a thread, and others have a turn meanwhile.

    Every method of ``Connection`` and ``RemoteAgent`` is there, with its arguments; what they have as a property is
    awaited, too: ``await agent.arms()``. Only ``problem(name)``, which calls nothing, is not awaited. ``part`` is the
    class of results that are awaited in turn.
    """

    def __init__(self, of: Any, part: type, threads: ThreadPoolExecutor) -> None:
        self._of, self._part, self._threads = of, part, threads

    def problem(self, name: str) -> "Awaited":
        """A problem, to ask and tell."""
        return Awaited(self._of.problem(name), self._part, self._threads)

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        if name.startswith("_") or not hasattr(type(self._of), name):
            raise AttributeError(f"{type(self._of).__name__} has no {name!r}")

        def call(*args: Any, **given: Any) -> Any:
            found = getattr(self._of, name)
            return found(*args, **given) if callable(found) else found

        async def later(*args: Any, **given: Any) -> Any:
            made = await asyncio.get_running_loop().run_in_executor(self._threads, lambda: call(*args, **given))
            return Awaited(made, self._part, self._threads) if isinstance(made, self._part) else made

        return later

    def __repr__(self) -> str:
        return f"{self._of!r}, awaited"
