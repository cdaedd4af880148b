"""The audit of the crash harness: the log is read behind the service's back, and added up with fractions."""

import time
from collections import Counter
from fractions import Fraction
from typing import Any, NamedTuple

import httpx
import msgspec

from superarm.decisions import Expired, Told
from superarm.service.domain.events import Armed, Asked, Changed, Created, Learnt
from superarm.service.server import open_store

from .crash_load import ITEMS, Acknowledged


class Sums(NamedTuple):
    """What the log comes to, arm by arm."""

    values: dict[str, list[Fraction]]
    counts: dict[str, list[int]]
    pulls: Counter
    pending: Counter
    retired: set[str]
    arms: list[str]


class Audit:
    """Reads the events of a log in the order of their streams."""

    def __init__(self) -> None:
        self.sums = Sums({}, {}, Counter(), Counter(), set(), [])
        self.asked, self.told, self.late, self.expired = Counter(), Counter(), Counter(), Counter()
        self.slates: dict[str, list[int]] = {}
        self.items: dict[str, tuple[int, ...]] = {}
        self.versions: dict[int, object] = {}
        self._closed: set[str] = set()
        self.learnt: list[int] = []
        self.n_items = ITEMS
        self.silent: dict[str, list[tuple[int, int, float]]] = {}  # what decisions count as before they are told of

    def read(self, entry) -> None:
        """Add one event."""
        event, id, sums = entry.event, entry.stream.partition("/")[2], self.sums
        if isinstance(event, Created):
            sums.arms.extend(event.spec.arms)
            self.versions[1] = event.spec.settings
            self.n_items = len(event.spec.item_names)
        elif isinstance(event, Learnt):
            self.learnt.append(event.version)
        elif isinstance(event, Armed):
            sums.arms.extend(event.add)
            sums.retired.difference_update(sums.arms[j] for j in event.restore)
            sums.retired.update(sums.arms[j] for j in event.retire)
        elif isinstance(event, Changed):
            assert event.version not in self.versions
            self.versions[event.version] = event.settings
        elif isinstance(event, Asked):
            self.asked[id] += 1
            self.slates[id] = list(event.action)
            self.items[id] = tuple(range(self.n_items)) if event.items is None else event.items
            if event.silence is None:
                sums.pending.update(self._names(event.action))
            else:
                self.silent[id] = [(j, i, event.silence) for j in event.action for i in self.items[id]]
                self._count(id, self.silent[id], 1)
        elif isinstance(event, Told):
            self._tell(id, event)
        elif isinstance(event, Expired):
            self.expired[id] += 1
            entries = [] if event.fill is None else [(j, i) for j in self.slates[id] for i in self.items[id]]
            self._close(id, [(j, i, event.fill) for j, i in entries])

    def _names(self, arms) -> list[str]:
        return [self.sums.arms[j] for j in arms]

    def _tell(self, id: str, event: Told) -> None:
        if event.late:
            assert id in self._closed
            assert not event.learn
            self.late[id] += 1
            return
        self.told[id] += 1
        entries = [(j, i) for j in self.slates[id] for i in self.items[id]]
        assert sorted((arm, item) for arm, item, _ in event.units) == sorted(entries)
        self._close(id, event.units)

    def _close(self, id: str, units) -> None:
        assert id not in self._closed, f"{id} was counted twice"
        self._closed.add(id)
        if (silent := self.silent.pop(id, None)) is not None:
            self._count(id, silent, -1)
        else:
            self.sums.pending.subtract(self._names(self.slates[id]))
        self._count(id, units, 1)

    def _count(self, id: str, units, sign: int) -> None:
        if units:
            self.sums.pulls.update(dict.fromkeys(self._names(self.slates[id]), sign))
        for arm, item, value in units:
            name = self.sums.arms[arm]
            self.sums.values.setdefault(name, [Fraction(0)] * self.n_items)[item] += sign * Fraction(value)
            self.sums.counts.setdefault(name, [0] * self.n_items)[item] += sign


def audit(db: str, book: Acknowledged, problem: str = "p") -> Sums:
    """Compare the log with what was acknowledged of a problem; the sums and counts that it comes to."""
    store = open_store(db, serving=False)
    found, own = Audit(), {("problem", problem)}
    for read in sorted(store.tail({}), key=lambda read: (read.entry.kind != "problem", read.entry.step)):
        if isinstance(read.entry.event, Asked) and read.entry.event.problem == problem:
            own.add((read.entry.kind, read.entry.stream))
        if (read.entry.kind, read.entry.stream) in own:
            found.read(read.entry)
    store.close()
    assert set(found.asked) <= book.sent
    for id, arms in book.asked.items():
        assert found.asked[id] == 1, f"acknowledged decision {id} is in the log {found.asked[id]} times"
        assert [found.sums.arms[j] for j in found.slates[id]] == arms
    for id in book.told:
        assert found.told[id] == 1, f"acknowledged feedback of {id} is in the log {found.told[id]} times"
    for id in book.late:
        assert (found.late[id], found.expired[id]) == (1, 1), f"late feedback of {id}: {found.late[id]} times"
    assert found.learnt == list(range(1, len(found.learnt) + 1))
    assert len(found.learnt) >= book.learnt
    assert len(set(found.sums.arms)) == len(found.sums.arms)
    assert book.added <= set(found.sums.arms)
    assert book.retired <= found.sums.retired
    for version, settings in book.versions.items():
        assert msgspec.to_builtins(found.versions[version]) == settings, version
    book.seen["windows ended"] = sum(found.expired.values())
    book.seen["late"] = len(book.late)
    return found.sums


def compare(url: str, sums: Sums, problem: str = "p") -> None:
    """What the restarted service reports, against the sums; windows may have ended since the log was read."""
    rows, path = [], f"{url}/v1/problems/{problem}/arms"
    while part := _answered(f"{path}?offset={len(rows)}&limit=1000")["arms"]:
        rows += part
    assert [row["arm"] for row in rows] == sums.arms
    for row in rows:
        arm = row["arm"]
        assert row["retired"] == (arm in sums.retired)
        ended = sums.pending[arm] - row["pending"]
        assert 0 <= ended, (row, sums.pending[arm])
        n = sums.pulls[arm]
        assert n <= row["pulls"] <= n + ended, (row, n, ended)
        if row["pulls"] == n and n:
            counts = sums.counts[arm]
            assert row["seen"] == counts, (row, counts)
            means = [
                float(total / seen) if seen else None for total, seen in zip(sums.values[arm], counts, strict=True)
            ]
            assert row["mean"] == means, row


def _answered(path: str) -> Any:
    """The answer, once the worker that was asked has started: of several workers, one may come later."""
    limit = time.monotonic() + 60.0
    while (reply := httpx.get(path, timeout=30.0)).status_code == 503 and "starting" in reply.text:
        assert time.monotonic() < limit, reply.text
        time.sleep(0.05)
    assert reply.status_code == 200, (reply.status_code, reply.text)
    return reply.json()
