"""Tables computed from a study: final regret and its tails, ranking, ratios, slopes along sweeps, pulls, coverage."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm.core.arrays import Floats
from superarm.environments import Environment
from superarm.experiments.spec.build import Case
from superarm.experiments.spec.experiment import as_list
from superarm.experiments.store import CellResults
from superarm.oracles import Default, solve
from superarm.oracles.certificate import upper_bound
from superarm.simulation.instances import Instance
from superarm.simulation.regret import Bracket, optimum
from superarm.simulation.statistics import (
    Estimate,
    adjust_holm,
    estimate_mean,
    estimate_slope,
    paired_difference,
)

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study

MAX_ENUMERATED_BATCHES = 2_000
"""Up to so many batches r_max is found by enumeration, and otherwise bracketed by a certificate."""
LOCKED = 0.9
"""A run is locked if its regret per round in the second half exceeds this share of the gap to the second best arm."""


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

    ``behind`` is None for the best policy; ``p`` is the p-value of the difference, adjusted by
    Holm's method over all pairs of policies.
    """

    policy: str
    regret: Estimate
    behind: Estimate | None
    p: float


def rank_policies(study: "Study", instance: str) -> list[RankedPolicy]:
    """The policies on an instance, least regret first.

    p-values are adjusted over the comparisons of all pairs: which policy is the first is decided by the same data.
    """
    values = {policy: record.regret[:, -1] for policy, record in study.records_for(instance).items()}
    order = sorted(values, key=lambda policy: float(np.mean(values[policy])))
    behind = {policy: paired_difference(values[policy], values[order[0]]) for policy in order[1:]}
    others = [paired_difference(values[b], values[a]).p for a, b in itertools.combinations(order[1:], 2)]
    adjusted = dict(zip(behind, adjust_holm([one.p for one in behind.values()] + others), strict=False))
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


def summarise_tails(study: "Study") -> list[dict[str, Any]]:
    """One row per instance and policy: quantiles and maximum of the regret at the horizon, and the locked runs.

    ``earlier`` is the mean regret at a tenth of the horizon. ``optimal_low`` and ``optimal_high`` are the mean regret
    against r_max, which is known exactly or to lie in a bracket: targets differ by a constant per round. They are
    computed for experiments with a claim of the kind ``geometric``, which compare policies over instances.
    ``locked`` is None where batches have more than one arm: there a slow policy cannot be told from a locked one.
    """
    rows = []
    contest = any(claim["kind"] == "geometric" for claim in study.experiment.claims)
    alone = {label: None if study.is_family(label) else study.instance(label) for label in study.started_instances}
    best = {label: bracket_optimum(one) if contest and one else None for label, one in alone.items()}
    for (instance, policy), record in study.records.items():
        final = record.regret[:, -1]
        median, high, highest = (float(q) for q in np.quantile(final, [0.5, 0.9, 0.99]))
        tenth = int(np.searchsorted(record.rounds, record.rounds[-1] / 10.0))
        given, bracket = float(record.metadata["target"]["value"]), best[instance]
        against = [float(final.mean() + record.rounds[-1] * (end - given)) for end in bracket or ()]
        rows.append(
            {
                "instance": instance,
                "policy": policy,
                "regret": float(final.mean()),
                "median": median,
                "q90": high,
                "q99": highest,
                "largest": float(final.max()),
                "locked": count_locked(record, alone[instance]),
                "earlier": float(record.regret[:, tenth].mean()),
                "optimal_low": against[0] if against else None,
                "optimal_high": against[1] if against else None,
                "replications": len(final),
            }
        )
    return rows


def bracket_optimum(instance: Instance) -> Bracket | None:
    """The value of the best batch: exact for up to ``MAX_ENUMERATED_BATCHES`` batches, otherwise with a certificate.

    None where rounds have means or rewards of their own.
    """
    environment, problem = instance.environment, instance.problem
    moving = type(environment).changes is not Environment.changes
    if moving or environment.n_contexts or environment.own_reward:
        return None
    if problem.actions.n_batches(problem.n_arms) <= MAX_ENUMERATED_BATCHES:
        return optimum(problem, instance.p)
    action = solve(problem, instance.p, Default())
    low = problem.value(instance.p, action) - problem.floor
    return Bracket(low, max(low, upper_bound(problem, instance.p, action)))


def count_locked(record: CellResults, instance: Instance | None) -> int | None:
    """How many runs were locked; None if batches have more than one arm, if two arms are equal, or for a family."""
    if instance is None or instance.problem.k > 1 or instance.problem.n_arms == 1:
        return None
    values = np.sort(single_values(instance))
    gap = values[-1] - values[-2]
    if gap <= 0.0:
        return None
    last = record.rounds[-1]
    half = np.array([np.interp(last / 2, record.rounds, regret) for regret in record.regret])
    return int(((record.regret[:, -1] - half) > LOCKED * gap * (last - last / 2)).sum())


def single_values(instance: Instance) -> Floats:
    """The value of each arm alone at the true parameters, (n_arms,)."""
    problem = instance.problem
    nothing = problem.reward.empty_states(problem, 1)
    return problem.reward.gains(problem, nothing, instance.environment.means(problem, 1))[0]


class Ratios(NamedTuple):
    """Ratios of mean regrets over instances: their geometric mean with an interval, the largest, and where it is."""

    mean: Estimate
    largest: float
    where: str
    instances: int


def compare_over_instances(study: "Study", policy: str, than: str, instances: list[str]) -> Ratios | None:
    """Mean regret of ``policy`` over that of ``than`` on every instance; None if a mean is not positive.

    The interval of the geometric mean is Student's over instances: the draws of an instance are what varies, and the
    errors of the means over replications are contained in it.
    """
    means = [[float(np.mean(study.final_regret(instance, p))) for p in (policy, than)] for instance in instances]
    if not means or min(min(pair) for pair in means) <= 0.0:
        return None
    logs = np.log([a / b for a, b in means])
    over = estimate_mean(logs)
    worst = int(np.argmax(logs))
    geometric = Estimate(*(math.exp(x) for x in (over.value, over.low, over.high)))
    return Ratios(geometric, math.exp(logs[worst]), instances[worst], len(instances))


def summarise_ratios(study: "Study") -> list[dict[str, Any]]:
    """One row per policy and group of instances, for the groups that claims of the kind ``geometric`` are about."""
    rows: list[dict[str, Any]] = []
    for claim in study.experiment.claims:
        if claim["kind"] != "geometric" or any(row["claim"] == claim.get("text", "") for row in rows):
            continue
        about = as_list(claim["instance"]) if "instance" in claim else [c.name for c in study.instances.values()]
        labels = [label for label, case in study.instances.items() if case.name in about]
        for policy in study.policies:
            whole = all((label, name) in study.records for label in labels for name in (policy, claim["than"]))
            found = compare_over_instances(study, policy, claim["than"], labels) if whole else None
            if found is not None:
                rows.append(
                    {
                        "claim": claim.get("text", ""),
                        "policy": policy,
                        "than": claim["than"],
                        "ratio": found.mean.value,
                        "ratio_low": None if math.isnan(found.mean.low) else found.mean.low,
                        "ratio_high": None if math.isnan(found.mean.high) else found.mean.high,
                        "largest": found.largest,
                        "where": found.where,
                        "instances": found.instances,
                    }
                )
    return rows
