"""Check the log and that the counters equal the fold of it, from the first event on; rebuild snapshots."""

from typing import NamedTuple

from superarm.core.errors import SuperarmError
from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.ledger import Key, Ledger
from superarm.service.storage.base import LogReader, Position, SavedSnapshot, Store
from superarm.service.storage.snapshot import (
    Counters,
    begin_ledger,
    decode_snapshot,
    encode_counters,
    open_snapshot,
    restore_ledger,
    take_snapshot,
)


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
    with store.read_transaction():
        return _verify(store)


def _verify(store: Store) -> VerifyReport:
    faults = []
    if lost := store.lost_tail():
        faults.append(lost)
    if (found := store.check()) != "ok":
        faults.append(f"the database is damaged: {found}")
    whole, n_events = fold_log(store, None)
    live, _, _ = restore_ledger(store)
    faults += compare_ledgers(whole, live, "the counters")
    n_snapshots = 0
    for n_snapshots, saved in enumerate(store.snapshots(), 1):
        faults += _snapshot_faults(store, saved, f"snapshot {n_snapshots}")
    for part in store.problem_logs():
        for saved in part.snapshots():
            n_snapshots += 1
            faults += _snapshot_faults(part, saved, f"snapshot {n_snapshots}")
    return VerifyReport(n_events, len(whole.problems), len(whole.pending), n_snapshots, faults)


def _snapshot_faults(store: LogReader, saved: SavedSnapshot, what: str) -> list[str]:
    """Where a snapshot differs from the fold of the log up to its position."""
    snapshot = decode_snapshot(saved)
    if snapshot is None:
        return [f"{what}: its hash does not fit"]
    return compare_ledgers(fold_log(store, snapshot.position)[0], open_snapshot(store, snapshot), what)


def compare_ledgers(past: Ledger, other: Ledger, what: str) -> list[str]:
    """Where a state differs from the fold of the log."""
    faults = _compare(_all_counters(past), _all_counters(other), what)
    if _steps_of(past.pending) != _steps_of(other.pending):
        faults.append(f"{what}: its open decisions differ from the fold of the log")
    return faults


def _steps_of(records: dict[Key, DecisionRecord]) -> dict[Key, int]:
    return {key: record.step for key, record in records.items()}


class RepairReport(NamedTuple):
    """What ``repair`` did: snapshots that disagreed with the log and were deleted, and those that were kept.

    ``events`` are held by the snapshot that was written in place of the deleted ones.
    """

    deleted: int
    kept: int
    events: int


def repair(store: Store) -> RepairReport:
    """Delete the snapshots that disagree with the log and write one that is the fold of it.

    The log itself is read, never changed. ``SuperarmError`` if a service runs on it, or if it is damaged.
    """
    store.keep_out_others()
    if (found := store.check()) != "ok":
        raise SuperarmError(f"the database is damaged ({found}): snapshots cannot be rebuilt; restore a backup")
    every = list(store.snapshots())
    wrong = [saved for n, saved in enumerate(every, 1) if _snapshot_faults(store, saved, f"snapshot {n}")]
    for part in store.problem_logs():
        own = list(part.snapshots())
        every += own
        wrong += [saved for saved in own if _snapshot_faults(part, saved, "snapshot")]
    if not wrong:
        return RepairReport(0, len(every), 0)
    whole, n_events = fold_log(store, None)
    position: Position = {}
    for read in store.tail({}):  # also what a base holds already: the numbers are those of the whole log
        position[read.worker] = max(read.seq, position.get(read.worker, 0))
    for saved in wrong:
        store.forget(saved)
    store.save(take_snapshot(whole, position))
    return RepairReport(len(wrong), len(every) - len(wrong), n_events)


def fold_log(store: LogReader, until: Position | None) -> tuple[Ledger, int]:
    """The ledger that follows from the log, or from its events up to a position; and how many events that were."""
    ledger, begin = begin_ledger(store)
    n_events = 0
    for read in store.tail(begin):
        if until is None or read.seq <= until.get(read.worker, 0):
            n_events += 1
            ledger.apply(read.entry)
    return ledger, n_events


def _all_counters(ledger: Ledger) -> dict[tuple[str, str], Counters]:
    return {key: encode_counters(*key, learner) for key, learner in ledger.problems.items()}


def _compare(want: dict[tuple[str, str], Counters], have: dict[tuple[str, str], Counters], what: str) -> list[str]:
    faults = [f"{what}: problem {name!r} is missing on one side" for _, name in want.keys() ^ have.keys()]
    for key in want.keys() & have.keys():
        if want[key] != have[key]:
            faults.append(f"{what} of problem {key[1]!r} differ from the fold of the log")
    return faults
