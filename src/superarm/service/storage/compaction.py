"""Compaction: old decisions leave the log, which then begins with a snapshot that was verified, its base.

One transaction writes an event of each problem that notes how many of its decisions go, replaces the snapshots by the
base, and removes the events of the decisions. Every log ends with an event that stays, since the next event is numbered
after the last one. What stays: all events of problems, which the audit log is made of, pending decisions, and decisions
that changed lately.
"""

import time
from collections import Counter, defaultdict

from superarm.core.errors import SuperarmError
from superarm.service.domain.decision import open_record
from superarm.service.domain.events import Asked, Compacted, Erased, encode
from superarm.service.domain.ledger import Key, Ledger, LogEntry
from superarm.service.storage.base import LogLine, NumberedLine, Position, SavedSnapshot, Store
from superarm.service.storage.postgres_tables import problem_of
from superarm.service.storage.snapshot import restore_ledger, take_snapshot, verify

OldDecisions = dict[Key, Key]
"""Decisions that leave the log, each with its problem."""


def compact(store: Store, before: int) -> int:
    """Remove decisions that ended, and did not change since ``before``, from a log that no service uses: how many.

    Decisions that were erased, or whose problem was deleted, are removed whatever their age.
    """
    store.keep_out_others()
    if faults := verify(store).faults:
        raise SuperarmError(f"the log is not sound ({faults[0]}): nothing was done; see superarm verify")
    ledger, position, _ = restore_ledger(store)
    if any(log.startswith("w") for log in position):
        raise SuperarmError("--db: the log was written by an earlier version; run superarm reshard first")
    old = choose_old(store, ledger, before)
    remove(store, ledger, position, old)
    store.shrink()
    return len(old)


def choose_old(store: Store, ledger: Ledger, before: int) -> OldDecisions:
    """The decisions that leave the log, whose state is ``ledger``."""
    problems: OldDecisions = {}
    last: dict[Key, int] = defaultdict(int)
    gone = set[Key]()
    for read in store.tail({}):
        tenant, kind, stream, _, event = read.entry
        if kind != "decision":
            continue
        if isinstance(event, Asked):
            problems[tenant, stream] = tenant, event.problem
        if isinstance(event, Erased) or (isinstance(event, Asked) and not ledger.serves(tenant, open_record(event))):
            gone.add((tenant, stream))
        last[tenant, stream] = max(event.at, last[tenant, stream])
    old = gone | {key for key, at in last.items() if at < before and key not in ledger.pending}
    return {key: problem for key, problem in problems.items() if key in old}


def remove(store: Store, ledger: Ledger, position: Position, old: OldDecisions) -> None:
    """Remove decisions from the log, whose state and position these are."""
    if not old:
        return
    notes = []
    for (_, id), problem in old.items():
        if (state := ledger.problems.get(problem)) is not None and state.learnt is not None:
            state.learnt.counts.name_unit(id, None)  # what was learnt stays; an erasure could not find the decision
    for problem, n in Counter(old.values()).items():
        known, event = ledger.problems.get(problem), Compacted(int(time.time() * 1000), n)
        step = 1 + (ledger.deleted[problem] if known is None else known.step)
        line = LogLine(problem[0], "problem", problem[1], step, encode(event), problem[1])
        (log,) = store.logs_of([line])
        position[log] = position.get(log, 0) + 1
        ledger.apply(LogEntry(*line[:4], event))
        notes.append(NumberedLine(log, position[log], line))
    store.compact(make_bases(ledger, position), list(old), notes)


def make_bases(ledger: Ledger, position: Position) -> dict[str, SavedSnapshot]:
    """The base of each log: one for each problem with a log of its own, or one for all logs together."""
    own = {log: seq for log, seq in position.items() if log.startswith("p/")}
    if not own:
        return {"": take_snapshot(ledger, position)}
    return {log: take_snapshot(ledger, {log: seq}, problem_of(log)) for log, seq in own.items()}
