"""Parts of a request: query parameters, what is wrong with a body in a sentence, and the request's id."""

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, TypeVar, get_args

import msgspec

from superarm.service.domain.spec import Late, Mode, PolicySpec, ProblemName, ProblemSpec, Settings
from superarm.service.errors import RequestError, invalid, overloaded

Kind = TypeVar("Kind", bound=msgspec.Struct)


def parse_query(query: Mapping[str, str], kind: type[Kind]) -> Kind:
    """The parameters of a URL; those that are empty are left out.

    >>> from superarm.service.schemas import PageQuery
    >>> parse_query({"limit": "5", "offset": ""}, PageQuery)
    PageQuery(offset=0, limit=5)
    """
    known = ", ".join(kind.__struct_fields__)
    for name in query:
        if name not in kind.__struct_fields__:
            raise invalid(repr(name[:40]), "unknown query parameter", f"there are {known or 'none here'}")
    return msgspec.convert({name: value for name, value in query.items() if value}, kind, strict=False)


def parse_problem_name(name: str) -> str:
    """The name of a new problem, from the path."""
    try:
        return msgspec.convert(name, ProblemName)
    except msgspec.ValidationError:
        remedy = "the name of a problem has 1 to 256 characters, no slash and no control character"
        raise invalid("name", repr(name[:40]), remedy) from None


_CHOICES = {
    "mode": f"give one of {', '.join(get_args(Mode))}",
    "late": f"give one of {', '.join(get_args(Late))}",
    "control_slate": "give baseline, uniform, or a list of arms",
    "at_window_end": "give ignore, or a number from 0 to 1",
}
_UNKNOWN_CHOICE = re.compile(r"Invalid enum value (.*) - at `\$\.(.*)`", re.DOTALL)
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$\.?(.*)`)?", re.DOTALL)
_NO_NAME = re.compile(r"Expected `str` matching regex .* - at (?:`key` in )?`\$\.?(.*)`", re.DOTALL)
_NO_OUTCOME = re.compile(r"Expected `float` [<>]= [01]\.0 - at `\$\.((?:.*\.)?value|outcomes?\[\d+\]\[\d+\])`")
_NO_POLICY = re.compile(r"Expected `object`, got `str` - at `\$\.((?:settings\.)?policy)`")

_PLACES = {
    **dict.fromkeys(ProblemSpec.__struct_fields__, ""),
    **dict.fromkeys(Settings.__struct_fields__, "settings."),
    **dict.fromkeys(PolicySpec.__struct_fields__, "settings.policy."),
}
"""Where a field of a problem belongs; in the bodies of ``/settings`` without the first word."""


def explain(message: str) -> str:
    """The decoder's message; with the choices that there are, the place where a field belongs, or what a name may hold.

    >>> explain("Invalid enum value 'soon' - at `$.settings.late`")
    "settings.late: unknown 'soon'; give one of ignore, learn"
    >>> explain("Expected `float` <= 1.0 - at `$.feedback[0].value`").partition(";")[0]
    'feedback[0].value: an outcome is a number from 0 to 1'
    >>> explain("Object contains unknown field `policy`")
    'policy: unknown here; it belongs into settings: {"settings": {"policy": …}}'
    >>> explain("Expected `str` matching regex '^[^/]*$' - at `$.arms[0]`")
    'arms[0]: a name holds no control character'
    >>> explain("Expected `str` matching regex '^[^/]*$' - at `key` in `$.support`")
    'support: a name holds no control character'
    """
    found = _UNKNOWN_CHOICE.fullmatch(message)
    for field, choices in _CHOICES.items():
        if found is not None and f".{found[2]}".endswith(f".{field}"):
            return f"{found[2]}: unknown {found[1]}; {choices}"
    found = _UNKNOWN_FIELD.fullmatch(message)
    if found is not None and found[1] in _PLACES:
        return _explain_place(found[1], found[2] or "")
    found = _NO_NAME.fullmatch(message)
    if found is not None:
        return f"{found[1] or 'the body'}: a name holds no control character"
    found = _NO_OUTCOME.fullmatch(message)
    if found is not None:
        remedy = "divide by the largest value that can occur; weights scale the reward back"
        return f"{found[1]}: an outcome is a number from 0 to 1; {remedy}"
    found = _NO_POLICY.fullmatch(message)
    return message if found is None else f'{found[1]}: give an object, as in {{"name": "kl_ucb"}}'


def _explain_place(field: str, here: str) -> str:
    """Where a field belongs that was given elsewhere."""
    words = _PLACES[field].split(".")[:-1]
    wanted = f'"{field}": …'
    for word in reversed(words):
        wanted = f'"{word}": {{{wanted}}}'
    name = f"{here}.{field}" if here else field
    place = ".".join(words) or "the problem itself"
    return f"{name}: unknown here; it belongs into {place}: {{{wanted}}}"


log = logging.getLogger("superarm.access")

REQUEST_ID: ContextVar[str] = ContextVar("superarm_request_id", default="")

_ACCEPTED = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")


def choose_id(headers: list[tuple[bytes, bytes]]) -> str:
    """The caller's ``X-Request-Id``, if it is short and plain, or a new one.

    >>> choose_id([(b"x-request-id", b"abc-1")]), len(choose_id([(b"x-request-id", b"a b")]))
    ('abc-1', 16)
    """
    for name, value in headers:
        if name == b"x-request-id" and _ACCEPTED.fullmatch(value):
            return value.decode()
    return secrets.token_hex(8)


class Exchange:
    """One request: gives its answer the request's id, and can write a line about it to the log.

    It is called as the ``send`` of ASGI.
    """

    def __init__(self, scope: Any, send: Any) -> None:
        self._scope, self._send = scope, send
        self._id = choose_id(scope["headers"])
        self._began = time.perf_counter()
        self._status = 0
        REQUEST_ID.set(self._id)

    async def __call__(self, message: Any) -> None:
        """Send a message of the answer, the first one with the id."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message = {**message, "headers": [*message["headers"], (b"x-request-id", self._id.encode())]}
        await self._send(message)

    def log(self) -> None:
        """Write one line: what was asked, by which address, how it ended and how long it took."""
        scope = self._scope
        client = scope.get("client")
        fields = {
            "method": scope["method"],
            "path": scope["path"],
            "status": self._status,
            "seconds": round(time.perf_counter() - self._began, 6),
            "client": client[0] if client else "",
        }
        log.info("request", extra={"fields": fields})


BODY_SECONDS = 60.0
"""A body that is not complete after so many seconds is refused."""

MAX_UNFINISHED_BODIES = 8
"""All bodies that are not complete yet may together have so many times the size of the largest allowed one."""


class Bodies:
    """Reads bodies of at most ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.unfinished_bytes = 0

    async def read(self, receive: Any, headers: dict[bytes, bytes], limit: int | None = None) -> bytes:
        """The body of a request; 413 if it is too large, 408 if it does not come in time, 503 if too many are coming.

        ``limit`` is another size for this body.
        """
        most = self.limit if limit is None else limit
        announced = headers.get(b"content-length", b"0")
        if not announced.isdigit() or int(announced) > most:
            raise _too_large(most)
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await self._collect(receive, most)
        except TimeoutError:
            raise RequestError(408, "timeout", f"the body was not complete after {BODY_SECONDS:g} s") from None

    async def _collect(self, receive: Any, most: int) -> bytes:
        body = bytearray()
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestError(400, "gone", "the client closed the connection")
                chunk = message.get("body", b"")
                body += chunk
                self.unfinished_bytes += len(chunk)
                if len(body) > most:
                    raise _too_large(most)
                if not message.get("more_body", False):
                    return bytes(body)
                if self.unfinished_bytes > MAX_UNFINISHED_BODIES * self.limit:
                    raise overloaded("too many large bodies are being sent; try again")
        finally:
            self.unfinished_bytes -= len(body)


def _too_large(most: int) -> RequestError:
    return RequestError(413, "too_large", f"the body is above {most} bytes")
