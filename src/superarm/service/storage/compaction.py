"""Compaction: old decisions leave the log for an archive, and the log begins with a verified snapshot, its base.

The steps, each of which leaves a log that can be read and compacted again:

1. the log is verified: its snapshots and the state in use follow from it;
2. the archive is written to a new file, forced to the disk, and given its name;
3. one transaction writes an event of each problem that notes how many of its decisions go, replaces the snapshots by
   the base, and removes the events of the decisions. Every log ends with an event that stays, since the next event is
   numbered after the last one.

What stays: all events of problems, which the audit log is made of, pending decisions, and decisions that changed
lately.

Decisions are erased from archives, too: what the files have of others is written to new files; one transaction notes
which file has come in the place of which, and lets the log begin with a base without the decisions; the former files
are removed. If that was interrupted, the next erasure knows them by the note, and takes nothing from the counters a
second time.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from superarm.core.errors import SuperarmError
from superarm.service.domain.decision import DecisionRecord, advance_record, open_record
from superarm.service.domain.events import Asked, Compacted, Erased, ErasureRequested, encode
from superarm.service.domain.ledger import Key, Ledger, LogEntry
from superarm.service.domain.slate import digest_unit
from superarm.service.storage.archive import force, read_archive, rewrite_archive, write_archive
from superarm.service.storage.base import LogLine, LogReader, NumberedLine, Position, SavedSnapshot, Store
from superarm.service.storage.postgres_tables import problem_of
from superarm.service.storage.snapshot import (
    compare_ledgers,
    decode_snapshot,
    fold_log,
    open_snapshot,
    restore_ledger,
    take_snapshot,
    verify,
)


class CompactionReport(NamedTuple):
    """What ``compact`` did: ``archived`` decisions are in the file ``archive``, ``removed`` ones nowhere."""

    archived: int
    removed: int
    archive: Path | None


class OldDecision(NamedTuple):
    """A decision that leaves the log: its problem, the logs that its events are in, and whether it is archived."""

    problem: Key
    logs: set[str]
    archived: bool


def compact(store: Store, directory: Path | None, before: int) -> CompactionReport:
    """Move decisions that ended, and did not change since ``before``, to a file in ``directory`` (None: remove them).

    Decisions that were erased, or whose problem was deleted, are removed, whatever their age. No service may run.
    """
    ledger, position = open_sound(store)
    old = choose_old(store, ledger, position, before)
    if not old:
        return CompactionReport(0, 0, None)
    archive = archive_old(store, directory, old)
    name = "" if archive is None else archive.name
    notes = _note(ledger, position, old, name)
    store.compact(make_bases(ledger, position), list(old), notes, name)
    return report(old, archive)


def open_sound(store: Store) -> tuple[Ledger, Position]:
    """The state and the position of a log that no service uses, and that was verified."""
    store.keep_out_others()
    if faults := verify(store).faults:
        raise SuperarmError(f"the log is not sound ({faults[0]}): nothing was done; see superarm verify")
    ledger, position, _ = restore_ledger(store)
    return ledger, position


def report(old: dict[Key, OldDecision], archive: Path | None) -> CompactionReport:
    """What became of the decisions that left the log."""
    archived = 0 if archive is None else sum(one.archived for one in old.values())
    return CompactionReport(archived, len(old) - archived, archive)


def archive_old(store: LogReader, directory: Path | None, old: dict[Key, OldDecision]) -> Path | None:
    """Write an archive of the decisions that are to be archived; None if there is nothing to write."""
    kept = {key for key, one in old.items() if one.archived}
    return None if directory is None or not kept else write_archive(store, directory, kept)


def choose_old(store: LogReader, ledger: Ledger, until: Position, before: int) -> dict[Key, OldDecision]:
    """The decisions that leave the log, given the state at the position ``until``; they did not change after it."""
    problems: dict[Key, tuple[Key, bool]] = {}
    last: dict[Key, int] = defaultdict(int)
    logs: dict[Key, set[str]] = defaultdict(set)
    erased: set[Key] = set()
    changed: set[Key] = set()
    for read in store.tail({}):
        tenant, kind, stream, _, event = read.entry
        if kind != "decision":
            continue
        if read.seq > until.get(read.worker, 0):
            changed.add((tenant, stream))
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
        if key not in changed and (gone or (last[key] < before and key not in ledger.pending)):
            old[key] = OldDecision(problem, logs[key], not gone)
    return old


def _note(ledger: Ledger, position: Position, old: dict[Key, OldDecision], archive: str) -> list[NumberedLine]:
    """How many decisions of each problem go, as events of each log that has events of them.

    They are applied to the state, and their numbers are in the position.
    """
    counts = Counter(one.problem for one in old.values())
    logs: dict[Key, set[str]] = defaultdict(set)
    for one in old.values():
        logs[one.problem] |= one.logs
    notes = []
    for problem, n in counts.items():
        for place, log in enumerate(sorted(logs[problem])):
            event = Compacted(int(time.time() * 1000), 0 if place else n, "" if place else archive)
            notes.append(append_note(ledger, position, problem, log, event))
    return notes


def append_note(ledger: Ledger, position: Position, problem: Key, log: str, event: object) -> NumberedLine:
    """An event of a problem at the end of a log: it is applied to the state, and its number is in the position."""
    known = ledger.problems.get(problem)
    step = 1 + (ledger.deleted[problem] if known is None else known.step)
    position[log] = position.get(log, 0) + 1
    ledger.apply(LogEntry(problem[0], "problem", problem[1], step, event))
    return NumberedLine(log, position[log], LogLine(problem[0], "problem", problem[1], step, encode(event), problem[1]))


def make_bases(ledger: Ledger, position: Position) -> dict[str, SavedSnapshot]:
    """The base of each log: one for each problem with a log of its own, or one for all logs together."""
    own = {log: seq for log, seq in position.items() if log.startswith("p/")}
    if not own:
        return {"": take_snapshot(ledger, position)}
    return {log: take_snapshot(ledger, {log: seq}, problem_of(log)) for log, seq in own.items()}


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


class ArchiveErasure(NamedTuple):
    """What was erased: how many decisions, and the files that had them, each with its successor ("": none needed)."""

    erased: int
    replaced: dict[str, str]


class _KnownFiles(NamedTuple):
    """What the log says of the files of its archive: which there are, and which one has replaced which."""

    present: set[str]
    replaced: dict[str, str]
    log: str  # that the last event of the problem is in


def erase_archived(
    store: Store, directory: Path, problem: Key, *, unit: str | None = None, decision: str | None = None, by: str = ""
) -> ArchiveErasure:
    """Erase the decisions of a unit of a problem, or one decision, from the archive in ``directory``.

    Afterwards the counters are those of a log in which they never were. No service may run.
    """
    ledger, position = open_sound(store)
    learner = ledger.problems.get(problem)
    if learner is None:
        raise SuperarmError(f"--problem: there is no problem {problem[1]!r} of tenant {problem[0]!r}")
    digest = None if unit is None else digest_unit(learner, unit)

    def is_wanted(asked: Asked) -> bool:
        own = asked.problem == problem[1] and asked.born == learner.born
        return own and (asked.id == decision if digest is None else asked.unit == digest)

    known = _read_notes(store, problem)
    _remove_replaced(directory, known)
    found = {path: records for path in _files(directory) if (records := _find(path, problem[0], is_wanted))}
    if not found:
        return ArchiveErasure(0, {})
    erased = _instances(store, [records for path, records in found.items() if path.name in known.present])
    successors = {path.name: rewrite_archive(path, set(records)) for path, records in found.items()}
    replaced = {old: "" if new is None else new.name for old, new in successors.items()}
    _take_out(ledger, erased)
    n = len(erased) or len({key for records in found.values() for key in records})
    event = ErasureRequested(int(time.time() * 1000), n, unit is not None, by, replaced)
    note = append_note(ledger, position, problem, known.log, event)
    store.compact(make_bases(ledger, position), [], [note], ", ".join(filter(None, replaced.values())))
    for path in found:
        path.unlink()
    force(directory)
    return ArchiveErasure(n, replaced)


def _files(directory: Path) -> list[Path]:
    if not directory.is_dir():
        raise SuperarmError(f"--archive {directory}: there is no such directory")
    return sorted(directory.glob("superarm-*.parquet"))


def _read_notes(store: Store, problem: Key) -> _KnownFiles:
    present: set[str] = set()
    replaced: dict[str, str] = {}
    log = ""
    for read in store.tail({}, problems=True):
        event = read.entry.event
        if isinstance(event, Compacted):
            present.add(event.archive)
        elif isinstance(event, ErasureRequested):
            replaced |= event.archives
        if (read.entry.tenant, read.entry.stream) == problem:
            log = read.worker
    present |= set(replaced.values())
    return _KnownFiles(present - replaced.keys() - {""}, replaced, log)


def _remove_replaced(directory: Path, known: _KnownFiles) -> None:
    """Remove files of which an earlier erasure has written successors, and was interrupted then."""
    for path in _files(directory):
        if path.name not in known.replaced:
            continue
        successor = known.replaced[path.name]
        while successor in known.replaced:
            successor = known.replaced[successor]
        if successor and not (directory / successor).exists():
            raise SuperarmError(f"{path} was replaced by {successor} in an earlier erasure; give the directory with it")
        path.unlink()


def _find(path: Path, tenant: str, is_wanted: Callable[[Asked], bool]) -> dict[Key, DecisionRecord]:
    """The decisions in a file that are wanted, as their events left them."""
    events: dict[Key, list[object]] = defaultdict(list)
    for read in read_archive(path):
        key, event = (read.entry.tenant, read.entry.stream), read.entry.event
        if key in events or (isinstance(event, Asked) and key[0] == tenant and is_wanted(event)):
            events[key].append(event)
    found = {}
    for key, (first, *later) in events.items():
        assert isinstance(first, Asked)
        record = open_record(first)
        for event in later:
            record = advance_record(record, event)
        found[key] = record
    return found


def _instances(store: Store, files: list[dict[Key, DecisionRecord]]) -> list[tuple[Key, DecisionRecord]]:
    """Each decision once, without those that are in the log, too: their compaction was interrupted.

    An id may be that of several decisions, one after the other; they differ in their rounds.
    """
    found = {(key, record.asked.t): (key, record) for records in files for key, record in records.items()}
    for key, record in list(found.values()):
        events = store.stream(key[0], "decision", key[1])
        if events and events[0].event.t == record.asked.t:
            del found[key, record.asked.t]
    return list(found.values())


def _take_out(ledger: Ledger, erased: list[tuple[Key, DecisionRecord]]) -> None:
    """Take decisions out of the counters."""
    for key, record in erased:
        ledger.problems[key[0], record.asked.problem].move(record, advance_record(record, Erased(0)))
