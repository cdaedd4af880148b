"""Snapshots of the state, counters and pending decisions, with a hash; and how a start reads snapshot and log."""

import hashlib
import logging
from typing import Any

import numpy as np
from msgspec import DecodeError, Struct, msgpack

from superarm.policies import PolicyState
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.history import History
from superarm.service.domain.ledger import Ledger
from superarm.service.storage.base import Position, SavedSnapshot, Store, recall_decision
from superarm.tally import Tally

log = logging.getLogger("superarm.snapshot")


class Counters(Struct, frozen=True, array_like=True):
    """The counters of a problem: float64, little-endian.

    ``newest`` and ``blocks`` are what a policy that forgets keeps beside the tally; other policies keep nothing.
    """

    tenant: str
    name: str
    asked: int
    tally: list[bytes]
    pending: bytes
    step: int
    newest: int = -1
    blocks: list[list[bytes]] = []


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


def take_snapshot(ledger: Ledger, position: Position) -> SavedSnapshot:
    """The state as bytes, with their hash."""
    problems = sorted(ledger.problems.items())
    counters = [encode_counters(tenant, name, learner) for (tenant, name), learner in problems]
    for _, learner in problems:
        learner.history.flush(learner.problem)
    pending = [(tenant, record) for (tenant, _), record in ledger.pending.items()]
    histories = [learner.history for _, learner in problems]
    body = msgpack.encode(Snapshot(dict(position), counters, pending, histories, FORMAT))
    return SavedSnapshot(hashlib.sha256(body).hexdigest(), body)


def encode_counters(tenant: str, name: str, learner: Any) -> Counters:
    """A problem's counters as bytes: equal bytes are equal counters, bit for bit."""
    state = learner.state or PolicyState(-1, [])
    blocks = [_to_bytes(block) for block in state.blocks]
    pending = np.ascontiguousarray(learner.pending, "<f8").tobytes()
    tally = _to_bytes(learner.tally)
    return Counters(tenant, name, learner.asked, tally, pending, learner.step, state.newest, blocks)


def _to_bytes(tally: Tally) -> list[bytes]:
    missed = tally.missed if tally.missed.any() else np.zeros(0)
    parts = tally._replace(missed=missed)[: None if tally.moments.size else 5]  # no moments: as before there were any
    return [np.ascontiguousarray(part, "<f8").tobytes() for part in parts]


def _from_bytes(parts: list[bytes]) -> Tally:
    return Tally(*(np.frombuffer(values, "<f8").astype(np.float64) for values in parts))


def decode_snapshot(saved: SavedSnapshot) -> Snapshot | None:
    """The snapshot, or None if it is not what was saved."""
    if hashlib.sha256(saved.body).hexdigest() != saved.digest:
        return None
    try:
        return msgpack.decode(saved.body, type=Snapshot)
    except DecodeError:
        return None


def restore_ledger(store: Store) -> tuple[Ledger, Position, int]:
    """The ledger from the newest sound snapshot and the log after it, its position, and how many events were read."""
    ledger = Ledger(lambda key, step: recall_decision(store, key, step))
    position: Position = {}
    for saved in store.snapshots():
        snapshot = decode_snapshot(saved)
        if snapshot is not None and snapshot.format == 1 and sum(snapshot.position.values()) >= UNSOUND_EVENTS:
            log.warning("a snapshot of an earlier version may count an event twice; the log is read instead")
        elif snapshot is not None:
            _unpack(ledger, snapshot, store)
            position = dict(snapshot.position)
            break
        else:
            log.error("a snapshot is damaged: its hash does not fit; the log will be read from further back")
    folded = 0
    for read in store.tail(position):
        ledger.apply(read.entry)
        position[read.worker] = max(read.seq, position.get(read.worker, 0))
        folded += 1
    return ledger, position, folded


def _unpack(ledger: Ledger, snapshot: Snapshot, store: Store) -> None:
    for read in store.tail({}, problems=True):
        if read.seq <= snapshot.position.get(read.worker, 0):
            ledger.apply(read.entry)
    histories = snapshot.histories or [History() for _ in snapshot.counters]  # of an earlier version: none
    for part, history in zip(snapshot.counters, histories, strict=True):
        pending = np.frombuffer(part.pending, "<f8").astype(np.float64)
        state = PolicyState(part.newest, [_from_bytes(block) for block in part.blocks]) if part.blocks else None
        learner = ledger.problems[part.tenant, part.name]
        learner.restore(_from_bytes(part.tally), pending, part.asked, history, state)
    for tenant, record in snapshot.open:
        ledger.place((tenant, record.asked.id), record)
