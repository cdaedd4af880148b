"""Signed decision ids, with which a browser may send feedback for one decision and do nothing else."""

import base64
import binascii
import hashlib
import hmac
from typing import NamedTuple

import msgspec

from superarm.core.errors import SuperarmError
from superarm.service.errors import RequestError

MIN_SECRET_CHARACTERS = 32
_PURPOSE = b"superarm decision 1\n"
"""Signed before the rest: what was signed with the same secret for another purpose is no signed id."""


class SignedDecision(NamedTuple):
    """The decision that a signed id is for; ``expires`` is in seconds since 1970."""

    tenant: str
    problem: str
    id: str
    expires: int


class Signer:
    """Signs with the first of some secrets, and accepts what any of them has signed.

    >>> signer = Signer(["a secret of at least 32 characters"], seconds=60)
    >>> signer.read(signer.sign("default", "ads", "visit-1", now=1_000), now=1_059).id
    'visit-1'
    """

    def __init__(self, secrets: list[str], seconds: int) -> None:
        if any(len(secret) < MIN_SECRET_CHARACTERS for secret in secrets):
            raise SuperarmError(
                f"--beacon-secret: shorter than {MIN_SECRET_CHARACTERS} characters; take openssl rand -base64 32"
            )
        self._secrets, self._seconds = [secret.encode() for secret in secrets], seconds

    def sign(self, tenant: str, problem: str, id: str, now: float) -> str:
        """The signed id of a decision: what it is for, and a code that only the service can compute, by HMAC-SHA256."""
        payload = _encode(msgspec.json.encode(SignedDecision(tenant, problem, id, int(now) + self._seconds)))
        return f"{payload}.{_encode(_code(self._secrets[0], payload))}"

    def read(self, signed_id: str, now: float) -> SignedDecision:
        """The decision that a signed id is for; 403 if the service did not sign it, or if it has expired."""
        payload, _, code = signed_id.partition(".")
        try:
            given = _decode(code)
            genuine = any(hmac.compare_digest(given, _code(secret, payload)) for secret in self._secrets)
        except (binascii.Error, ValueError):
            genuine = False
        if not genuine:
            raise RequestError(403, "forbidden", "signed_id: this service did not sign it; send it as it was given")
        signed = msgspec.json.decode(_decode(payload), type=SignedDecision)
        if now >= signed.expires:
            raise RequestError(403, "expired", "signed_id: it has expired; feedback that comes later needs a key")
        return signed


def _code(secret: bytes, payload: str) -> bytes:
    return hmac.digest(secret, _PURPOSE + payload.encode(), hashlib.sha256)


def _encode(plain: bytes) -> str:
    return base64.urlsafe_b64encode(plain).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
