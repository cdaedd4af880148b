"""``superarm compact`` and ``superarm erase``. Heavy imports are inside of the functions."""

from pathlib import Path

import click

from superarm.core.errors import SuperarmError
from superarm.service.command_options import DB, IMPORT, open_for_reading


@click.command()
@DB
@click.option(
    "--archive",
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory that gets a Parquet file with the events of the decisions that leave the log.",
)
@click.option("--discard", is_flag=True, help="Keep no archive: the decisions are lost, their counts stay.")
@click.option(
    "--older-than",
    type=click.FloatRange(min=0.0),
    default=30.0,
    show_default=True,
    metavar="DAYS",
    help="Only decisions that ended, and did not change for so long.",
)
@IMPORT
def compact(db: str, archive: Path | None, discard: bool, older_than: float, imports: tuple[str, ...]) -> None:
    """Move old decisions from the log to an archive, and remove erased ones; no service may run.

    The log then begins with a snapshot that was verified; counters, settings and pending decisions stay as they are.
    """
    import time

    from superarm.service.server import import_components
    from superarm.service.storage.compaction import compact as run

    if (archive is None) != discard:
        raise SuperarmError("give --archive DIRECTORY, or --discard to keep no archive")
    import_components(imports)
    with open_for_reading(db) as store:
        done = run(store, archive, int((time.time() - 86_400 * older_than) * 1000))
        n_events = sum(1 for _ in store.tail({}))
    where = "" if done.archive is None else f" to {done.archive}"
    click.echo(f"{done.archived} decisions archived{where}, {done.removed} removed")
    click.echo(f"{n_events} events stay in the log")


@click.command()
@DB
@click.option(
    "--archive",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="The directory with the files that superarm compact has written.",
)
@click.option("--problem", required=True, help="The problem that the decisions belong to.")
@click.option("--tenant", default="default", show_default=True, help="The tenant of the problem.")
@click.option("--unit", default=None, help="Erase all decisions that were made for this unit.")
@click.option("--decision", default=None, metavar="ID", help="Erase this decision.")
@IMPORT
def erase(
    db: str,
    archive: Path,
    problem: str,
    tenant: str,
    unit: str | None,
    decision: str | None,
    imports: tuple[str, ...],
) -> None:
    """Erase archived decisions of a person from the archive and from the counters; no service may run.

    Decisions that are still in the log are erased over HTTP: POST /v1/problems/{name}/erasures.
    """
    from superarm.service.server import import_components
    from superarm.service.storage.archive_erasure import erase_archived

    if (unit is None) == (decision is None):
        raise SuperarmError("give --unit UNIT, or --decision ID")
    import_components(imports)
    with open_for_reading(db) as store:
        done = erase_archived(store, archive, (tenant, problem), unit=unit, decision=decision, by="superarm erase")
    click.echo(f"{done.erased} decisions erased from {archive} and from the counters")
    for old, new in done.replaced.items():
        click.echo(f"{old} was replaced by {new}" if new else f"{old} was removed: nothing else was in it")
