"""What ``total_thompson`` earns in ten worlds of which only totals are seen, beside the floors that it must keep.

    OMP_NUM_THREADS=1 python -m dev.benchmarks.totals --seed 911 --decisions 2000

A share is that of the gap between random sets (0) and the best set found (1). The command fails below a floor.
"""

import time
from typing import Any

import click
import numpy as np

from dev.benchmarks.worlds_of_totals import WORLDS
from superarm import Problem, Total
from superarm.actions import Subsets
from superarm.core.ops import load
from superarm.core.streams import run_keys
from superarm.output.table import Table
from superarm.policies import total_thompson
from superarm.simulation.engine import Run

FLOORS = {
    2_000: {
        **{"sum": 0.60, "logit": 0.65, "sensors": 0.80, "pairs": 0.80, "digits": 0.40},
        **{"revenue": 0.48, "tastes": 0.40, "hidden": 0.35, "page": 0.30},
    },
    20_000: {"sum": 0.85, "page": 0.65, "hidden": 0.70, "many": 0.22},
}
"""The mean share of all decisions, of ten draws."""

WORST, OF = 0.6, ("sum", "hidden", "page", "pairs")
"""After 20,000 decisions no draw may be below this in the last fifth."""


def play(kind: str, seed: int, decisions: int, draws: int, policy: Any) -> dict[str, Any]:
    """The row of one world."""
    world = WORLDS[kind](seed, draws)
    low, high = world.reference()
    problem = Problem(world.n_arms, reward=Total(), actions=Subsets(world.k))
    run = Run(problem, world, policy, run_keys(np.random.SeedSequence(7).spawn(draws)))
    start, before = time.process_time(), decisions - decisions // 5
    run.advance(before)
    earned = run.earned.copy()
    run.advance(decisions)
    late = (run.earned - earned) / (decisions - before)
    whole, last = ((worth - low) / (high - low) for worth in (run.earned / decisions, late))
    floor = FLOORS.get(decisions, {}).get(kind)
    kept = floor is None or whole.mean() >= floor
    kept = kept and not (decisions == 20_000 and kind in OF and last.min() < WORST)
    return {
        "world": kind,
        "share": round(float(whole.mean()), 3),
        "floor": "" if floor is None else f"{floor:.2f}",
        "last fifth": round(float(last.mean()), 3),
        "worst draw": round(float(last.min()), 3),
        "µs": round(1e6 * (time.process_time() - start) / decisions / draws),
        "kept": "yes" if kept else "no",
    }


@click.command(help=__doc__)
@click.option("--seed", default=911, help="The seed of the worlds; 911 is that of the design, another one is fresh.")
@click.option(
    "--decisions", default=2_000, help="How many decisions each draw has; there are floors at 2000 and 20000."
)
@click.option("--draws", default=10, help="Draws of each world.")
@click.option("--sharpness", default=4.0)
@click.option("--later", default=2.0)
@click.argument("worlds", nargs=-1, type=click.Choice([*WORLDS]))
def main(seed: int, decisions: int, draws: int, sharpness: float, later: float, worlds: tuple[str, ...]) -> None:
    load()
    rows = []
    for kind in worlds or [kind for kind in WORLDS if kind != "many"]:
        rows.append(play(kind, seed, decisions, draws, total_thompson(sharpness, later)))
        print(f"{kind}: {rows[-1]['share']}", flush=True)
    print(Table(rows))
    if any(row["kept"] == "no" for row in rows):
        raise SystemExit("a floor was missed")


if __name__ == "__main__":
    main()
