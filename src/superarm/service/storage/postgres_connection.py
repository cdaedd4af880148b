"""Connections to PostgreSQL, and its errors as those of a store."""

import contextlib
from collections.abc import Iterator
from typing import Any

from superarm.core.errors import MissingExtra, SuperarmError
from superarm.service.storage.base import AddressRefused, StoreUnavailable

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
        raise StoreUnavailable(_explain(error)) from None


def _explain(error: psycopg.Error) -> str:
    said = str(error).strip().splitlines()
    return f"--db: PostgreSQL cannot be reached: {said[0] if said else 'no answer'}"


_AWAY = (
    "refused", "timeout", "timed out", "unreachable", "No route", "No such file", "reset by peer",
    "closed the connection", "starting up", "shutting down", "recovery mode", "not yet accepting", "too many clients",
    "connection slots", "resolve", "resolution", "translate host name", "not known",
)  # fmt: skip
_REFUSED = ("authentication failed", "does not exist", "no pg_hba.conf entry", "not permitted to log in", "no password")


def is_away(said: str) -> bool:
    """Whether PostgreSQL is away, so that waiting may help, by what an attempt to connect has said.

    With several hosts, one that refuses the address is enough to make it wrong.

    >>> is_away('connection to server at "db", port 5432 failed: Connection refused')
    True
    >>> is_away("server does not support SSL, but SSL was required")
    False
    """
    return any(words in said for words in _AWAY) and not any(words in said for words in _REFUSED)


def connect(url: str) -> Any:
    """A connection on which every statement is a transaction, on disk before it is answered."""
    try:
        given: Any = _CONNECTION | conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise SuperarmError(f"--db: no address of a database: {str(error).strip()}") from None
    try:
        connection = psycopg.connect(**given, autocommit=True)
    except psycopg.OperationalError as error:
        if is_away(str(error)):
            raise
        raise AddressRefused(_explain(error)) from None
    connection.execute("SET synchronous_commit = on")
    return connection
