"""Draw docs/overview.svg: what superarm earns beside a shop's present list, over visits.

``python -m dev.tools.overview results/earnings/curves.csv`` takes the curves that ``python -m dev.earnings`` writes.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from dev.earnings.report import LIST
from dev.earnings.shops import HELD_OUT
from dev.tools.example_pictures import INKED
from dev.tools.gallery import write_svg
from superarm.experiments.report.figures import INK, figure_settings
from superarm.simulation.plots import new_figure

PICTURE = Path(__file__).parents[2] / "docs" / "overview.svg"
POLICIES = {
    "superarm, starting from the list": (LIST, "-", "#0072b2"),
    "superarm, starting from nothing": ("pooled_thompson", "--", "#d55e00"),
    "Thompson sampling from nothing": ("cts", ":", "#555555"),
}


def main() -> None:
    """Draw and write the picture; print its numbers."""
    with matplotlib.rc_context(INKED), figure_settings("overview"), Path(sys.argv[1]).open(newline="") as file:
        write_svg(
            draw(list(csv.DictReader(file))), PICTURE, "Earnings so far over those of the shop's own list, over visits"
        )


def draw(rows: list[dict[str, str]]) -> Any:
    """The figure, of the simulated shops that were held out; the numbers behind it are printed."""
    figure = new_figure(figsize=(8.0, 3.6))
    axes = figure.add_subplot()
    for name, (policy, style, colour) in POLICIES.items():
        found = defaultdict(list)
        for row in rows:
            if row["policy"] == policy and row["shop"] in HELD_OUT:
                found[int(row["visits"])].append(float(row["ratio"]))
        visits, ratio = np.array(list(found)), np.array([np.mean(ratios) for ratios in found.values()])
        axes.plot(visits, ratio, style, color=colour, label=name, linewidth=2.0)
        print(f"{name}: {', '.join(f'first {n:,}: {np.mean(found[n]):.2f}' for n in (1_000, 20_000))} of the list")
    axes.axhline(1.0, color=INK, linewidth=1.0)
    axes.text(11, 1.015, "the shop's own list", fontsize=9)
    axes.set_xscale("log")
    axes.set_xticks([10, 100, 1_000, 10_000], ["10", "100", "1,000", "10,000"])
    axes.set_xlabel("visits")
    axes.set_ylabel("earnings so far ÷ the list's")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    return figure


if __name__ == "__main__":
    main()
