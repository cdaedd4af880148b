"""Snapshots of the state with a hash, how a start reads snapshot and log, whether the two agree, and compaction.

Compaction removes old decisions from the log, which then begins with a snapshot that was verified, its base. One
transaction writes an event of each problem that notes how many of its decisions go, replaces the snapshots by the base,
and removes the events of the decisions. Every log ends with an event that stays, since the next event is numbered after
the last one. What stays: all events of problems, which the audit log is made of, pending decisions, and decisions that
changed lately.
"""

import hashlib
import logging
import time
import zlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from msgspec import DecodeError, Raw, Struct, msgpack
from msgspec.structs import replace

from superarm.core import ops
from superarm.core.arrays import Floats
from superarm.core.errors import SuperarmError
from superarm.decisions import Erased, open_record
from superarm.policies import Memory
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.events import Asked, Compacted, encode
from superarm.service.domain.history import History
from superarm.service.domain.ledger import Key, Ledger, LogEntry
from superarm.service.domain.problem import ProblemState
from superarm.service.storage.base import LogLine, Position, ReadEntry, SavedSnapshot, Store, recall_decision
from superarm.service.storage.postgres_tables import problem_of

log = logging.getLogger("superarm.snapshot")


class Packed(NamedTuple):
    """An array: its shape, and its numbers."""

    shape: tuple[int, ...]
    numbers: bytes


class Counters(Struct, frozen=True, array_like=True):
    """The counters of a problem: float64, little-endian.

    ``memory`` is what the policy knows, by the names of its arrays, ``contexts`` what is known of contexts.
    ``answers`` are the decisions that items are learnt from, ``classes`` what is known by class.
    """

    tenant: str
    name: str
    asked: int
    memory: dict[str, Packed]
    pending: bytes
    step: int
    contexts: dict[str, Any] | None = None
    answers: list[list[Any]] = []
    classes: dict[str, Packed] = {}


FORMAT = 4


class Snapshot(Struct, frozen=True):
    """The state that the log up to ``position`` gives."""

    position: Position
    counters: list[Counters]
    histories: list[History]
    format: int
    open: list[tuple[str, DecisionRecord]] = []


def take_snapshot(ledger: Ledger, position: Position, problem: Key | None = None) -> SavedSnapshot:
    """The state as bytes, with their hash, or that of one problem; nobody may change it meanwhile."""
    return pack_snapshot(copy_state(ledger, position, problem))


def copy_state(ledger: Ledger, position: Position, problem: Key | None = None) -> Snapshot:
    """What a snapshot holds, of all problems or of one, which nobody may change meanwhile.

    Decisions are shared with it: they never change. Those of other problems may come and go while a thread runs this,
    so both dicts are copied in one step each.
    """
    chosen = [key for key in sorted(ledger.problems) if problem in (None, key)]
    for key in chosen:
        ledger.problems[key].flush()
    every = list(ledger.pending.items())
    pending = [(key[0], one) for key, one in every if problem in (None, (key[0], one.asked.problem))]
    histories: Any = [Raw(msgpack.encode(ledger.problems[key].history)) for key in chosen]
    counters = [encode_counters(*key, ledger.problems[key]) for key in chosen]
    return Snapshot(dict(position), counters, histories, FORMAT, pending)


ENCODED_AT_ONCE = 200
"""So many decisions of a snapshot are encoded while no other thread has a turn."""


def pack_snapshot(snapshot: Snapshot) -> SavedSnapshot:
    """A snapshot as bytes, with their hash: compressed, since commits wait while it is written.

    Decisions, of which there may be very many, are encoded in parts, so that other threads have a turn in between: the
    array of them is the last field, and its length precedes it.
    """
    compressed, pending = zlib.compressobj(1), snapshot.open
    head = msgpack.encode(replace(snapshot, open=[]))[:-1]  # without the empty array
    parts = [compressed.compress(head + b"\xdd" + len(pending).to_bytes(4, "big"))]
    for n in range(0, len(pending), ENCODED_AT_ONCE):
        parts.append(compressed.compress(b"".join(map(msgpack.encode, pending[n : n + ENCODED_AT_ONCE]))))
    body = b"".join([*parts, compressed.flush()])
    return SavedSnapshot(hashlib.sha256(body).hexdigest(), body)


def encode_counters(tenant: str, name: str, state: ProblemState) -> Counters:
    """A problem's counters as bytes: equal bytes are equal counters, bit for bit."""
    learner = state.learner
    return Counters(
        tenant,
        name,
        learner.asked,
        _pack(learner.memory),
        _to_bytes(learner.pending),
        state.step,
        None if state.contexts is None else learner.contexts.to_plain(),
        [] if state.learnt is None else state.learnt.counts.to_plain(),
        {} if state.learnt is None else _pack(state.learnt.learner.memory),
    )


def _pack(memory: Memory) -> dict[str, Packed]:
    return {name: Packed(np.shape(part), _to_bytes(part)) for name, part in memory.to_arrays().items()}


def _unpacked(parts: dict[str, Packed]) -> dict[str, Floats]:
    return {name: _from_bytes(part.numbers).reshape(part.shape) for name, part in parts.items()}


def _to_bytes(numbers: Floats) -> bytes:
    return np.ascontiguousarray(numbers, "<f8").tobytes()


def _from_bytes(numbers: bytes) -> Floats:
    return np.frombuffer(numbers, "<f8").astype(np.float64)


def decode_snapshot(saved: SavedSnapshot) -> Snapshot | None:
    """The snapshot, or None if it is not what was saved, or of another format."""
    if hashlib.sha256(saved.body).hexdigest() != saved.digest:
        return None
    try:
        snapshot = msgpack.decode(zlib.decompress(saved.body), type=Snapshot)
    except (DecodeError, zlib.error):
        return None
    return snapshot if snapshot.format == FORMAT else None


def begin_ledger(store: Store) -> tuple[Ledger, Position]:
    """The ledger that the log begins with, and its position: empty, or the bases of a log that was compacted."""
    ledger = Ledger(lambda key, step: recall_decision(store, key, step))
    bases = []
    for saved in store.bases():
        base = decode_snapshot(saved)
        if base is None:
            raise SuperarmError("the base of a compacted log is damaged, or of another version; restore a backup")
        bases.append(base)
    position = {log: seq for base in bases for log, seq in base.position.items()}
    if bases:
        _apply_problems(ledger, position, store)
        for base in bases:
            _unpack(ledger, base)
    return ledger, position


def restore_ledger(store: Store) -> tuple[Ledger, Position, int]:
    """The ledger from the newest sound snapshot and the log after it, its position, and how many events were read."""
    ledger, position = Ledger(), None
    for saved in store.snapshots():
        snapshot = decode_snapshot(saved)
        if snapshot is not None:
            ledger, position = open_snapshot(store, snapshot), dict(snapshot.position)
            break
        log.error("a snapshot is damaged, or of another version; the log will be read from further back")
    if position is None:
        ledger, position = begin_ledger(store)
    return ledger, position, fold(store, ledger, position)


KERNELS_FROM = 20_000
"""A log of so many events is read with kernels, which take a second or more to load."""

PROGRESS_EVERY = 200_000
"""So many events are read between two lines that say how far it has come: some seconds."""


def fold(store: Store, ledger: Ledger, position: Position, before: Callable[[ReadEntry], None] = lambda _: None) -> int:
    """Apply what the log has after a position, and advance it: how many events that were.

    ``before`` is called with each event before it is applied.
    """
    n = 0
    for n, read in enumerate(store.tail(dict(position)), 1):
        if n == KERNELS_FROM:
            ops.load()
        if n % PROGRESS_EVERY == 0:
            log.info("%d events of the log were read", n)
        before(read)
        ledger.apply(read.entry)
        position[read.worker] = max(read.seq, position.get(read.worker, 0))
    return n


def open_snapshot(store: Store, snapshot: Snapshot) -> Ledger:
    """The ledger at the position of a snapshot."""
    ledger = Ledger(lambda key, step: recall_decision(store, key, step))
    _apply_problems(ledger, snapshot.position, store)
    _unpack(ledger, snapshot)
    return ledger


def _apply_problems(ledger: Ledger, position: Position, store: Store) -> None:
    """Apply the events of problems up to a position."""
    for read in store.tail({}, problems=True):
        if read.seq <= position.get(read.worker, 0):
            ledger.apply(read.entry)


def _unpack(ledger: Ledger, snapshot: Snapshot) -> None:
    for part, history in zip(snapshot.counters, snapshot.histories, strict=True):
        key = part.tenant, part.name
        ledger.attempt(key, partial(_restore, ledger, key, part, history))
    for tenant, record in snapshot.open:
        ledger.place(tenant, record)


def _restore(ledger: Ledger, problem: Key, part: Counters, history: History) -> None:
    """Put the counters of a snapshot into a problem that has all events of its stream."""
    state = ledger.problems[problem]
    learner = state.learner
    if state.contexts is not None:
        learner.contexts.from_plain(part.contexts)
    pending = _from_bytes(part.pending).reshape(learner.pending.shape)
    learner.restore(_unpacked(part.memory), part.asked, pending)
    state.history = history
    if state.learnt is not None and part.classes:
        state.learnt.counts.restore(part.answers)
        state.learnt.learner.restore(_unpacked(part.classes), 0)


class VerifyReport(NamedTuple):
    """The result of ``verify``; ``faults`` is empty if nothing is wrong."""

    events: int
    problems: int
    open: int
    snapshots: int
    faults: list[str]


def verify(store: Store) -> VerifyReport:
    """Check the database, the checksums, every snapshot, and that the counters in use equal the fold of the log.

    All is read in one transaction, so a service may write meanwhile. ``DamagedLog`` is raised where an event cannot be
    read at all.
    """
    return check_log(store)[0]


def check_log(store: Store) -> tuple[VerifyReport, Ledger, Position]:
    """What ``verify`` finds, and the fold of the log with its position."""
    whole, position, n_events, n_snapshots = Ledger(), Position(), 0, 0
    with store.read_transaction():
        faults = [lost] if (lost := store.lost_tail()) else []
        if (found := store.check()) != "ok":
            faults.append(f"the database is damaged: {found}")
        for part in store.logs():
            ledger, reached = begin_ledger(part)
            snapshots = Snapshots(part, ledger)
            n_events += fold(part, ledger, reached, snapshots.compare_before)
            faults += snapshots.finish(n_snapshots)
            n_snapshots += len(snapshots.saved)
            whole.include(ledger)
            position |= reached
    broken = [f"problem {name!r} cannot be read: {error!r}" for (_, name), error in whole.broken.items()]
    report = VerifyReport(n_events, len(whole.problems), len(whole.pending), n_snapshots, broken + faults)
    return report, whole, position


class Snapshots:
    """The snapshots of a log, each compared with the fold of the log when that has come to its position."""

    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store, self._ledger = store, ledger
        self.saved = list(store.snapshots())
        self._faults: dict[int, list[str]] = {}
        self._due: list[tuple[int, int]] = []
        for n, saved in enumerate(self.saved):
            if (snapshot := decode_snapshot(saved)) is None:
                self._faults[n] = [" is damaged, or of another version"]
            else:
                self._due.append((max(snapshot.position.values(), default=0), n))
        self._due.sort(reverse=True)

    def compare_before(self, read: ReadEntry) -> None:
        """Compare the snapshots that end before an event."""
        while self._due and self._due[-1][0] < read.seq:
            self._compare()

    def _compare(self) -> None:
        _, n = self._due.pop()
        if (snapshot := decode_snapshot(self.saved[n])) is not None:
            self._faults[n] = compare_ledgers(self._ledger, open_snapshot(self._store, snapshot))

    def finish(self, before: int) -> list[str]:
        """All faults, those of the counters in use included, when all events have been read.

        The snapshots are numbered after those ``before`` them.
        """
        while self._due:
            self._compare()
        faults = []
        if self.saved:  # otherwise what is in use is the same fold
            faults = [f"the counters{fault}" for fault in compare_ledgers(self._ledger, restore_ledger(self._store)[0])]
        return faults + [f"snapshot {before + n + 1}{fault}" for n in sorted(self._faults) for fault in self._faults[n]]


def compare_ledgers(past: Ledger, other: Ledger) -> list[str]:
    """Where a state differs from the fold of the log; each is what follows the name of the state in a sentence."""
    want, have = ({key: encode_counters(*key, one) for key, one in part.problems.items()} for part in (past, other))
    faults = [f": problem {name!r} is missing on one side" for _, name in want.keys() ^ have.keys()]
    for key in want.keys() & have.keys():
        if want[key] != have[key]:
            faults.append(f" of problem {key[1]!r} differ from the fold of the log")
    pending, found = ({key: one.step for key, one in part.pending.items()} for part in (past, other))
    if pending != found:
        faults.append(": its open decisions differ from the fold of the log")
    return faults


def repair(store: Store) -> int:
    """Replace all snapshots by those of the fold of the log: how many events it holds.

    The log itself is read, never changed. ``SuperarmError`` if a service runs on it, or if it is damaged.
    """
    store.keep_out_others()
    if (found := store.check()) != "ok":
        raise SuperarmError(f"the database is damaged ({found}): snapshots cannot be rebuilt; restore a backup")
    n_events, rebuilt = 0, []
    for part in store.logs():
        ledger, position = begin_ledger(part)
        n_events += fold(part, ledger, position)
        for (_, name), error in ledger.broken.items():
            raise SuperarmError(f"problem {name!r} cannot be read: {error!r}; nothing was changed")
        rebuilt.append((part, take_snapshot(ledger, position)))
    store.drop_snapshots()
    for part, saved in rebuilt:
        part.save(saved)
    return n_events


def compact(store: Store, before: int) -> int:
    """Remove decisions that ended, and did not change since ``before``, from a log that no service uses: how many.

    Decisions that were erased, or whose problem was deleted, are removed whatever their age.
    """
    store.keep_out_others()
    report, ledger, position = check_log(store)
    if report.faults:
        raise SuperarmError(f"the log is not sound ({report.faults[0]}): nothing was done; see superarm verify")
    old = choose_old(store, ledger, before)
    remove(store, ledger, position, old)
    store.shrink()
    return len(old)


def choose_old(store: Store, ledger: Ledger, before: int) -> set[Key]:
    """The decisions that leave the log, whose state is ``ledger``."""
    old, kept, gone = set[Key](), set(ledger.pending), set[Key]()
    for read in store.tail({}):
        tenant, kind, stream, _, event = read.entry
        if kind != "decision":
            continue
        key = tenant, stream
        if isinstance(event, Asked):
            old.add(key)
        if event.at >= before:
            kept.add(key)
        if isinstance(event, Erased) or (isinstance(event, Asked) and not ledger.serves(tenant, open_record(event))):
            gone.add(key)
    kept -= gone
    old -= kept
    return old


def remove(store: Store, ledger: Ledger, position: Position, old: set[Key]) -> None:
    """Remove decisions from the log, whose state and position these are."""
    if not old:
        return
    notes = []
    for tenant, stream in old:
        name, _, id = stream.partition("/")
        if (state := ledger.problems.get((tenant, name))) is not None and state.learnt is not None:
            state.learnt.counts.name_unit(id, None)  # what was learnt stays; an erasure could not find the decision
    for problem, n in Counter((tenant, stream.partition("/")[0]) for tenant, stream in old).items():
        known, event = ledger.problems.get(problem), Compacted(int(time.time() * 1000), n)
        step = 1 + (ledger.deleted[problem] if known is None else known.step)
        line = LogLine(problem[0], "problem", problem[1], step, encode(event), problem[1])
        (log,) = store.logs_of([line])
        position[log] = position.get(log, 0) + 1
        ledger.apply(LogEntry(*line[:4], event))
        notes.append((log, position[log], line))
    store.compact(make_bases(ledger, position), list(old), notes)


def make_bases(ledger: Ledger, position: Position) -> dict[str, SavedSnapshot]:
    """The base of each log: one for each problem with a log of its own, or one for all logs together."""
    own = {log: seq for log, seq in position.items() if log.startswith("p/")}
    if not own:
        return {"": take_snapshot(ledger, position)}
    return {log: take_snapshot(ledger, {log: seq}, problem_of(log)) for log, seq in own.items()}
