"""From an HTTP request to a reply: authentication, body, decoding, the handler, encoding and errors."""

import asyncio
import functools
import logging
import time
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.responses import Response

from superarm.core.errors import InvalidArgument
from superarm.service.errors import NOT_NOW, RequestError, overloaded, refusal
from superarm.service.http.operations import Call, Operation
from superarm.service.http.service import Principal, Service, explain, parse_query, permit
from superarm.service.storage.base import StoreUnavailable

log = logging.getLogger("superarm.app")

LOOPBACK = (b"localhost", b"127.0.0.1", b"[::1]")

LARGE_BYTES = 65_536
"""A body of so many bytes is decoded in a thread."""

ENCODED_SLASH = b"\x1f"
"""What stands for ``%2F`` in a path: no name holds it, and it separates no segments."""

Headers = dict[bytes, bytes]


class Endpoint:
    """One operation as an ASGI application."""

    def __init__(self, service: Service, operation: Operation) -> None:
        self._service, self._operation = service, operation
        self._raw = operation.body is bytes
        self._decoder = None if operation.body in (None, bytes) else msgspec.json.Decoder(operation.body)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        started = time.perf_counter()
        tenant = ""
        try:
            headers = dict(scope["headers"])
            who = authenticate(self._service, headers, client_of(scope))
            tenant = who.tenant
            reply = await self._reply(who, scope, headers, receive)
        except Exception as error:
            reply = self.refuse(as_request_error(error), scope)
        await reply(scope, receive, send)
        self._service.metrics.observe(tenant, self._operation, reply.status_code, time.perf_counter() - started)

    def refuse(self, error: RequestError, scope: Any) -> Response:
        """The reply that reports an error."""
        return error_reply(error)

    async def _reply(self, who: Principal, scope: Any, headers: Headers, receive: Any) -> Response:
        service, operation = self._service, self._operation
        permit(who, operation.scope)
        query = parse_query(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True), operation.query)
        path = {name: value.replace(ENCODED_SLASH.decode(), "/") for name, value in scope["path_params"].items()}
        if "name" in path:
            creates = operation.method == "PUT" and operation.creates
            await service.coordinator.ownership.enter((who.tenant, path["name"]), creates=creates)
        body: Any = await service.bodies.read(receive, headers)
        if operation.body is not None:
            require_json(headers)
        if self._decoder is not None and len(body) < LARGE_BYTES:
            body = self._decoder.decode(body)
        elif self._decoder is not None:
            body = await asyncio.to_thread(self._decoder.decode, body)
        status, answer = await operation.handler(Call(service, who, path, query, body, headers))
        if isinstance(answer, Response):
            return answer
        return Response(answer, status, None, "application/x-ndjson") if self._raw else json_reply(status, answer)


def client_of(scope: Any) -> str:
    """The address of the client, or of the proxy before it."""
    client = scope.get("client")
    return client[0] if client else ""


def authenticate(service: Service, headers: Headers, client: str, key: str | None = None) -> Principal:
    """The principal of a request, or 401; 403 for another host or origin, 429 above the rate, 503 at the start.

    A service without keys answers requests to loopback only, and none that a page of another origin made: browsers
    send the origin with every request that could change something, other programs send none.
    """
    condition = service.coordinator.condition
    if condition.phase in ("starting", "failed"):
        raise overloaded(f"{condition.phase}: {condition.public_reason}", 2)
    if key is None and b"authorization" in headers:
        word, _, key = headers[b"authorization"].decode("latin-1").partition(" ")
        key = key if word.lower() == "bearer" else ""
    try:
        who = service.keyring.principal(key)
    except RequestError as error:
        if error.status == 401:
            service.failed_keys.take(client)
        raise
    if not service.keyring.required:
        host = headers.get(b"host", b"localhost")
        if not _is_loopback(host):
            said = f"host {host.decode('latin-1')!r}: without keys only loopback is served; superarm keys create"
            raise RequestError(403, "forbidden", said)
        _check_origin(headers, host)
    service.rates.take(who.key)
    return who


def _check_origin(headers: Headers, host: bytes) -> None:
    """Refuse with 403 what a page of another origin asks for; a link from it to a page of the service may be followed.

    Browsers send no origin with a ``GET`` that a page embeds, but most say which site it is for.
    """
    origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site")
    foreign = site in (b"cross-site", b"same-site") and headers.get(b"sec-fetch-mode") != b"navigate"
    if foreign or (origin is not None and origin.partition(b"://")[2] != host):
        name = (origin or site or b"").decode("latin-1")
        raise RequestError(403, "forbidden", f"origin {name!r}: without keys only the service's own page is answered")


@functools.lru_cache(64)
def _is_loopback(host: bytes) -> bool:
    return (host if host.endswith(b"]") else host.rpartition(b":")[0] or host) in LOOPBACK


def require_json(headers: Headers) -> None:
    """Refuse with 415 a body that is not declared as JSON, or that is compressed."""
    coding = headers.get(b"content-encoding", b"identity")
    if coding.strip().lower() not in (b"", b"identity"):
        said = f"Content-Encoding {coding.decode('latin-1')[:40]!r}: send the body as it is, not compressed"
        raise RequestError(415, "media_type", said)
    media = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media not in (b"application/json", b"application/x-ndjson"):
        raise RequestError(415, "media_type", "send Content-Type: application/json (curl: use --json)")


def as_request_error(error: Exception) -> RequestError:
    """What the caller is told; only what nobody foresaw is logged with a traceback."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, msgspec.ValidationError):
        return RequestError(422, "invalid", explain(str(error)))
    if isinstance(error, InvalidArgument):
        return RequestError(422, "invalid", str(error))
    if isinstance(error, (msgspec.DecodeError, UnicodeDecodeError, RecursionError)):
        return RequestError(400, "malformed", f"the body is not JSON: {error}")
    if isinstance(error, StoreUnavailable):
        return overloaded(NOT_NOW, 2)
    log.error("a request failed", exc_info=error)
    return RequestError(500, "internal", "the service failed; its log has the details")


def error_reply(error: RequestError) -> Response:
    """The reply that reports an error."""
    headers = dict[str, str]()
    if error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    return json_reply(error.status, refusal(error.code, error.message), headers)


def json_reply(status: int, value: Any, headers: dict[str, str] | None = None) -> Response:
    """A reply in JSON."""
    return Response(msgspec.json.encode(value), status, headers, "application/json")
