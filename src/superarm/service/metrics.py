"""What a monitoring system reads: Prometheus counters of this process."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics:
    """Requests, queue, open decisions."""

    def __init__(self, desk: Any) -> None:
        self._registry = CollectorRegistry()
        labels = ("method", "path")
        self._requests = Counter("superarm_requests", "Requests answered", (*labels, "status"), registry=self._registry)
        self._seconds = Histogram(
            "superarm_request_seconds", "Time to answer", labels, buckets=_BUCKETS, registry=self._registry
        )
        self._children: dict[tuple[str, str, int], tuple[Any, Any]] = {}
        queue = Gauge("superarm_queue_events", "Events that wait for a commit", registry=self._registry)
        queue.set_function(lambda: desk.writer.depth if desk.ready else 0)
        waiting = Gauge("superarm_open_decisions", "Decisions that await feedback", registry=self._registry)
        waiting.set_function(lambda: len(desk.ledger.open) if desk.ready else 0)
        remembered = Gauge("superarm_remembered_decisions", "Closed decisions in memory", registry=self._registry)
        remembered.set_function(lambda: len(desk.ledger.closed) if desk.ready else 0)

    def observe(self, operation: Any, status: int, seconds: float) -> None:
        """Count one request."""
        key = (operation.method, operation.path, status)
        child = self._children.get(key)
        if child is None:
            labels = (operation.method, operation.path)
            child = self._requests.labels(*labels, str(status)), self._seconds.labels(*labels)
            self._children[key] = child
        child[0].inc()
        child[1].observe(seconds)

    def text(self) -> bytes:
        """All of it, in Prometheus' text format."""
        return generate_latest(self._registry)
