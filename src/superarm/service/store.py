"""Where the log lives: one protocol, two stores.

Every event has a place of its own, (tenant, kind, stream, step): whoever writes it first wins, and a later writer
learns that it lost. Each worker numbers its own events without gaps, in commit order, so that others can follow
it by that number.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from superarm.service.events import decode
from superarm.service.ledger import Entry, Key
from superarm.service.record import Record, advanced, opened

Position = dict[str, int]
"""How far each worker's log was read."""


class Line(NamedTuple):
    """An event as it is written."""

    tenant: str
    kind: str
    stream: str
    step: int
    body: bytes


class Read(NamedTuple):
    """An event as it is read: whose, which, what."""

    worker: str
    seq: int
    entry: Entry


class Saved(NamedTuple):
    """A snapshot: ``digest`` is the SHA-256 of ``body``."""

    digest: str
    body: bytes


class KeyRow(NamedTuple):
    """A key as it is stored: the hash of its secret, its tenant and what it may do."""

    id: str
    digest: str
    tenant: str
    scopes: str
    created: int
    revoked: int | None
    note: str


class Store(Protocol):
    """What the service asks of a database. ``commit`` is called by the writer thread alone."""

    @property
    def worker(self) -> str:
        """The name under which this process writes."""
        ...

    @property
    def shared(self) -> bool:
        """Whether other workers write to the same log."""
        ...

    def commit(self, lines: list[Line]) -> list[int]:
        """Write all lines durably in one transaction; the number of each, 0 if its place was taken."""
        ...

    def last(self) -> int:
        """The number of this worker's last event."""
        ...

    def tail(self, after: Position, *, problems: bool = False) -> Iterator[Read]:
        """What comes after ``after``, in an order in which it can be applied; the events of ``problems`` only."""
        ...

    def read_transaction(self) -> AbstractContextManager[None]:
        """Within it, everything that is read is of one moment, whatever is written meanwhile."""
        ...

    def stream(self, tenant: str, kind: str, stream: str) -> list[Entry]:
        """All events of one problem or decision."""
        ...

    def snapshots(self) -> Iterator[Saved]:
        """The snapshots, newest first."""
        ...

    def save(self, saved: Saved) -> None:
        """Keep a snapshot, and forget all but a few older ones."""
        ...

    def forget(self, saved: Saved) -> None:
        """Delete a snapshot."""
        ...

    def keep_out_others(self) -> None:
        """Refuse if another process serves this log; none can start until this one closes it."""
        ...

    def key_rows(self) -> list[KeyRow]:
        """All keys."""
        ...

    def put_key(self, row: KeyRow) -> None:
        """Add a key, or replace it."""
        ...

    def close(self) -> None:
        """Give up all connections and locks."""
        ...


def recalled(store: Store, key: Key, before: int | None = None) -> Record | None:
    """A decision out of the log, as it was before step ``before``, or as it is."""
    record: Record | None = None
    for entry in store.stream(key[0], "decision", key[1]):
        if before is None or entry.step < before:
            record = opened(entry.event) if record is None else advanced(record, entry.event)
    return record


def entry_of(line: Line) -> Entry:
    """The event of a line."""
    return Entry(line.tenant, line.kind, line.stream, line.step, decode(line.body))
