"""Token buckets: how many requests per second a key, an address or a problem may send."""

import time

MAX_BUCKETS = 10_000
"""Above so many, buckets that were not used for two seconds are dropped."""


class TokenBuckets:
    """One bucket per name: ``rate`` tokens per second on average, twice as many at once.

    >>> buckets = TokenBuckets()
    >>> [buckets.take("key", 0.5) for _ in range(2)]
    [True, False]
    """

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str, rate: float) -> bool:
        """Take a token; False if there is none."""
        tokens = self.tokens(name, rate)
        if tokens < 1.0:
            return False
        self._buckets[name] = (tokens - 1.0, time.monotonic())
        return True

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
