"""From a study to tables: final regret, ranking with paired differences, slopes along sweeps, coverage, pace."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm._jit import kernel
from superarm.arrays import Floats, Ints
from superarm.experiments.statistics import Estimate, holm, mean, paired, slope
from superarm.experiments.sweeps import Case
from superarm.rewards import Reward, Terms, absorb, fresh
from superarm.rewards.base import worth

if TYPE_CHECKING:
    from superarm.experiments.study import Study


def finals(study: "Study") -> list[dict[str, Any]]:
    """A row an instance and policy: mean, interval and quantiles of the regret at the horizon; µs a round."""
    rows = []
    for (world, policy), record in study.records.items():
        final = record.regret[:, -1]
        estimate = mean(final)
        low, median, high = (float(q) for q in np.quantile(final, [0.1, 0.5, 0.9]))
        rows.append(
            {
                "instance": world,
                "policy": policy,
                "regret": estimate.value,
                "ci_low": estimate.low,
                "ci_high": estimate.high,
                "q10": low,
                "median": median,
                "q90": high,
                "replications": len(final),
                "horizon": int(record.rounds[-1]),
                "us_per_round": pace(record),
            }
        )
    return rows


def pace(record: Any) -> float:
    """Microseconds a round, over all replications."""
    return float(1e6 * record.seconds.sum() / (len(record.seconds) * record.rounds[-1]))


@dataclass(frozen=True)
class Place:
    """A policy's place on an instance: its regret, and how far it is behind the best, replication by replication."""

    policy: str
    regret: Estimate
    behind: Estimate | None
    p: float


def ranking(study: "Study", world: str) -> list[Place]:
    """The policies of an instance, least regret first; p-values are Holm's over the comparisons with the first."""
    values = {policy: record.regret[:, -1] for policy, record in study.of(world).items()}
    order = sorted(values, key=lambda policy: float(np.mean(values[policy])))
    behind = {policy: paired(values[policy], values[order[0]]) for policy in order[1:]}
    adjusted = dict(zip(behind, holm([estimate.p for estimate in behind.values()]), strict=True))
    return [
        Place(policy, mean(values[policy]), behind.get(policy), adjusted.get(policy, float("nan"))) for policy in order
    ]


def overall(study: "Study") -> list[tuple[str, float, int]]:
    """The mean rank of each policy over the instances it ran on, best first, and how often it came first."""
    places: dict[str, list[int]] = {policy: [] for policy in study.policies}
    for ranked in study.rankings.values():
        for rank, place in enumerate(ranked, 1):
            places[place.policy].append(rank)
    rows = [(policy, float(np.mean(ranks)), ranks.count(1)) for policy, ranks in places.items() if ranks]
    return sorted(rows, key=lambda row: row[1])


@dataclass(frozen=True)
class Line:
    """Regret along one axis, all else fixed: ``points`` are (value, estimate); ``slope`` is that of the logs."""

    axis: str
    group: str
    name: str
    x: tuple[Any, ...]
    points: tuple[Estimate, ...]
    slope: Estimate | None


def lines(study: "Study") -> list[Line]:
    """Every line that the sweeps of instances and of policies draw."""
    found = []
    for name, axis, rest, labels in _along(study.worlds):
        for policy in study.policies:
            kept = {x: world for x, world in labels.items() if (world, policy) in study.records}
            cells = [(world, policy) for world in kept.values()]
            found += _line(study, axis, _group(name, rest), policy, list(kept), cells)
    for name, axis, rest, labels in _along(study.policies):
        for world in study.worlds:
            kept = {x: policy for x, policy in labels.items() if (world, policy) in study.records}
            cells = [(world, policy) for policy in kept.values()]
            found += _line(study, f"{name}: {axis}", world, _group(name, rest), list(kept), cells)
    return found


def _along(cases: Mapping[str, Case]) -> list[tuple[str, str, tuple[Any, ...], dict[Any, str]]]:
    """For each name, axis and setting of the other axes: the labels by value on the axis."""
    found: dict[tuple[str, str, tuple[Any, ...]], dict[Any, str]] = {}
    for label, case in cases.items():
        for axis, value in case.axes.items():
            rest = tuple((other, v) for other, v in case.axes.items() if other != axis)
            found.setdefault((case.name, axis, rest), {})[value] = label
    return [(*key, labels) for key, labels in found.items() if len(labels) > 1]


def _group(name: str, rest: tuple[Any, ...]) -> str:
    return Case(name, dict(rest)).label


def _line(study: "Study", axis: str, group: str, name: str, x: list[Any], cells: list[tuple[str, str]]) -> list[Line]:
    if len(x) < 2:
        return []
    values = [study.final(*cell) for cell in cells]
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in x)
    order = sorted(range(len(x)), key=lambda n: x[n]) if numbers else range(len(x))
    x, values = [x[n] for n in order], [values[n] for n in order]
    fitted = slope(np.array(x, float), np.array(values)) if numbers else None
    return [Line(axis, group, name, tuple(x), tuple(mean(v) for v in values), fitted)]


def shares(study: "Study", world: str) -> Floats:
    """How often each policy plays each arm, as a share of the rounds: (n_policies, n_arms)."""
    return np.array([record.pulls.mean(axis=0) / record.rounds[-1] for record in study.of(world).values()])


def coverage(study: "Study", world: str) -> Floats:
    """What each item had of the batches looked at, as a share of its weight: (n_policies, n_items, n_looks)."""
    instance = study.instance(world)
    problem, p = instance.problem, instance.p
    weights = np.where(problem.weights > 0.0, problem.weights, 1.0)
    maps = []
    for record in study.of(world).values():
        seen = np.zeros((len(record.looks), problem.n_items))
        for replication, look in itertools.product(range(len(record.batches)), range(len(record.looks))):
            batch = record.batches[replication, look]
            seen[look] += worths(problem.reward, problem.terms, p, batch[batch >= 0])
        maps.append((seen / len(record.batches) / weights).T)
    return np.array(maps)


@kernel
def worths(reward: Reward, terms: Terms, q: Floats, action: Ints) -> Floats:
    """w_i r_i(action; q) of every item, (n_items,)."""
    memo = fresh(reward, terms)
    for j in action:
        absorb(reward, terms, memo, q, j)
    for i in range(len(memo)):
        memo[i] = worth(reward, terms.weights[i], memo[i])
    return memo
