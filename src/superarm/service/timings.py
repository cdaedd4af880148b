"""How long something took, counted in the buckets of a histogram."""

from bisect import bisect_left

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds: an objective such as "99 % within 50 ms" is the share of one of them."""

N_PARTS = len(BUCKETS) + 2


class Timings:
    """Counts by bucket, the last of them without a bound, and the sum of all times.

    >>> timings = Timings()
    >>> timings.add(0.03)
    >>> timings.parts[BUCKETS.index(0.05)], timings.parts[-1]
    (1.0, 0.03)
    """

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts = [0.0] * N_PARTS

    def add(self, seconds: float) -> None:
        """Count one time."""
        self.parts[bisect_left(BUCKETS, seconds)] += 1.0
        self.parts[-1] += seconds


def cumulate(parts: list[float]) -> list[tuple[str, float]]:
    """The buckets as Prometheus has them: each with its bound, counting everything below it."""
    bounds = (*(str(bound) for bound in BUCKETS), "+Inf")
    return [(bound, sum(parts[: n + 1])) for n, bound in enumerate(bounds)]
