"""A check of stores: that a log keeps what was committed, in order and once, and that a state outlives its process."""

from collections.abc import Callable

from superarm.decisions import Told
from superarm.service.domain.events import Asked, Created, encode
from superarm.service.domain.spec import PolicySpec, ProblemSpec, Settings
from superarm.service.storage.base import KeyRow, LogLine, Store
from superarm.service.storage.snapshot import encode_counters, restore_ledger, take_snapshot, verify
from superarm.testing import require

PROBLEM = ("tenant", "problem")


def check_store(open_store: Callable[[], Store]) -> None:
    """Raise ``ContractViolation`` if a store does not keep its contract.

    ``open_store`` opens an empty database, and when it is called again, the same one, as a new process would.
    """
    store = open_store()
    store.open()
    _own(store)
    try:
        _check_log(store)
        _check_keys(store)
        saved = take_snapshot(*restore_ledger(store)[:2])
        store.save(saved)
        store.commit([_told(1)])
        before = encode_counters(*PROBLEM, restore_ledger(store)[0].problems[PROBLEM])
    finally:
        store.close()
    again = open_store()
    again.open()
    try:
        require(next(iter(again.snapshots())) == saved, "a snapshot is read as it was saved")
        ledger, _, n_read = restore_ledger(again)
        require(n_read == 1, "the events after a snapshot, and no others, are read")
        require(encode_counters(*PROBLEM, ledger.problems[PROBLEM]) == before, "a state outlives its process")
        require([row.id for row in again.key_rows()] == ["key"], "keys outlive the process")
        require(not verify(again).faults, "the log is sound")
    finally:
        again.close()


def _own(store: Store) -> None:
    if store.shards is not None:
        require(store.shards.acquire(PROBLEM) == 0, "a problem that nobody owns can be acquired")
        require(store.shards.admit(PROBLEM), "an acquired problem can be written")


def _line(kind: str, stream: str, step: int, event: object) -> LogLine:
    return LogLine(PROBLEM[0], kind, stream, step, encode(event), PROBLEM[1])


def _asked(n: int) -> LogLine:
    return _line(
        "decision", f"{PROBLEM[1]}/d{n}", 0, Asked(n, PROBLEM[1], f"d{n}", "", n, (0, 1), 1, 1, unit=f"{n:016x}")
    )


def _told(n: int) -> LogLine:
    return _line("decision", f"{PROBLEM[1]}/d{n}", 1, Told(n, [(0, -1, 1.0), (1, -1, 0.5)]))


def _check_log(store: Store) -> None:
    spec = ProblemSpec(arms=["a", "b", "c"], k=2, settings=Settings(policy=PolicySpec("bc_ucb"), window_s=None))
    created = _line("problem", PROBLEM[1], 0, Created(0, spec, "key"))
    require(store.commit([created, _asked(1), _asked(2)]) == [1, 2, 3], "events are numbered from 1, without gaps")
    require(store.commit([_told(2), _asked(1)])[1] == 0, "an event whose key is taken gets the number 0")
    (log,) = {read.worker for read in store.tail({})}
    require(store.logs_of([created]) == [log], "events are read under the name of their log")
    decisions = [f"{PROBLEM[1]}/{id}" for id in ("d1", "d2", "d2")]
    reads = sorted(store.tail({}), key=lambda read: read.seq)
    require([read.entry.stream for read in reads] == [PROBLEM[1], *decisions], "every event is there once")
    require([read.seq for read in store.tail({log: 3})] == [reads[-1].seq], "events after a position are read")
    require([read.seq for read in store.tail({}, problems=True)] == [1], "events of problems are read apart")
    steps = [entry.step for entry in store.stream(PROBLEM[0], "decision", decisions[-1])]
    require(steps == [0, 1], "the events of a decision are read in order")
    require(store.find([_asked(2), _asked(9)]) == [3, 0], "an event is found word for word")
    require([entry.stream for entry in store.made_for(f"{2:016x}")] == decisions[-1:], "decisions are found by unit")
    store.probe()


def _check_keys(store: Store) -> None:
    row = KeyRow("key", "digest", PROBLEM[0], "read", 5, None, "")
    store.put_key(row)
    store.put_key(row._replace(revoked=7))
    require(store.key_rows() == [row._replace(revoked=7)], "a key is replaced by its id")
