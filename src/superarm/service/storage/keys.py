"""Keys as a database holds them."""

from typing import NamedTuple


class KeyRow(NamedTuple):
    """A key as it is stored: the hash of its secret, its tenant and what it may do."""

    id: str
    digest: str
    tenant: str
    scopes: str
    created: int
    revoked: int | None
    note: str
