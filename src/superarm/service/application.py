"""The service as an ASGI application: its routes, its lifespan and its background tasks."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from superarm.core.errors import SuperarmError
from superarm.service.console.routes import Console
from superarm.service.errors import RequestError, refusal
from superarm.service.http.endpoint import ENCODED_SLASH, Endpoint, authenticate, client_of, error_reply, json_reply
from superarm.service.http.ofrep import EVALUATE, OfrepEndpoint
from superarm.service.http.openapi import document
from superarm.service.http.operations import OPERATIONS
from superarm.service.http.service import Service, ServiceLimits
from superarm.service.runtime.admin import learn_regularly
from superarm.service.runtime.coordinator import Coordinator
from superarm.service.runtime.feedback import expire
from superarm.service.storage.base import Finding, Store
from superarm.service.storage.doctor import judge

log = logging.getLogger("superarm.app")

Start = Callable[[], Coroutine[Any, Any, None]]

MAX_HEADER_BYTES, MAX_HEADERS = 65_536, 200
"""Requests with larger headers, or with more of them, are answered with 431."""


class ServiceApp:
    """The ASGI application: checks the head of a request, and leaves the rest to Starlette."""

    def __init__(self, service: Service, rest: Starlette) -> None:
        self.service = service
        self._rest, self._root = rest, service.limits.root_path

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._rest(scope, receive, self._report_failure(send) if scope["type"] == "lifespan" else send)
            return
        raw = scope.get("raw_path") or scope["path"].encode()
        encoded = raw.replace(b"%2F", ENCODED_SLASH).replace(b"%2f", ENCODED_SLASH)
        path, root = unquote(encoded.decode("latin-1")), self._root
        if root and (path == root or path.startswith(f"{root}/")):
            path = path[len(root) :]  # this proxy forwards the whole path
        receive, send = close_unread(scope["headers"], receive, send)
        if (refused := check_head(scope)) is not None:
            await error_reply(refused)(scope, receive, send)
        elif not path:  # the console's links are relative to its address, which therefore ends in a slash
            await Response(status_code=308, headers={"location": f"{root}/"})(scope, receive, send)
        else:
            await self._rest({**scope, "path": path}, receive, send)

    def _report_failure(self, send: Any) -> Any:
        """Tell the server why the service could not start, without a traceback where superarm knows the reason."""

        async def send_lifespan(message: Any) -> None:
            if message["type"] == "lifespan.startup.failed" and self.service.failure:
                message = {**message, "message": self.service.failure}
            await send(message)

        return send_lifespan


def close_unread(headers: Any, receive: Any, send: Any) -> tuple[Any, Any]:
    """The same channels; a reply that is sent before the whole body was read closes the connection.

    What is left of the body, which may have no end, would otherwise be read and thrown away.
    """
    given = dict(headers)
    unread = b"transfer-encoding" in given or given.get(b"content-length", b"0") != b"0"

    async def receive_part() -> Any:
        nonlocal unread
        message = await receive()
        unread = unread and bool(message.get("more_body", False))
        return message

    async def send_part(message: Any) -> None:
        if unread and message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
        await send(message)

    return (receive_part, send_part) if unread else (receive, send)


def check_head(scope: Any) -> RequestError | None:
    """Why the head of a request is refused: its size, or that the host or the length of the body is not clear."""
    headers = scope["headers"]
    size = len(scope.get("raw_path") or b"") + sum([len(name) + len(value) for name, value in headers])
    if len(headers) > MAX_HEADERS or size > MAX_HEADER_BYTES:
        said = f"above {MAX_HEADER_BYTES} bytes of headers, or above {MAX_HEADERS} headers; send fewer"
        return RequestError(431, "too_large", said)
    names = [name for name, _ in headers]
    if b"content-length" in names and b"transfer-encoding" in names:  # a proxy may have read another length
        return RequestError(400, "malformed", "Content-Length and Transfer-Encoding; send one of them")
    hosts = names.count(b"host")
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
    operations.append(Route(EVALUATE.path, OfrepEndpoint(service, EVALUATE), methods=["POST"]))
    described = document(OPERATIONS)
    routes = [*operations, *_pages(service, described), *Console(service, described).routes()]
    lifespan = partial(_lifespan, service, partial(service.coordinator.start, read_keys), patience)
    return ServiceApp(service, Starlette(routes=routes, lifespan=lifespan, exception_handlers=_HANDLERS))


def _pages(service: Service, described: dict[str, Any]) -> list[Route]:
    """What can be read besides the operations: health, metrics, the OpenAPI document."""
    if service.limits.root_path:
        described["servers"] = [{"url": service.limits.root_path}]
    openapi = json_reply(200, described)

    async def health(request: Request) -> Response:
        """200 while decisions can be made and written; otherwise 503 with the reason. An admin may ask for more."""
        checks = {}
        if "verbose" in request.query_params:
            _require(request, "admin")
            found = await examine(service.coordinator)
            checks["checks"] = [{"check": one.check, "level": one.level, "said": one.said} for one in found]
        condition = service.coordinator.condition
        overload = service.coordinator.writer.overload() if service.coordinator.ready else None
        if condition.status == "ok" and overload is None:
            n = len(service.coordinator.ledger.broken)
            closed = {"reason": f"closed, since their logs cannot be applied: {n} of the problems; the log says which"}
            return json_reply(200, {"status": "ok", "worker": service.store.worker} | (closed if n else {}) | checks)
        status = "unavailable" if overload and condition.status == "ok" else condition.status
        said = {"status": status, "worker": service.store.worker, "reason": condition.public_reason or overload}
        return json_reply(503, said | checks)

    async def live(request: Request) -> Response:
        return json_reply(200, {"status": "ok"})

    async def metrics(request: Request) -> Response:
        _require(request, "metrics")
        if service.coordinator.ready:
            await examine(service.coordinator, EXAMINED_SECONDS)
        return Response(service.metrics.text(), 200, None, "text/plain; version=0.0.4")

    def _require(request: Request, scope: str) -> None:
        """Refuse with 403 a key without a scope that shows what is of all tenants."""
        who = authenticate(service, dict(request.scope["headers"]), client_of(request.scope))
        if scope not in who.scopes:
            raise RequestError(403, "forbidden", f"this key lacks the scope {scope!r}")

    async def api(request: Request) -> Response:
        return openapi

    pages = {
        "/health": health,
        "/health/ready": health,
        "/health/live": live,
        "/metrics": metrics,
        "/openapi.json": api,
    }
    return [Route(path, page, methods=["GET"]) for path, page in pages.items()]


EXAMINED_SECONDS = 60.0
"""Metrics show findings that are at most so old."""


async def examine(coordinator: Coordinator, age: float = 0.0) -> list[Finding]:
    """What ``superarm doctor`` says, of a service that runs; it may be ``age`` seconds old."""
    condition, now = coordinator.condition, time.monotonic()
    if now - condition.examined >= age:
        condition.examined, state = now, (coordinator.ledger, coordinator.ownership.lag, coordinator.writer.depth)
        try:
            of_store = await asyncio.to_thread(coordinator.store.findings)
        except (SuperarmError, OSError) as error:
            of_store = [Finding("log", str(error), wrong=True)]
        condition.findings = of_store + await asyncio.to_thread(judge, *state)
    return condition.findings


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
            for work in (expire, learn_regularly, Coordinator.watch):
                tasks.create_task(work(coordinator))
            tasks.create_task(coordinator.ownership.run())
            tasks.create_task(service.keyring.follow())
    except Exception as error:
        log.exception("the service cannot go on")
        coordinator.condition.enter("failed", str(error))
        coordinator.on_failed()


async def _no_route(request: Any, error: Any) -> Response:
    texts = {404: ("unknown", "there is nothing here; see /openapi.json"), 405: ("method", "not with this method")}
    fitting = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    methods = sorted({method for route in fitting for method in route.methods})
    headers = {"allow": ", ".join(methods)} if error.status_code == 405 else None
    return json_reply(error.status_code, refusal(*texts[error.status_code]), headers)


async def _refuse(request: Any, error: Any) -> Response:
    return error_reply(error)


_HANDLERS: Any = {404: _no_route, 405: _no_route, RequestError: _refuse}
