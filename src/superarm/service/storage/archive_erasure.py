"""Erasure of decisions that a compaction has moved to an archive: from its files, and from the counters.

The steps, after any of which the command can be run again:

1. what the files have of other decisions is written to new files, whose names are made from what they hold;
2. one transaction notes in the log which file has come in the place of which, and lets the log begin with a base
   without the decisions;
3. the former files are removed. If that was interrupted, the next erasure knows them by the note: it removes them, and
   takes nothing from the counters a second time.
"""

import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from superarm.core.errors import SuperarmError
from superarm.service.domain.decision import DecisionRecord, advance_record, open_record
from superarm.service.domain.events import Asked, Compacted, Erased, ErasureRequested
from superarm.service.domain.ledger import Key, Ledger
from superarm.service.domain.slate import digest_unit
from superarm.service.storage.archive import force, read_archive, rewrite_archive
from superarm.service.storage.base import Store
from superarm.service.storage.compaction import append_note, make_bases, open_sound


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
