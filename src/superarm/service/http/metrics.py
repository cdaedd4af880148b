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
    """Counts requests by tenant, and reads the queue and the pending decisions from the coordinator."""

    def __init__(self, coordinator: Any) -> None:
        self._coordinator = coordinator
        self._requests: dict[tuple[str, str, str, int], int] = {}
        self._seconds: dict[tuple[str, str, str], list[float]] = {}

    def observe(self, tenant: str, operation: Any, status: int, seconds: float) -> None:
        """Count one request; the tenant is "" if the request had no valid key."""
        labels = tenant, operation.method, operation.path
        key = (*labels, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        times = self._seconds.get(labels)
        if times is None:
            times = self._seconds[labels] = [0.0] * (len(_BOUNDS) + 1)
        times[bisect_left(_BUCKETS, seconds)] += 1.0
        times[-1] += seconds

    def text(self, tenant: str | None = None) -> bytes:
        """All metrics in Prometheus' text format, or only what concerns one tenant."""
        registry = CollectorRegistry()
        registry.register(_Collector(self, tenant))
        return generate_latest(registry)

    def requests(self, tenant: str | None) -> Iterator[Metric]:
        """How many requests were answered, and how fast."""
        labels = ["method", "path"]
        counts: dict[tuple[str, str, int], int] = {}
        times: dict[tuple[str, str], list[float]] = {}
        for (owner, *key, status), n in list(self._requests.items()):
            if tenant in (None, owner):
                counts[key[0], key[1], status] = counts.get((key[0], key[1], status), 0) + n
        for (owner, method, path), parts in list(self._seconds.items()):
            if tenant in (None, owner):
                before = times.get((method, path), [0.0] * len(parts))
                times[method, path] = [a + b for a, b in zip(before, parts, strict=True)]
        requests = CounterMetricFamily("superarm_requests", "Requests answered", labels=[*labels, "status"])
        for (method, path, status), n in counts.items():
            requests.add_metric([method, path, str(status)], n)
        yield requests
        seconds = HistogramMetricFamily("superarm_request_seconds", "Time to answer", labels=labels)
        for (method, path), parts in times.items():
            below = [sum(parts[: n + 1]) for n in range(len(_BOUNDS))]
            seconds.add_metric([method, path], list(zip(_BOUNDS, below, strict=True)), parts[-1])
        yield seconds

    def state(self, tenant: str | None) -> Iterator[Metric]:
        """The worker's name, pending decisions and, for the whole process, its queue and its memory."""
        coordinator = self._coordinator
        worker = InfoMetricFamily("superarm_worker", "Whose numbers these are: every worker counts its own")
        worker.add_metric([], {"worker": coordinator.store.worker})
        yield worker
        ready = coordinator.ready
        pending = sum(n for key, n in coordinator.ledger.n_pending.items() if tenant in (None, key[0])) if ready else 0
        yield GaugeMetricFamily("superarm_open_decisions", "Decisions that await feedback", pending)
        if ready:
            yield from _control(coordinator.ledger.problems, tenant)
        if tenant is None:
            queue, closed = (coordinator.writer.depth, len(coordinator.ledger.closed)) if ready else (0, 0)
            ok = coordinator.condition.status == "ok"
            yield GaugeMetricFamily("superarm_ready", "1 while decisions can be made and written", float(ok))
            yield GaugeMetricFamily("superarm_queue_events", "Events that wait for a commit", queue)
            yield GaugeMetricFamily("superarm_remembered_decisions", "Closed decisions in memory", closed)


def _control(problems: dict[tuple[str, str], Any], tenant: str | None) -> Iterator[Metric]:
    """Decisions of the comparison with the control share by what they showed, and where the guardrail fell back."""
    shown = GaugeMetricFamily(
        "superarm_compared_decisions", "Decisions compared with the control share", labels=["problem", "shown"]
    )
    fallback = GaugeMetricFamily(
        "superarm_guardrail_fallback", "1 while the guardrail shows the control slate", labels=["problem"]
    )
    for (owner, name), learner in list(problems.items()):
        if tenant in (None, owner) and learner.settings.control > 0.0:
            sums = learner.history.lift
            label = name if tenant is not None else f"{owner}/{name}"
            shown.add_metric([label, "policy"], sums.shown_policy)
            shown.add_metric([label, "control"], sums.shown_control)
            if learner.settings.guardrail is not None:
                fallback.add_metric([label], float(learner.guarded))
    yield shown
    yield fallback


class _Collector:
    """A collector for Prometheus: all metrics, or those of one tenant."""

    def __init__(self, metrics: Metrics, tenant: str | None) -> None:
        self._metrics, self._tenant = metrics, tenant

    def collect(self) -> Iterator[Metric]:
        """All of them, as metric families."""
        yield from self._metrics.requests(self._tenant)
        yield from self._metrics.state(self._tenant)
