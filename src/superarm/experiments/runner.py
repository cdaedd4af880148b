"""Run an experiment: only the cells that are missing, anywhere, to the same bits."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superarm.experiments import manifest, store
from superarm.experiments.cells import Cell
from superarm.experiments.executors import Executor, Threads
from superarm.experiments.study import Study
from superarm.experiments.tasks import divide
from superarm.experiments.watch import Watch
from superarm.simulation.progress import Progress, bar
from superarm.simulation.regret import Target
from superarm.simulation.regret import target as regret_target
from superarm.simulation.runs import Run

if TYPE_CHECKING:
    from superarm.experiments.spec import Experiment


def run(
    experiment: "Experiment",
    directory: str | Path | None = None,
    executor: Executor | None = None,
    progress: bool = True,
) -> Study:
    """Run the cells that ``directory`` does not hold yet, and return what it then holds.

    Parameters
    ----------
    experiment
        What to run.
    directory
        Where results go, ``results/<name>`` by default. Cells that are there already are not run again, whatever
        interrupted an earlier run; cells whose description changed are new cells.
    executor
        Where to run: ``Threads(n)`` (all cores by default), ``Processes(n)`` or ``Cluster("tcp://…")``. Results do
        not depend on it.
    progress
        Whether to show a progress bar on a terminal.

    Examples
    --------
    >>> import superarm as sa, tempfile
    >>> experiment = sa.Experiment(
    ...     name="tiny",
    ...     instances={"random": {"generator": "random_coverage", "n_arms": 6, "n_items": 2, "k": 2}},
    ...     policies={"KL-UCB": {"policy": "kl_ucb"}},
    ...     horizon=50,
    ...     replications=2,
    ... )
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     study = run(experiment, directory, progress=False)
    ...     study.table().column_names
    ['instance', 'policy', 'replication', 'round', 'regret']
    """
    place = Path(directory) if directory is not None else Path("results") / experiment.name
    where = executor or Threads()
    cells = experiment.cells()
    missing = [cell for cell in unique(cells) if not store.holds(place, cell.digest)]
    started, begun = time.perf_counter(), manifest.begin(experiment, cells, where)
    _begin(place, experiment, cells, begun)
    with bar(sum(cell.horizon * cell.replications for cell in missing), progress) as shown:
        if missing:
            _run(place, missing, where, shown)
    results = {cell.digest: store.facts(place, cell.digest)["results"] for cell in cells}
    manifest.write(place, manifest.finish(begun, time.perf_counter() - started, results))
    return Study.load(place)


def unique(cells: Sequence[Cell]) -> list[Cell]:
    """The cells without those that are the same under another name."""
    return list({cell.digest: cell for cell in cells}.values())


def _begin(place: Path, experiment: "Experiment", cells: Sequence[Cell], begun: dict[str, Any]) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for world in {cell.world.digest: cell.world for cell in cells}.values():
        store.write_instance(place, world)
    store.write_text(place / "spec.toml", experiment.to_toml())
    manifest.write(place, begun)


def _run(place: Path, cells: Sequence[Cell], executor: Executor, shown: Progress) -> None:
    """Play the cells; each is written when its last replication is in."""
    by_digest = {cell.digest: cell for cell in cells}
    tasks = divide(cells, executor.lanes())
    targets = _targets(cells)
    played: dict[str, dict[int, list[Run]]] = {cell.digest: {} for cell in cells}
    for task, runs in executor.perform(tasks, Watch(shown)):
        blocks = played[task.cell]
        blocks[task.first] = runs
        if sum(map(len, blocks.values())) == by_digest[task.cell].replications:
            cell = by_digest[task.cell]
            ordered = [run for first in sorted(blocks) for run in blocks[first]]
            store.write(place, cell, store.record(cell, ordered, targets[cell.digest]))
            del played[task.cell]


def _targets(cells: Sequence[Cell]) -> dict[str, Target]:
    """What each cell is measured against; the optimum of an instance is searched once, not once a policy."""
    known: dict[Any, Target] = {}
    found = {}
    for cell in cells:
        promise = cell.policy.fit(cell.world.instance.problem).guarantee(cell.world.instance.problem)
        key = (cell.world.digest, promise if cell.target == "approximation" else None)
        if key not in known:
            known[key] = regret_target(cell.world.instance, cell.policy, cell.target, cell.horizon)
        found[cell.digest] = known[key]
    return found
