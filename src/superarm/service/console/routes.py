"""The routes of the console: pages, exports, changes, log-in and log-out."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from superarm.pages import render_page
from superarm.service.console import address, exports, verdicts
from superarm.service.console.changes import change, require_own_page
from superarm.service.console.pages import Page, Pages
from superarm.service.errors import RequestError, unknown
from superarm.service.http.auth import Principal, permit
from superarm.service.http.endpoint import as_request_error, authenticate, client_of
from superarm.service.http.service import Service
from superarm.service.runtime.coordinator import THREAD_SIZE

COOKIE = "superarm_key"
_KEY = re.compile("[A-Za-z0-9_-]{1,256}")
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}
FILES = {"console.css": "text/css", "console.js": "text/javascript"}
MAX_FORM_BYTES = 4_096
RELOAD_SECONDS = 5
"""A page that waits for something is loaded anew so often."""

FILTERS: dict[str, Callable[..., Any]] = {
    "number": verdicts.number,
    "signed": verdicts.signed,
    "plus_minus": verdicts.plus_minus,
    "moment": address.moment,
    "duration": address.duration,
    "count": "{:,}".format,
    "cap": lambda text: f"{text[:1].upper()}{text[1:]}",
    "json": lambda value: msgspec.json.encode(value).decode(),
}


Answer = Callable[[Principal, Request], Awaitable[Response]]


class Console:
    """The console of a service."""

    def __init__(self, service: Service, api: dict[str, Any]) -> None:
        self._service, self._pages, self._api = service, Pages(service), api
        self._path = f"Path={service.limits.root_path}/"

    def routes(self) -> list[Route]:
        """All of them."""
        pages = self._pages
        shown = {"": pages.home, "versions": pages.versions}
        guarded = {"export/{name}": self._export} | {name: _page(one) for name, one in shown.items()}
        return [
            *(Route(f"/{path}", self._guarded(answer), methods=["GET"]) for path, answer in guarded.items()),
            *(Route(f"/{name}", _file(name), methods=["GET"]) for name in FILES),
            Route("/docs", self._docs, methods=["GET"]),
            Route("/change", self._guarded(self._change), methods=["POST"]),
            Route("/login", _render("notice.html", {"kind": "login", "message": ""}), methods=["GET"]),
            Route("/login", self._login, methods=["POST"]),
            Route("/logout", self._logout, methods=["POST"]),
        ]

    def _who(self, request: Request) -> Principal:
        """The principal behind the cookie; the cookie is good for these routes alone."""
        headers, client = dict(request.scope["headers"]), client_of(request.scope)
        who = authenticate(self._service, headers, client, request.cookies.get(COOKIE, ""))
        permit(who, "read")
        return who

    def _guarded(self, answer: Answer) -> Any:
        """A route for those who may look, and the reason for the others."""

        async def run(request: Request) -> Response:
            try:
                return await answer(self._who(request), request)
            except Exception as error:
                return _refuse(as_request_error(error), COOKIE in request.cookies)

        return run

    async def _export(self, who: Principal, request: Request) -> Response:
        """A table as a download."""
        name = request.path_params["name"]
        tables: Any = {"arms.csv": exports.list_arms, "rewards.csv": exports.list_rewards}
        if name not in tables:
            raise unknown("export", name[:100])
        key, *_ = await self._pages.open_problem(who, request.scope["query_string"])
        rows = await self._service.coordinator.read(*key, tables[name], THREAD_SIZE)
        saved = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(await asyncio.to_thread(exports.to_csv, rows), 200, SECURITY_HEADERS | saved, "text/csv")

    async def _change(self, who: Principal, request: Request) -> Response:
        """A change that a form of the page asks for; then the page again."""
        require_own_page(dict(request.scope["headers"]))
        place = await change(self._service, who, await self._form(request))
        return Response(status_code=303, headers=SECURITY_HEADERS | {"location": place})

    async def _form(self, request: Request) -> dict[str, str]:
        body = await self._service.bodies.read(request.receive, dict(request.scope["headers"]), MAX_FORM_BYTES)
        return dict(parse_qsl(body.decode("latin-1"), keep_blank_values=True))

    async def _docs(self, request: Request) -> Response:
        """The HTTP interface, which holds nothing that is secret."""
        return _render("docs.html", {"api": self._api})

    async def _login(self, request: Request) -> Response:
        try:
            key = (await self._form(request)).get("key", "").strip()
            headers, client = dict(request.scope["headers"]), client_of(request.scope)
            permit(authenticate(self._service, headers, client, key), "read")
        except RequestError as error:
            return _refuse(error, keyed=True)
        key = key if _KEY.fullmatch(key) else ""  # without keys any text gets here, also what a cookie cannot hold
        return self._remember(f"{COOKIE}={key}", "; Secure" if request.url.scheme == "https" else "")

    async def _logout(self, request: Request) -> Response:
        return self._remember(f"{COOKIE}=", "; Max-Age=0")

    def _remember(self, cookie: str, more: str) -> Response:
        kept = {"location": "./", "set-cookie": f"{cookie}; {self._path}; HttpOnly; SameSite=Strict{more}"}
        return Response(status_code=303, headers=SECURITY_HEADERS | kept)


def _file(name: str) -> Any:
    body = (Path(__file__).parent / "templates" / name).read_bytes()
    return Response(body, 200, SECURITY_HEADERS, FILES[name])


def _page(make: Callable[[Principal, bytes], Awaitable[Page]]) -> Answer:
    async def show(who: Principal, request: Request) -> Response:
        return _render(*await make(who, request.scope["query_string"]))

    return show


def _refuse(error: RequestError, keyed: bool) -> Response:
    """Why a page cannot be shown, and a way back; or the request for a key."""
    if error.status not in (401, 403):
        said = {"kind": "refused", "message": error.message, "again": error.status == 503}
        return _render("notice.html", said, error.status)
    words = (
        error.message if error.status == 403 else "This key is not valid; it may have been revoked." if keyed else ""
    )
    return _render("notice.html", {"kind": "login", "message": words}, error.status)


def _render(template: str, data: dict[str, Any], status: int = 200) -> Response:
    frame = {"names": [], "problem": "", "keyed": False, "admin": False, "again": False}
    text = render_page(__package__, template, frame | {"reload": RELOAD_SECONDS} | data, FILTERS)
    return Response(text, status, SECURITY_HEADERS, "text/html")
