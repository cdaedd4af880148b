"""Keys and rate limits. A key has 32 random bytes, a tenant and scopes; it is shown once and stored as a hash."""

import asyncio
import hashlib
import hmac
import logging
import math
import re
import secrets
import time
from typing import NamedTuple

from superarm.core.errors import SuperarmError
from superarm.service.errors import RequestError, overloaded
from superarm.service.runtime.condition import TokenBuckets
from superarm.service.storage.base import KeyRow, Store

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
        if self._rate is not None and not self._buckets.take(key, self._rate):
            wait = math.ceil((1.0 - self._buckets.tokens(key, self._rate)) / self._rate)
            raise RequestError(429, "too_many_requests", f"above {self._rate:g} requests per second", wait)

    def charge(self, key: str, n: int) -> None:
        """Take ``n`` more tokens for a request that was accepted, also if there are not as many."""
        if self._rate is not None and n > 0:
            self._buckets.charge(key, self._rate, n)
