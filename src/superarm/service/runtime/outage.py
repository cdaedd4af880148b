"""Trying again while the database is away."""

import asyncio
from collections.abc import Awaitable, Callable

from superarm.service.runtime.condition import Condition
from superarm.service.storage.base import StoreUnavailable

RETRY_SECONDS = 1.0
"""How long a worker waits before it tries again to reach the database."""


async def repeat_while_away(attempt: Callable[[], Awaitable[None]], condition: Condition) -> None:
    """Do something that reads the log; while the database is away, the process is not ready, and it is tried again.

    If the process is told to stop meanwhile, ``StoreUnavailable`` is raised.
    """
    away = False
    while True:
        try:
            await attempt()
        except StoreUnavailable as error:
            if condition.phase == "stopping":
                raise
            away = True
            condition.report("read", f"the log cannot be read: {error}")
            await asyncio.sleep(RETRY_SECONDS)
        else:
            if away:
                condition.clear("read")
            return
