"""The routes of the console: pages, exports, changes, log-in and log-out."""

import asyncio
import io
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote, urlencode

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from superarm.output.pages import render_page
from superarm.service.console import address, arms, charts, verdicts
from superarm.service.console.pages import Page, Pages
from superarm.service.domain.problem import ProblemState
from superarm.service.errors import RequestError, invalid, unknown
from superarm.service.http import operations
from superarm.service.http.endpoint import as_request_error, authenticate, client_of
from superarm.service.http.operations import Call
from superarm.service.http.service import Principal, Service, permit
from superarm.service.runtime.coordinator import THREAD_SIZE
from superarm.service.schemas import ArmsBody, LearnBody, SettingsBody
from superarm.service.storage.tables import write_csv

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
        shown = {"": pages.home, "versions": pages.versions, "problems": pages.problems}
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
        tables: Any = {"arms.csv": arms.export_arms, "rewards.csv": charts.export_rewards}
        if name not in tables:
            raise unknown("export", name[:100])
        key, *_ = await self._pages.open_problem(who, request.scope["query_string"])
        rows = await self._service.coordinator.read(*key, tables[name], THREAD_SIZE)
        saved = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(await asyncio.to_thread(_to_csv, rows), 200, SECURITY_HEADERS | saved, "text/csv")

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


def _to_csv(rows: Iterable[Iterable[Any]]) -> bytes:
    """Rows as CSV; what is None is an empty cell."""
    text = io.StringIO()
    write_csv(text, rows)
    return text.getvalue().encode()


def _file(name: str) -> Any:
    return Response((Path(__file__).parent / "templates" / name).read_bytes(), 200, SECURITY_HEADERS, FILES[name])


def _page(make: Callable[[Principal, bytes], Awaitable[Page]]) -> Answer:
    async def show(who: Principal, request: Request) -> Response:
        return _render(*await make(who, request.scope["query_string"]))

    return show


def _refuse(error: RequestError, keyed: bool) -> Response:
    """Why a page cannot be shown, and a way back; or the request for a key."""
    words = {401: "This key is not valid; it may have been revoked." if keyed else "", 403: error.message}
    if error.status in words:
        return _render("notice.html", {"kind": "login", "message": words[error.status]}, error.status)
    said = {"kind": "refused", "message": error.message, "again": error.status == 503}
    return _render("notice.html", said, error.status)


def _render(template: str, data: dict[str, Any], status: int = 200) -> Response:
    frame = {"names": [], "problem": "", "keyed": False, "admin": False, "again": False}
    text = render_page(__package__, template, frame | {"reload": RELOAD_SECONDS} | data, FILTERS)
    return Response(text, status, SECURITY_HEADERS, "text/html")


Percent = Annotated[float, Meta(ge=0.0, le=100.0)]


def require_own_page(headers: Mapping[bytes, bytes]) -> None:
    """Refuse a change that a page of another origin sends: its browser says where the form comes from."""
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin", b"")
    own = site == b"same-origin" if site is not None else origin.partition(b"://")[2] == headers.get(b"host")
    if not own:
        raise RequestError(403, "forbidden", "changes are taken from the console's own pages only")


async def change(service: Service, who: Principal, form: Mapping[str, str]) -> str:
    """Do what a form asks for; the address to show afterwards."""
    permit(who, "admin")
    name, what = form.get("problem", ""), form.get("change", "")
    await service.coordinator.ownership.enter((who.tenant, name), creates=False)
    state = await service.coordinator.find(who.tenant, name)
    call = Call(service, who, {"name": name})
    if what in ("retire", "restore"):
        arm = form.get("arm", "")
        if state.arms.number(arm) is None:
            raise unknown(state.words.one("arm"), arm[:100])
        body = ArmsBody(retire=[arm]) if what == "retire" else ArmsBody(add=[arm])
        await operations.post_arms(call._replace(body=body))
    elif what == "items":
        wanted = {"version": form["version"]} if "version" in form else {}
        await operations.learn_items(call._replace(body=msgspec.convert(wanted, LearnBody, strict=False)))
    elif what == "back":
        await operations.restore_version(call._replace(path={"name": name, "version": form.get("version", "")}))
    else:
        settings = msgspec.convert(_settings(state, what, form), SettingsBody)
        await operations.patch_settings(call._replace(body=settings))
    query = urlencode(parse_qsl(form.get("query", "")) or [("problem", name)])
    place = quote(form.get("place") or "changes")
    return f"versions?{query}" if place == "versions" else f"./?{query}#{place}"


def _settings(state: ProblemState, what: str, form: Mapping[str, str]) -> dict[str, Any]:
    """The settings that a form asks for: another control share, a pause, or the end of one.

    A pause shows the control slate always; where only requests name it, by the mode that answers with their baseline.
    """
    if what == "control":
        return {"control": msgspec.convert(form.get("share", ""), Percent, strict=False) / 100.0}
    if what == "pause":
        named = state.settings.control_slate == "baseline" and not state.settings.policy.baseline
        return {"mode": "apprentice"} if named else {"control": 1.0}
    if what == "resume":
        shares = [one.control for one in state.versions if not one.paused]
        return {"mode": "online", "control": shares[-1] if shares else 0.0}
    raise invalid("change", f"{what[:40]!r}", "choose retire, restore, control, pause, resume, items or back")
