"""What all endpoints of one process share: settings, keys, rate limits, and how parts of a request are read.

A key has 32 random bytes, a tenant and scopes; it is shown once and stored as a hash.
"""

import asyncio
import hashlib
import hmac
import logging
import math
import re
import secrets
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar, get_args

import msgspec

from superarm.core.errors import SuperarmError
from superarm.service.domain.spec import Late, Mode, PolicySpec, ProblemName, ProblemSpec, Settings
from superarm.service.errors import RequestError, invalid, overloaded, shorten
from superarm.service.http.metrics import Metrics
from superarm.service.runtime.condition import TokenBuckets
from superarm.service.runtime.coordinator import SNAPSHOT_EVERY, Coordinator
from superarm.service.storage.base import KeyRow, Store


class ServiceLimits(NamedTuple):
    """The settings of a process of the service.

    Parameters
    ----------
    max_body
        The size of the largest request body.
    rate
        The average number of requests per second that a key may send; None for no limit.
    max_problems
        The number of problems that a tenant may have.
    queue
        The number of events that may wait for a commit.
    snapshot_every
        The number of events between two snapshots.
    root_path
        The path under which a proxy publishes the service; empty for none.
    compiled
        Whether the kernels of problems are compiled before their first decision.
    """

    max_body: int = 8 * 1024 * 1024
    rate: float | None = None
    max_problems: int = 1_000
    queue: int = 10_000
    snapshot_every: int = SNAPSHOT_EVERY
    root_path: str = ""
    compiled: bool = False


def check_root_path(path: str) -> str:
    """The path without a slash at its end.

    >>> check_root_path("/bandits/")
    '/bandits'
    """
    if path and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)*/?", path):
        raise SuperarmError(f"--root-path {path!r}: give a path such as /bandits, of letters, digits and . _ ~ -")
    return path.rstrip("/")


class Service:
    """The coordinator, the keys, the rate limits and the metrics of one process.

    ``failure`` says why the service could not start.
    """

    def __init__(self, store: Store, limits: ServiceLimits) -> None:
        self.store, self.limits = store, limits
        self.coordinator = Coordinator(store, limits.queue, limits.snapshot_every, limits.compiled)
        self.keyring = Keyring(store)
        self.rates = RateLimits(limits.rate)
        self.failed_keys = RateLimits(FAILED_KEYS_PER_SECOND)
        self.bodies = Bodies(limits.max_body)
        self.metrics = Metrics(self.coordinator)
        self.failure = ""


log = logging.getLogger("superarm.keys")

SCOPES = ("decide", "feedback", "read", "admin", "metrics")
REREAD_SECONDS = 0.5
FAILED_KEYS_PER_SECOND = 50.0
"""How many requests with a wrong key, or none, are answered with 401 per second and address; more get 429."""


class Principal(NamedTuple):
    """The key behind a request, with its tenant and scopes."""

    key: str
    tenant: str
    scopes: frozenset[str]


ANYONE = Principal("", "default", frozenset(SCOPES))
"""The caller of a service without keys, which listens on loopback only."""


def make_key(tenant: str, scopes: tuple[str, ...], note: str = "") -> tuple[str, KeyRow]:
    """A new key, and the row to store; the key itself is stored nowhere.

    >>> key, row = make_key("shop", ("decide",))
    >>> key.startswith(f"sa_{row.id}_") and len(row.digest)
    64
    """
    key = f"sa_{secrets.token_hex(6)}_{secrets.token_urlsafe(32)}"
    return key, read_key(key, tenant, scopes, note)


def read_key(key: str, tenant: str, scopes: tuple[str, ...], note: str) -> KeyRow:
    """The row to store of a key that was made before."""
    if not re.fullmatch(r"sa_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", key):
        raise SuperarmError("the key is not one that superarm made; superarm keys new prints a new one")
    _, id, secret = key.split("_", 2)
    return KeyRow(id, _digest(secret), tenant, ",".join(scopes), int(time.time() * 1000), None, note)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()  # 256 random bits cannot be guessed: no slow hash is needed


class Keyring:
    """The keys of a store, as they were last read; ``follow`` reads them every half second."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: dict[str, KeyRow] | None = None
        self._failing = False

    def read(self) -> None:
        """Read the keys."""
        self._rows = {row.id: row for row in self._store.key_rows()}

    async def follow(self) -> None:
        """Read the keys again and again, in a thread, so that a revoked key is refused within a second.

        While they cannot be read, those that were read last stay valid.
        """
        while True:
            try:
                await asyncio.to_thread(self.read)
                self._failing = False
            except Exception as error:
                if not self._failing:
                    log.error("the keys cannot be read; those that were read last stay valid: %s", error)
                self._failing = True
            await asyncio.sleep(REREAD_SECONDS)

    @property
    def required(self) -> bool:
        """Whether any key was ever created. Revoking the last one does not open the service."""
        return bool(self._rows)

    def principal(self, key: str | None) -> Principal:
        """The principal of a key, or 401; 503 if the keys have not been read."""
        if self._rows is None:
            raise overloaded("starting: the keys have not been read yet")
        if not self.required:
            return ANYONE
        row = self._match(self._rows, key)
        if row is None:
            raise RequestError(401, "unauthorized", "send a valid key: Authorization: Bearer sa_…")
        return Principal(row.id, row.tenant, frozenset(row.scopes.split(",")))

    def _match(self, rows: dict[str, KeyRow], key: str | None) -> KeyRow | None:
        prefix, _, rest = (key or "").partition("_")
        id, _, secret = rest.partition("_")
        row = rows.get(id)
        matches = hmac.compare_digest(_digest(secret), row.digest if row else "0" * 64)
        return row if prefix == "sa" and matches and row is not None and row.revoked is None else None


def permit(principal: Principal, scope: str) -> None:
    """Refuse with 403 what the key's scopes do not allow; ``admin`` allows everything that concerns its tenant."""
    if scope not in principal.scopes and "admin" not in principal.scopes:
        raise RequestError(403, "forbidden", f"this key lacks the scope {scope!r}")


class RateLimits:
    """One token bucket per key: ``per_second`` requests on average, twice as many at once.

    A request that counts several times is accepted if there is one token; it leaves a debt, and the next request is
    accepted when the debt has been paid off.
    """

    def __init__(self, per_second: float | None) -> None:
        self._rate = per_second
        self._buckets = TokenBuckets()

    def take(self, key: str) -> None:
        """Take a token, or refuse with 429."""
        if self._rate is not None and (wait := self._buckets.take(key, self._rate)):
            raise RequestError(429, "too_many_requests", f"above {self._rate:g} requests per second", math.ceil(wait))

    def charge(self, key: str, n: int) -> None:
        """Take ``n`` more tokens for a request that was accepted, also if there are not as many."""
        if self._rate is not None and n > 0:
            self._buckets.charge(key, self._rate, n)


Kind = TypeVar("Kind", bound=msgspec.Struct)


def parse_query(query: Sequence[tuple[str, str]], kind: type[Kind]) -> Kind:
    """The parameters of a URL; those that are empty are left out.

    >>> from superarm.service.schemas import PageQuery
    >>> parse_query([("limit", "5"), ("offset", "")], PageQuery)
    PageQuery(offset=0, limit=5)
    """
    known = ", ".join(kind.__struct_fields__)
    given = dict(query)
    for name, value in query:
        if name not in kind.__struct_fields__:
            raise invalid(repr(name[:40]), "unknown query parameter", f"there are {known or 'none here'}")
        if given[name] != value:
            raise invalid(repr(name), "several values", "give one")
    return msgspec.convert({name: value for name, value in query if value}, kind, strict=False)


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
    "caution": "careful, normal or bold",
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


MAX_EXPLAINED = 300
"""So many characters of a message are kept: it may hold a value of the request, and patterns take the square of it."""


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
    message = shorten(message, MAX_EXPLAINED)
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
