"""The report: one self-contained HTML file, with figures and tables for papers beside it."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import superarm
from superarm.experiments.analysis.bounds import bound_curves, explain_no_bounds, rebuild_policy
from superarm.experiments.analysis.summary import SweepLine, mean_ranks, summarise_ratios
from superarm.experiments.report import figures
from superarm.experiments.report.figures import inline_svg, mark_vacuous
from superarm.experiments.report.tables import describe_policies, make_tables, write_table
from superarm.experiments.store import write_text
from superarm.output.pages import render_page
from superarm.simulation.plots import COLOURS, line_style, to_png
from superarm.theory.theorems import COMPLETE

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study

MAX_PANELS = 8
"""The panels of a figure for papers; ``study.plot(instance)`` draws any other instance."""
NOTEBOOK_INSTANCES = 4
"""The instances that a notebook shows."""
MAX_MAPPED_INSTANCES = 4
"""Heat maps and bounds are drawn for this many instances; the numbers of all are in the cells."""
MAX_MAPPED_ITEMS = 4_000
"""With more items a heat map would be finer than a screen."""


def write_report(study: "Study") -> Path:
    """Write ``report.html``, ``figures/`` and ``tables/`` into the study's directory; return the path of the report."""
    directory = study.directory
    tables = make_tables(study)
    files = [f"figures/{name}" for name in _write_figures(study, directory / "figures")]
    for name, table in tables.items():
        files += [f"tables/{file}" for file in write_table(table, directory / "tables", name)]
    path = directory / "report.html"
    write_text(path, render("report.html", _context(study) | {"files": files}))
    return path


def render(name: str, context: dict[str, Any]) -> str:
    """The template ``name`` with ``context`` filled in."""
    filters: dict[str, Any] = {"stars": stars, "paragraphs": split_paragraphs}
    return render_page("superarm.experiments.report", name, context, filters)


def _write_figures(study: "Study", directory: Path) -> list[str]:
    """Write the figures for papers, with legends: regret curves per declared instance, and regret along each axis."""
    names = []
    for name in dict.fromkeys(case.name for case in study.instances.values()):
        instances = [label for label in study.started_instances if study.instances[label].name == name]
        if instances:
            names += figures.write_figure(
                figures.plot_curves(study, instances[:MAX_PANELS]), directory, f"curves-{slug(name)}"
            )
    for axis, own in _lines_by_axis(study).items():
        figure = figures.plot_sweeps(own)
        names += figures.write_figure(figure, directory, f"sweep-{slug(axis)}")
    return names


def _context(study: "Study") -> dict[str, Any]:
    """What the template of the report is filled with."""
    return {
        "study": study,
        "experiment": study.experiment,
        "spec_digest": study.manifest["spec"],
        "computed": study.provenance,
        "version": superarm.__version__,
        "title": study.experiment.title or study.experiment.name,
        "legend": legend_entries(study),
        "judgements": study.judgements,
        "held": sum(judgement.holds is True for judgement in study.judgements),
        "instances": describe_instances(study),
        "policies": describe_policies(study),
        "curves": draw_curve_panels(study, log=False),
        "log_curves": draw_curve_panels(study, log=True),
        "paper": study.html(),
        "runs": dict.fromkeys(study.describe_runs(label) for label in study.started_instances),
        "rankings": study.rankings,
        "overall": mean_ranks(study),
        "tails": study.tails,
        "ratios": summarise_ratios(study),
        "sweeps": draw_sweep_panels(study),
        "heat_maps": draw_heat_maps(study),
        "bounds": draw_bounds(study),
        "assumptions": f"They assume {COMPLETE}; others, such as those of lists and totals, say what they assume.",
        "run_times": inline_svg(figures.plot_run_times(study), "run-times", "Microseconds per round of each policy"),
        "spec": study.experiment.to_toml(),
    }


def render_notebook(study: "Study") -> str:
    """A short form for notebooks: the figure and the rankings of the first instances."""
    instances = study.started_instances
    figure = (
        study.plot(instances[0]) if len(instances) == 1 else figures.plot_curves(study, instances[:NOTEBOOK_INSTANCES])
    )
    rankings = {instance: study.rankings[instance] for instance in instances[:NOTEBOOK_INSTANCES]}
    picture = figures.data_uri(to_png(figure))
    context = {"study": study, "picture": picture, "rankings": rankings, "more": len(instances) - len(rankings)}
    return render("notebook.html", context)


def slug(name: str) -> str:
    """A name without the characters that file names should not have.

    >>> slug("BC-UCB: rho")
    'BC-UCB-rho'
    """
    return "-".join("".join(c if c.isalnum() or c in "-_." else " " for c in name).split())


def stars(p: float) -> str:
    """The significance of a p-value, in the usual notation."""
    return "" if math.isnan(p) else "***" if p < 0.001 else "**" if p < 0.01 else "*" if p < 0.05 else "n. s."


def split_paragraphs(text: str) -> list[str]:
    """Text divided at empty lines."""
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


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
            figures.plot_curves(study, [instance], legend=False, log=log),
            f"{'log-' if log else ''}curves-{n}",
            f"Regret of each policy over rounds on {instance}{suffix}",
        )
        for n, instance in enumerate(study.started_instances)
    ]


def draw_sweep_panels(study: "Study") -> list[dict[str, Any]]:
    """For each axis: one panel per group, and the slopes."""
    shown = []
    for n, (axis, own) in enumerate(_lines_by_axis(study).items()):
        panels = [
            inline_svg(
                figures.plot_sweeps([line for line in own if line.group == group], legend=False),
                f"sweep-{n}-{m}",
                f"Regret against {axis} on {group}",
            )
            for m, group in enumerate(dict.fromkeys(line.group for line in own))
        ]
        shown.append({"axis": axis, "panels": panels, "lines": own})
    return shown


def _lines_by_axis(study: "Study") -> dict[str, Sequence[SweepLine]]:
    axes = dict.fromkeys(line.axis for line in study.sweep_lines)
    return {axis: [line for line in study.sweep_lines if line.axis == axis] for axis in axes}


def draw_heat_maps(study: "Study") -> list[dict[str, Any]]:
    """Arm pulls and item coverage of the first instances."""
    shown = []
    alone = [label for label in study.started_instances if not study.is_family(label)]
    for n, instance in enumerate(alone[:MAX_MAPPED_INSTANCES]):
        words = f"How often each policy plays each arm on {instance}"
        pulls, coverage = inline_svg(figures.plot_pulls(study, instance), f"pulls-{n}", words), ""
        if 1 < study.instance(instance).problem.n_items <= MAX_MAPPED_ITEMS:
            words = f"Value of each item in the batches over time on {instance}"
            coverage = inline_svg(figures.plot_coverage(study, instance), f"coverage-{n}", words)
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
        alone = not study.is_family(instance)
        found, figure, reason = bound_curves(made, rounds, target, policies) if alone else {}, "", ""
        if not alone:
            reason = "Bounds are those of one instance, and this is a family."
        elif found:
            words = f"Regret and its bounds on {instance}"
            figure = inline_svg(figures.plot_bounds(study, instance, found), f"bounds-{n}", words)
        else:
            reason = explain_no_bounds(made, target, policies)
        finals = {mark_vacuous(label, bound): float(bound.value[-1]) for label, bound in found.items()}
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
                "draws": len(record.regret) if study.is_family(label) else 1,
                "n_arms": problem.n_arms,
                "n_items": problem.n_items,
                "k": problem.k,
                "reward": repr(problem.reward),
                "actions": type(problem.actions).__name__,
                "outcomes": type(instance.environment).__name__,
                "target": target["value"],
                "kind": target["kind"],
                "r_max": target["r_max"],
            }
        )
    return rows
