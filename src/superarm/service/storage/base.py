"""What the service needs of a database: one protocol, fulfilled by SQLite and PostgreSQL.

Every event has a key of its own, (tenant, kind, stream, step). The first to write it wins, and a later writer is told
that the key is taken. A log, that of a SQLite file or of a problem in PostgreSQL, has one writer, who numbers events
without gaps in the order of commits.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from superarm.core.errors import SuperarmError
from superarm.decisions import open_record
from superarm.service.domain.decision import DecisionRecord, advance_record
from superarm.service.domain.events import Asked, decode
from superarm.service.domain.ledger import Key, LogEntry

if TYPE_CHECKING:
    from superarm.service.storage.postgres import Postgres


TABLES_VERSION = 4
"""The version of the tables, which a database says it has."""


def require_tables(version: int) -> None:
    """Raise ``SuperarmError`` if a database has tables of another version."""
    if version != TABLES_VERSION:
        raise SuperarmError(
            f"--db: the database was made by another version of superarm, or by a commit before the first release: its "
            f"tables are of version {version}, not {TABLES_VERSION}; serve it with the superarm that made it, or give "
            "another --db"
        )


class KeyRow(NamedTuple):
    """A key as it is stored: the hash of its secret, its tenant and what it may do."""

    id: str
    digest: str
    tenant: str
    scopes: str
    created: int
    revoked: int | None
    note: str


Position = dict[str, int]
"""How far each log was read, by its name."""


MOVED = -1
"""In place of the number of an event: it was not written, because this worker does not own its problem."""


class LogLine(NamedTuple):
    """An event as it is written; ``problem`` is the name of the problem that it concerns."""

    tenant: str
    kind: str
    stream: str
    step: int
    body: bytes
    problem: str = ""


class ReadEntry(NamedTuple):
    """An event as it is read: the worker that wrote it, its number there, and the event."""

    worker: str
    seq: int
    entry: LogEntry


class SavedSnapshot(NamedTuple):
    """A snapshot: ``digest`` is the SHA-256 of ``body``."""

    digest: str
    body: bytes | bytearray


class Finding(NamedTuple):
    """A line of ``superarm doctor``: what was looked at, what was found, and whether it is a warning, or wrong."""

    check: str
    said: str
    warned: bool = False
    wrong: bool = False

    @property
    def level(self) -> str:
        """``"ok"``, ``"warning"`` or ``"wrong"``."""
        return "wrong" if self.wrong else "warning" if self.warned else "ok"


CLOCK_SECONDS = 5.0
"""The clocks of a log and of this machine may differ by so much."""


NumberedLine = tuple[str, int, LogLine]
"""An event as it is written, with its place: the name of its log, and its number there."""


class StoreUnavailable(SuperarmError):
    """The database cannot be reached, read or written at present; trying again later may succeed."""


class Store:
    """A database of the service. A subclass defines the eight methods that follow; the others have defaults.

    Only the writer thread calls ``commit``, ``save`` and ``probe``; all others may be called by any thread. Every
    method may raise ``StoreUnavailable``. ``superarm.testing.check_store`` tests a store.
    """

    worker = ""
    """The name under which this process writes."""

    def commit(self, lines: list[LogLine]) -> list[int]:
        """Write lines durably in one transaction; the number of each, 0 if its key was taken, or ``MOVED``."""
        raise NotImplementedError

    def tail(self, after: Position, *, problems: bool = False) -> Iterator[ReadEntry]:
        """The events after a position, in an order in which they can be applied; with ``problems``, only theirs."""
        raise NotImplementedError

    def stream(self, tenant: str, kind: str, stream: str) -> list[LogEntry]:
        """All events of one problem or decision."""
        raise NotImplementedError

    def save(self, saved: SavedSnapshot) -> None:
        """Save a snapshot, and delete all but a few older ones."""
        raise NotImplementedError

    def snapshots(self) -> Iterator[SavedSnapshot]:
        """The snapshots, newest first."""
        raise NotImplementedError

    def key_rows(self) -> list[KeyRow]:
        """All keys."""
        raise NotImplementedError

    def put_key(self, row: KeyRow) -> None:
        """Add a key, or replace it."""
        raise NotImplementedError

    def close(self) -> None:
        """Close all connections and release all locks."""
        raise NotImplementedError

    # --- what has a default ---

    @property
    def shards(self) -> "Postgres | None":
        """Ownership of single problems; None where this process serves all of them."""
        return None

    def open(self) -> None:
        """Connect, unless that is done already."""

    def probe(self) -> None:
        """Write something that changes nothing, durably, to learn whether events can be written."""
        self.commit([])

    def logs_of(self, lines: list[LogLine]) -> list[str]:
        """The name of the log that each line goes to: "" if there is one log, or that of the line's problem."""
        return [""] * len(lines)

    def find(self, lines: list[LogLine]) -> list[int]:
        """The number of each line that is in the log, word for word, and 0 for others."""
        known = {read.entry[:4]: read for read in self.tail({})} if lines else {}
        found = [(known.get(line[:4]), decode_line(line)) for line in lines]
        return [read.seq if read is not None and read.entry == entry else 0 for read, entry in found]

    def made_for(self, unit: str) -> list[LogEntry]:
        """The first events of the decisions that were made for a unit, given its digest."""
        entries = (read.entry for read in self.tail({}))
        return [entry for entry in entries if isinstance(entry.event, Asked) and entry.event.unit == unit]

    def bases(self) -> list[SavedSnapshot]:
        """The snapshots that a compacted log begins with: none, one, or one for each problem with a log of its own."""
        return []

    def read_transaction(self) -> AbstractContextManager[None]:
        """A context within which all reads see the same state, whatever is written meanwhile."""
        return nullcontext()

    def logs(self) -> Iterator["Store"]:
        """The logs that can be read apart, each with snapshots of its own: this one, or that of each problem."""
        return iter((self,))

    def check(self) -> str:
        """The database's own integrity check: ``"ok"``, or what is wrong."""
        return "ok"

    def findings(self) -> list[Finding]:
        """What is right or wrong with the database itself; found quickly."""
        return []

    def lost_tail(self) -> str:
        """What is missing at the end of the log, in a sentence; empty if nothing is known to be missing."""
        return ""

    def keep_out_others(self) -> None:
        """Raise ``SuperarmError`` if another process serves this log; keep others from it until ``close``."""
        raise self._cannot("be kept from others")

    def compact(self, bases: dict[str, SavedSnapshot], decisions: list[Key], notes: list[NumberedLine]) -> None:
        """Let the log begin with these bases, by the names of their logs, and remove all events of some decisions.

        All in one transaction, which also writes the notes and removes the snapshots. Nobody else may use the log.
        """
        raise self._cannot("be compacted")

    def shrink(self) -> None:
        """Give back the space of what was removed; nobody else may use the log."""

    def drop_snapshots(self) -> None:
        """Delete all snapshots; nobody else may use the log."""
        raise self._cannot("be repaired")

    def accept_loss(self) -> None:
        """Take the log as complete, although its end is missing."""
        raise self._cannot("say whether its end is missing")

    def backup(self, target: Path) -> None:
        """Write a consistent copy of the log to a file, while the service runs."""
        raise self._cannot("be copied by superarm; use the database's own tools")

    def _cannot(self, what: str) -> SuperarmError:
        return SuperarmError(f"--db: a log in {type(self).__name__} cannot {what}")


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
