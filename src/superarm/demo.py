"""The demo: what batch size does to each policy, and which policy to take, on coverage with rare hits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from superarm.catalog import bc_ucb, cucb, kl_moss, kl_ucb, uniform
from superarm.policies import Policy
from superarm.simulation import Results, simulate
from superarm.simulation.instances import disjoint_batches, random_coverage
from superarm.simulation.plots import COLOURS, draw_curves, new_figure

SIZES = (2, 8, 32)
HORIZON, COVERAGE_HORIZON, REPLICATIONS = 60_000, 20_000, 6
WHY = """\
Left: one item, disjoint batches of K arms, each hit as rare as 1/K, so that problems with small and large K are
equally hard. CUCB's radius does not know that rare hits vary little, and its regret grows with K; the variance in
BC-UCB's radius and the KL bound do know. BC-UCB pays for its proof with large constants (9 log t / N): its regret
does not grow with K, but is high, and CUCB is better while K is small. KL-UCB has the same kind of guarantee with
small constants: take it in practice. Right: a random coverage problem, on which the paper's constants make BC-UCB
explore through the whole run; KL-MOSS, which has no proof here, is the quickest."""


def run(out: Path, seed: int, threads: int | None, echo: Callable[[str], Any]) -> Path:
    """Simulate, print a table of each problem, write the figure, and say where it is."""
    policies = {"BC-UCB": bc_ucb(), "CUCB": cucb(), "KL-UCB": kl_ucb()}
    by_size = {}
    for k in SIZES:
        echo(f"\nK = {k}: {128 // k + 1} disjoint batches, one item, hit probabilities near 1/K")
        by_size[k] = simulate(disjoint_batches(k), policies, HORIZON, REPLICATIONS, seed, "optimal", threads=threads)
        echo(str(by_size[k]))
    echo("\nRandom coverage: 40 arms, 20 items, K = 5, probabilities below 0.15")
    coverage = random_coverage(40, 20, 5, high=0.15, seed=seed)
    rivals: dict[str, Policy] = {**policies, "KL-MOSS": kl_moss(), "uniform": uniform()}
    learning = simulate(coverage, rivals, COVERAGE_HORIZON, REPLICATIONS, seed, threads=threads)
    echo(str(learning))
    echo(f"\n{WHY}")
    path = out / "demo.png"
    out.mkdir(parents=True, exist_ok=True)
    _figure(by_size, learning).savefig(path, dpi=150)
    echo(f"\nfigure: {path}")
    return path


def _figure(by_size: dict[int, Results], learning: Results) -> Any:
    figure = new_figure(figsize=(11.0, 4.4))
    left, right = figure.subplots(1, 2)
    for n, name in enumerate(by_size[SIZES[0]].regret):
        finals = [results.summary()[name] for results in by_size.values()]
        means, errors = zip(*finals, strict=True)
        bars = [1.96 * error for error in errors]
        left.errorbar(SIZES, means, bars, marker="o", capsize=3, color=COLOURS[n], label=name, linewidth=1.8)
    left.set_xscale("log", base=2)
    left.set_yscale("log")
    left.set_xticks(SIZES, [str(k) for k in SIZES])
    left.set_xlabel("batch size K")
    left.set_ylabel(f"regret after {HORIZON:,} rounds")
    left.set_title("rare hits: regret against batch size")
    left.grid(alpha=0.25, which="both")
    left.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False)
    draw_curves(right, learning)
    right.set_title("random coverage: regret over time")
    return figure
