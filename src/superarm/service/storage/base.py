"""Where the log lives: one protocol, two stores.

Every event has a place of its own, (tenant, kind, stream, step): whoever writes it first wins, and a later writer
learns that it lost. Each worker numbers its own events without gaps, in commit order, so that others can follow
it by that number.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from superarm.service.domain.decision import DecisionRecord, advance_record, open_record
from superarm.service.domain.events import decode
from superarm.service.domain.ledger import Key, LogEntry

Position = dict[str, int]
"""How far each worker's log was read."""


class LogLine(NamedTuple):
    """An event as it is written."""

    tenant: str
    kind: str
    stream: str
    step: int
    body: bytes


class ReadEntry(NamedTuple):
    """An event as it is read: whose, which, what."""

    worker: str
    seq: int
    entry: LogEntry


class SavedSnapshot(NamedTuple):
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

    def commit(self, lines: list[LogLine]) -> list[int]:
        """Write all lines durably in one transaction; the number of each, 0 if its place was taken."""
        ...

    def last(self) -> int:
        """The number of this worker's last event."""
        ...

    def tail(self, after: Position, *, problems: bool = False) -> Iterator[ReadEntry]:
        """What comes after ``after``, in an order in which it can be applied; the events of ``problems`` only."""
        ...

    def read_transaction(self) -> AbstractContextManager[None]:
        """Within it, everything that is read is of one moment, whatever is written meanwhile."""
        ...

    def stream(self, tenant: str, kind: str, stream: str) -> list[LogEntry]:
        """All events of one problem or decision."""
        ...

    def snapshots(self) -> Iterator[SavedSnapshot]:
        """The snapshots, newest first."""
        ...

    def save(self, saved: SavedSnapshot) -> None:
        """Keep a snapshot, and forget all but a few older ones."""
        ...

    def forget(self, saved: SavedSnapshot) -> None:
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


def recall_decision(store: Store, key: Key, before: int | None = None) -> DecisionRecord | None:
    """A decision out of the log, as it was before step ``before``, or as it is."""
    record: DecisionRecord | None = None
    for entry in store.stream(key[0], "decision", key[1]):
        if before is None or entry.step < before:
            record = open_record(entry.event) if record is None else advance_record(record, entry.event)
    return record


def decode_line(line: LogLine) -> LogEntry:
    """The event of a line."""
    return LogEntry(line.tenant, line.kind, line.stream, line.step, decode(line.body))
