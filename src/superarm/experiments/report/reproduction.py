"""Reproductions of published results: what is run, and one page with one figure of published against measured."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superarm.core.errors import InvalidSpec
from superarm.experiments.analysis.published import ALARM, PublishedCell, compare_published, is_about
from superarm.experiments.report.figures import INK, inline_svg, new_panels, set_titles, write_figure
from superarm.experiments.report.report import render
from superarm.experiments.spec.build import PLAYED_BY
from superarm.experiments.store import write_text
from superarm.output.pages import format_p
from superarm.output.table import Measured, ResultTable
from superarm.simulation.plots import COLOURS

if TYPE_CHECKING:
    from superarm.experiments.analysis.study import Study
    from superarm.experiments.spec.experiment import Experiment

QUICK_RUNS = 4
"""The replications of ``superarm reproduce --quick``."""


def reduce_to_published(experiment: "Experiment", quick: bool = False) -> "Experiment":
    """The cells for which there is a published number; with ``quick`` each policy on one instance, few times."""
    claims = [claim for claim in experiment.claims if claim["kind"] == "reported"]
    if not claims:
        raise InvalidSpec(("claims",), "no claim of the kind reported", 'add one: kind = "reported", regret = …')
    instances: dict[str, Any] = {}
    played = set[str]()
    for name, entry in experiment.instances.items():
        own = [claim["policy"] for claim in claims if is_about(claim, name)]
        if own and not (quick and played >= set(own)):
            instances[name] = {**entry, PLAYED_BY: [*dict.fromkeys(own)]}
            played |= set(own)
    policies = {name: entry for name, entry in experiment.policies.items() if name in played}
    claims = [claim for claim in claims if any(is_about(claim, name) for name in instances)]
    runs = min(QUICK_RUNS, experiment.replications) if quick else experiment.replications
    return replace(experiment, instances=instances, policies=policies, claims=claims, replications=runs)


def list_cells(study: "Study") -> list[PublishedCell]:
    """The published numbers of a study beside the measured ones."""
    return compare_published(study, [claim for claim in study.experiment.claims if claim["kind"] == "reported"])


def tabulate(cells: Sequence[PublishedCell]) -> ResultTable:
    """One row for each published number, misses marked; errors are standard errors, intervals are of 95 %."""
    rows = [
        {
            "Instance": cell.instance,
            "Policy": cell.policy,
            "Round": cell.round,
            "Published": Measured(float(cell.claim["regret"]), cell.error),
            "Here": Measured(cell.mean, cell.deviation / cell.runs**0.5),
            "Runs": cell.runs,
            "Difference": f"{cell.difference.value:.4g} [{cell.difference.low:.4g}, {cell.difference.high:.4g}]",
            "p (Holm)": format_p(cell.p),
            "Agrees": {True: "yes", False: "NO", None: "–"}[cell.agrees],
        }
        for cell in cells
    ]
    return ResultTable(rows)


def summarise(study: "Study") -> str:
    """One line: the result, how many of its cells agree, and those that do not."""
    cells = list_cells(study)
    missed = [f"{cell.policy} on {cell.instance}" for cell in cells if cell.agrees is False]
    source = study.experiment.published
    where = f"{source['paper']}, {source['place']}" if source else study.experiment.title
    told = f"; differs: {', '.join(missed)}" if missed else ""
    return f"{study.experiment.name}: {sum(bool(cell.agrees) for cell in cells)} of {len(cells)} agree{told} ({where})"


def plot_published(studies: Sequence["Study"]) -> Any:
    """Measured over published regret with 95 % intervals, one panel for each result."""
    figure, panels = new_panels(len(studies), 2, 2.3)
    for axes, study in zip(panels, studies, strict=True):
        axes.axhline(1.0, color=INK, linewidth=0.8)
        for n, cell in enumerate(list_cells(study), 1):
            scale, wrong = abs(float(cell.claim["regret"])) or 1.0, cell.agrees is False
            look = {"color": COLOURS[1 if wrong else 0], "fmt": "s" if wrong else "o", "markersize": 3.0}
            difference = cell.difference
            reach = [[(difference.value - difference.low) / scale], [(difference.high - difference.value) / scale]]
            axes.errorbar([n], [1.0 + difference.value / scale], yerr=reach, elinewidth=1.0, **look)
        axes.set_xticks([])
        set_titles(axes, study.experiment.name, "", "measured / published")
    return figure


def write_page(studies: Sequence["Study"], directory: Path) -> Path:
    """Write ``reproduction.html``, its figure and the tables as CSV; return the path of the page."""
    figure = plot_published(studies)
    write_figure(figure, directory, "reproduction")
    rows = [{"Result": s.experiment.name} | dict(row) for s in studies for row in tabulate(list_cells(s)).rows]
    write_text(directory / "reproduction.csv", ResultTable(rows).to_csv())
    context = {
        "results": [(study, list_cells(study), tabulate(list_cells(study)).to_html()) for study in studies],
        "figure": inline_svg(figure, "reproduction", "Measured over published regret, one panel for each result"),
        "alarm": f"{100.0 * ALARM:g} %",
    }
    path = directory / "reproduction.html"
    write_text(path, render("reproduction.html", context))
    return path
