"""Tables computed from a study: final regret, ranking, slopes along sweeps, pull shares, coverage, run time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.core.arrays import Floats
from superarm.experiments.analysis.statistics import (
    Estimate,
    adjust_holm,
    estimate_mean,
    estimate_slope,
    paired_difference,
)
from superarm.experiments.spec.sweeps import Case
from superarm.experiments.store import CellResults

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study


def summarise_final_regret(study: "Study") -> list[dict[str, Any]]:
    """One row per instance and policy: mean, interval and quantiles of the regret at the horizon, and run time."""
    rows = []
    for (instance, policy), record in study.records.items():
        final = record.regret[:, -1]
        estimate = estimate_mean(final)
        low, median, high = (float(q) for q in np.quantile(final, [0.1, 0.5, 0.9]))
        rows.append(
            {
                "instance": instance,
                "policy": policy,
                "target": study.target(instance),
                "regret": estimate.value,
                "ci_low": estimate.low,
                "ci_high": estimate.high,
                "q10": low,
                "median": median,
                "q90": high,
                "replications": len(final),
                "horizon": int(record.rounds[-1]),
                "us_per_round": microseconds_per_round(record),
            }
        )
    return rows


def microseconds_per_round(record: CellResults) -> float:
    """Processor time per round, over all replications."""
    return float(1e6 * record.seconds.sum() / (len(record.seconds) * record.rounds[-1]))


@dataclass(frozen=True)
class RankedPolicy:
    """A policy in the ranking on one instance: its regret, and its paired difference from the best policy.

    ``behind`` is None for the best policy; ``p`` is Holm's adjusted p-value of the difference.
    """

    policy: str
    regret: Estimate
    behind: Estimate | None
    p: float


def rank_policies(study: "Study", instance: str) -> list[RankedPolicy]:
    """The policies on an instance, least regret first; p-values are adjusted over the comparisons with the first."""
    values = {policy: record.regret[:, -1] for policy, record in study.records_for(instance).items()}
    order = sorted(values, key=lambda policy: float(np.mean(values[policy])))
    behind = {policy: paired_difference(values[policy], values[order[0]]) for policy in order[1:]}
    adjusted = dict(zip(behind, adjust_holm([estimate.p for estimate in behind.values()]), strict=True))
    return [
        RankedPolicy(policy, estimate_mean(values[policy]), behind.get(policy), adjusted.get(policy, float("nan")))
        for policy in order
    ]


def mean_ranks(study: "Study") -> list[tuple[str, float, int]]:
    """Each policy with its mean rank over the instances it was run on and how often it was first; best first."""
    ranks: dict[str, list[int]] = {policy: [] for policy in study.policies}
    for ranking in study.rankings.values():
        for rank, ranked in enumerate(ranking, 1):
            ranks[ranked.policy].append(rank)
    rows = [(policy, float(np.mean(own)), own.count(1)) for policy, own in ranks.items() if own]
    return sorted(rows, key=lambda row: row[1])


@dataclass(frozen=True)
class SweepLine:
    """Regret along one axis of a sweep, with everything else fixed.

    ``points`` are the mean regrets at the values ``x``; ``slope`` is that of log regret against log x. ``targets`` are
    the kinds of targets that regret was measured against.
    """

    axis: str
    group: str
    name: str
    x: tuple[Any, ...]
    points: tuple[Estimate, ...]
    slope: Estimate | None
    targets: tuple[str, ...] = ()


def trace_sweeps(study: "Study") -> list[SweepLine]:
    """Regret along every axis that instances or policies are swept over."""
    found = []
    for name, axis, rest, labels in _group_by_axis(study.instances):
        for policy in study.policies:
            kept = {x: instance for x, instance in labels.items() if (instance, policy) in study.records}
            cells = [(instance, policy) for instance in kept.values()]
            found += _trace_line(study, (axis, Case(name, dict(rest)).label, policy), list(kept), cells)
    for name, axis, rest, labels in _group_by_axis(study.policies):
        for instance in study.instances:
            kept = {x: policy for x, policy in labels.items() if (instance, policy) in study.records}
            cells = [(instance, policy) for policy in kept.values()]
            names = (f"{name}: {axis}", instance, Case(name, dict(rest)).label)
            found += _trace_line(study, names, list(kept), cells)
    return found


def _group_by_axis(cases: Mapping[str, Case]) -> list[tuple[str, str, tuple[Any, ...], dict[Any, str]]]:
    """For each name, axis and setting of the other axes: the labels by value on the axis."""
    found: dict[tuple[str, str, tuple[Any, ...]], dict[Any, str]] = {}
    for label, case in cases.items():
        for axis, value in case.axes.items():
            rest = tuple((other, v) for other, v in case.axes.items() if other != axis)
            found.setdefault((case.name, axis, rest), {})[value] = label
    return [(*key, labels) for key, labels in found.items() if len(labels) > 1]


def _trace_line(
    study: "Study", names: tuple[str, str, str], x: list[Any], cells: list[tuple[str, str]]
) -> list[SweepLine]:
    """The line through ``cells`` at the values ``x``; nothing if there are fewer than two. ``names`` start the line."""
    if len(x) < 2:
        return []
    values = [study.final_regret(*cell) for cell in cells]
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in x)
    order = sorted(range(len(x)), key=lambda n: x[n]) if numbers else range(len(x))
    x, values = [x[n] for n in order], [values[n] for n in order]
    slope = estimate_slope(np.array(x, float), np.array(values)) if numbers else None
    targets = tuple(dict.fromkeys(study.target(instance) for instance, _ in cells))
    return [SweepLine(*names, tuple(x), tuple(estimate_mean(v) for v in values), slope, targets)]


def pull_shares(study: "Study", instance: str) -> Floats:
    """How often each policy plays each arm, as a share of the rounds: (n_policies, n_arms)."""
    return np.array([record.pulls.mean(axis=0) / record.rounds[-1] for record in study.records_for(instance).values()])


def item_coverage(study: "Study", instance: str) -> Floats:
    """The value of each item in the stored batches, as a share of its weight: (n_policies, n_items, n_stored)."""
    made = study.instance(instance)
    problem, p = made.problem, made.environment.means(made.problem, 1)
    weights = np.where(problem.weights > 0.0, problem.weights, 1.0)
    maps = []
    for record in study.records_for(instance).values():
        values = [
            problem.reward.worth(problem.weights, problem.reward.states(problem, p, batches)).mean(axis=0)
            for batches in record.batches.transpose(1, 0, 2)
        ]
        maps.append((np.array(values) / weights).T)
    return np.array(maps)
