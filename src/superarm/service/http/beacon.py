"""Feedback from a browser, which has no key but the signed id of its own decision."""

import time
from typing import Any

import msgspec
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from superarm.service.errors import RequestError
from superarm.service.http.auth import Principal, RateLimits, Signer
from superarm.service.http.endpoint import Endpoint, Headers, Reply, client_of, path_of, refuse_compressed
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


async def post_beacon(call: Call) -> Answer:
    """Send feedback from a browser, with the signed id of its decision in place of a key."""
    await check_problem(call)
    return await post_feedback(call)


BEACON = Operation(
    *("POST", "/v1/problems/{name}/beacon", "", post_beacon, AppliedReply, (404, 409, 421, 422), BeaconBody),
    {"signed_id": "WyJkZWZhdWx0Il0.c2lnbmF0dXJl", "feedback": [{"arm": "ad-1", "value": 1.0}]},
)


class BeaconEndpoint(Endpoint):
    """``POST …/beacon``: the signed id in the body says who sends it, and what for."""

    def __init__(self, service: Service, signer: Signer) -> None:
        super().__init__(service, BEACON)
        self._signer, self._rates = signer, RateLimits(service.limits.beacon_rate)

    async def _who(self, scope: Any, headers: Headers, receive: Any) -> Principal:
        """403 for a page of another origin. Programs that are no browsers send no origin, and need a signed id, too."""
        service, origin = self._service, headers.get(b"origin", b"").decode("latin-1")
        service.require_started()
        if origin and origin not in service.limits.beacon_origin:
            raise RequestError(403, "forbidden", f"origin {origin!r}: not one of --beacon-origin")
        self._rates.take(client_of(scope))
        if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() not in MEDIA_TYPES:
            raise RequestError(415, "media_type", "send Content-Type: text/plain or application/json")
        refuse_compressed(headers)
        body = msgspec.json.decode(await service.bodies.read(receive, headers, MAX_BEACON_BYTES), type=BeaconBody)
        signed = self._signer.read(body.signed_id, time.time())
        path = {"name": path_of(scope)["name"], "id": signed.id}
        if signed.problem != path["name"]:
            raise RequestError(403, "forbidden", "signed_id: it is for a decision of another problem")
        who, told = Principal("", signed.tenant, frozenset()), TellBody(body.feedback, body.outcome, body.seen)
        scope["call"] = Call(service, who, path, body=told)
        return who

    async def _reply(self, who: Principal, scope: Any, headers: Headers, receive: Any) -> Reply:
        status, answer = await post_beacon(scope["call"])
        return Reply(status, msgspec.json.encode(answer))


def beacon_route(service: Service, signer: Signer) -> Route:
    """The route, and what lets pages of the allowed origins use it."""
    allowed: Any = {
        "allow_origins": service.limits.beacon_origin,
        "allow_methods": ["POST"],
        "max_age": PREFLIGHT_SECONDS,
    }
    cors = Middleware(CORSMiddleware, allow_headers=["content-type"], **allowed)
    return Route(BEACON.path, BeaconEndpoint(service, signer), methods=["POST", "OPTIONS"], middleware=[cors])
