"""How a round's time grows with arms, items, the batch and the round: superarm and the C++ loop, as a figure."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import superarm as sa
from benchmarks import native
from benchmarks.rounds import compare, native_timer, superarm_timer
from benchmarks.states import jumped, parameters

BASE = {"L": 300, "M": 60, "K": 10}
SWEEPS = {
    "L": (30, 100, 300, 1_000, 3_000, 10_000),
    "M": (6, 20, 60, 200, 600),
    "K": (1, 3, 10, 30, 100),
    "t": (1_000, 3_000, 10_000, 30_000, 100_000, 300_000),
}
NAMES = {"L": "arms L", "M": "items M", "K": "batch size K", "t": "round t"}


def point(sizes: dict[str, int], t: int | None) -> dict[str, float]:
    """Median microseconds a round of each contestant; without ``t``, where arms have been pulled 1,000 times."""
    n_arms, n_items, k = sizes["L"], sizes["M"], sizes["K"]
    problem = sa.Problem(n_arms, n_items, sa.Coverage(), sa.Subsets(k))
    pulls = 1_000 if t is None else max(1, t * k // n_arms)
    state = jumped(problem, parameters("clustered", n_arms, n_items), pulls * n_arms // k, pulls)
    timers = {"superarm": superarm_timer(state, sa.bc_ucb().fit(problem))}
    if native.available():
        timers["C++"] = native_timer(state)
    return {name: float(np.median(times)) for name, times in compare(timers, seconds=0.02, samples=3).items()}


def draw(found: dict[str, list[tuple[int, dict[str, float]]]], path: Path) -> None:
    """One panel a sweep, both axes logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 6.2), layout="constrained")
    axes: Any = figure.subplots(2, 2)
    for panel, (name, points) in zip(axes.flat, found.items(), strict=True):
        for contestant in points[0][1]:
            panel.loglog([x for x, _ in points], [y[contestant] for _, y in points], "o-", label=contestant)
        panel.set_xlabel(NAMES[name])
        panel.set_ylabel("µs a round")
        panel.grid(alpha=0.3)
    axes.flat[0].legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    print(f"figure: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", type=Path, default=Path("out/bench/scaling.png"))
    arguments = parser.parse_args()
    found: dict[str, list[tuple[int, dict[str, float]]]] = {}
    for name, values in SWEEPS.items():
        found[name] = []
        for value in values:
            sizes = BASE if name == "t" else BASE | {name: value}
            times = point(sizes, value if name == "t" else None)
            found[name].append((value, times))
            told = "  ".join(f"{who} {taken:9.2f} µs" for who, taken in times.items())
            print(f"{name} = {value:7d}  {told}", flush=True)
    draw(found, arguments.figure)


if __name__ == "__main__":
    main()
