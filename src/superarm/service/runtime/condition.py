"""The condition of the process: whether it can serve, the ends of windows that it waits for, and rates of requests."""

import asyncio
import heapq
import logging
import time
from collections.abc import Container
from typing import Literal

from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.ledger import Key
from superarm.service.storage.base import Finding

log = logging.getLogger("superarm.condition")

Phase = Literal["starting", "running", "stopping", "failed"]

_PUBLIC = {
    "ok": "",
    "starting": "the log is read, or the database is awaited",
    "stopping": "the service is stopping",
    "failed": "the service cannot go on, and has to be started again",
    "unavailable": "the log cannot be read or written at present",
}
"""What anybody may know of each status; reasons may hold the address of the database."""


class Condition:
    """The phase of the process, and what is wrong with the database at present.

    ``starting`` becomes ``running``, then ``stopping``. ``failed`` is final: the state in memory is not what the log
    says, and only a new process can serve again. While it is ``running``, the log may be impossible to write for some
    time: that is a ``fault``, and it passes.
    """

    def __init__(self) -> None:
        self.phase: Phase = "starting"
        self._reason = "the log is being read"
        self.fault = ""
        self.findings: list[Finding] = []  # the last, and when they were made
        self.examined = float("-inf")

    @property
    def status(self) -> str:
        """``"ok"``, ``"unavailable"``, ``"starting"``, ``"stopping"`` or ``"failed"``."""
        if self.phase != "running":
            return self.phase
        return "unavailable" if self.fault else "ok"

    @property
    def reason(self) -> str:
        """Why it is not ok, in a sentence for operators; empty if it is."""
        return self.fault if self.phase == "running" else self._reason

    @property
    def public_reason(self) -> str:
        """Why it is not ok, in the words for callers without a key; empty if it is."""
        return _PUBLIC[self.status]

    def enter(self, phase: Phase, reason: str = "") -> None:
        """Enter a phase; a process that has failed stays failed."""
        if self.phase == "failed" or (self.phase, self._reason) == (phase, reason):
            return
        self.phase, self._reason = phase, reason
        log.log(logging.ERROR if phase == "failed" else logging.INFO, "%s%s", phase, f": {reason}" if reason else "")

    def note(self, fault: str) -> None:
        """Note why the log cannot be written; empty if it can."""
        if bool(fault) != bool(self.fault):
            log.log(logging.ERROR if fault else logging.INFO, "%s", fault or "the log can be written again")
        self.fault = fault


LONGEST_WAIT = 86_400.0
"""Nobody is told to wait for more seconds, however low a rate is."""

MAX_BUCKETS = 10_000
"""Above so many, buckets that were not used for two seconds are dropped."""


class TokenBuckets:
    """One bucket per name: ``rate`` tokens per second on average, twice as many at once.

    >>> buckets = TokenBuckets()
    >>> [round(buckets.take("key", 0.5)) for _ in range(2)]
    [0, 2]
    """

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str, rate: float) -> float:
        """Take a token, and return 0; if there is none, return in how many seconds there will be one."""
        tokens = self.tokens(name, rate)
        if tokens < 1.0:
            return min((1.0 - tokens) / rate, LONGEST_WAIT)
        self._buckets[name] = (tokens - 1.0, time.monotonic())
        return 0.0

    def charge(self, name: str, rate: float, n: int) -> None:
        """Take ``n`` tokens, also if there are not as many: the bucket is in debt until they have come."""
        self._buckets[name] = (self.tokens(name, rate) - n, time.monotonic())

    def tokens(self, name: str, rate: float) -> float:
        """How many tokens there are."""
        now, most = time.monotonic(), max(1.0, 2.0 * rate)
        if name not in self._buckets and len(self._buckets) >= MAX_BUCKETS:
            self._buckets = {known: bucket for known, bucket in self._buckets.items() if now - bucket[1] < 2.0}
        tokens, last = self._buckets.get(name, (most, now))
        return min(most, tokens + (now - last) * rate)


class Deadlines:
    """Pending decisions, ordered by the end of their windows."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, Key]] = []

    def watch(self, key: Key, record: DecisionRecord, *, resumed: bool = False) -> None:
        """Add a decision; for a ``resumed`` one, the wall clock says how much of its window is left."""
        window = record.asked.window_ms
        if window is None:
            return
        left = window / 1000.0
        if resumed:
            left = min(max(left - (time.time() - record.asked.at / 1000.0), 0.0), left)
        heapq.heappush(self._heap, (time.monotonic() + left, key))

    def due(self, limit: int) -> list[Key]:
        """Decisions whose window has ended, at most ``limit`` of them; they are removed."""
        now, keys = time.monotonic(), list[Key]()
        while self._heap and self._heap[0][0] <= now and len(keys) < limit:
            keys.append(heapq.heappop(self._heap)[1])
        return keys

    def retry(self, key: Key, seconds: float) -> None:
        """Report a decision as due again after ``seconds``."""
        heapq.heappush(self._heap, (time.monotonic() + seconds, key))

    async def compact(self, pending: Container[Key], n_pending: int) -> None:
        """Remove decisions that are closed, once they are more than half of all; in a thread, as there may be many."""
        if len(self._heap) > 2 * n_pending + 1_000:
            old, self._heap = self._heap, []
            self._heap += await asyncio.to_thread(lambda: [entry for entry in old if entry[1] in pending])
            heapq.heapify(self._heap)
