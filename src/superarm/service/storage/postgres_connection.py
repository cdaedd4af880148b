"""Connections to PostgreSQL, and its errors as those of a store."""

import contextlib
from collections.abc import Iterator
from typing import Any

from superarm.errors import MissingExtra, SuperarmError
from superarm.service.storage.base import StoreUnavailable

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError:
    raise MissingExtra("psycopg", "postgres") from None

_CONNECTION = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Within about ten seconds a server that has vanished is noticed; what the address says takes precedence."""


@contextlib.contextmanager
def explain_errors() -> Iterator[None]:
    """Say that the database is unavailable where PostgreSQL or the way to it is the reason."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        said = str(error).strip().splitlines()
        raise StoreUnavailable(f"--db: PostgreSQL cannot be reached: {said[0] if said else 'no answer'}") from None


def connect(url: str) -> Any:
    """A connection on which every statement is a transaction, on disk before it is answered."""
    try:
        given: Any = _CONNECTION | conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise SuperarmError(f"--db: no address of a database: {str(error).strip()}") from None
    connection = psycopg.connect(**given, autocommit=True)
    connection.execute("SET synchronous_commit = on")
    return connection
