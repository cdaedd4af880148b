"""The report: one self-contained HTML file; figures and tables beside it for papers."""

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superarm.errors import MissingExtra
from superarm.experiments import plots, sections, summary
from superarm.experiments.figures import data_uri, export, inline
from superarm.experiments.store import write_text
from superarm.experiments.tables import chance, number
from superarm.simulation.plots import png

if TYPE_CHECKING:
    from superarm.experiments.study import Study


_PANELS = 8
"""What a figure in a paper has room for; ``study.plot(instance)`` draws any other."""


def build(study: "Study") -> Path:
    """Write ``report.html``, ``figures/`` and ``tables/`` into the study's directory; the path of the report."""
    place = study.directory
    tables = sections.tables(study)
    files = [f"tables/{name}" for table in tables for name in table.export(place / "tables")]
    files = [f"figures/{name}" for name in _papers(study, place / "figures")] + files
    path = place / "report.html"
    write_text(path, page("report.html", _context(study) | {"files": files}))
    return path


def page(name: str, context: dict[str, Any]) -> str:
    """A template filled in."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingExtra("jinja2", "lab") from None
    loader = PackageLoader("superarm.experiments", "templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters |= {"number": number, "p": chance, "stars": stars, "paragraphs": paragraphs}
    return environment.get_template(name).render(context)


def _papers(study: "Study", directory: Path) -> list[str]:
    """The figures that papers want, with their legends: curves a declared instance, regret along each axis."""
    names = []
    for name in dict.fromkeys(case.name for case in study.worlds.values()):
        worlds = [label for label, case in study.worlds.items() if case.name == name and study.of(label)]
        if worlds:
            names += export(plots.curves(study, worlds[:_PANELS]), directory, f"curves-{slug(name)}")
    lines = study.lines
    for axis in dict.fromkeys(line.axis for line in lines):
        figure = plots.sweeps([line for line in lines if line.axis == axis])
        names += export(figure, directory, f"sweep-{slug(axis)}")
    return names


def _context(study: "Study") -> dict[str, Any]:
    verdicts = study.verdicts
    return {
        "study": study,
        "experiment": study.experiment,
        "manifest": study.manifest,
        "title": study.experiment.title or study.experiment.name,
        "legend": sections.legend(study),
        "verdicts": verdicts,
        "held": sum(verdict.holds is True for verdict in verdicts),
        "instances": sections.instances(study),
        "policies": sections.policies(study),
        "curves": sections.curves(study),
        "rankings": study.rankings,
        "overall": summary.overall(study),
        "sweeps": sections.sweeps(study),
        "heats": sections.heats(study),
        "limits": sections.limits(study),
        "pace": inline(plots.paces(study), "pace", "Microseconds a round of each policy"),
        "spec": study.experiment.to_toml(),
        "command": f"superarm run {shlex.quote(str(Path(study.directory.name) / 'spec.toml'))}",
    }


def notebook(study: "Study") -> str:
    """A short form for notebooks: the figure of the first instances, and the ranking."""
    worlds = [world for world in study.worlds if study.of(world)]
    picture = data_uri(png(study.plot(worlds[0]) if len(worlds) == 1 else plots.curves(study, worlds[:4])))
    rankings = {world: study.rankings[world] for world in worlds[:4]}
    context = {"study": study, "picture": picture, "rankings": rankings, "more": len(worlds) - len(rankings)}
    return page("notebook.html", context)


def slug(name: str) -> str:
    """A name as a file has it.

    >>> slug("BC-UCB: rho")
    'BC-UCB-rho'
    """
    return "-".join("".join(c if c.isalnum() or c in "-_." else " " for c in name).split())


def stars(p: float) -> str:
    """How sure a difference is, at a glance."""
    return "" if math.isnan(p) else "***" if p < 0.001 else "**" if p < 0.01 else "*" if p < 0.05 else "n. s."


def paragraphs(text: str) -> list[str]:
    """Text divided at empty lines."""
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
