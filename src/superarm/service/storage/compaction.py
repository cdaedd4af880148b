"""Compaction: old decisions leave the log for an archive, and the log begins with a verified snapshot, its base.

The steps, each of which leaves a log that can be read and compacted again:

1. the log is verified: its snapshots and the state in use follow from it;
2. an event of each problem notes how many of its decisions go; every log ends with an event that stays, since the next
   event is numbered after the last one;
3. the archive is written to a new file, forced to the disk, and given its name;
4. one transaction replaces the snapshots by the base and removes the events of the decisions.

What stays: all events of problems, which the audit log is made of, pending decisions, and decisions that changed
lately.
"""

import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from superarm.errors import SuperarmError
from superarm.service.domain.decision import open_record
from superarm.service.domain.events import Asked, Compacted, Erased, encode
from superarm.service.domain.ledger import Key, Ledger
from superarm.service.storage.archive import write_archive
from superarm.service.storage.base import LogLine, Position, SavedSnapshot, Store
from superarm.service.storage.problem_log import problem_of
from superarm.service.storage.snapshot import copy_problem, encode_state, restore_ledger, take_snapshot
from superarm.service.storage.verify import verify


class CompactionReport(NamedTuple):
    """What ``compact`` did: ``archived`` decisions are in the file ``archive``, ``removed`` ones nowhere."""

    archived: int
    removed: int
    archive: Path | None
    events: int


class OldDecision(NamedTuple):
    """A decision that leaves the log: its problem, the logs that its events are in, and whether it is archived."""

    problem: Key
    logs: set[str]
    archived: bool


def compact(store: Store, directory: Path | None, before: int) -> CompactionReport:
    """Move decisions that ended, and did not change since ``before``, to a file in ``directory`` (None: remove them).

    Decisions that were erased, or whose problem was deleted, are removed, whatever their age. No service may run.
    """
    store.keep_out_others()
    if faults := verify(store).faults:
        raise SuperarmError(f"the log is not sound ({faults[0]}): nothing was done; see superarm verify")
    ledger, _, _ = restore_ledger(store)
    old = _choose(store, ledger, before)
    if not old:
        return CompactionReport(0, 0, None, _count_events(store))
    _note(store, ledger, old)
    ledger, position, _ = restore_ledger(store)
    kept = {key for key, one in old.items() if one.archived}
    archive = None if directory is None or not kept else write_archive(store, directory, kept)
    store.compact(_bases(ledger, position), list(old), "" if archive is None else archive.name)
    archived = 0 if archive is None else len(kept)
    return CompactionReport(archived, len(old) - archived, archive, _count_events(store))


def _count_events(store: Store) -> int:
    return sum(1 for _ in store.tail({}))


def _choose(store: Store, ledger: Ledger, before: int) -> dict[Key, OldDecision]:
    """The decisions that leave the log."""
    problems: dict[Key, tuple[Key, bool]] = {}
    last: dict[Key, int] = defaultdict(int)
    logs: dict[Key, set[str]] = defaultdict(set)
    erased: set[Key] = set()
    for read in store.tail({}):
        tenant, kind, stream, _, event = read.entry
        if kind != "decision":
            continue
        if isinstance(event, Asked):
            problems[tenant, stream] = (tenant, event.problem), ledger.serves(tenant, open_record(event))
        elif isinstance(event, Erased):
            erased.add((tenant, stream))
        last[tenant, stream] = max(event.at, last[tenant, stream])
        logs[tenant, stream].add(read.worker)
    old = {}
    for key, (problem, served) in problems.items():
        gone = key in erased or not served
        if gone or (last[key] < before and key not in ledger.pending):
            old[key] = OldDecision(problem, logs[key], not gone)
    return old


def _note(store: Store, ledger: Ledger, old: dict[Key, OldDecision]) -> None:
    """Write how many decisions of each problem go, to each log that has events of them: it then ends with this note."""
    counts = Counter(one.problem for one in old.values())
    logs: dict[Key, set[str]] = defaultdict(set)
    for one in old.values():
        logs[one.problem] |= one.logs
    for problem, n in counts.items():
        first = ledger.deleted[problem] if problem in ledger.deleted else ledger.problems[problem].step
        for place, log in enumerate(sorted(logs[problem])):
            event = Compacted(int(time.time() * 1000), 0 if place else n)
            line = LogLine(problem[0], "problem", problem[1], first + 1 + place, encode(event), problem[1])
            store.append(log, line)


def _bases(ledger: Ledger, position: Position) -> dict[str, SavedSnapshot]:
    """The base of each log: one for each problem with a log of its own, or one for all logs together."""
    own = {log: seq for log, seq in position.items() if log.startswith("p/")}
    if not own:
        return {"": take_snapshot(ledger, position)}
    return {log: encode_state(copy_problem(ledger, problem_of(log), {log: seq})) for log, seq in own.items()}
