"""The sections of a report: their content, as plain values for the template."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from superarm.core.describe import build, describe
from superarm.core.errors import InvalidArgument
from superarm.experiments.analysis.bounds import bound_curves, explain_no_bounds, rebuild_policy
from superarm.experiments.analysis.ratios import summarise_ratios
from superarm.experiments.analysis.statistics import Estimate
from superarm.experiments.report.figures import inline_svg
from superarm.experiments.report.heat_maps import plot_coverage, plot_pulls
from superarm.experiments.report.plots import plot_bounds, plot_curves, plot_sweeps
from superarm.experiments.report.tables import ExportedTable
from superarm.simulation.plots import COLOURS, line_style

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study

MAX_MAPPED_INSTANCES = 4
"""Heat maps and bounds are drawn for this many instances; the numbers of all are in the cells."""
MAX_MAPPED_ITEMS = 4_000
"""With more items a heat map would be finer than a screen."""


def legend_entries(study: "Study") -> list[dict[str, Any]]:
    """The legend of all panels: name, colour and dashes of each policy's line."""
    entries = []
    for n, name in enumerate(study.policies):
        dashes = line_style(n)["linestyle"]
        shown = "" if dashes == "-" else " ".join(f"{2.0 * length:g}" for length in dashes[1])
        entries.append({"name": name, "colour": f"var(--c{n % len(COLOURS)})", "dash": shown})
    return entries


def draw_curve_panels(study: "Study", log: bool) -> list[str]:
    """Regret curves, one panel per instance; with ``log`` on logarithmic axes."""
    suffix = ", logarithmic axes" if log else ""
    return [
        inline_svg(
            plot_curves(study, [instance], legend=False, log=log),
            f"{'log-' if log else ''}curves-{n}",
            f"Regret of each policy over rounds on {instance}{suffix}",
        )
        for n, instance in enumerate(study.started_instances)
    ]


def draw_sweep_panels(study: "Study") -> list[dict[str, Any]]:
    """For each axis: one panel per group, and the slopes."""
    lines = study.sweep_lines
    shown = []
    for n, axis in enumerate(dict.fromkeys(line.axis for line in lines)):
        own = [line for line in lines if line.axis == axis]
        panels = [
            inline_svg(
                plot_sweeps([line for line in own if line.group == group], legend=False),
                f"sweep-{n}-{m}",
                f"Regret against {axis} on {group}",
            )
            for m, group in enumerate(dict.fromkeys(line.group for line in own))
        ]
        shown.append({"axis": axis, "panels": panels, "lines": own})
    return shown


def draw_heat_maps(study: "Study") -> list[dict[str, Any]]:
    """Arm pulls and item coverage of the first instances."""
    shown = []
    for n, instance in enumerate(study.started_instances[:MAX_MAPPED_INSTANCES]):
        words = f"How often each policy plays each arm on {instance}"
        pulls, coverage = inline_svg(plot_pulls(study, instance), f"pulls-{n}", words), ""
        if 1 < study.instance(instance).problem.n_items <= MAX_MAPPED_ITEMS:
            words = f"Value of each item in the batches over time on {instance}"
            coverage = inline_svg(plot_coverage(study, instance), f"coverage-{n}", words)
        shown.append({"pulls": pulls, "coverage": coverage})
    return shown


def draw_bounds(study: "Study") -> list[dict[str, Any]]:
    """Regret with the bounds that apply, for the first instances; where none applies, why not."""
    shown = []
    first = list(study.instances)[:MAX_MAPPED_INSTANCES]
    for n, instance in enumerate(label for label in first if label in study.started_instances):
        rounds = next(iter(study.records_for(instance).values())).rounds
        rebuilt = {label: rebuild_policy(one) for label, one in study.records_for(instance).items()}
        policies = {label: policy for label, policy in rebuilt.items() if policy is not None}
        made, target = study.instance(instance), study.target(instance)
        found, figure, reason = bound_curves(made, rounds, target, policies), "", ""
        if found:
            words = f"Regret and its bounds on {instance}"
            figure = inline_svg(plot_bounds(study, instance, found), f"bounds-{n}", words)
        else:
            reason = explain_no_bounds(made, target, policies)
        finals = {label: float(values[-1]) for label, values in found.items()}
        shown.append({"instance": instance, "figure": figure, "finals": finals, "reason": reason})
    return shown


def describe_instances(study: "Study") -> list[dict[str, Any]]:
    """The sizes and components of each instance, and the target of regret."""
    rows = []
    for label in study.started_instances:
        instance, record = study.instance(label), next(iter(study.records_for(label).values()))
        problem, target = instance.problem, record.metadata["target"]
        rows.append(
            {
                "label": label,
                "n_arms": problem.n_arms,
                "n_items": problem.n_items,
                "k": problem.k,
                "reward": format_description(describe(problem.reward)),
                "actions": type(problem.actions).__name__,
                "outcomes": type(instance.environment).__name__,
                "target": target["value"],
                "kind": target["kind"],
                "r_max": target["r_max"],
            }
        )
    return rows


def describe_policies(study: "Study") -> list[tuple[str, str, str]]:
    """The label of each policy, its components with their parameters, and its caveat."""
    found = {}
    for (_, policy), record in study.records.items():
        description = record.metadata["policy"]
        found[policy] = policy, format_description(description), find_caveat(description)
    return [found[policy] for policy in study.policies if policy in found]


def find_caveat(description: Any) -> str:
    """The assumption that the described policy states and that may not hold; empty if it states none."""
    try:
        return str(build(description).caveat)
    except InvalidArgument:  # a component of the user's own, from a module that is not imported here
        return ""


def format_description(description: Any) -> str:
    """The description of a component as the call that makes it.

    >>> format_description({"type": "superarm.indices.bernstein:Bernstein", "rho": 3.0})
    'Bernstein(rho=3)'
    """
    if isinstance(description, Mapping) and "type" in description:
        inner = ", ".join(f"{key}={format_description(value)}" for key, value in description.items() if key != "type")
        return f"{description['type'].rpartition(':')[2]}({inner})"
    if isinstance(description, Mapping):
        return f"array{tuple(description['shape'])}"
    return f"{description:g}" if isinstance(description, float) else str(description)


def make_tables(study: "Study") -> list[ExportedTable]:
    """The tables that are written to files."""
    rows, against = study.final_regrets, f"{study.targets} target"
    ranks = [
        (instance, r.policy, r.regret.value, *_interval(r.behind), None if math.isnan(r.p) else r.p)
        for instance, ranking in study.rankings.items()
        for r in ranking
    ]
    tables = [
        ExportedTable(
            "regret", f"Regret at the horizon ({against})", tuple(rows[0]), [tuple(row.values()) for row in rows]
        ),
        ExportedTable(
            "ranking",
            f"Ranking by regret ({against}), and paired differences from the best (95 % intervals, Holm's p)",
            ("instance", "policy", "regret", "behind", "behind_low", "behind_high", "p_holm"),
            ranks,
        ),
    ]
    tails = study.tails
    caption = (
        f"Quantiles and maximum of the regret at the horizon ({against}), locked runs, and regret against the optimum"
    )
    tables.append(ExportedTable("tails", caption, tuple(tails[0]), [tuple(row.values()) for row in tails]))
    ratios = summarise_ratios(study)
    if ratios:
        caption = f"Geometric means of regret ratios over instances ({against}), with 95 % intervals over instances"
        tables.append(ExportedTable("ratios", caption, tuple(ratios[0]), [tuple(row.values()) for row in ratios]))
    slopes = [(line.group, line.name, line.axis, *_interval(line.slope)) for line in study.sweep_lines]
    if slopes:
        head = ("instance", "policy", "axis", "slope", "slope_low", "slope_high")
        words = "intervals cover simulation noise only"
        caption = f"Slope of log regret ({against}) in the log of the swept parameter; {words}"
        tables.append(ExportedTable("slopes", caption, head, slopes))
    return tables


def _interval(estimate: Estimate | None) -> tuple[float | None, float | None, float | None]:
    if estimate is None:
        return None, None, None
    low, high = (None if math.isnan(x) else x for x in (estimate.low, estimate.high))
    return estimate.value, low, high
