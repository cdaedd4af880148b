"""A comparison of two studies, as text and as an HTML page."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

from superarm.experiments.analysis.comparison import (
    CellPair,
    differing_settings,
    differing_versions,
    list_unpaired,
    pair_cells,
)
from superarm.experiments.report.figures import inline_svg
from superarm.experiments.report.plots import plot_curves
from superarm.experiments.report.report import render
from superarm.experiments.store import write_text
from superarm.pages.numbers import format_number

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study


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
    return f"{format_number(pair.difference.value)} ± {error} ({kind}{p})"


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
