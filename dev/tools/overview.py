"""Draw docs/overview.svg: what superarm earns beside a shop's present list, over visits.

``python -m dev.tools.overview`` takes minutes: seven kinds of shops that no policy was developed on, ten draws each.
"""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from dev.earnings.commands import VISITS, play
from dev.earnings.shops import KINDS
from dev.tools.example_pictures import INKED
from dev.tools.gallery import write_svg
from superarm.experiments.report.figures import INK, figure_settings
from superarm.simulation.plots import new_figure

PICTURE = Path(__file__).parents[2] / "docs" / "overview.svg"
DRAWS = 10
POLICIES = {
    "superarm, starting from the list": ("pooled_thompson, baseline", "-", "#0072b2"),
    "superarm, starting from nothing": ("pooled_thompson", "--", "#d55e00"),
    "Thompson sampling from nothing": ("cts", ":", "#555555"),
}


def main() -> None:
    """Serve the shops, draw and write the picture; print its numbers."""
    with matplotlib.rc_context(INKED), figure_settings("overview"):
        write_svg(draw(), PICTURE, "Earnings so far over those of the shop's own list, over visits")


def draw() -> Any:
    """The figure; the numbers behind it are printed."""
    figure = new_figure(figsize=(8.0, 3.6))
    axes = figure.add_subplot()
    shops = [name for name, kind in KINDS.items() if kind.held_out]
    for name, (policy, style, colour) in POLICIES.items():
        entries = [play(shop, policy, DRAWS, VISITS) for shop in shops]
        visits, ratio = entries[0].visits, np.mean([(one.earned / one.present).mean(0) for one in entries], axis=0)
        axes.plot(visits[visits >= 10], ratio[visits >= 10], style, color=colour, label=name, linewidth=2.0)
        parts = (f"first {n:,}: {np.mean([one.relative(n).mean() for one in entries]):.2f}" for n in (1_000, VISITS))
        print(f"{name}: {', '.join(parts)} of the list")
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
