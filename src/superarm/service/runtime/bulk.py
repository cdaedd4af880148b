"""Many requests in one: each is answered as one of its own would be, and they are written together."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from superarm.service.errors import RequestError
from superarm.service.replies import AppliedReply
from superarm.service.runtime import feedback
from superarm.service.runtime.coordinator import Coordinator
from superarm.service.schemas import BulkLine

AT_ONCE = 256
"""So many parts of one request are planned together; others' requests have a turn in between."""

Part = TypeVar("Part")
Result = TypeVar("Result")


async def run_all(parts: Sequence[Part], run: Callable[[Part], Awaitable[Result]]) -> list[Result]:
    """The results of all parts, in their order."""
    results: list[Result] = []
    for n in range(0, len(parts), AT_ONCE):
        results += await asyncio.gather(*map(run, parts[n : n + AT_ONCE]))
    return results


async def tell_all(coordinator: Coordinator, tenant: str, lines: list[BulkLine]) -> list[AppliedReply | RequestError]:
    """The answers to feedback, in its order. Two lines about one decision are applied in their order."""

    async def tell(body: BulkLine) -> AppliedReply | RequestError:
        try:
            return await feedback.tell(coordinator, (tenant, body.decision), body)
        except RequestError as error:
            return error

    return await run_all(lines, tell)
