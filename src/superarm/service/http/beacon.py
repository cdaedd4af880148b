"""Feedback from a browser, which has no key but the signed id of its own decision."""

import time
from typing import Any

import msgspec

from superarm.service.errors import RequestError
from superarm.service.http.auth import Principal, RateLimits, SignedDecision, Signer
from superarm.service.http.endpoint import (
    Headers,
    Reply,
    as_request_error,
    client_of,
    error_reply,
    path_of,
    refuse_compressed,
    send_reply,
)
from superarm.service.http.handlers import Answer, Call, check_problem, post_feedback
from superarm.service.http.operations import Operation
from superarm.service.http.service import Service
from superarm.service.replies import AppliedReply
from superarm.service.schemas import BeaconBody, TellBody

MAX_BEACON_BYTES = 65_536
"""Browsers send no more than that with ``navigator.sendBeacon``."""

PREFLIGHT_SECONDS = 7_200

MEDIA_TYPES = (b"application/json", b"text/plain")
"""``text/plain`` is what a page may send to another origin without a preflight request."""

PATH = "/v1/problems/{name}/beacon"


async def post_beacon(call: Call) -> Answer:
    """Send feedback from a browser, with the signed id of its decision in place of a key."""
    await check_problem(call)
    return await post_feedback(call)


BEACON = Operation(
    *("POST", PATH, "", post_beacon, AppliedReply, (404, 409, 421, 422), BeaconBody),
    {"signed_id": "WyJkZWZhdWx0Il0.c2lnbmF0dXJl", "feedback": [{"arm": "ad-1", "value": 1.0}]},
)


class BeaconEndpoint:
    """``POST …/beacon`` and its preflight request, for pages of some origins."""

    def __init__(self, service: Service, signer: Signer) -> None:
        self._service, self._signer = service, signer
        self._origins = frozenset(origin.encode("latin-1") for origin in service.limits.beacon_origin)
        self._rates = RateLimits(service.limits.beacon_rate)
        self._decoder = msgspec.json.Decoder(BeaconBody)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        started, headers = time.perf_counter(), dict(scope["headers"])
        tenant = ""
        try:
            self._check_origin(headers)
            if scope["method"] == "OPTIONS":
                await send_reply(send, self._preflight(headers))
                return
            signed, body = await self._read(scope, headers, receive)
            tenant = signed.tenant
            reply = await self._tell(signed, body)
        except Exception as error:
            reply = error_reply(as_request_error(error))
        await send_reply(send, reply._replace(headers=(*reply.headers, *self._cors(headers))))
        self._service.metrics.observe(tenant, BEACON, reply.status, time.perf_counter() - started)

    def _check_origin(self, headers: Headers) -> None:
        """403 for a page of another origin. Programs that are no browsers send no origin, and need a signed id, too."""
        origin = headers.get(b"origin")
        if origin is not None and origin not in self._origins:
            name = origin.decode("latin-1")
            raise RequestError(403, "forbidden", f"origin {name!r}: not one of --beacon-origin")

    def _cors(self, headers: Headers) -> tuple[tuple[bytes, bytes], ...]:
        origin = headers.get(b"origin")
        vary = ((b"vary", b"origin"),)
        return (*vary, (b"access-control-allow-origin", origin)) if origin in self._origins and origin else vary

    def _preflight(self, headers: Headers) -> Reply:
        allowed = (
            (b"access-control-allow-methods", b"POST"),
            (b"access-control-allow-headers", b"content-type"),
            (b"access-control-max-age", str(PREFLIGHT_SECONDS).encode()),
        )
        return Reply(204, b"", headers=(*allowed, *self._cors(headers)))

    async def _read(self, scope: Any, headers: Headers, receive: Any) -> tuple[SignedDecision, TellBody]:
        """The decision and its feedback, or a refusal."""
        service = self._service
        service.require_started()
        self._rates.take(client_of(scope))
        if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() not in MEDIA_TYPES:
            raise RequestError(415, "media_type", "send Content-Type: text/plain or application/json")
        refuse_compressed(headers)
        raw = await service.bodies.read(receive, headers, MAX_BEACON_BYTES)
        body: BeaconBody = self._decoder.decode(raw)
        signed = self._signer.read(body.signed_id, time.time())
        if signed.problem != path_of(scope)["name"]:
            raise RequestError(403, "forbidden", "signed_id: it is for a decision of another problem")
        return signed, TellBody(feedback=body.feedback, outcome=body.outcome, seen=body.seen)

    async def _tell(self, signed: SignedDecision, body: TellBody) -> Reply:
        service, who = self._service, Principal("", signed.tenant, frozenset())
        path = {"name": signed.problem, "id": signed.id}
        call = Call(service, who, path, body=body)
        status, answer = await BEACON.handler(call)
        return Reply(status, msgspec.json.encode(answer))
