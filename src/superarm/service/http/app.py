"""The web application: routes from the table of operations, and what every request goes through."""

import asyncio
import contextlib
import functools
import logging
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple, get_args
from urllib.parse import parse_qsl

import msgspec
from starlette.applications import Starlette
from starlette.routing import Match, Route

from superarm.errors import InvalidArgument, SuperarmError
from superarm.service.console.routes import Console
from superarm.service.domain.spec import Late, Mode, PolicyName, RewardName
from superarm.service.errors import RequestError
from superarm.service.http.auth import Keyring, RateLimits, permit
from superarm.service.http.handlers import Call
from superarm.service.http.metrics import Metrics
from superarm.service.http.openapi import document
from superarm.service.http.operations import OPERATIONS, Operation
from superarm.service.http.router import Router
from superarm.service.runtime.coordinator import SNAPSHOT_EVERY, Coordinator
from superarm.service.runtime.feedback import expire
from superarm.service.schemas import ErrorBody, ErrorReply
from superarm.service.storage.base import Store

log = logging.getLogger("superarm.app")

LOOPBACK = (b"localhost", b"127.0.0.1", b"[::1]")


class ServiceLimits(NamedTuple):
    """What one request, one key and one tenant may use, whose calls are answered besides, and how often a snapshot is
    written: after every ``snapshot_every`` events.
    """

    body_bytes: int = 8 * 1024 * 1024
    per_second: float | None = None
    problems: int = 1_000
    queue: int = 10_000
    compat: str = ""
    ignore_features: bool = False
    snapshot_every: int = SNAPSHOT_EVERY


class Service:
    """What the endpoints share."""

    def __init__(self, store: Store, limits: ServiceLimits) -> None:
        self.store, self.limits = store, limits
        self.coordinator = Coordinator(store, limits.queue, limits.snapshot_every)
        self.keyring = Keyring(store)
        self.rates = RateLimits(limits.per_second)
        self.metrics = Metrics(self.coordinator)
        self.leaving = False
        self.failure = ""


class Reply(NamedTuple):
    """An answer as bytes."""

    status: int
    body: bytes
    media: bytes = b"application/json"
    more: tuple[tuple[bytes, bytes], ...] = ()


class Endpoint:
    """One operation as an ASGI application: read, permit, decode, call, encode."""

    def __init__(self, service: Service, operation: Operation) -> None:
        self._service, self._operation = service, operation
        self._raw = operation.body is bytes
        self._decoder = None if operation.body in (None, bytes) else msgspec.json.Decoder(operation.body)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        began = time.perf_counter()
        headers = dict(scope["headers"])
        reply = await guarded(self._reply(scope, headers, receive))
        await sent(send, reply)
        self._service.metrics.observe(self._operation, reply.status, time.perf_counter() - began)

    async def _reply(self, scope: Any, headers: dict[bytes, bytes], receive: Any) -> Reply:
        service, operation = self._service, self._operation
        who = admitted(service, headers)
        permit(who, operation.scope)
        body: Any = await content(receive, headers, service.limits.body_bytes)
        if self._decoder is not None:
            json_only(headers)
            body = self._decoder.decode(body)
        elif self._raw:
            json_only(headers)
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"))) if scope["query_string"] else {}
        call = Call(service.coordinator, who, scope["path_params"], query, body, service.limits.problems)
        status, answer = await operation.handler(call)
        if self._raw:
            return Reply(status, answer, b"application/x-ndjson")
        return Reply(status, msgspec.json.encode(answer))


def admitted(service: Service, headers: dict[bytes, bytes], key: str | None = None) -> Any:
    """The principal of a request, within its rate.

    Without keys, a page of another origin may not reach loopback: browsers name the origin of every request that could
    change something, with or without a body; programs name none.
    """
    if key is None and b"authorization" in headers:
        word, _, key = headers[b"authorization"].decode("latin-1").partition(" ")
        key = key if word.lower() == "bearer" else ""
    who = service.keyring.principal(key)
    if not service.keyring.required:
        host = headers.get(b"host", b"localhost")
        if not _is_loopback(host):
            name = host.decode("latin-1")
            raise RequestError(
                403, "forbidden", f"host {name!r}: without keys only loopback is served; superarm keys create"
            )
        origin = headers.get(b"origin")
        if origin is not None and origin.partition(b"://")[2] != host:
            name = origin.decode("latin-1")
            raise RequestError(
                403, "forbidden", f"origin {name!r}: without keys only the service's own page is answered"
            )
    service.rates.take(who.key)
    return who


@functools.lru_cache(64)
def _is_loopback(host: bytes) -> bool:
    name = host if host.endswith(b"]") else host.rpartition(b":")[0] or host
    return name in LOOPBACK


async def content(receive: Any, headers: dict[bytes, bytes], limit: int) -> bytes:
    """The body of a request, or 413."""
    announced = headers.get(b"content-length", b"0")
    if not announced.isdigit() or int(announced) > limit:
        raise RequestError(413, "too_large", f"the body is above {limit} bytes")
    chunks, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestError(400, "gone", "the client went away")
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise RequestError(413, "too_large", f"the body is above {limit} bytes")
        chunks.append(chunk)
        more = message.get("more_body", False)
    return b"".join(chunks) if len(chunks) > 1 else chunks[0]


def json_only(headers: dict[bytes, bytes]) -> None:
    """Refuse with 415 what is not announced as JSON."""
    media = headers.get(b"content-type", b"")
    if media == b"application/json":
        return
    media = media.partition(b";")[0].strip().lower()
    if media not in (b"application/json", b"application/x-ndjson"):
        raise RequestError(415, "media_type", "send Content-Type: application/json (curl: use --json)")


async def guarded(answering: Any) -> Reply:
    """The reply, whatever happens on the way to it."""
    try:
        return await answering  # type: ignore[no-any-return]
    except RequestError as refusal:
        return refused(refusal)
    except msgspec.ValidationError as error:
        return refused(RequestError(422, "invalid", explain(str(error))))
    except InvalidArgument as error:
        return refused(RequestError(422, "invalid", str(error)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return refused(RequestError(400, "malformed", f"the body is not JSON: {error}"))
    except Exception:
        log.exception("a request failed")
        return refused(RequestError(500, "internal", "this is a fault of the service; its log says more"))


_CHOICES: dict[str, Any] = {"policy.name": PolicyName, "reward.name": RewardName, "mode": Mode, "late": Late}
_UNKNOWN_CHOICE = re.compile(r"Invalid enum value (.*) - at `\$\.(.*)`", re.DOTALL)


def explain(message: str) -> str:
    """What the decoder found wrong; for a choice that does not exist, with those that do.

    >>> explain("Invalid enum value 'soon' - at `$.settings.late`")
    "settings.late: unknown 'soon'; give one of ignore, learn"
    """
    found = _UNKNOWN_CHOICE.fullmatch(message)
    for field, choices in _CHOICES.items():
        if found is not None and f".{found[2]}".endswith(f".{field}"):
            return f"{found[2]}: unknown {found[1]}; give one of {', '.join(get_args(choices))}"
    return message


def refused(refusal: RequestError) -> Reply:
    """A refusal as an answer."""
    more = list[tuple[bytes, bytes]]()
    if refusal.retry_after is not None:
        more.append((b"retry-after", str(refusal.retry_after).encode()))
    if refusal.status == 401:
        more.append((b"www-authenticate", b"Bearer"))
    body = msgspec.json.encode(ErrorReply(ErrorBody(refusal.code, refusal.message)))
    return Reply(refusal.status, body, more=tuple(more))


async def sent(send: Any, reply: Reply) -> None:
    """Send an answer."""
    headers = [(b"content-type", reply.media), (b"content-length", str(len(reply.body)).encode()), *reply.more]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


class Page:
    """Something to read that needs no operation: health, metrics, the OpenAPI document."""

    def __init__(self, read: Any, media: bytes = b"application/json") -> None:
        self._read, self._media = read, media

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def reply() -> Reply:
            status, body = self._read(dict(scope["headers"]))
            return Reply(status, body, self._media)

        await sent(send, await guarded(reply()))


def health(service: Service) -> tuple[int, bytes]:
    """200 while decisions can be made."""
    coordinator = service.coordinator
    state = {"status": "ok" if coordinator.ready else "starting", "worker": service.store.worker}
    return (200 if coordinator.ready else 503), msgspec.json.encode(state)


class Front:
    """The application: operations are found by one look-up, everything else goes through Starlette."""

    def __init__(self, service: Service, paths: Router, rest: Starlette) -> None:
        self.service = service
        self._paths, self._rest = paths, rest

    def end_streams(self) -> None:
        """End the page's streams within a second: a server that stops waits for them before it ends the lifespan."""
        self.service.leaving = True

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            found = self._paths.find(scope["method"], scope["path"])
            if found is not None:
                scope["path_params"] = found.words
                await found.endpoint(scope, receive, send)
                return
        await self._rest(scope, receive, self._in_a_sentence(send) if scope["type"] == "lifespan" else send)

    def _in_a_sentence(self, send: Any) -> Any:
        """Tell the server why the service could not start, without a trace where superarm knows the reason."""

        async def tell(message: Any) -> None:
            if message["type"] == "lifespan.startup.failed" and self.service.failure:
                message = {**message, "message": self.service.failure}
            await send(message)

        return tell


def application(
    store: Store,
    limits: ServiceLimits = ServiceLimits(),  # noqa: B008 - frozen
    on_ready: Callable[[], None] = lambda: None,
) -> Front:
    """The service on a store, as an ASGI application that can stand beside others in a process.

    It changes nothing that belongs to the process: no signal handler, no setting of the garbage collector. Call
    ``end_streams`` when the process is told to stop. ``on_ready`` is called when the state has been read.
    """
    service = Service(store, limits)
    openapi = msgspec.json.encode(document(OPERATIONS))

    def metrics(headers: dict[bytes, bytes]) -> tuple[int, bytes]:
        permit(admitted(service, headers), "read")
        return 200, service.metrics.text()

    paths, routes = Router(), list[Route]()
    for op in OPERATIONS:
        endpoint = Endpoint(service, op)
        paths.add(op.method, op.path, endpoint)
        routes.append(Route(op.path, endpoint, methods=[op.method]))  # for 404 and 405, and HEAD
    routes += [
        Route("/health", Page(lambda _: health(service)), methods=["GET"]),
        Route("/metrics", Page(metrics, b"text/plain; version=0.0.4"), methods=["GET"]),
        Route("/openapi.json", Page(lambda _: (200, openapi)), methods=["GET"]),
    ]
    console = Console(service, lambda headers, key: admitted(service, headers, key))
    routes += console.routes()
    if limits.compat == "personalizer":
        from superarm.service.personalizer import routes as compat

        routes += compat.routes(service)
    rest = Starlette(routes=routes, lifespan=lambda _: _living(service, on_ready), exception_handlers=_STARLETTE)
    return Front(service, paths, rest)


@contextlib.asynccontextmanager
async def _living(service: Service, on_ready: Callable[[], None]) -> AsyncIterator[None]:
    try:
        await service.coordinator.start()
    except SuperarmError as error:
        service.failure = str(error)
        service.store.close()
        raise
    on_ready()
    tasks = [asyncio.create_task(expire(service.coordinator)), asyncio.create_task(_follow(service.coordinator))]
    yield
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await service.coordinator.stop()


async def _follow(coordinator: Coordinator) -> None:
    while coordinator.store.shared:
        try:
            await coordinator.catch_up()
        except Exception:
            log.exception("other workers' events cannot be read")
            await asyncio.sleep(1.0)
        await asyncio.sleep(0.05)


async def _wrong_route(request: Any, error: Any) -> Any:
    from starlette.responses import Response

    words = {404: ("unknown", "there is nothing here; see /openapi.json"), 405: ("method", "not with this method")}
    code, message = words[error.status_code]
    body = msgspec.json.encode(ErrorReply(ErrorBody(code, message)))
    headers = {"allow": ", ".join(sorted(_methods(request)))} if error.status_code == 405 else None
    return Response(body, error.status_code, headers, "application/json")


def _methods(request: Any) -> set[str]:
    """All methods that the routes of a path take: each of them knows its own only."""
    fitting = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    return {method for route in fitting for method in route.methods}


_STARLETTE: Any = {404: _wrong_route, 405: _wrong_route}
