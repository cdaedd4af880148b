"""The estimators against simulated truth, ``python -m dev.validation``: bias, error, coverage of intervals.

All scenarios have 10 arms, 4 items, slates of 3 and the coverage reward. The means are drawn from [0.02, 0.4].
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import click
import numpy as np

from superarm.actions import Subsets
from superarm.core.arrays import Floats, Ints
from superarm.environments import Bernoulli
from superarm.indices import KL
from superarm.offline.estimators.entries import entry_intervals, entry_means
from superarm.offline.estimators.methods import METHODS
from superarm.offline.estimators.targets import mix_slates
from superarm.offline.log import Log
from superarm.offline.simulated import draw_log, simulate_log
from superarm.offline.value import by_intervals, by_scores
from superarm.oracles import Exhaustive, solve
from superarm.policies import IndexPolicy
from superarm.problem import Problem
from superarm.rewards import Coverage
from superarm.simulation.instances import Instance

PROBLEM = Problem(10, 4, Coverage(), Subsets(3))
N_CONTEXTS = 5


class Scenario(NamedTuple):
    """A kind of log: its name, how to draw one from a seed and a number of rounds, the target and its true value."""

    name: str
    draw: Callable[[int, int], Log]
    target: list[int]
    truth: float


class EstimatorErrors(NamedTuple):
    """The errors of one estimator in one scenario, and how often its 95 % interval held.

    ``unknown`` counts the logs that gave no estimate, because no slate of the target was in them; they are left out.
    """

    scenario: str
    method: str
    bias: float
    deviation: float
    error: float
    covered: float
    unknown: int


def list_scenarios() -> list[Scenario]:
    """The scenarios: uniform slates, exploration, a policy that learns, contexts hidden from the log, a slot effect."""
    rng = np.random.default_rng(11)
    p = rng.uniform(0.02, 0.4, (10, 4))
    shown = np.argsort(-p.sum(axis=1))[1:4]  # good arms, not the best
    target = [int(j) for j in np.argsort(-p.sum(axis=1))[:3]]
    contexts = np.clip(p + rng.normal(0.0, 0.1, (N_CONTEXTS, 10, 4)), 0.0, 1.0)
    favourites = np.argsort(-contexts.sum(axis=2), axis=1)[:, :3]
    instance, learns = Instance(PROBLEM, Bernoulli(p)), IndexPolicy(KL())
    value = PROBLEM.value(p, target)
    slots = np.array([1.0, 0.7, 0.5])[None, :, None]

    def fixed(queue: Ints, share: float, means: Any) -> Callable[[int, int], Log]:
        return lambda seed, n: draw_log(PROBLEM, means, np.tile(queue, (n, 1)), share, np.random.default_rng(seed))

    return [
        Scenario("uniform slates", fixed(shown, 1.0, lambda slates: p[slates]), target, value),
        Scenario("30 % of slots explored", fixed(shown, 0.3, lambda slates: p[slates]), target, value),
        Scenario("KL-UCB learns, 30 % explored", lambda s, n: simulate_log(instance, learns, n, 0.3, s), target, value),
        Scenario(
            "contexts that the log lacks, 30 %",
            lambda seed, n: _log_without_contexts(contexts, favourites, n, np.random.default_rng(seed)),
            target,
            float(np.mean([PROBLEM.value(one, target) for one in contexts])),
        ),
        Scenario(
            "slots matter, 30 % explored",
            fixed(shown, 0.3, lambda slates: p[slates] * slots),
            target,
            _value_in_slots(p, target, slots[0, :, 0]),
        ),
    ]


def _log_without_contexts(contexts: Floats, favourites: Ints, n: int, rng: np.random.Generator) -> Log:
    """The logger knows the context of each round and shows its favourites; the log does not hold it."""
    context = rng.integers(0, N_CONTEXTS, n)
    return draw_log(PROBLEM, lambda slates: contexts[context[:, None], slates], favourites[context], 0.3, rng)


def _value_in_slots(p: Floats, target: list[int], slots: Floats) -> float:
    missed = np.prod(1.0 - p[target] * slots[:, None], axis=0)
    return float((1.0 - missed).sum())


def measure_estimators(n_rounds: int, replications: int) -> list[EstimatorErrors]:
    """The errors of every estimator in every scenario."""
    found = []
    for scenario in list_scenarios():
        logs = [scenario.draw(seed, n_rounds) for seed in range(replications)]
        for name in METHODS:
            estimates = np.array([_estimate(log, scenario.target, name) for log in logs])
            known = ~np.isnan(estimates[:, 0])
            estimates = estimates[known]
            error = estimates[:, 0] - scenario.truth
            inside = (estimates[:, 1] <= scenario.truth) & (scenario.truth <= estimates[:, 2])
            found.append(_summary(scenario.name, name, error, inside, int((~known).sum())))
    return found


def _summary(scenario: str, name: str, error: Floats, inside: Any, unknown: int) -> EstimatorErrors:
    if len(error) < 2:
        return EstimatorErrors(scenario, name, math.nan, math.nan, math.nan, math.nan, unknown)
    root = math.sqrt(float((error**2).mean()))
    return EstimatorErrors(
        scenario, name, float(error.mean()), float(error.std(ddof=1)), root, float(inside.mean()), unknown
    )


def _estimate(log: Log, target: list[int], name: str) -> tuple[float, float, float]:
    """The estimate and the ends of its 95 % interval."""
    method = METHODS[name]
    if method.score is None:
        found = by_intervals(log, mix_slates(log, target), mix_slates(log, "logged"), 0.05)[0]
    else:
        found = by_scores(log, method, target, "logged", 0.05)[0]
    return found.value, found.low, found.high


class LearningErrors(NamedTuple):
    """How far the slates that a rule chose fell short of the best one: on average, and in 95 % of the logs."""

    rule: str
    mean: float
    high: float


def measure_learning(n_rounds: int, replications: int) -> list[LearningErrors]:
    """The slates of three rules, on logs of a good slate with 2 % of the slots explored: other arms are hardly known.

    ``means``: the best slate at the means. ``KL-CLCB`` and ``CLCB``: at the lower ends of KL and of Hoeffding's
    intervals.
    """
    rng = np.random.default_rng(5)
    p = rng.uniform(0.02, 0.4, (10, 4))
    queues = np.tile(np.argsort(-p.sum(axis=1))[1:4], (n_rounds, 1))
    best = max(PROBLEM.value(p, slate) for slate in PROBLEM.actions.batches(10))
    lost: dict[str, list[float]] = {"means": [], "KL-CLCB": [], "CLCB": []}
    for seed in range(replications):
        log = draw_log(PROBLEM, lambda slates: p[slates], queues, 0.02, np.random.default_rng(seed))
        means = entry_means(log)
        n = np.maximum(means.seen[0], 1e-9)
        radius = np.sqrt(math.log(4.0 * PROBLEM.n_entries * n_rounds / 0.05) / (2.0 * n))
        scores = {
            "means": means.mean[0],
            "KL-CLCB": entry_intervals(means, 0.05).low[0],
            "CLCB": np.maximum(means.mean[0] - radius, 0.0),
        }
        for rule, q in scores.items():
            lost[rule].append(best - PROBLEM.value(p, solve(PROBLEM, q, Exhaustive())))
    return [LearningErrors(rule, float(np.mean(x)), float(np.quantile(x, 0.95))) for rule, x in lost.items()]


def format_errors(found: list[EstimatorErrors]) -> list[str]:
    """The errors as a Markdown table, one line per estimator: bias, RMSE and how often the interval held.

    A dash where fewer than two logs gave an estimate.
    """
    scenarios = list(dict.fromkeys(one.scenario for one in found))
    lines = ["| method | " + " | ".join(scenarios) + " |", "|---" * (1 + len(scenarios)) + "|"]
    for name in dict.fromkeys(one.method for one in found):
        cells = [_format_cell(one) for one in found if one.method == name]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return lines


def _format_cell(one: EstimatorErrors) -> str:
    if math.isnan(one.error):
        return "–"
    without = f" (none in {one.unknown} logs)" if one.unknown else ""
    return f"{one.bias:+.3f}, {one.error:.3f}, {100 * one.covered:.0f} %{without}"


def format_learning(found: list[LearningErrors]) -> list[str]:
    """How far learnt slates fell short, as a Markdown table."""
    lines = ["| slate that is best at | mean shortfall | in 95 % of the logs below |", "|---|---|---|"]
    return lines + [f"| {one.rule} | {one.mean:.3f} | {one.high:.3f} |" for one in found]


@click.command()
@click.option("--rounds", type=click.IntRange(20), default=2000, show_default=True, help="Rounds per log.")
@click.option("--replications", type=click.IntRange(2), default=100, show_default=True, help="Logs per kind.")
def main(rounds: int, replications: int) -> None:
    """Measure every estimator on simulated logs of which the truth is known."""
    click.echo("\n".join(format_errors(measure_estimators(rounds, replications))))
    click.echo()
    click.echo("\n".join(format_learning(measure_learning(rounds, replications))))


if __name__ == "__main__":
    main()
