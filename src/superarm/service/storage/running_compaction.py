"""What a thread does for the compaction of a log that is being served: verify the state, and choose what leaves."""

from typing import NamedTuple

from superarm.core.errors import SuperarmError
from superarm.service.domain.ledger import Key
from superarm.service.storage.base import LogReader, Position, SavedSnapshot
from superarm.service.storage.compaction import OldDecision, choose_old
from superarm.service.storage.snapshot import decode_snapshot, open_snapshot
from superarm.service.storage.verify import compare_ledgers, fold_log


class PlannedCompaction(NamedTuple):
    """The base that a log will begin with, the position that it holds the events of, and the decisions that leave."""

    base: SavedSnapshot
    position: Position
    old: dict[Key, OldDecision]


def plan_compaction(store: LogReader, base: SavedSnapshot, before: int) -> PlannedCompaction:
    """Compare a snapshot of the state in use with the fold of the log, and choose the decisions that leave."""
    snapshot = decode_snapshot(base)
    assert snapshot is not None
    past, _ = fold_log(store, snapshot.position)
    if faults := compare_ledgers(past, open_snapshot(store, snapshot), "the state in use"):
        raise SuperarmError(f"the log is not compacted: {faults[0]}; see superarm verify")
    return PlannedCompaction(base, snapshot.position, choose_old(store, past, snapshot.position, before))


def changed_since(store: LogReader, position: Position) -> set[Key]:
    """The decisions with events after a position."""
    entries = (read.entry for read in store.tail(position))
    return {(entry.tenant, entry.stream) for entry in entries if entry.kind == "decision"}
