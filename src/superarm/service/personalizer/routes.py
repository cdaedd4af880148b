"""The routes of Azure Personalizer, added by ``superarm serve --compat personalizer``."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.routing import Route

from superarm.service.http.auth import permit
from superarm.service.http.endpoint import (
    Reply,
    authenticate,
    client_of,
    decode_body,
    path_of,
    reply_or_error,
    require_json,
    send_reply,
)
from superarm.service.http.service import Service
from superarm.service.personalizer import api as azure

_V1 = "/personalizer/v{version}"
_ONE, _MANY = f"{_V1}/events/{{event}}", f"{_V1}/multislot/events/{{event}}"


MAX_BODY_BYTES = 1_048_576
"""The largest body: 50 actions with 1,000 features of 20 characters each."""


class PersonalizerEndpoint:
    """One of Personalizer's calls as an ASGI application; the key comes in Personalizer's header."""

    def __init__(
        self, service: Service, body: Any, scope: str, status: int, run: Callable[..., Awaitable[Any]]
    ) -> None:
        self._service, self._scope, self._status, self._run = service, scope, status, run
        self._decoder = None if body is None else msgspec.json.Decoder(body)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send_reply(send, await reply_or_error(self._reply(scope, dict(scope["headers"]), receive)))

    async def _reply(self, scope: Any, headers: dict[bytes, bytes], receive: Any) -> Reply:
        key = headers.get(b"ocp-apim-subscription-key", b"").decode("latin-1")
        who = authenticate(self._service, headers, client_of(scope), key)
        permit(who, self._scope)
        limits = self._service.limits
        data = await self._service.bodies.read(receive, headers, min(limits.body_bytes, MAX_BODY_BYTES))
        caller = azure.Caller(self._service.coordinator, who, limits.problems, limits.ignore_features)
        path = path_of(scope)
        words: list[Any] = [path["event"]] if "event" in path else []
        if self._decoder is not None:
            require_json(headers)
            words.append(await decode_body(self._decoder, data))
        answer = await self._run(caller, *words)
        return Reply(self._status, b"" if answer is None else msgspec.json.encode(answer))


def personalizer_routes(service: Service) -> list[Route]:
    """Rank, reward and activate, of one slot and of many."""

    def route(path: str, body: Any, scope: str, status: int, run: Callable[..., Awaitable[Any]]) -> Route:
        return Route(path, PersonalizerEndpoint(service, body, scope, status, run), methods=["POST"])

    return [
        route(f"{_V1}/rank", azure.RankRequest, "decide", 201, azure.rank),
        route(f"{_ONE}/reward", azure.RewardRequest, "feedback", 204, azure.reward),
        route(f"{_ONE}/activate", None, "decide", 204, azure.activate),
        route(f"{_V1}/multislot/rank", azure.MultiSlotRankRequest, "decide", 201, azure.multi_rank),
        route(f"{_MANY}/reward", azure.MultiSlotRewardRequest, "feedback", 204, azure.multi_reward),
        route(f"{_MANY}/activate", None, "decide", 204, azure.activate),
    ]
