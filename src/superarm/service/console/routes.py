"""The routes of the console: the page, its style and script, a stream of updates, log-in and log-out."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.routing import Route

from superarm.core.errors import InvalidArgument
from superarm.service.console import notices, page
from superarm.service.console.arms import read_arms
from superarm.service.console.certificates import Certificates
from superarm.service.console.downloads import Downloads
from superarm.service.console.page import Health, PageData
from superarm.service.console.problem_pages import ProblemPages, access_of
from superarm.service.console.slates import FEATURES_SHOWN, FoundDecision
from superarm.service.console.view import View, view_of
from superarm.service.domain.ledger import Key
from superarm.service.domain.problem import ProblemState
from superarm.service.errors import RequestError
from superarm.service.http.auth import Principal, RateLimits, permit
from superarm.service.http.endpoint import as_request_error, authenticate, client_of
from superarm.service.http.explanations import explain
from superarm.service.http.service import Service
from superarm.service.runtime.coordinator import THREAD_SIZE
from superarm.service.storage.base import StoreUnavailable

COOKIE = "superarm_key"
_KEY = re.compile("[A-Za-z0-9_-]{1,256}")
_HERE = Path(__file__).parent
_SECURITY_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
MAX_LOGIN_BYTES = 4_096
STREAM_SECONDS = 300.0
PUBLIC_PER_SECOND = 5.0
"""How many pages and streams an address without a key gets per second where the console is public."""


class Console:
    """The console of a service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._certificates = Certificates(service.coordinator.certifier)
        self._public_rates = RateLimits(PUBLIC_PER_SECOND)
        more = self._problem_pages = ProblemPages(service)
        self._downloads = Downloads(service, more)
        self._pages = {
            "problems": more.problems,
            "versions": more.versions,
            "arm": more.arm,
            "decisions": more.decisions,
        }
        self._path = f"Path={service.limits.root_path}/"
        self._files = {name: (_HERE / name).read_bytes() for name in ("console.css", "console.js")}

    def routes(self) -> list[Route]:
        """All of them."""
        serve = self._asgi
        return [
            Route("/", serve(self._page_of(self._render)), methods=["GET"]),
            *(Route(f"/{name}", serve(self._page_of(render)), methods=["GET"]) for name, render in self._pages.items()),
            Route("/export/{name}", serve(self._export), methods=["GET"]),
            Route("/live", serve(self._live), methods=["GET"]),
            Route("/login", serve(self._ask_for_key), methods=["GET"]),
            Route("/login", serve(self._login), methods=["POST"]),
            Route("/logout", serve(self._logout), methods=["POST"]),
            Route("/console.css", serve(self._file("console.css", b"text/css; charset=utf-8")), methods=["GET"]),
            Route("/console.js", serve(self._file("console.js", b"text/javascript; charset=utf-8")), methods=["GET"]),
        ]

    def _asgi(self, run: Callable[..., Awaitable[None]]) -> Any:
        class Answer:
            async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
                await run(dict(scope["headers"]), scope, receive, send)

        return Answer()

    def _who(self, headers: dict[bytes, bytes], scope: Any) -> Any:
        """The principal behind the cookie; the cookie is good for these routes alone, which change nothing."""
        cookie: SimpleCookie = SimpleCookie()
        try:
            cookie.load(headers.get(b"cookie", b"").decode("latin-1"))
        except CookieError:
            cookie.clear()
        key = cookie[COOKIE].value if COOKIE in cookie else ""
        tenant = self._service.limits.public_console
        if tenant and not key:
            self._service.require_started()
            self._public_rates.take(client_of(scope))
            return Principal("", tenant, frozenset(("public",)))
        who = authenticate(self._service, headers, client_of(scope), key)
        permit(who, "read")
        return who

    def _page_of(self, render: Callable[[Any, bytes], Awaitable[bytes]]) -> Callable[..., Awaitable[None]]:
        async def show(headers: dict[bytes, bytes], scope: Any, receive: Any, send: Any) -> None:
            await self._show(headers, scope, send, render)

        return show

    async def _export(self, headers: dict[bytes, bytes], scope: Any, receive: Any, send: Any) -> None:
        """A table as a download, in parts."""
        name = scope["path_params"]["name"]
        try:
            parts = await self._downloads.open(name, self._who(headers, scope), scope["query_string"])
        except (RequestError, StoreUnavailable) as error:
            said = as_request_error(error)
            return await _send(send, said.status, said.message.encode(), b"text/plain; charset=utf-8")
        kind = (b"content-type", b"text/csv; charset=utf-8")
        saved = (b"content-disposition", f'attachment; filename="{name}"'.encode())
        headers_out = [kind, saved, (b"cache-control", b"no-store"), *_SECURITY_HEADERS]
        await send({"type": "http.response.start", "status": 200, "headers": headers_out})
        async for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        return None

    async def _ask_for_key(self, headers: dict[bytes, bytes], scope: Any, receive: Any, send: Any) -> None:
        await _send(send, 200, notices.login())

    async def _show(
        self, headers: dict[bytes, bytes], scope: Any, send: Any, render: Callable[[Any, bytes], Awaitable[bytes]]
    ) -> None:
        who = None
        try:
            who = self._who(headers, scope)
            body = await render(who, scope["query_string"])
        except StoreUnavailable as error:
            return await _send(send, 503, notices.refused(as_request_error(error).message, passing=True))
        except RequestError as error:
            if error.status not in (401, 403):
                passing = error.status == 503
                return await _send(send, error.status, notices.refused(error.message, passing=passing))
            words = _refusal(error) if error.status == 403 or b"cookie" in headers else ""
            if who is not None and access_of(who).public:
                words = "This page is not public: it needs a key."
            return await _send(send, error.status, notices.login(words))
        return await _send(send, 200, body)

    async def _render(self, who: Any, query: bytes) -> bytes:
        coordinator, access = self._service.coordinator, access_of(who)
        names = await coordinator.ownership.names(who.tenant)
        view = view_of(query)
        chosen = view.problem or (names[0] if names else "")
        if not chosen:
            return notices.nothing_yet(access)
        key = (who.tenant, chosen)
        await coordinator.ownership.enter(key, creates=False)
        learner = await coordinator.find(*key)
        view = view._replace(problem=chosen, public=access.public, decision="" if access.public else view.decision)
        condition, writer = coordinator.condition, coordinator.writer
        wrong = (condition.public_reason if access.public else condition.reason) or writer.overload() or ""
        found = None if view.public else await self._find_decision(who.tenant, view)
        certificate = await self._certificates.find(key, learner)

        def render(state: ProblemState) -> bytes:
            state.history.flush(state.problem)
            arms, heat = read_arms(view, state, state.overall())
            pending = coordinator.ledger.n_pending.get(key, 0)
            health = Health(condition.status, wrong, writer.depth, pending, self._service.store.worker)
            return page.page(names, PageData(view, state, health, arms, heat, found, certificate), access)

        return await coordinator.read(*key, render, THREAD_SIZE)

    async def _find_decision(self, tenant: str, view: View) -> Any:
        if not view.decision:
            return None
        try:
            record = await self._service.coordinator.record((tenant, view.decision))
        except (RequestError, StoreUnavailable) as error:
            return str(error)
        if record.asked.problem != view.problem:
            return f"It belongs to problem {record.asked.problem!r}."
        return FoundDecision(record, await self._explain((tenant, view.decision)))

    async def _explain(self, key: Key) -> Any:
        """Why the slate was chosen, or a sentence on why that is not known."""
        try:
            return await explain(self._service.coordinator, key, FEATURES_SHOWN)
        except (RequestError, StoreUnavailable) as error:
            return str(error)
        except InvalidArgument as error:
            return f"No explanation: {error.wrong}."

    async def _live(self, headers: dict[bytes, bytes], scope: Any, receive: Any, send: Any) -> None:
        """Server-sent events: one whenever the log has grown, at most one per second."""
        try:
            self._who(headers, scope)
        except RequestError as error:
            return await _send(send, error.status, error.message.encode(), b"text/plain; charset=utf-8")
        kind = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), *_SECURITY_HEADERS]
        await send({"type": "http.response.start", "status": 200, "headers": kind})
        gone = asyncio.ensure_future(receive())
        seen, quiet, end = None, 0.0, asyncio.get_running_loop().time() + STREAM_SECONDS
        while not self._service.stopping and asyncio.get_running_loop().time() < end:
            now = dict(self._service.coordinator.position)
            if now != seen or quiet >= 15.0:
                text = b": still here\n\n" if now == seen else b"event: grown\ndata: %d\n\n" % sum(now.values())
                await send({"type": "http.response.body", "body": text, "more_body": True})
                seen, quiet = now, 0.0
            done, _ = await asyncio.wait([gone], timeout=1.0)
            quiet += 1.0
            if done and (gone.result()["type"] == "http.disconnect"):
                return None
            if done:
                gone = asyncio.ensure_future(receive())
        gone.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        return None

    async def _login(self, headers: dict[bytes, bytes], scope: Any, receive: Any, send: Any) -> None:
        try:
            body = await self._service.bodies.read(receive, headers, MAX_LOGIN_BYTES)
            key = parse_qs(body.decode("latin-1")).get("key", [""])[0].strip()
            permit(authenticate(self._service, headers, client_of(scope), key), "read")
        except RequestError as error:
            return await _send(send, error.status, notices.login(_refusal(error)))
        key = key if _KEY.fullmatch(key) else ""  # without keys any text gets here, also what a cookie cannot hold
        secure = "; Secure" if scope.get("scheme") == "https" else ""
        return await _redirect(send, f"{COOKIE}={key}; {self._path}; HttpOnly; SameSite=Strict{secure}")

    async def _logout(self, headers: dict[bytes, bytes], scope: Any, receive: Any, send: Any) -> None:
        await _redirect(send, f"{COOKIE}=; {self._path}; HttpOnly; SameSite=Strict; Max-Age=0")

    def _file(self, name: str, media: bytes) -> Callable[..., Awaitable[None]]:
        async def serve(headers: dict[bytes, bytes], scope: Any, receive: Any, send: Any) -> None:
            await _send(send, 200, self._files[name], media)

        return serve


def _refusal(error: RequestError) -> str:
    """Why a key is refused, for people who gave it to the page."""
    return "This key is not valid; it may have been revoked." if error.status == 401 else error.message


async def _send(send: Any, status: int, body: bytes, media: bytes = b"text/html; charset=utf-8") -> None:
    size = (b"content-length", str(len(body)).encode())
    kind = [(b"content-type", media), size, (b"cache-control", b"no-store"), *_SECURITY_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": kind})
    await send({"type": "http.response.body", "body": body})


async def _redirect(send: Any, cookie: str) -> None:
    kind = [
        (b"location", b"./"),
        (b"set-cookie", cookie.encode("latin-1")),
        (b"content-length", b"0"),
        *_SECURITY_HEADERS,
    ]
    await send({"type": "http.response.start", "status": 303, "headers": kind})
    await send({"type": "http.response.body", "body": b""})
