"""Metrics of single problems. Every worker knows them for all workers, so they are not added up."""

from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from superarm.service.domain.ledger import Key, Ledger
from superarm.service.domain.moments import join_moments

MAX_LABELLED_PROBLEMS = 200
"""Of a service, or a tenant, with more problems, no problem has metrics of its own: every label is a time series."""

_LABELS = ["tenant", "problem"]


def problem_metrics(ledger: Ledger, tenant: str | None, in_use: Callable[[Key], bool]) -> Iterator[Metric]:
    """Decisions, pending ones, feedback and mean reward of each problem.

    The rewards that a problem has not computed yet are computed now, unless a thread has the problem ``in_use``.
    """
    chosen = {key: state for key, state in ledger.problems.items() if tenant in (None, key[0])}
    yield GaugeMetricFamily("superarm_problems", "Problems", len(chosen))
    if len(chosen) > MAX_LABELLED_PROBLEMS:
        return
    decisions = CounterMetricFamily("superarm_problem_decisions", "Decisions of a problem", labels=_LABELS)
    pending = GaugeMetricFamily("superarm_problem_pending", "Decisions that await feedback", labels=_LABELS)
    finished = CounterMetricFamily(
        "superarm_problem_finished", "Decisions by how they ended, and late feedback", labels=[*_LABELS, "how"]
    )
    reward = GaugeMetricFamily(
        "superarm_problem_reward_mean", "Mean reward of finished decisions", labels=[*_LABELS, "of"]
    )
    for key, state in chosen.items():
        history = state.history
        if not in_use(key):
            history.flush(state.problem)
        decisions.add_metric(key, state.decisions)
        pending.add_metric(key, ledger.n_pending.get(key, 0))
        for how in ("complete", "expired", "late"):
            finished.add_metric([*key, how], getattr(history, how))
        for of in ("policy", "baseline"):
            mean = _mean_reward(history, of)
            if mean is not None:
                reward.add_metric([*key, of], mean)
    yield from (decisions, pending, finished, reward)


def _mean_reward(history: Any, of: str) -> float | None:
    total = join_moments([getattr(stretch, of) for stretch in history.stretches])
    return total.total / total.n if total.n else None


def control_metrics(problems: dict[Key, Any], tenant: str | None) -> Iterator[Metric]:
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
