"""When windows end. Deadlines run on the monotonic clock: a jump of the wall clock ends no window early."""

import heapq
import time
from collections.abc import Container

from superarm.service.domain.decision import DecisionRecord
from superarm.service.domain.ledger import Key


class Deadlines:
    """Open decisions by the end of their window."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, Key]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def watch(self, key: Key, record: DecisionRecord, *, resumed: bool = False) -> None:
        """Remember when this decision's window ends; a ``resumed`` one has what the wall clock says is left."""
        window = record.asked.window_ms
        if window is None:
            return
        left = window / 1000.0
        if resumed:
            left = min(max(left - (time.time() - record.asked.at / 1000.0), 0.0), left)
        heapq.heappush(self._heap, (time.monotonic() + left, key))

    def due(self, limit: int) -> list[Key]:
        """Decisions whose window has ended, at most ``limit`` of them; they are watched no longer."""
        now, keys = time.monotonic(), list[Key]()
        while self._heap and self._heap[0][0] <= now and len(keys) < limit:
            keys.append(heapq.heappop(self._heap)[1])
        return keys

    def again(self, key: Key, seconds: float) -> None:
        """Try this one again later."""
        heapq.heappush(self._heap, (time.monotonic() + seconds, key))

    def compact(self, still_open: Container[Key], n_open: int) -> None:
        """Forget decisions that closed before their window ended, once they are the most."""
        if len(self._heap) > 2 * n_open + 1_000:
            self._heap = [(when, key) for when, key in self._heap if key in still_open]
            heapq.heapify(self._heap)
