"""The commands of the laboratory. Heavy imports are inside the functions, so that ``--help`` answers at once."""

import importlib
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from superarm.core.errors import MissingExtra

NEEDED = ("jinja2", "matplotlib", "pyarrow")
"""What results, figures and reports are written with; the extra ``lab`` installs it."""

IMPORT = click.option(
    "--import",
    "imports",
    multiple=True,
    metavar="MODULE",
    help="A module (for experiments also a .py file) with components of your own; may be given several times.",
)


@click.command()
@click.argument("spec")
@click.option("--out", type=click.Path(path_type=Path), help="Where results go; results/<name> by default.")
@IMPORT
@click.option("--workers", type=click.IntRange(1), help="How many tasks to run at once; all cores by default.")
@click.option(
    "--processes/--threads", default=None, help="Where to run; by default in processes, if there is enough work."
)
@click.option("--scheduler", metavar="ADDRESS", help="Run on a Dask cluster: tcp://host:port.")
@click.option("--quiet", is_flag=True, help="Show no progress and no tables.")
def run(
    spec: str,
    out: Path | None,
    imports: tuple[str, ...],
    workers: int | None,
    processes: bool | None,
    scheduler: str | None,
    quiet: bool,
) -> None:
    """Run the experiment SPEC: a TOML file, or the name of a shipped one (quickstart, paper, items, …).

    Cells that the directory already has are not run again, nor are finished replications of an interrupted run.
    Results do not depend on where they are run.
    """
    from superarm.experiments.execution.runner import run as run_experiment
    from superarm.experiments.spec.experiment import find_experiment

    _require_lab()
    try:
        experiment = find_experiment(spec, imports)
        directory = out or Path("results") / experiment.name
        executor = _executor(experiment, workers, processes, scheduler)
        _announce(experiment, directory, quiet)
        study = run_experiment(experiment, directory, executor, progress=not quiet)
        report = study.report()
    except KeyboardInterrupt:
        again = _repeat(spec, out, imports)
        click.echo(f"\nInterrupted. Finished replications are kept: {again} continues.", err=True)
        sys.exit(130)
    if not quiet:
        click.echo(str(study))
    for figure in sorted((directory / "figures").glob("*.png")):
        click.echo(f"figure: {figure}")
    click.echo(f"report: {report}")


def _require_lab() -> None:
    """Refuse a run whose results could not be written, before anything is run."""
    for package in NEEDED:
        try:
            importlib.import_module(package)
        except ImportError:
            raise MissingExtra(package, "lab") from None


def _repeat(spec: str, out: Path | None, imports: tuple[str, ...]) -> str:
    """The command that continues a run: what decides about its results and where they go."""
    options = [f"--out={out}"] if out else []
    return shlex.join(["superarm", "run", spec, *options, *(f"--import={module}" for module in imports)])


def _executor(experiment: Any, workers: int | None, processes: bool | None, scheduler: str | None) -> Any:
    from superarm.experiments.execution.cluster import Cluster
    from superarm.experiments.execution.executors import Processes, Threads, processes_for

    if scheduler and (processes is not None or workers):
        wrong = "leave out --workers, --processes and --threads"
        raise click.UsageError(f"--scheduler uses the cluster's own workers; {wrong}")
    if scheduler:
        return Cluster(scheduler)
    if processes is None:
        return processes_for(experiment.cells(), workers)
    kind = Processes if processes else Threads
    return kind(workers) if workers else kind()


def _announce(experiment: Any, directory: Path, quiet: bool) -> None:
    from superarm.experiments import store

    if quiet:
        return
    digests = {cell.digest for cell in experiment.cells()}
    done = sum(store.has_cell(directory, digest) for digest in digests)
    kept = f", {done} of them already done" if done else ""
    click.echo(f"{experiment.name}: {len(digests)} cells{kept}; results go to {directory}", err=True)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "listed", is_flag=True, help="List the results that superarm has, and run nothing.")
@click.option("--quick", is_flag=True, help="Each policy on one instance, 4 times: a few minutes for all results.")
@click.option("--out", type=click.Path(path_type=Path), help="Where results go; results/reproduce by default.")
@click.option("--workers", type=click.IntRange(1), help="How many tasks to run at once; all cores by default.")
@click.option("--scheduler", metavar="ADDRESS", help="Run on a Dask cluster: tcp://host:port.")
@click.option("--quiet", is_flag=True, help="Show no progress and no tables.")
def reproduce(
    names: tuple[str, ...],
    listed: bool,
    quick: bool,
    out: Path | None,
    workers: int | None,
    scheduler: str | None,
    quiet: bool,
) -> None:
    """Run published results again, and show published beside measured numbers.

    A NAME is one of --list, or an experiment file with claims of the kind reported; by default all of --list are run.
    Finished cells are kept, so that an interrupted command goes on where it was.
    """
    from superarm.experiments.spec.experiment import find_experiment, list_published

    if listed:
        for name in list_published():
            source = find_experiment(name).published
            click.echo(f"{name}: {source['paper']}, {source['place']}, {source['read']}")
        return
    _require_lab()
    chosen = [find_experiment(name) for name in names or list_published()]
    directory = out or Path("results") / ("reproduce-quick" if quick else "reproduce")
    try:
        studies = [_reproduce(one, directory / one.name, quick, (workers, scheduler), quiet) for one in chosen]
    except KeyboardInterrupt:
        click.echo("\nInterrupted. Finished replications are kept: the same command continues.", err=True)
        sys.exit(130)
    from superarm.experiments.report.reproduction import write_page

    click.echo(f"page: {write_page(studies, directory)}")


def _reproduce(experiment: Any, directory: Path, quick: bool, where: tuple[Any, ...], quiet: bool) -> Any:
    """Run one published result, and print what was found."""
    from superarm.experiments.execution.runner import run as run_experiment
    from superarm.experiments.report.reproduction import list_cells, reduce_to_published, summarise, tabulate

    smaller = reduce_to_published(experiment, quick)
    _announce(smaller, directory, quiet)
    workers, scheduler = where
    study = run_experiment(smaller, directory, _executor(smaller, workers, None, scheduler), progress=not quiet)
    if not quiet:
        click.echo(str(tabulate(list_cells(study))))
    click.echo(summarise(study))
    return study


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@IMPORT
def report(directory: Path, imports: tuple[str, ...]) -> None:
    """Rebuild the report of DIRECTORY from the cells it has."""
    from superarm.experiments.analysis.study import Study
    from superarm.experiments.spec.imports import import_all

    import_all(imports)
    click.echo(f"report: {Study.load(directory).report()}")


@click.command()
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Also write the comparison as an HTML page.")
def compare(first: Path, second: Path, out: Path | None) -> None:
    """Compare two runs: regret, the difference with its significance, and run time."""
    from superarm.experiments.analysis.study import Study
    from superarm.experiments.report.comparison import format_comparison, write_comparison

    a, b = Study.load(first), Study.load(second)
    click.echo("\n".join(format_comparison(a, b)))
    if out is not None:
        write_comparison(a, b, out)
        click.echo(f"page: {out}")


@click.command()
@click.argument("spec")
@click.option("--out", type=click.Path(path_type=Path), help="Where figures go; bounds/<name> by default.")
@click.option("--results", type=click.Path(path_type=Path), help="Results of superarm run; results/<name> by default.")
@IMPORT
@click.option("--quiet", is_flag=True, help="Show no progress.")
def bounds(spec: str, out: Path | None, results: Path | None, imports: tuple[str, ...], quiet: bool) -> None:
    """Compare simulated regret with its bounds, for every instance of the experiment SPEC.

    Prints one table per instance, writes its figure, and says from which round on each bound beats the trivial one.
    Instances whose results superarm run has stored are not simulated again.
    """
    from superarm.experiments.analysis.bounds import read_results
    from superarm.experiments.spec.experiment import find_experiment
    from superarm.theory.report import bounds_report

    _require_lab()
    experiment = find_experiment(spec, imports)
    directory = out or Path("bounds") / experiment.name
    where = results or Path("results") / experiment.name
    for number, cells in enumerate(_group_by_instance(experiment), 1):
        folder, stored = directory / f"{number:02d}", read_results(where, cells)
        click.echo(f"\n{cells[0].source.case.label}{f', with the regret in {where}' if stored else ''}")
        policies = {cell.policy_case.label: cell.policy for cell in cells}
        size = (experiment.horizon, experiment.replications, experiment.seed)
        click.echo(bounds_report(cells[0].instance, policies, *size, folder, progress=not quiet, results=stored))
        click.echo(f"figure: {folder / 'bounds.png'}")


def _group_by_instance(experiment: Any) -> list[list[Any]]:
    """The cells of each instance of the experiment."""
    groups: dict[str, list[Any]] = {}
    for cell in experiment.cells():
        groups.setdefault(cell.source.digest, []).append(cell)
    return list(groups.values())
