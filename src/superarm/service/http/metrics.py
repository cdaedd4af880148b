"""Metrics of this process for Prometheus.

Requests are counted in plain numbers on the event loop and turned into metric families when they are read: the counters
of the Prometheus client take a lock each, which would add a twentieth to the time of a decision.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_BOUNDS = (*(str(bound) for bound in _BUCKETS), "+Inf")


class Metrics:
    """Counts requests, and reads the queue and the pending decisions from the coordinator."""

    def __init__(self, coordinator: Any) -> None:
        self._coordinator = coordinator
        self._requests: dict[tuple[str, str, int], int] = {}
        self._seconds: dict[tuple[str, str], list[float]] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def observe(self, operation: Any, status: int, seconds: float) -> None:
        """Count one request."""
        labels = operation.method, operation.path
        key = (*labels, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        times = self._seconds.get(labels)
        if times is None:
            times = self._seconds[labels] = [0.0] * (len(_BOUNDS) + 1)
        times[bisect_left(_BUCKETS, seconds)] += 1.0
        times[-1] += seconds

    def collect(self) -> Iterator[Metric]:
        """All metrics, as Prometheus metric families."""
        labels = ["method", "path"]
        requests = CounterMetricFamily("superarm_requests", "Requests answered", labels=[*labels, "status"])
        for (method, path, status), n in list(self._requests.items()):
            requests.add_metric([method, path, str(status)], n)
        yield requests
        seconds = HistogramMetricFamily("superarm_request_seconds", "Time to answer", labels=labels)
        for (method, path), times in list(self._seconds.items()):
            below = [sum(times[: n + 1]) for n in range(len(_BOUNDS))]
            seconds.add_metric([method, path], list(zip(_BOUNDS, below, strict=True)), times[-1])
        yield seconds
        coordinator = self._coordinator
        now = (
            (coordinator.writer.depth, len(coordinator.ledger.pending), len(coordinator.ledger.closed))
            if coordinator.ready
            else (0, 0, 0)
        )
        worker = InfoMetricFamily("superarm_worker", "Whose numbers these are: every worker counts its own")
        worker.add_metric([], {"worker": coordinator.store.worker})
        yield worker
        yield GaugeMetricFamily("superarm_queue_events", "Events that wait for a commit", now[0])
        yield GaugeMetricFamily("superarm_open_decisions", "Decisions that await feedback", now[1])
        yield GaugeMetricFamily("superarm_remembered_decisions", "Closed decisions in memory", now[2])

    def text(self) -> bytes:
        """All metrics, in Prometheus' text format."""
        return generate_latest(self._registry)
