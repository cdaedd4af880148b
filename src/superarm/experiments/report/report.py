"""The report: one self-contained HTML file, with figures and tables for papers beside it."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import superarm
from superarm.experiments.analysis.ratios import summarise_ratios
from superarm.experiments.analysis.summary import mean_ranks
from superarm.experiments.report import sections
from superarm.experiments.report.figures import data_uri, inline_svg, write_figure
from superarm.experiments.report.plots import plot_curves, plot_run_times, plot_sweeps
from superarm.experiments.store import write_text
from superarm.pages.rendering import render_page
from superarm.simulation.plots import to_png
from superarm.theory.theorems import COMPLETE

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study

MAX_PANELS = 8
"""The panels of a figure for papers; ``study.plot(instance)`` draws any other instance."""
NOTEBOOK_INSTANCES = 4
"""The instances that a notebook shows."""


def write_report(study: "Study") -> Path:
    """Write ``report.html``, ``figures/`` and ``tables/`` into the study's directory; return the path of the report."""
    directory = study.directory
    tables = sections.make_tables(study)
    files = [f"figures/{name}" for name in _write_figures(study, directory / "figures")]
    files += [f"tables/{name}" for table in tables for name in table.write(directory / "tables")]
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
            names += write_figure(plot_curves(study, instances[:MAX_PANELS]), directory, f"curves-{slug(name)}")
    lines = study.sweep_lines
    for axis in dict.fromkeys(line.axis for line in lines):
        figure = plot_sweeps([line for line in lines if line.axis == axis])
        names += write_figure(figure, directory, f"sweep-{slug(axis)}")
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
        "legend": sections.legend_entries(study),
        "judgements": study.judgements,
        "held": sum(judgement.holds is True for judgement in study.judgements),
        "instances": sections.describe_instances(study),
        "policies": sections.describe_policies(study),
        "curves": sections.draw_curve_panels(study, log=False),
        "log_curves": sections.draw_curve_panels(study, log=True),
        "rankings": study.rankings,
        "overall": mean_ranks(study),
        "tails": study.tails,
        "ratios": summarise_ratios(study),
        "sweeps": sections.draw_sweep_panels(study),
        "heat_maps": sections.draw_heat_maps(study),
        "bounds": sections.draw_bounds(study),
        "assumptions": f"They assume {COMPLETE}; other theorems, such as those of lists, say what they assume.",
        "run_times": inline_svg(plot_run_times(study), "run-times", "Microseconds per round of each policy"),
        "spec": study.experiment.to_toml(),
    }


def render_notebook(study: "Study") -> str:
    """A short form for notebooks: the figure and the rankings of the first instances."""
    instances = study.started_instances
    figure = study.plot(instances[0]) if len(instances) == 1 else plot_curves(study, instances[:NOTEBOOK_INSTANCES])
    rankings = {instance: study.rankings[instance] for instance in instances[:NOTEBOOK_INSTANCES]}
    picture = data_uri(to_png(figure))
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
