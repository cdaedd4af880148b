"""Parts of a request: query parameters, the body, and what is wrong with it in a sentence."""

import asyncio
import re
from collections.abc import Mapping
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
    "mode": f"one of {', '.join(get_args(Mode))}",
    "late": f"one of {', '.join(get_args(Late))}",
    "control_slate": "baseline, uniform, or a list of arms",
    "at_window_end": "ignore, or a number from 0 to 1",
}
_REMEDIES = (
    *(
        (rf"Invalid enum value (.*) - at `\$\.((?:.*\.)?{field})`", f"{{1}}: unknown {{0}}; give {choices}")
        for field, choices in _CHOICES.items()
    ),
    (r"Expected `str` matching regex .* - at (?:`key` in )?`\$\.?(.*)`", "{0}: a name holds no control character"),
    (
        r"Expected `float` [<>]= [01]\.0 - at `\$\.((?:.*\.)?value|outcomes?\[\d+\]\[\d+\])`",
        "{0}: an outcome is a number from 0 to 1; divide by the largest that can occur; weights scale the reward back",
    ),
    (
        r"Expected `object`, got `str` - at `\$\.((?:settings\.)?policy)`",
        '{0}: give an object, as in {{"name": "kl_ucb"}}',
    ),
)
"""Messages of the decoder, and what is said instead."""

_UNKNOWN_FIELD = r"Object contains unknown field `(.*?)`(?: - at `\$\.?(.*)`)?"
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
    >>> explain("Expected `str` matching regex '^[^/]*$' - at `key` in `$.support`")
    'support: a name holds no control character'
    """
    for pattern, words in _REMEDIES:
        if (found := re.fullmatch(pattern, message, re.DOTALL)) is not None:
            return words.format(*found.groups())
    found = re.fullmatch(_UNKNOWN_FIELD, message, re.DOTALL)
    if found is None or found[1] not in _PLACES:
        return message
    field, here, parts = found[1], found[2] or "", _PLACES[found[1]].split(".")[:-1]
    wanted = f'"{field}": …'
    for word in reversed(parts):
        wanted = f'"{word}": {{{wanted}}}'
    name, place = f"{here}.{field}" if here else field, ".".join(parts) or "the problem itself"
    return f"{name}: unknown here; it belongs into {place}: {{{wanted}}}"


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
