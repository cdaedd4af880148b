"""What a thread does for the compaction of a log that is being served: verify the state, and choose what leaves."""

from typing import NamedTuple

from superarm.core.errors import SuperarmError
from superarm.service.domain.ledger import Key
from superarm.service.storage.base import LogReader, Position, SavedSnapshot
from superarm.service.storage.compaction import OldDecision, choose_old
from superarm.service.storage.packing import empty_tables
from superarm.service.storage.snapshot import StateCopy, decode_snapshot, encode_state
from superarm.service.storage.verify import compare_snapshot, fold_log


class PlannedCompaction(NamedTuple):
    """The base that a log will begin with, the position that it holds the events of, and the decisions that leave."""

    base: SavedSnapshot
    position: Position
    old: dict[Key, OldDecision]


def plan_compaction(store: LogReader, copied: StateCopy, before: int) -> PlannedCompaction:
    """Compare a copy of the state in use with the fold of the log, and choose the decisions that leave."""
    past, _ = fold_log(store, copied.position)
    base = encode_state(copied, rests=True)
    snapshot = decode_snapshot(base)
    assert snapshot is not None
    if faults := compare_snapshot(past, snapshot, "the state in use"):
        raise SuperarmError(f"the log is not compacted: {faults[0]}; see superarm verify")
    old = choose_old(store, past, copied.position, before)
    empty_tables(past.pending, past.closed)
    return PlannedCompaction(base, copied.position, old)


def changed_since(store: LogReader, position: Position) -> set[Key]:
    """The decisions with events after a position."""
    entries = (read.entry for read in store.tail(position))
    return {(entry.tenant, entry.stream) for entry in entries if entry.kind == "decision"}
