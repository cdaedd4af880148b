"""Is the log sound, and are the counters what it says? Both are looked at anew, from the first event on."""

from collections.abc import Iterator
from typing import NamedTuple

from superarm.service.ledger import Entry, Ledger, fold
from superarm.service.snapshot import Counters, counted, opened, restored
from superarm.service.store import Position, Store, recalled


class Report(NamedTuple):
    """What was found: ``faults`` is empty if all is well."""

    events: int
    problems: int
    open: int
    snapshots: int
    faults: list[str]


def verify(store: Store) -> Report:
    """Check the database, the checksums, every snapshot, and that the counters in use equal the fold of the log.

    ``DamagedLog`` is raised where an event cannot be read at all.
    """
    faults = []
    check = getattr(store, "check", None)
    if check is not None and (found := check()) != "ok":
        faults.append(f"the database is damaged: {found}")
    whole, n_events = _folded(store, None)
    live, _, _ = restored(store)
    faults += _compared(_all(whole), _all(live), "the counters")
    if {key: record.step for key, record in whole.open.items()} != {k: r.step for k, r in live.open.items()}:
        faults.append("the open decisions differ from the fold of the log")
    n_snapshots = 0
    for n_snapshots, saved in enumerate(store.snapshots(), 1):
        snapshot = opened(saved)
        if snapshot is None:
            faults.append(f"snapshot {n_snapshots}: its hash does not fit")
            continue
        past, _ = _folded(store, snapshot.position)
        faults += _compared(_all(past), {(c.tenant, c.name): c for c in snapshot.counters}, f"snapshot {n_snapshots}")
    return Report(n_events, len(whole.problems), len(whole.open), n_snapshots, faults)


def _folded(store: Store, until: Position | None) -> tuple[Ledger, int]:
    n_events = 0

    def entries() -> Iterator[Entry]:
        nonlocal n_events
        for read in store.tail({}):
            if until is None or read.seq <= until.get(read.worker, 0):
                n_events += 1
                yield read.entry

    return fold(entries(), lambda key, step: recalled(store, key, step)), n_events


def _all(ledger: Ledger) -> dict[tuple[str, str], Counters]:
    return {key: counted(*key, learner) for key, learner in ledger.problems.items()}


def _compared(want: dict[tuple[str, str], Counters], have: dict[tuple[str, str], Counters], what: str) -> list[str]:
    faults = [f"{what}: problem {name!r} is missing on one side" for _, name in want.keys() ^ have.keys()]
    for key in want.keys() & have.keys():
        if want[key] != have[key]:
            faults.append(f"{what} of problem {key[1]!r} differ from the fold of the log")
    return faults
