"""Run an experiment: only the cells that its directory lacks."""

import datetime
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superarm.experiments import store
from superarm.experiments.analysis.study import Study
from superarm.experiments.execution.cells import Cell, divide, join_draws, leave_out
from superarm.experiments.execution.executors import Executor, TaskProgress, threads_for
from superarm.simulation.progress import Progress, can_show_bar, progress_bar
from superarm.simulation.regret import Target, choose_reference
from superarm.simulation.regret import target as regret_target
from superarm.simulation.runs import join_runs

if TYPE_CHECKING:
    from superarm.experiments.spec.experiment import Experiment


def run(
    experiment: "Experiment",
    directory: str | Path | None = None,
    executor: Executor | None = None,
    progress: bool = True,
) -> Study:
    """Run the cells that ``directory`` does not have yet, and return all its results.

    Parameters
    ----------
    experiment
        What to run.
    directory
        Where results go, ``results/<name>`` by default. Cells that are there are not run again, even if an earlier run
        was interrupted; a cell whose description changed is a new cell.
    executor
        Where to run: ``Threads(n)``, ``Processes(n)`` or ``Cluster("tcp://…")``. By default threads, one per core if
        kernels do most of the work. On small problems processes are quicker; a script that starts them needs
        ``if __name__ == "__main__":``. Results do not depend on it.
    progress
        Whether to show a progress bar; where there is no terminal, as in a log file, one line per finished cell on
        standard error.

    Returns
    -------
    The results of all cells of the experiment.

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
    path = Path(directory) if directory is not None else Path("results") / experiment.name
    cells = experiment.cells()
    chosen = executor or threads_for(cells)
    missing = [cell for cell in drop_duplicates(cells) if not store.has_cell(path, cell.digest)]
    started, begun = time.perf_counter(), store.begin_manifest(experiment, cells, chosen)
    _prepare_directory(path, experiment, cells, begun)
    with progress_bar(sum(cell.rounds for cell in missing), progress) as shown:
        if missing:
            log = _log_to_stderr(len(missing)) if progress and not can_show_bar() else lambda _: None
            _run_cells(path, missing, _find_targets(cells, missing), chosen, shown, log)
    stored = {cell.digest: store.read_metadata(path, cell.digest) for cell in cells}
    store.write_manifest(path, store.finish_manifest(begun, time.perf_counter() - started, stored))
    return Study.load(path)


def drop_duplicates(cells: Sequence[Cell]) -> list[Cell]:
    """The cells without those that are the same as another one under another name."""
    return list({cell.digest: cell for cell in cells}.values())


def _log_to_stderr(n_cells: int) -> Callable[[Cell], None]:
    """A function that writes a line about every finished cell: how many are finished, and the time since now."""
    started, finished = time.perf_counter(), 0

    def log(cell: Cell) -> None:
        nonlocal finished
        finished += 1
        elapsed = datetime.timedelta(seconds=round(time.perf_counter() - started))
        print(f"{elapsed} finished {finished} of {n_cells} cells: {cell.label}", file=sys.stderr, flush=True)

    return log


def _prepare_directory(path: Path, experiment: "Experiment", cells: Sequence[Cell], begun: dict[str, Any]) -> None:
    path.mkdir(parents=True, exist_ok=True)
    for source in {cell.source.digest: cell.source for cell in cells}.values():
        store.write_instance(path, source)
    store.write_text(path / "spec.toml", experiment.to_toml())
    store.write_manifest(path, begun)


def _run_cells(
    path: Path,
    cells: Sequence[Cell],
    targets: dict[str, Target],
    executor: Executor,
    shown: Progress,
    log: Callable[[Cell], None],
) -> None:
    """Run the cells; each is written and logged when its last replication is finished, finished tasks until then."""
    computed = store.provenance(executor)
    played = {cell.digest: store.read_parts(path, cell.digest) for cell in cells}
    finished = {
        digest: {first + n for first in blocks for n in range(len(blocks[first]))} for digest, blocks in played.items()
    }
    shown.advance(sum(cell.horizon * len(finished[cell.digest]) for cell in cells))

    def store_if_complete(cell: Cell) -> bool:
        blocks = played[cell.digest]
        if sum(map(len, blocks.values())) < cell.replications:
            return False
        runs = join_runs([blocks[first] for first in sorted(blocks)])
        results = store.collect_results(cell, runs, targets[cell.digest])
        results.metadata["computed"] = computed | {"finished": store.now()}
        store.write_cell(path, cell, results)
        store.remove_parts(path, cell.digest)
        log(cell)
        return True

    left = [cell for cell in cells if not store_if_complete(cell)]
    workers = executor.capacity()
    tasks = join_draws(leave_out(divide(left, workers), finished), workers)
    for task, runs in executor.perform(tasks, TaskProgress(shown)):
        for cell, own in zip(task.cells, runs.divide(len(task.cells)), strict=True):
            played[cell.digest][task.first] = own
            if not store_if_complete(cell):
                store.write_part(path, cell.digest, task.first, own)


def _find_targets(cells: Sequence[Cell], missing: Sequence[Cell]) -> dict[str, Target]:
    """What the regret of each missing cell is measured against: one target per instance, for all policies on it."""
    known: dict[Any, Target] = {}
    for cell in missing:
        if cell.source.digest not in known:
            policy = cell.policy
            if cell.target == "approximation":
                rivals = {c.policy_case.label: c.policy for c in cells if c.source.digest == cell.source.digest}
                policy = choose_reference(cell.instance.problem, rivals)
            known[cell.source.digest] = regret_target(cell.instance, policy, cell.target, cell.horizon)
    return {cell.digest: known[cell.source.digest] for cell in missing}
