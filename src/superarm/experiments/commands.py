"""The laboratory on the command line: run, report, compare. Heavy imports stand in the bodies, so that help is fast."""

import sys
from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("spec")
@click.option("--out", type=click.Path(path_type=Path), help="Where results go; results/<name> by default.")
@click.option("--workers", type=click.IntRange(1), help="How many at once; all cores by default.")
@click.option("--processes", is_flag=True, help="Use processes instead of threads.")
@click.option("--scheduler", metavar="ADDRESS", help="Run on a Dask cluster: tcp://host:port.")
@click.option("--quiet", is_flag=True, help="Show no progress and no tables.")
def run(spec: str, out: Path | None, workers: int | None, processes: bool, scheduler: str | None, quiet: bool) -> None:
    """Run the experiment SPEC: a TOML file, or the name of a shipped one (quickstart, paper, recommendation, …).

    Cells that are there already are not run again. Results do not depend on where they were run.
    """
    from superarm.experiments.runner import run as run_experiment
    from superarm.experiments.shelf import find

    try:
        experiment = find(spec)
        directory = out or Path("results") / experiment.name
        executor = _executor(workers, processes, scheduler)
        _announce(experiment, directory, quiet)
        study = run_experiment(experiment, directory, executor, progress=not quiet)
        report = study.report()
    except KeyboardInterrupt:
        click.echo(f"\nInterrupted. What is finished is kept: superarm run {spec} continues.", err=True)
        sys.exit(130)
    if not quiet:
        click.echo(str(study))
    for figure in sorted((directory / "figures").glob("*.png")):
        click.echo(f"figure: {figure}")
    click.echo(f"report: {report}")


def _executor(workers: int | None, processes: bool, scheduler: str | None) -> Any:
    from superarm.experiments.cluster import Cluster
    from superarm.experiments.executors import Processes, Threads

    if scheduler and (processes or workers):
        raise click.UsageError("--scheduler takes the cluster's own workers; leave out --workers and --processes")
    if scheduler:
        return Cluster(scheduler)
    kind = Processes if processes else Threads
    return kind(workers) if workers else kind()


def _announce(experiment: Any, directory: Path, quiet: bool) -> None:
    from superarm.experiments import store

    if quiet:
        return
    digests = {cell.digest for cell in experiment.cells()}
    done = sum(store.holds(directory, digest) for digest in digests)
    kept = f", {done} of them done before" if done else ""
    click.echo(f"{experiment.name}: {len(digests)} cells{kept}; results go to {directory}", err=True)


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
def report(directory: Path) -> None:
    """Build the report of DIRECTORY anew from the cells it holds."""
    from superarm.experiments.study import Study

    click.echo(f"report: {Study.load(directory).report()}")


@click.command()
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Also write the comparison as an HTML page.")
def compare(first: Path, second: Path, out: Path | None) -> None:
    """Set two runs side by side: regret, the difference with its significance, and run time."""
    from superarm.experiments.comparison import lines, write
    from superarm.experiments.study import Study

    a, b = Study.load(first), Study.load(second)
    click.echo("\n".join(lines(a, b)))
    if out is not None:
        write(a, b, out)
        click.echo(f"page: {out}")


@click.command()
@click.argument("spec")
@click.option("--out", type=click.Path(path_type=Path), help="Where figures go; bounds/<name> by default.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def bounds(spec: str, out: Path | None, quiet: bool) -> None:
    """Set simulated regret beside the lower and upper bounds, for every instance of the experiment SPEC.

    Prints a table an instance, writes its figure, and tells from which round on each bound says more than nothing.
    """
    from superarm.experiments.shelf import find
    from superarm.theory.report import bounds_report

    experiment = find(spec)
    directory = out or Path("bounds") / experiment.name
    for number, (world, policies) in enumerate(_by_world(experiment).values(), 1):
        place = directory / f"{number:02d}"
        click.echo(f"\n{world.case.label}")
        size = (experiment.horizon, experiment.replications, experiment.seed)
        click.echo(bounds_report(world.instance, policies, *size, out_dir=place, progress=not quiet))
        click.echo(f"figure: {place / 'bounds.png'}")


def _by_world(experiment: Any) -> dict[str, Any]:
    """Each instance of the experiment with its policies by label."""
    worlds: dict[str, Any] = {}
    for cell in experiment.cells():
        worlds.setdefault(cell.world.digest, (cell.world, {}))[1][cell.case.label] = cell.policy
    return worlds
