"""Draw docs/overview.png: two arms that cover the same items, and regret of five policies on random coverage.

``python tools/overview.py`` takes some seconds.
"""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

import superarm as sa

HERE = Path(__file__).parent.parent / "docs"
POLICIES = {
    "uniform": sa.uniform(),
    "CUCB": sa.cucb(),
    "KL-UCB": sa.kl_ucb(),
    "Thompson sampling": sa.cts(),
    "directional KL-MOSS": sa.directional_kl_moss(),
}


def draw_batches(axes: Any) -> None:
    """Two batches of two arms over four items each: one with the same items twice, one with different items."""
    for column, (title, covered) in enumerate(
        {"2 of 4 items": ((0, 1), (0, 1)), "3 of 4 items": ((0, 1), (2,))}.items()
    ):
        left = 3.2 * column
        axes.text(left + 1.0, 4.6, title, ha="center", fontsize=10, weight="bold")
        for arm, items in enumerate(covered):
            colour, x, y = ("#0072b2", "#d55e00")[arm], left, 2.6 - 1.6 * arm
            axes.scatter([x], [y], s=420, color=colour, marker="s", zorder=3)
            axes.text(x, y, "AB"[arm], color="white", ha="center", va="center", weight="bold", zorder=4)
            for item in items:
                axes.plot([x, left + 2.0], [y, 3.6 - 1.1 * item], color=colour, linewidth=2)
        reached = {item for items in covered for item in items}
        for item in range(4):
            face = "#009e73" if item in reached else "white"
            axes.scatter([left + 2.0], [3.6 - 1.1 * item], s=160, facecolor=face, edgecolor="#555555", zorder=3)
    axes.text(2.6, -0.75, "squares: arms of the batch; circles: items", ha="center", fontsize=9, color="#444444")
    axes.set_xlim(-0.7, 6.0)
    axes.set_ylim(-1.1, 5.1)
    axes.axis("off")


def main() -> None:
    """Simulate, draw and write the picture; print the table that belongs to it."""
    from superarm.simulation.plots import draw_curves

    instance = sa.instances.random_coverage(n_arms=30, n_items=10, k=3, high=0.3)
    results = sa.simulate(instance, POLICIES, horizon=10_000, replications=10, seed=0)
    print(results)
    figure = Figure(figsize=(10, 3.8), layout="constrained", facecolor="white")
    batches, curves = figure.subplots(1, 2, width_ratios=(1, 1.35))
    draw_batches(batches)
    draw_curves(curves, results.rounds, results.regret)
    curves.set_xlabel("round")
    curves.set_ylabel("regret")
    curves.legend(frameon=False)
    curves.spines[["top", "right"]].set_visible(False)
    figure.savefig(HERE / "overview.png", dpi=130)


if __name__ == "__main__":
    main()
