"""The service as an ASGI application: its routes, its lifespan and its background tasks."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Match, Route

from superarm.core.errors import SuperarmError
from superarm.service.console.routes import Console
from superarm.service.errors import RequestError
from superarm.service.http.auth import permit
from superarm.service.http.endpoint import (
    ENCODED_SLASH,
    Endpoint,
    Headers,
    Page,
    authenticate,
    error_reply,
    identify,
    send_reply,
)
from superarm.service.http.openapi import document
from superarm.service.http.operations import OPERATIONS
from superarm.service.http.query import Exchange
from superarm.service.http.service import Service, ServiceLimits
from superarm.service.replies import refusal
from superarm.service.runtime.compacting import compact_regularly
from superarm.service.runtime.feedback import expire
from superarm.service.storage.base import Store

log = logging.getLogger("superarm.app")

Start = Callable[[], Coroutine[Any, Any, None]]

MAX_HEADER_BYTES, MAX_HEADERS = 65_536, 200
"""Requests with larger headers, or with more of them, are answered with 431."""


class ServiceApp:
    """The ASGI application: checks the head of a request, gives it an id, and leaves the rest to Starlette."""

    def __init__(self, service: Service, rest: Starlette) -> None:
        self.service = service
        self._rest, self._root = rest, service.limits.root_path

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._rest(scope, receive, self._report_failure(send) if scope["type"] == "lifespan" else send)
            return
        exchange = Exchange(scope, send)
        path, root = decode_path(scope), self._root
        if root and (path == root or path.startswith(f"{root}/")):
            path = path[len(root) :]  # this proxy forwards the whole path
        if (refused := check_head(scope)) is not None:
            await send_reply(exchange, error_reply(refused))
        elif not path:
            await _redirect_to_root(exchange, root)
        else:
            await self._rest({**scope, "path": path}, receive, exchange)
        if self.service.limits.access_log:
            exchange.log()

    def _report_failure(self, send: Any) -> Any:
        """Tell the server why the service could not start, without a traceback where superarm knows the reason."""

        async def send_lifespan(message: Any) -> None:
            if message["type"] == "lifespan.startup.failed" and self.service.failure:
                message = {**message, "message": self.service.failure}
            await send(message)

        return send_lifespan


def decode_path(scope: Any) -> str:
    """The path of a request, in which ``%2F`` stays a part of its segment.

    >>> decode_path({"path": "/v1/decisions/a/b c", "raw_path": b"/v1/decisions/a%2Fb%20c"})
    '/v1/decisions/a\\x1fb c'
    """
    raw: bytes = scope.get("raw_path") or b""
    if b"%2F" not in raw and b"%2f" not in raw:
        path: str = scope["path"]
        return path
    segments = [unquote(segment) for segment in raw.decode("latin-1").split("/")]
    return "/".join([segment.replace("/", ENCODED_SLASH) for segment in segments])


def check_head(scope: Any) -> RequestError | None:
    """Why the head of a request is refused: too many headers, too large ones, or none or several that name the host."""
    headers = scope["headers"]
    size = len(scope.get("raw_path") or b"") + sum([len(name) + len(value) for name, value in headers])
    if len(headers) > MAX_HEADERS or size > MAX_HEADER_BYTES:
        said = f"above {MAX_HEADER_BYTES} bytes of headers, or above {MAX_HEADERS} headers; send fewer"
        return RequestError(431, "too_large", said)
    hosts = [name for name, _ in headers].count(b"host")
    if hosts > 1 or (hosts == 0 and scope.get("http_version") == "1.1"):
        return RequestError(400, "malformed", f"{hosts} Host headers; send one")
    return None


def application(
    store: Store,
    limits: ServiceLimits = ServiceLimits(),  # noqa: B008 - frozen
    on_failed: Callable[[], None] = lambda: None,
    patience: float | None = None,
    prepare: Callable[[Store], None] = lambda store: None,
) -> ServiceApp:
    """The service on a store, as an ASGI application that can run beside others in a process.

    It changes nothing that belongs to the process: no signal handler, no setting of the garbage collector.
    ``prepare`` is called with the store when it can be reached, and ``on_failed`` when the process can serve no longer.
    The start is complete when the service is ready, or, with ``patience``, after so many seconds: until it is ready,
    requests are then answered with 503.
    """
    service = Service(store, limits)
    service.coordinator.on_failed = on_failed

    def read_keys() -> None:
        prepare(store)
        service.keyring.read()

    operations = [Route(op.path, Endpoint(service, op), methods=[op.method]) for op in OPERATIONS]
    described = document(OPERATIONS)
    routes = [*operations, *_pages(service, described), *Console(service, described).routes()]
    lifespan = partial(_lifespan, service, partial(service.coordinator.start, read_keys), patience)
    return ServiceApp(service, Starlette(routes=routes, lifespan=lifespan, exception_handlers=_NO_ROUTE))


def _pages(service: Service, described: dict[str, Any]) -> list[Route]:
    if service.limits.root_path:
        described["servers"] = [{"url": service.limits.root_path}]
    openapi = msgspec.json.encode(described)

    def metrics(headers: Headers, client: str) -> tuple[int, bytes]:
        who = authenticate(service, headers, client)
        if "metrics" in who.scopes:
            return 200, service.metrics.text()
        permit(who, "read")
        return 200, service.metrics.text(who.tenant)

    return [
        Route("/health", Page(partial(health, service)), methods=["GET"]),
        Route("/health/ready", Page(partial(health, service)), methods=["GET"]),
        Route("/health/live", Page(lambda *_: (200, b'{"status":"ok"}')), methods=["GET"]),
        Route("/metrics", Page(metrics, b"text/plain; version=0.0.4"), methods=["GET"]),
        Route("/openapi.json", Page(lambda *_: (200, openapi)), methods=["GET"]),
    ]


def health(service: Service, headers: Headers, client: str) -> tuple[int, bytes]:
    """200 while decisions can be made and written; otherwise 503 with the reason, in detail for a key that may read."""
    condition = service.coordinator.condition
    overload = service.coordinator.writer.overload() if service.coordinator.ready else None
    status = "unavailable" if overload and condition.status == "ok" else condition.status
    state = {"status": status, "worker": service.store.worker}
    if status != "ok":
        known = condition.reason if _may_know(service, headers, client) else condition.public_reason
        state["reason"] = known or overload or ""
    return (200 if status == "ok" else 503), msgspec.json.encode(state)


def _may_know(service: Service, headers: Headers, client: str) -> bool:
    """Whether the caller may know why: by its key or, if there are no keys, because it is on the same machine."""
    try:
        return not identify(service, headers, client).scopes.isdisjoint(("read", "admin", "metrics"))
    except RequestError:
        return False  # also before the keys have been read


@contextlib.asynccontextmanager
async def _lifespan(service: Service, start: Start, patience: float | None, _: Any) -> AsyncIterator[None]:
    coordinator = service.coordinator
    starting = asyncio.create_task(start())
    await asyncio.wait([starting], timeout=patience)
    if starting.done() and (error := starting.exception()) is not None:
        service.failure = str(error) if isinstance(error, SuperarmError) else ""
        service.store.close()
        raise error
    running = asyncio.create_task(_run(service, starting))
    yield
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await coordinator.stop()


async def _run(service: Service, starting: asyncio.Task[None]) -> None:
    """The background tasks, from the end of the start until they are cancelled."""
    coordinator = service.coordinator
    try:
        await starting
        async with asyncio.TaskGroup() as tasks:
            if service.limits.retain_days is not None:
                tasks.create_task(compact_regularly(coordinator, service.limits.retain_days))
            for work in (
                expire(coordinator),
                coordinator.watch(),
                coordinator.ownership.run(),
                service.keyring.follow(),
            ):
                tasks.create_task(work)
    except Exception as error:
        log.exception("the service cannot go on")
        coordinator.condition.enter("failed", str(error))
        coordinator.on_failed()


async def _redirect_to_root(send: Any, root: str) -> None:
    """The console's links are relative to its address, which therefore ends in a slash."""
    await send({"type": "http.response.start", "status": 308, "headers": [(b"location", f"{root}/".encode())]})
    await send({"type": "http.response.body", "body": b""})


async def _no_route(request: Any, error: Any) -> Response:
    texts = {404: ("unknown", "there is nothing here; see /openapi.json"), 405: ("method", "not with this method")}
    code, message = texts[error.status_code]
    body = msgspec.json.encode(refusal(code, message))
    headers = {"allow": ", ".join(sorted(_methods(request)))} if error.status_code == 405 else None
    return Response(body, error.status_code, headers, "application/json")


def _methods(request: Any) -> set[str]:
    """All methods that the routes of a path take: each of them knows only its own."""
    fitting = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    return {method for route in fitting for method in route.methods}


_NO_ROUTE: Any = {404: _no_route, 405: _no_route}
