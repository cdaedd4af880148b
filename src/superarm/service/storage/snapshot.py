"""Snapshots of the state, counters and pending decisions, with a hash; and how a start reads snapshot and log."""

import hashlib
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from msgspec import DecodeError, Raw, Struct, msgpack

from superarm.context.observations import ContextTally
from superarm.core.arrays import Floats
from superarm.core.errors import SuperarmError
from superarm.core.tally import Tally
from superarm.policies import KeptRows, PolicyState
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.events import Activated, Erased
from superarm.service.domain.history import History
from superarm.service.domain.ledger import Key, Ledger
from superarm.service.storage.base import LogReader, Position, SavedSnapshot, recall_decision
from superarm.service.storage.packing import Piece, join_pieces, pack_array, pack_elements, pack_map, pack_numbers

log = logging.getLogger("superarm.snapshot")


class Counters(Struct, frozen=True, array_like=True):
    """The counters of a problem: float64, little-endian.

    ``newest`` and ``blocks`` are what a policy that forgets keeps beside the tally, and ``kept`` what a logistic one
    does; other policies keep nothing.
    ``contexts`` is what a problem with contexts keeps beside the tally, as ``Contexts.to_plain`` has it.
    """

    tenant: str
    name: str
    asked: int
    tally: list[bytes]
    pending: bytes
    step: int
    newest: int = -1
    blocks: list[list[bytes]] = []
    contexts: dict[str, Any] | None = None
    kept: list[bytes] = []


FORMAT = 2
"""Snapshots of format 1 that were taken while the service ran hold one event more than their position says."""

UNSOUND_EVENTS = 50_000
"""Services that wrote format 1 took snapshots while they ran only after so many events; shorter logs have none."""


class Snapshot(Struct, frozen=True):
    """The state that the log up to ``position`` gives."""

    position: Position
    counters: list[Counters]
    open: list[tuple[str, DecisionRecord]]
    histories: list[History] = []
    format: int = 1


class SnapshotParts(Struct, frozen=True):
    """A ``Snapshot`` whose parts are not decoded yet."""

    position: Position
    counters: list[Raw]
    open: list[Raw]
    histories: list[Raw] = []
    format: int = 1

    def decode(self) -> Snapshot:
        """Decode part by part: one call for 100,000 pending decisions would keep other threads waiting."""
        counters, history = msgpack.Decoder(Counters), msgpack.Decoder(History)
        record = msgpack.Decoder(tuple[str, DecisionRecord])
        return Snapshot(
            self.position,
            [counters.decode(part) for part in self.counters],
            [record.decode(part) for part in self.open],
            [history.decode(part) for part in self.histories],
            self.format,
        )


class CountersCopy(NamedTuple):
    """The counters of a problem at a moment."""

    tenant: str
    name: str
    asked: int
    tally: Tally
    pending: Floats
    step: int
    state: PolicyState
    contexts: dict[str, Any] | None

    def pack(self) -> Iterator[Piece]:
        """``Counters`` as MessagePack, piece by piece."""
        yield pack_array(len(Counters.__struct_fields__))
        for field in (self.tenant, self.name, self.asked):
            yield msgpack.encode(field)
        yield from _pack_tally(self.tally)
        yield from pack_numbers(self.pending)
        yield msgpack.encode(self.step)
        yield msgpack.encode(self.state.newest)
        yield pack_array(len(self.state.blocks))
        for block in self.state.blocks:
            yield from _pack_tally(block)
        yield msgpack.encode(self.contexts)
        kept = self.state.kept or ()
        yield pack_array(len(kept))
        for part in kept:
            yield from pack_numbers(part)


def copy_counters(tenant: str, name: str, learner: Any) -> CountersCopy:
    """A copy of a problem's counters."""
    state = learner.state or PolicyState(-1, [])
    blocks = PolicyState(state.newest, [_copy(block) for block in state.blocks], state.kept)
    tally, pending, contexts = _copy(learner.tally), learner.pending.copy(), learner.learner.contexts
    plain = None if contexts is None else contexts.to_plain()
    return CountersCopy(tenant, name, learner.asked, tally, pending, learner.step, blocks, plain)


def _copy(tally: Any) -> Any:
    return type(tally)(*(part.copy() for part in tally))


class StateCopy(NamedTuple):
    """The state at a position, apart from the one that goes on changing; ``keys`` are those of ``pending``."""

    position: Position
    counters: list[CountersCopy]
    keys: list[Key]
    pending: list[DecisionRecord]
    histories: list[bytes]


def take_snapshot(ledger: Ledger, position: Position) -> SavedSnapshot:
    """The state as bytes, with their hash."""
    return encode_state(copy_state(ledger, position))


def copy_state(ledger: Ledger, position: Position) -> StateCopy:
    """Copy the state, while nobody changes it."""
    pending = list(ledger.pending), list(ledger.pending.values())
    return _copy_problems(sorted(ledger.problems.items()), pending, position)


def copy_problem(ledger: Ledger, problem: Key, position: Position) -> StateCopy:
    """Copy the state of one problem, while nobody changes it; others may change. A deleted problem has no state."""
    tenant, name = problem
    decisions = list(ledger.pending.items())
    pending = {key: record for key, record in decisions if key[0] == tenant and record.asked.problem == name}
    known = [(problem, ledger.problems[problem])] if problem in ledger.problems else []
    return _copy_problems(known, (list(pending), list(pending.values())), position)


def _copy_problems(
    problems: list[tuple[Key, Any]], pending: tuple[list[Key], list[DecisionRecord]], position: Position
) -> StateCopy:
    for _, learner in problems:
        learner.history.flush(learner.problem)
    counters = [copy_counters(tenant, name, learner) for (tenant, name), learner in problems]
    return StateCopy(dict(position), counters, *pending, [msgpack.encode(learner.history) for _, learner in problems])


def encode_state(state: StateCopy, *, rests: bool = False) -> SavedSnapshot:
    """A copy of the state as bytes, with their hash; bit by bit, so that other threads can run in between."""
    body = join_pieces(_pack_state(state), rests=rests)
    return SavedSnapshot(hashlib.sha256(body).hexdigest(), body)


def _pack_state(state: StateCopy) -> Iterator[Piece]:
    """A ``Snapshot`` as MessagePack, piece by piece."""
    yield pack_map(len(Snapshot.__struct_fields__))
    yield msgpack.encode("position") + msgpack.encode(state.position)
    yield msgpack.encode("counters") + pack_array(len(state.counters))
    for counters in state.counters:
        yield from counters.pack()
    yield msgpack.encode("open") + pack_array(len(state.pending))
    pairs = zip(state.keys, state.pending, strict=True)
    yield from pack_elements((tenant, record) for (tenant, _), record in pairs)
    yield msgpack.encode("histories") + pack_array(len(state.histories))
    yield from state.histories
    yield msgpack.encode("format") + msgpack.encode(FORMAT)


def encode_counters(tenant: str, name: str, learner: Any) -> Counters:
    """A problem's counters as bytes: equal bytes are equal counters, bit for bit."""
    return msgpack.decode(join_pieces(copy_counters(tenant, name, learner).pack()), type=Counters)


def _pack_tally(tally: Any) -> Iterator[Piece]:
    missed = tally.missed if tally.missed.any() else np.zeros(0)
    whole = tally.moments.size or isinstance(tally, ContextTally)
    parts = tally._replace(missed=missed)[: None if whole else 5]  # no moments: as before there were any
    yield pack_array(len(parts))
    for part in parts:
        yield from pack_numbers(part)


def _from_bytes(parts: list[bytes], like: Any) -> Any:
    """A tally of the kind of ``like``."""
    values = [np.frombuffer(part, "<f8").astype(np.float64) for part in parts]
    if not isinstance(like, ContextTally):
        return Tally(*values)
    sums = [part.reshape(-1, own.shape[1]) for part, own in zip(values[-2:], like[-2:], strict=True)]
    return ContextTally(*values[:-2], *sums)


def _kept_from_bytes(parts: list[bytes], like: PolicyState | None) -> KeptRows | None:
    """What a logistic policy keeps, in the shapes of ``like``; only the number of rows may differ."""
    if not parts or like is None or like.kept is None:
        return None
    shapes = [(-1, *own.shape[1:]) for own in like.kept]
    values = [np.frombuffer(part, "<f8").astype(np.float64) for part in parts]
    return KeptRows(*(part.reshape(shape) for part, shape in zip(values, shapes, strict=True)))


def decode_snapshot(saved: SavedSnapshot) -> Snapshot | None:
    """The snapshot, or None if it is not what was saved."""
    if hashlib.sha256(saved.body).hexdigest() != saved.digest:
        return None
    try:
        return msgpack.decode(saved.body, type=SnapshotParts).decode()
    except DecodeError:
        return None


def begin_ledger(store: LogReader) -> tuple[Ledger, Position]:
    """The ledger that the log begins with, and its position: empty, or the bases of a log that was compacted."""
    ledger = Ledger(lambda key, step: recall_decision(store, key, step))
    bases = []
    for saved in store.bases():
        base = decode_snapshot(saved)
        if base is None:
            raise SuperarmError("the base of a compacted log is damaged: its hash does not fit; restore a backup")
        bases.append(base)
    position = {log: seq for base in bases for log, seq in base.position.items()}
    if bases:
        _apply_problems(ledger, position, store)
        for base in bases:
            _unpack(ledger, base, store)
    return ledger, position


def restore_ledger(store: LogReader) -> tuple[Ledger, Position, int]:
    """The ledger from the newest sound snapshot and the log after it, its position, and how many events were read."""
    ledger = Ledger(lambda key, step: recall_decision(store, key, step))
    position: Position | None = None
    for saved in store.snapshots():
        snapshot = decode_snapshot(saved)
        if snapshot is not None and snapshot.format == 1 and sum(snapshot.position.values()) >= UNSOUND_EVENTS:
            log.warning("a snapshot of an earlier version may count an event twice; the log is read instead")
        elif snapshot is not None:
            position = dict(snapshot.position)
            _apply_problems(ledger, position, store)
            _unpack(ledger, snapshot, store)
            break
        else:
            log.error("a snapshot is damaged: its hash does not fit; the log will be read from further back")
    if position is None:
        ledger, position = begin_ledger(store)
    folded = 0
    for read in store.tail(position):
        ledger.apply(read.entry)
        position[read.worker] = max(read.seq, position.get(read.worker, 0))
        folded += 1
    return ledger, position, folded


def _apply_problems(ledger: Ledger, position: Position, store: LogReader) -> None:
    """Apply the events of problems up to a position."""
    for read in store.tail({}, problems=True):
        if read.seq <= position.get(read.worker, 0):
            ledger.apply(read.entry)


def _unpack(ledger: Ledger, snapshot: Snapshot, store: LogReader) -> None:
    histories = snapshot.histories or [
        History(decisions=part.asked) for part in snapshot.counters
    ]  # earlier ones: none
    for part, history in zip(snapshot.counters, histories, strict=True):
        pending = np.frombuffer(part.pending, "<f8").astype(np.float64)
        learner = ledger.problems[part.tenant, part.name]
        like = learner.tally
        blocks = [_from_bytes(block, like) for block in part.blocks]
        kept = _kept_from_bytes(part.kept, learner.state)
        state = PolicyState(part.newest, blocks, kept) if blocks or kept is not None else None
        if learner.learner.contexts is not None and part.contexts is not None:
            learner.learner.contexts.from_plain(part.contexts)
        learner.restore(_from_bytes(part.tally, like), pending, part.asked, history, state)
    for tenant, record in snapshot.open:
        ledger.place((tenant, record.asked.id), record)
    _count_decisions(ledger, snapshot, store)


def _count_decisions(ledger: Ledger, snapshot: Snapshot, store: LogReader) -> None:
    """Count the decisions of a snapshot that does not hold their number: it is of an earlier version.

    They are complete, expired, pending or, as the log says, unshown; what a compaction has removed of the last ones is
    missed.
    """
    uncounted = [(c.tenant, c.name) for c in snapshot.counters if ledger.problems[c.tenant, c.name].decisions < 0]
    if not uncounted:
        return
    unshown, erased = set[Key](), set[Key]()
    for read in store.tail({}):
        entry = read.entry
        if read.seq <= snapshot.position.get(read.worker, 0):
            if isinstance(entry.event, Activated) and entry.event.shown == ():
                unshown.add((entry.tenant, entry.stream))
            elif isinstance(entry.event, Erased):
                erased.add((entry.tenant, entry.stream))
    never = Counter[tuple[str, str, int]]()
    for key in unshown - erased:
        if (record := recall_decision(store, key)) is not None:
            never[key[0], record.asked.problem, record.asked.born] += 1
    for problem in uncounted:
        learner = ledger.problems[problem]
        ended = learner.history.complete + learner.history.expired + never[(*problem, learner.born)]
        learner.history.decisions = ended + ledger.n_pending.get(problem, 0)
