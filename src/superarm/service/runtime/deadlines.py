"""When the windows of decisions end, by the monotonic clock: a jump of the wall clock ends no window early."""

import heapq
import time
from collections.abc import Container

from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.ledger import Key


class Deadlines:
    """Pending decisions, ordered by the end of their windows."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, Key]] = []

    def __len__(self) -> int:
        return len(self._heap)

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

    def compact(self, pending: Container[Key], n_pending: int) -> None:
        """Remove decisions that are closed, once they are more than half of all."""
        if len(self._heap) > 2 * n_pending + 1_000:
            self._heap = [(when, key) for when, key in self._heap if key in pending]
            heapq.heapify(self._heap)
