"""The service as an ASGI application: its routes, its lifespan and its background tasks."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Match, Route

from superarm._compiling import announce_to
from superarm.core.errors import SuperarmError
from superarm.service.console.routes import Console
from superarm.service.errors import RequestError
from superarm.service.http.auth import permit
from superarm.service.http.beacon import BEACON, BeaconEndpoint
from superarm.service.http.endpoint import Endpoint, Headers, Page, authenticate, identify
from superarm.service.http.openapi import document
from superarm.service.http.operations import OPERATIONS
from superarm.service.http.request_id import Exchange
from superarm.service.http.router import Router, decode_path
from superarm.service.http.service import Service, ServiceLimits
from superarm.service.personalizer.routes import personalizer_routes
from superarm.service.replies import ErrorBody, ErrorReply
from superarm.service.runtime.compacting import compact_regularly
from superarm.service.runtime.feedback import expire
from superarm.service.runtime.heavy import run_all
from superarm.service.runtime.watch import watch
from superarm.service.storage.base import Store

log = logging.getLogger("superarm.app")

Start = Callable[[], Coroutine[Any, Any, None]]


class ServiceApp:
    """The ASGI application: operations are found by the index, everything else by Starlette."""

    def __init__(self, service: Service, operations: Router, rest: Starlette) -> None:
        self.service = service
        self._operations, self._rest, self._root = operations, rest, service.limits.root_path

    def end_streams(self) -> None:
        """End the console's streams within a second: a server that stops waits for them before it ends the lifespan."""
        self.service.stopping = True

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            exchange = Exchange(scope, send)
            path = decode_path(scope)
            if path != scope["path"]:
                scope = {**scope, "path": path}
            found = None if self._root else self._operations.find(scope["method"], path)
            if found is None:
                await self._answer(scope, receive, exchange)
            else:
                scope["path_params"] = found.parameters
                await found.endpoint(scope, receive, exchange)
            if self.service.limits.access_log:
                exchange.log()
            return
        await self._rest(scope, receive, self._report_failure(send) if scope["type"] == "lifespan" else send)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        root = self._root
        if root and (scope["path"] == root or scope["path"].startswith(f"{root}/")):
            scope = {**scope, "path": scope["path"][len(root) :]}  # this proxy forwards the whole path
            if not scope["path"]:
                await _redirect_to_root(send, root)
                return
        found = self._operations.find(scope["method"], scope["path"])
        if found is None:
            await self._rest(scope, receive, send)
        else:
            scope["path_params"] = found.parameters
            await found.endpoint(scope, receive, send)

    def _report_failure(self, send: Any) -> Any:
        """Tell the server why the service could not start, without a traceback where superarm knows the reason."""

        async def send_lifespan(message: Any) -> None:
            if message["type"] == "lifespan.startup.failed" and self.service.failure:
                message = {**message, "message": self.service.failure}
            await send(message)

        return send_lifespan


def application(
    store: Store,
    limits: ServiceLimits = ServiceLimits(),  # noqa: B008 - frozen
    on_ready: Callable[[], None] = lambda: None,
    on_failed: Callable[[], None] = lambda: None,
    patience: float | None = None,
    prepare: Callable[[Store], None] = lambda store: None,
) -> ServiceApp:
    """The service on a store, as an ASGI application that can run beside others in a process.

    It changes nothing that belongs to the process: no signal handler, no setting of the garbage collector. Call
    ``end_streams`` when the process is told to stop. ``prepare`` is called with the store when it can be reached,
    ``on_ready`` when the state has been read, and ``on_failed`` when the process can serve no longer. The start is
    complete when the service is ready, or, with ``patience``, after so many seconds: until it is ready, requests are
    then answered with 503.
    """
    service = Service(store, limits)
    service.coordinator.applier.on_failed = on_failed

    async def start() -> None:
        await _start(service, prepare)
        on_ready()

    operations = [Route(op.path, Endpoint(service, op), methods=[op.method]) for op in OPERATIONS]
    routes = [*operations, *_pages(service), *Console(service).routes()]
    if service.signer is not None:
        routes.append(Route(BEACON.path, BeaconEndpoint(service, service.signer), methods=["POST", "OPTIONS"]))
    if limits.compat == "personalizer":
        routes += personalizer_routes(service)
    rest = Starlette(
        routes=routes, lifespan=lambda _: _lifespan(service, start, patience), exception_handlers=_NO_ROUTE
    )
    return ServiceApp(service, Router(operations), rest)


def _pages(service: Service) -> list[Route]:
    described = document(OPERATIONS if service.signer is None else (*OPERATIONS, BEACON))
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
async def _lifespan(service: Service, start: Start, patience: float | None) -> AsyncIterator[None]:
    coordinator = service.coordinator
    with announce_to(coordinator.condition.note_compiling):
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


async def _start(service: Service, prepare: Callable[[Store], None]) -> None:
    """Read the state and the keys; as long as the database cannot be reached, this waits."""

    def read_keys() -> None:
        prepare(service.store)
        service.keyring.read()

    await service.coordinator.start(read_keys)


async def _run(service: Service, starting: asyncio.Task[None]) -> None:
    """The background tasks, from the end of the start until they are cancelled."""
    coordinator = service.coordinator
    try:
        await starting
        tasks = [expire(coordinator), coordinator.follower.follow(), watch(coordinator)]
        if service.limits.retain_days is not None:
            directory = Path(service.limits.archive) if service.limits.archive else None
            tasks.append(compact_regularly(coordinator, directory, service.limits.retain_days))
        tasks += [coordinator.ownership.run(), service.keyring.follow(), service.metrics.publish()]
        await run_all(tasks)
    except Exception as error:
        log.exception("the service cannot go on")
        coordinator.condition.enter("failed", str(error))
        coordinator.applier.on_failed()


async def _redirect_to_root(send: Any, root: str) -> None:
    """The console's links are relative to its address, which therefore ends in a slash."""
    await send({"type": "http.response.start", "status": 308, "headers": [(b"location", f"{root}/".encode())]})
    await send({"type": "http.response.body", "body": b""})


async def _no_route(request: Any, error: Any) -> Response:
    texts = {404: ("unknown", "there is nothing here; see /openapi.json"), 405: ("method", "not with this method")}
    code, message = texts[error.status_code]
    body = msgspec.json.encode(ErrorReply(ErrorBody(code, message)))
    headers = {"allow": ", ".join(sorted(_methods(request)))} if error.status_code == 405 else None
    return Response(body, error.status_code, headers, "application/json")


def _methods(request: Any) -> set[str]:
    """All methods that the routes of a path take: each of them knows only its own."""
    fitting = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    return {method for route in fitting for method in route.methods}


_NO_ROUTE: Any = {404: _no_route, 405: _no_route}
