"""Metrics for Prometheus: requests, commits, and the state of the problems, of all tenants."""

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from superarm.service.domain.lift import join_moments
from superarm.service.runtime.coordinator import Coordinator
from superarm.service.runtime.writer import BUCKETS


class Metrics(Collector):
    """Counts requests by tenant, and reads the state from the coordinator."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._registry = CollectorRegistry()
        labels = ["tenant", "method", "path"]
        self._requests = Counter("superarm_requests", "Requests answered", [*labels, "status"], registry=self._registry)
        self._seconds = Histogram(
            "superarm_request_seconds", "Time to answer", labels, buckets=BUCKETS, registry=self._registry
        )

    def observe(self, tenant: str, operation: Any, status: int, seconds: float) -> None:
        """Count one request; the tenant is "" if the request had no valid key."""
        labels = tenant, operation.method, operation.path
        self._requests.labels(*labels, str(status)).inc()
        self._seconds.labels(*labels).observe(seconds)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[Metric]:
        """The requests, the worker's name and, once it has started, its log, its queue, its memory and its problems."""
        coordinator = self._coordinator
        yield from self._registry.collect()
        worker = InfoMetricFamily("superarm_worker", "The worker that answered")
        worker.add_metric([], {"worker": coordinator.store.worker})
        yield worker
        ok = coordinator.condition.status == "ok"
        yield GaugeMetricFamily("superarm_ready", "1 while decisions can be made and written", float(ok))
        if not coordinator.ready:
            return
        yield from coordinator.writer.registry.collect()
        words = "0 if what superarm doctor looks at is right, 1 for a warning, 2 if it is wrong"
        checks = GaugeMetricFamily("superarm_check", words, labels=["check"])
        for one in coordinator.condition.findings:
            checks.add_metric([one.check], 2 * one.wrong or int(one.warned))
        yield checks
        ledger = coordinator.ledger
        for name, words, value in (
            ("superarm_open_decisions", "Decisions that await feedback", sum(ledger.n_pending.values())),
            ("superarm_queue_events", "Events that wait for a commit in this worker", coordinator.writer.depth),
            ("superarm_closed_problems", "Problems that are closed: their logs cannot be applied", len(ledger.broken)),
            ("superarm_remembered_decisions", "Closed decisions in memory", len(ledger.closed)),
        ):
            yield GaugeMetricFamily(name, words, value)
        yield from problem_metrics(coordinator)


MAX_LABELLED_PROBLEMS = 200
"""Of a service with more problems, no problem has metrics of its own: every label is a time series."""

_LABELS = ["tenant", "problem"]


def problem_metrics(coordinator: Coordinator) -> Iterator[Metric]:
    """Decisions, pending ones, feedback, mean reward of each problem, and its comparison with the control share.

    The rewards that a problem has not computed yet are computed now, unless a thread uses the problem.
    """
    ledger = coordinator.ledger
    yield GaugeMetricFamily("superarm_problems", "Problems", len(ledger.problems))
    if len(ledger.problems) > MAX_LABELLED_PROBLEMS:
        return

    def gauge(name: str, words: str, *more: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"superarm_{name}", words, labels=[*_LABELS, *more])

    decisions = CounterMetricFamily("superarm_problem_decisions", "Decisions of a problem", labels=_LABELS)
    words = "Decisions by how they ended, and late feedback"
    finished = CounterMetricFamily("superarm_problem_finished", words, labels=[*_LABELS, "how"])
    pending = gauge("problem_pending", "Decisions that await feedback")
    reward = gauge("problem_reward_mean", "Mean reward of finished decisions", "of")
    compared = gauge("compared_decisions", "Decisions compared with the control share", "shown")
    fallback = gauge("guardrail_fallback", "1 while the guardrail shows the control slate")
    for key, state in list(ledger.problems.items()):
        history, sums = state.history, state.history.lift
        if not coordinator.locks[key].locked():
            state.flush()
        decisions.add_metric(key, state.decisions)
        pending.add_metric(key, ledger.n_pending.get(key, 0))
        for how in ("complete", "expired", "late"):
            finished.add_metric([*key, how], getattr(history, how))
        for of in ("policy", "baseline"):
            total = join_moments([getattr(stretch, of) for stretch in history.stretches])
            if total.n:
                reward.add_metric([*key, of], total.total / total.n)
        if state.settings.control > 0.0:
            compared.add_metric([*key, "policy"], sums.shown_policy)
            compared.add_metric([*key, "control"], sums.shown_control)
        if state.settings.guardrail is not None:
            fallback.add_metric(key, float(state.guarded))
    yield from (decisions, pending, finished, reward, compared, fallback)
