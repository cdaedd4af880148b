"""What a grid costs beyond its cells, on two threads with everything compiled; and how long its report takes.

The share is the wall time of the run over half of the cells' own seconds, less one. Cells' seconds are wall time too,
so that a busy machine hardly changes the share. The report is that of ten policies on twenty instances.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

import superarm as sa
from superarm.experiments.analysis.study import Study
from superarm.experiments.execution.executors import Threads

POLICIES = {
    f"{name} {level}": {"policy": name, "rho": level}
    for name, levels in (("bc_ucb", (0.1, 0.3, 1.0, 3.0)), ("cucb", (0.3, 1.0, 3.0)), ("kl_ucb", (0.3, 1.0, 3.0)))
    for level in levels
}


def experiment(horizon: int, replications: int, instances: int) -> Any:
    """Ten policies on random coverage instances."""
    return sa.Experiment(
        name="grid",
        instances={
            "random": {
                "generator": "random_coverage", "n_arms": 30, "n_items": 20, "k": 4,
                "seed": {"sweep": list(range(instances))},
            }
        },
        policies=POLICIES, horizon=horizon, replications=replications, seed=0,
    )  # fmt: skip


def run(plan: Any, directory: Path) -> tuple[float, float]:
    """Wall seconds of the run, and the cells' own seconds."""
    started = time.perf_counter()
    study = plan.run(directory, Threads(2), progress=False)
    taken = time.perf_counter() - started
    return taken, float(sum(record.seconds.sum() for record in study.records.values()))


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        run(experiment(200, 2, 1), Path(place, "warm"))
        for horizon in (1_000, 4_000):
            taken, own = run(experiment(horizon, 20, 4), Path(place, f"grid-{horizon}"))
            print(
                f"40 cells, {own:6.1f} s of their own: {taken:6.1f} s on 2 threads, {2 * taken / own - 1:+.1%}",
                flush=True,
            )
        run(experiment(200, 20, 20), Path(place, "large"))
        study = Study.load(Path(place, "large"))
        started = time.process_time()
        path = study.report()
        print(f"report of 10 x 20 cells: {time.process_time() - started:.1f} s, {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
