"""Figures of regret over rounds, along sweeps and beside its bounds, and of run time."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.experiments.analysis.summary import SweepLine
from superarm.experiments.report.axes import (
    INK,
    add_legend,
    count_legend_rows,
    format_log_tick,
    format_tick,
    new_panels,
    set_log_x,
    set_log_y,
    set_titles,
    wide_panel,
)
from superarm.simulation.plots import draw_curves, line_style

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study

MAX_POINTS = 70
"""The points of a line; more cannot be told apart at the size of a panel."""
_BOUND_STYLES = ("-", "--", "-.", ":", (0, (1, 3)), (0, (6, 2, 1, 2)))


def plot_curves(study: "Study", instances: Sequence[str], legend: bool = True, log: bool = False) -> Any:
    """Mean regret over rounds with 95 % bands of the mean: one panel per instance, one line per policy.

    With ``log`` both axes are logarithmic.
    """
    names = list(study.policies)
    styles = {name: line_style(n) for n, name in enumerate(names)}
    figure, panels = new_panels(len(instances), legend_rows=count_legend_rows(len(instances), names) if legend else 0)
    for axes, instance in zip(panels, instances, strict=True):
        for policy, record in study.records_for(instance).items():
            kept = _thin_out(len(record.rounds))
            lowest = _smallest_mean(record.regret) if log else -np.inf
            draw_curves(axes, record.rounds[kept], {policy: record.regret[:, kept]}, styles, 1.6, lowest)
            mark_policy([axes.lines[-1], *axes.collections[-1:]], names.index(policy))
        axes.set_xlim(1 if log else 0, study.experiment.horizon)
        if log:
            axes.set_xscale("log")
            axes.set_yscale("log")
        axes.xaxis.set_major_formatter(lambda x, _: format_tick(x))
        axes.yaxis.set_major_formatter(format_log_tick if log else lambda y, _: format_tick(y))
        set_titles(axes, instance, "round", _regret_label(study.target(instance)))
    if legend:
        add_legend(figure, panels)
    return figure


def plot_sweeps(lines: Sequence[SweepLine], legend: bool = True) -> Any:
    """Regret along an axis: one panel per group, one line per policy, log-log where all means are positive."""
    groups = list(dict.fromkeys(line.group for line in lines))
    names = list(dict.fromkeys(line.name for line in lines))
    figure, panels = new_panels(len(groups), legend_rows=count_legend_rows(len(groups), names) if legend else 0)
    for axes, group in zip(panels, groups, strict=True):
        _draw_sweeps(axes, [line for line in lines if line.group == group], names)
        kinds = dict.fromkeys(kind for line in lines if line.group == group for kind in line.targets)
        set_titles(axes, group, lines[0].axis, _regret_label(" or ".join(kinds)))
    if legend:
        add_legend(figure, panels)
    return figure


def _draw_sweeps(axes: Any, lines: Sequence[SweepLine], names: Sequence[str]) -> None:
    numbers = all(isinstance(x, int | float) for line in lines for x in line.x)
    for line in lines:
        x = line.x if numbers else range(len(line.x))
        mean = [point.value for point in line.points]
        error = [0.0 if math.isnan(point.error) else point.error for point in line.points]
        style = line_style(names.index(line.name)) | {"marker": "o", "markersize": 3.5, "linewidth": 1.6}
        drawn = axes.errorbar(x, mean, error, label=line.name, capsize=2.5, **style)
        mark_policy(drawn.get_children(), names.index(line.name))
    if numbers and all(point.value > 0.0 for line in lines for point in line.points):
        set_log_y(axes)
        set_log_x(axes, sorted({x for line in lines for x in line.x}))
    elif not numbers:
        axes.set_xticks(range(len(lines[0].x)), [str(x) for x in lines[0].x])


def plot_bounds(study: "Study", instance: str, bounds: Mapping[str, Any]) -> Any:
    """Mean regret and its bounds, with logarithmic axes."""
    names = list(study.policies)
    records = study.records_for(instance)
    figure, (axes,) = new_panels(1, columns=1, height=3.6, legend_rows=count_legend_rows(1, [*records, *bounds], 1))
    rounds = next(iter(records.values())).rounds
    for policy, record in records.items():
        axes.plot(rounds, _positive(record.regret.mean(axis=0)), label=policy, linewidth=1.6, **_style(names, policy))
    for n, (label, values) in enumerate(bounds.items()):
        style = _BOUND_STYLES[n % len(_BOUND_STYLES)]
        axes.plot(rounds, _positive(values), label=label, color=INK, linewidth=1.0, linestyle=style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    set_titles(axes, instance, "round", _regret_label(study.target(instance)))
    add_legend(figure, [axes])
    return figure


def plot_run_times(study: "Study") -> Any:
    """Microseconds per round: one point per instance, one row per policy."""
    names = list(study.policies)
    figure, axes = wide_panel(0.8 + 0.26 * len(names), names)
    rows = study.final_regrets
    for row in rows:
        n = names.index(row["policy"])
        axes.plot(row["us_per_round"], n, "o", color=line_style(n)["color"], markersize=5, alpha=0.75)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    times = [row["us_per_round"] for row in rows]
    axes.set_xlim(0.7 * min(times), 1.4 * max(times))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(format_log_tick)
    axes.xaxis.set_minor_formatter(format_log_tick)
    set_titles(axes, "", "µs per round (processor time)", "")
    return figure


def _regret_label(kind: str) -> str:
    """The label of an axis of regret, which names the target."""
    return f"regret ({kind} target)"


def _style(names: Sequence[str], policy: str) -> dict[str, Any]:
    return line_style(names.index(policy))


def mark_policy(artists: Sequence[Any], n: int) -> None:
    """Mark what was drawn for the n-th policy, so that the report can hide it."""
    for artist in artists:
        artist.set_gid(f"policy-{n}")


def _smallest_mean(regret: Any) -> float:
    """The smallest positive mean over replications: where a line of a log axis ends that goes down to 0."""
    means = regret.mean(axis=0)
    return float(means[means > 0.0].min()) if (means > 0.0).any() else 1.0


def _positive(values: Any) -> Any:
    """The values with NaN in place of those that a log axis cannot show."""
    return np.where(values > 0.0, values, np.nan)


def _thin_out(n: int) -> Any:
    """At most ``MAX_POINTS`` evenly spaced positions out of ``n``."""
    return np.unique(np.linspace(0, n - 1, min(n, MAX_POINTS)).astype(int))
