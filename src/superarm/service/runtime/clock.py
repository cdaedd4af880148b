"""The wall clock. Events carry its time for people who read the log; no effect of an event depends on it."""

import time


def now_ms() -> int:
    """Wall-clock milliseconds."""
    return time.time_ns() // 1_000_000
