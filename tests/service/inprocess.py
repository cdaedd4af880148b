"""The service in this process, without sockets."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx

from superarm.service.application import ServiceApp


@contextlib.asynccontextmanager
async def serving(app: ServiceApp) -> AsyncIterator[httpx.AsyncClient]:
    """A client of ``app`` between its start and its stop."""
    to_app: asyncio.Queue = asyncio.Queue()
    from_app: asyncio.Queue = asyncio.Queue()
    life = asyncio.create_task(app({"type": "lifespan"}, to_app.get, from_app.put))
    await to_app.put({"type": "lifespan.startup"})
    started = await from_app.get()
    assert started["type"] == "lifespan.startup.complete", started
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60.0) as client:
        yield client
    await to_app.put({"type": "lifespan.shutdown"})
    ended = await from_app.get()
    assert ended["type"] == "lifespan.shutdown.complete", ended
    await life
