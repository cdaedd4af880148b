"""Two studies, cell by cell: how much the regret of the same policy on the same instance differs."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from superarm.experiments.analysis.summary import microseconds_per_round
from superarm.experiments.report.figures import inline_svg, plot_curves
from superarm.experiments.report.report import render
from superarm.experiments.store import write_text
from superarm.output.table import format_number
from superarm.simulation.statistics import Estimate, estimate_mean, paired_difference, unpaired_difference

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study


_COMPARED_SETTINGS = ("horizon", "replications", "seed", "target")


@dataclass(frozen=True)
class CellPair:
    """A cell that both studies have: the regret in each, second minus first, and microseconds per round in each.

    ``paired`` says whether the difference was taken replication by replication, ``same`` whether the regret of both is
    equal in every bit.
    """

    instance: str
    policy: str
    first: Estimate
    second: Estimate
    difference: Estimate
    paired: bool
    same: bool
    run_time: tuple[float, float]


def pair_cells(a: "Study", b: "Study") -> list[CellPair]:
    """Every cell whose labels are in both studies, paired by replication if both saw the same outcomes."""
    found = []
    for labels, first in a.records.items():
        if labels not in b.records:
            continue
        second = b.records[labels]
        x, y = first.regret[:, -1], second.regret[:, -1]
        alike = first.metadata["instance"] == second.metadata["instance"] and len(x) == len(y)
        shared = alike and a.experiment.seed == b.experiment.seed and a.experiment.horizon == b.experiment.horizon
        difference = paired_difference(y, x) if shared else unpaired_difference(y, x)
        same = bool(np.array_equal(first.regret, second.regret))
        times = (microseconds_per_round(first), microseconds_per_round(second))
        found.append(CellPair(*labels, estimate_mean(x), estimate_mean(y), difference, shared, same, times))
    return found


def list_unpaired(a: "Study", b: "Study") -> list[tuple[str, str]]:
    """The labels of the cells that only one of the studies has."""
    return sorted(set(a.records) ^ set(b.records))


def differing_settings(a: "Study", b: "Study") -> list[tuple[str, str, str]]:
    """The settings in which the experiments differ, with both values."""
    values = [(key, str(getattr(a.experiment, key)), str(getattr(b.experiment, key))) for key in _COMPARED_SETTINGS]
    return [(key, x, y) for key, x, y in values if x != y]


def differing_versions(a: "Study", b: "Study") -> list[tuple[str, str, str]]:
    """The packages whose versions differ, with both versions."""
    first, second = a.provenance["versions"], b.provenance["versions"]
    return [(name, str(first[name]), str(second.get(name))) for name in first if first[name] != second.get(name)]


def format_comparison(a: "Study", b: "Study") -> list[str]:
    """The comparison as lines of text."""
    pairs = pair_cells(a, b)
    lines = [f"first:  {a.directory} ({a.digest})", f"second: {b.directory} ({b.digest})"]
    lines += [f"{key}: {x} and {y}" for key, x, y in differing_settings(a, b)]
    if not pairs:
        return [*lines, "no instance and policy is in both"]
    width = max(len(f"{pair.policy} on {pair.instance}") for pair in pairs)
    for pair in pairs:
        name = f"{pair.policy} on {pair.instance}"
        values = f"{format_number(pair.first.value):>10} {format_number(pair.second.value):>10}"
        lines.append(f"{name:<{width}}  {values}  {describe_difference(pair)}")
    return lines + [f"only in one: {policy} on {instance}" for instance, policy in list_unpaired(a, b)]


def describe_difference(pair: CellPair) -> str:
    """The difference with its error and p-value, or the statement that both are equal."""
    if pair.same:
        return "identical to the bit"
    error = format_number(pair.difference.error, 3)
    p = "" if math.isnan(pair.difference.p) else f", p {pair.difference.p:.3f}"
    kind = "paired" if pair.paired else "unpaired"
    return f"{format_number(pair.difference.value)} ± {error} (half a 95 % interval, {kind}{p})"


def write_comparison(a: "Study", b: "Study", path: Path) -> None:
    """Write the comparison as an HTML page, with the regret curves of both studies next to each other."""
    shared = [instance for instance in a.started_instances if instance in b.started_instances]
    panels = [
        (
            inline_svg(plot_curves(a, [instance]), f"first-{n}", f"first run, {instance}"),
            inline_svg(plot_curves(b, [instance]), f"second-{n}", f"second run, {instance}"),
        )
        for n, instance in enumerate(shared)
    ]
    context = {
        "a": a,
        "b": b,
        "pairs": pair_cells(a, b),
        "describe_difference": describe_difference,
        "panels": panels,
        "differing": differing_settings(a, b) + differing_versions(a, b),
        "only": list_unpaired(a, b),
    }
    write_text(path, render("compare.html", context))
