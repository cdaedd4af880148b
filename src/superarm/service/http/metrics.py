"""Metrics for Prometheus: what all workers of this service have counted, and the state of the problems.

Requests are counted in plain numbers on the event loop and turned into metric families when they are read: the counters
of the Prometheus client take a lock each, which would add a twentieth to the time of a decision.
"""

import asyncio
import contextlib
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

from superarm.service.http.problem_metrics import control_metrics, problem_metrics
from superarm.service.http.worker_files import Counted, WorkerFiles
from superarm.service.timings import N_PARTS, Timings, cumulate

PUBLISH_SECONDS = 1.0


class Metrics:
    """Counts requests by tenant, adds up the workers' numbers, and reads the state from the coordinator."""

    def __init__(self, coordinator: Any, directory: str = "") -> None:
        self._coordinator = coordinator
        self._files = WorkerFiles(directory)
        self._requests: dict[tuple[str, str, str, int], int] = {}
        self._seconds: dict[tuple[str, str, str], Timings] = {}

    def observe(self, tenant: str, operation: Any, status: int, seconds: float) -> None:
        """Count one request; the tenant is "" if the request had no valid key."""
        labels = tenant, operation.method, operation.path
        key = (*labels, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        times = self._seconds.get(labels)
        if times is None:
            times = self._seconds[labels] = Timings()
        times.add(seconds)

    def counted(self) -> Counted:
        """What this worker has counted."""
        requests = [(*key, n) for key, n in self._requests.items()]
        seconds = [(*key, list(times.parts)) for key, times in self._seconds.items()]
        if not self._coordinator.ready:
            return Counted(requests, seconds)
        writer = self._coordinator.writer
        return Counted(requests, seconds, list(writer.timings.parts), writer.events, writer.failures)

    async def publish(self) -> None:
        """Write this worker's numbers for the others every second, until it is cancelled."""
        while self._files.shared:
            with contextlib.suppress(OSError):  # a full disk, or a directory that was cleaned away, stops nothing else
                self._files.publish(self.counted())
            await asyncio.sleep(PUBLISH_SECONDS)

    def text(self, tenant: str | None = None) -> bytes:
        """All metrics in Prometheus' text format, or only what concerns one tenant."""
        registry = CollectorRegistry()
        registry.register(_Collector(self, tenant))
        return generate_latest(registry)

    def collect(self, tenant: str | None) -> Iterator[Metric]:
        """All of them as metric families, or only what concerns one tenant."""
        everyone = [self.counted(), *self._files.read_others()]
        yield from _requests(everyone, tenant)
        if tenant is None:
            yield from _commits(everyone)
        yield from self._state(tenant)

    def _state(self, tenant: str | None) -> Iterator[Metric]:
        """The worker's name, the problems and, for the whole process, its queue and its memory."""
        coordinator = self._coordinator
        worker = InfoMetricFamily("superarm_worker", "The worker that answered; counters are sums over all workers")
        worker.add_metric([], {"worker": coordinator.store.worker})
        yield worker
        ready = coordinator.ready
        pending = sum(n for key, n in coordinator.ledger.n_pending.items() if tenant in (None, key[0])) if ready else 0
        yield GaugeMetricFamily("superarm_open_decisions", "Decisions that await feedback", pending)
        if ready:
            yield from problem_metrics(coordinator.ledger, tenant, coordinator.gates.is_closed)
            yield from control_metrics(coordinator.ledger.problems, tenant)
        if tenant is None:
            queue, closed = (coordinator.writer.depth, len(coordinator.ledger.closed)) if ready else (0, 0)
            ok = coordinator.condition.status == "ok"
            yield GaugeMetricFamily("superarm_ready", "1 while decisions can be made and written", float(ok))
            yield GaugeMetricFamily("superarm_queue_events", "Events that wait for a commit in this worker", queue)
            yield GaugeMetricFamily("superarm_remembered_decisions", "Closed decisions in memory", closed)


def _requests(everyone: list[Counted], tenant: str | None) -> Iterator[Metric]:
    """How many requests were answered, and how fast."""
    counts: dict[tuple[str, str, str], int] = {}
    times: dict[tuple[str, str], list[float]] = {}
    for counted in everyone:
        for owner, method, path, status, n in counted.requests:
            if tenant in (None, owner):
                counts[method, path, str(status)] = counts.get((method, path, str(status)), 0) + n
        for owner, method, path, parts in counted.seconds:
            if tenant in (None, owner):
                before = times.get((method, path), [0.0] * N_PARTS)
                times[method, path] = [a + b for a, b in zip(before, parts, strict=True)]
    requests = CounterMetricFamily("superarm_requests", "Requests answered", labels=["method", "path", "status"])
    for key, n in counts.items():
        requests.add_metric(key, n)
    yield requests
    seconds = HistogramMetricFamily("superarm_request_seconds", "Time to answer", labels=["method", "path"])
    for key2, parts in times.items():
        seconds.add_metric(key2, cumulate(parts), parts[-1])
    yield seconds


def _commits(everyone: list[Counted]) -> Iterator[Metric]:
    """How many events were written, how fast, and how often it failed."""
    parts = [0.0] * N_PARTS
    for counted in everyone:
        parts = [a + b for a, b in zip(parts, counted.commits or [0.0] * N_PARTS, strict=True)]
    commits = HistogramMetricFamily("superarm_commit_seconds", "Time of a commit of the log")
    commits.add_metric([], cumulate(parts), parts[-1])
    yield commits
    yield CounterMetricFamily("superarm_events", "Events written to the log", sum(one.events for one in everyone))
    failures = sum(one.failures for one in everyone)
    yield CounterMetricFamily("superarm_commit_failures", "Commits that failed", failures)


class _Collector:
    """A collector for Prometheus: all metrics, or those of one tenant."""

    def __init__(self, metrics: Metrics, tenant: str | None) -> None:
        self._metrics, self._tenant = metrics, tenant

    def collect(self) -> Iterator[Metric]:
        """All of them, as metric families."""
        return self._metrics.collect(self._tenant)
